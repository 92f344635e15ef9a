"""kilter makes neural networks fast on CPUs: it runs them, and quantizes them to INT8.

>>> model = kilter.load("model.onnx", threads=2)
>>> outputs = model.run({"image": images})  # {"logits": array}
>>> logits = model(images)  # the same, without names
>>> small = kilter.quantize(model, calibration=batches)  # any data loader
>>> small.save("int8.onnx")
>>> result = kilter.tune(model, metric="topk", data=batches, max_loss="2%")  # the fastest that is accurate enough
>>> result.met
True

In all examples `batches` is a data loader that yields (images, labels), and `accuracy` a function that says how good a model is.
"""

from importlib import import_module
from typing import Any

from . import data, frameworks, metrics, search
from ._kilter import Error, SearchOver, __version__
from ._quantize import Drift, QuantizedModel, Report, Stats, calibrate, compare, quantize
from .model import InputTypeError, InputValueError, Model, Port, load
from .search import register_strategy, strategy_names
from .tuning import Result, Sensitivity, recover, sensitivity, tune

__all__ = [
    "Drift",
    "Error",
    "InputTypeError",
    "InputValueError",
    "Model",
    "Port",
    "QuantizedModel",
    "Report",
    "Result",
    "SearchOver",
    "Sensitivity",
    "Stats",
    "__version__",
    "calibrate",
    "compare",
    "data",
    "frameworks",
    "load",
    "metrics",
    "quantize",
    "recover",
    "register_strategy",
    "search",
    "sensitivity",
    "strategy_names",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Imported when they are asked for: kilter.torch with its framework, and the interfaces of older tools."""
    if name in frameworks.names():
        return frameworks.module(name)
    if name in ("experimental", "quantization", "strategy", "utils"):
        return import_module(f"kilter.{name}")
    raise AttributeError(f"module 'kilter' has no attribute '{name}'")
