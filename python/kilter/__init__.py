"""kilter makes neural networks fast on CPUs: it runs them, and quantizes them to INT8.

>>> model = kilter.load("model.onnx", threads=2)
>>> outputs = model.run({"image": images})  # {"logits": array}
>>> logits = model(images)  # the same, without names
>>> small = kilter.quantize(model, calibration=batches)  # an iterable of arrays or of {name: array}
>>> small.save("int8.onnx")
"""

from . import data, metrics
from ._kilter import Error, __version__
from .model import InputTypeError, InputValueError, Model, Port, load
from .quantization import Drift, QuantizedModel, Report, Stats, calibrate, compare, quantize

__all__ = [
    "Drift",
    "Error",
    "InputTypeError",
    "InputValueError",
    "Model",
    "Port",
    "QuantizedModel",
    "Report",
    "Stats",
    "__version__",
    "calibrate",
    "compare",
    "data",
    "load",
    "metrics",
    "quantize",
]
