"""The interface of LPOT 1.2.1 and later and of Intel Neural Compressor 1.x: a script changes only its import.

>>> quantizer = Quantization({"tuning": {"accuracy_criterion": {"relative": 0.02}}})
>>> quantizer.model = "model.onnx"
>>> quantizer.calib_dataloader = batches
>>> quantizer.eval_func = accuracy
>>> q_model = quantizer.fit()
>>> q_model.met
True
"""

from . import common
from .benchmark import Benchmark
from .quantization import Quantization

__all__ = ["Benchmark", "Quantization", "common"]
