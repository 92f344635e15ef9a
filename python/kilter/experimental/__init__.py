"""The interface of LPOT 1.2.1 and later and of Intel Neural Compressor 1.x: a script changes only its import.

>>> quantizer = Quantization({"tuning": {"exit_policy": {"max_trials": 3}}})
>>> quantizer.model = fashion.model
>>> quantizer.calib_dataloader = fashion.loader
>>> quantizer.eval_func = fashion.accuracy
>>> q_model = quantizer.fit()
>>> q_model.met
True
"""

from . import common
from .benchmark import Benchmark
from .quantization import Quantization

__all__ = ["Benchmark", "Quantization", "common"]
