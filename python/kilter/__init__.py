"""kilter runs neural networks fast on CPUs.

>>> model = kilter.load("model.onnx", threads=2)
>>> outputs = model.run({"image": images})  # {"logits": array}
>>> logits = model(images)  # the same, without names
"""

from ._kilter import Error, __version__
from .model import InputTypeError, InputValueError, Model, Port, load

__all__ = ["Error", "InputTypeError", "InputValueError", "Model", "Port", "__version__", "load"]
