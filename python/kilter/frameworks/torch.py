"""PyTorch: modules go in through its own ONNX exporter, and come out as modules that run on kilter's engine.

>>> small = kilter.quantize(module, loader)  # a kilter.torch.Module: call it as you call the original
>>> small.save("int8.onnx")
>>> small = kilter.torch.load("int8.onnx")  # the original is not needed any more
"""

import inspect
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .. import model as engine
from ..errors import InputTypeError, InputValueError
from .signature import Signature
from .torch_arrays import DTYPES, as_array, as_tensor, is_tensor, memory_of, with_tensors
from .torch_export import export

__all__ = ["Bridge", "Module", "load"]


class Bridge:
    """Made by `kilter.frameworks.bridge_for(module)`."""

    name = "PyTorch"

    @staticmethod
    def accepts(model: Any) -> bool:
        return isinstance(model, torch.nn.Module)

    def __init__(self) -> None:
        self._signature: Signature | None = None
        self._forward: inspect.Signature | None = None
        self._positional: int | None = None  # arguments that the example gave by position

    def load(self, model: torch.nn.Module, example: Any) -> engine.Model:
        """Exports the module; it is left as it is: its mode, its gradients, its stubs."""
        if isinstance(model, Module):
            self._signature = model.signature
            self._forward = model.signature.python
            return model.model
        self._forward = inspect.signature(model.forward)
        args, kwargs = self._call(with_tensors(example))
        self._positional = len(args)
        exported, self._signature = export(model, args, kwargs)
        return exported

    def arrays(self, item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return as_array("the item", item)
        if isinstance(item, Mapping):
            return {name: self.arrays(entry) for name, entry in item.items()}
        if isinstance(item, list | tuple):
            return [self.arrays(entry) for entry in item]
        return item

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        args, kwargs = self._call(with_tensors(item))
        tensors = self._signature.tensors(args, kwargs, is_tensor)
        return {
            name: as_array(f"input '{name}'", tensor)
            for name, tensor in zip(self._signature.inputs, tensors, strict=True)
        }

    def wrap(self, model: engine.Model, original: torch.nn.Module) -> "Module":
        return Module(model, self._signature)

    def _call(self, item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How `forward` is called with an item of a data loader, and what of it is a label.

        A mapping whose keys are parameters of `forward` gives these; what `forward` does not take is left out. A tuple or
        list gives the arguments in order. When `forward` needs only one, a pair is (inputs, label); and one more than
        `forward` can take is a label at the end.
        """
        if isinstance(item, list | tuple) and len(item) == self._positional and len(item) > 1:
            return tuple(item), {}
        parameters = self._forward.parameters.values()
        if isinstance(item, Mapping):
            if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
                return (), dict(item)
            known = {name: item[name] for name in self._forward.parameters if name in item}
            return ((), known) if known else ((item,), {})
        if not isinstance(item, list | tuple):
            return (item,), {}
        positional = [
            parameter
            for parameter in parameters
            if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ]
        any_number = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
        needed = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
        if len(item) == 2 and needed == 1 and not any_number:
            return self._call(item[0])
        if not any_number and len(item) == len(positional) + 1:
            item = item[:-1]
        if needed <= len(item) and (any_number or len(item) <= len(positional)):
            return tuple(item), {}
        if len(positional) == 1:
            return (item,), {}
        raise InputValueError(f"an item has {len(item)} entries, forward takes {self._forward}")


class Module(torch.nn.Module):
    """Runs a model on kilter's engine, without copies; takes and returns what the original module does.

    It has no parameters: `state_dict` is empty, `to("cpu")` and `eval()` change nothing. `torch.save` keeps all of it.
    """

    def __init__(self, model: engine.Model, signature: Signature):
        super().__init__()
        self._model = model
        self.signature = signature
        self._build = signature.output_builder()
        self._dtypes = tuple(DTYPES.get(port.dtype) for port in model.inputs)
        self.training = False

    @property
    def model(self) -> engine.Model:
        """What runs: a kilter.Model; for a quantized one a kilter.QuantizedModel with its plan and report."""
        return self._model

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def train(self, mode: bool = True) -> "Module":
        """There is nothing to train: it stays in evaluation mode."""
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self.signature.tensors(args, kwargs, is_tensor)
        native = []
        for tensor, port, dtype in zip(tensors, self._model.inputs, self._dtypes, strict=True):
            if tensor.dtype is not dtype:
                raise InputTypeError(
                    f"input '{port.name}' has elements of type {tensor.dtype}, the model expects {dtype or port.dtype}"
                )
            native.append((memory_of(port.name, tensor), port.dtype))
        return self._build(map(as_tensor, self._model._session.run(native)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ONNX file that any runtime can run, and `kilter.torch.load` makes this module of again."""
        self._model.save(path)

    export = save

    def __reduce__(self) -> Any:
        return _restore, (self._model.to_bytes(),)

    def extra_repr(self) -> str:
        return repr(self._model)


def load(path: str | os.PathLike[str], *, threads: int = 0) -> Module:
    """A module from what `Module.save` wrote; of any other ONNX file one that takes and returns tensors in order."""
    return _module(engine.load(path, threads=threads))


def _restore(content: bytes) -> Module:
    return _module(engine.load(content))


def _module(model: engine.Model) -> Module:
    return Module(model, Signature.of(model))
