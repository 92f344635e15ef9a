"""PyTorch: modules go in through its own ONNX exporter, and come out as modules that run on kilter's engine.

>>> small = kilter.quantize(module, loader)  # a kilter.torch.Module: call it as you call the original
>>> small.save("int8.onnx")
>>> small = kilter.torch.load("int8.onnx")  # the original is not needed any more
"""

import contextlib
import inspect
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .. import model as engine
from ..batches import LABELS
from ..errors import InputTypeError, InputValueError
from .signature import Signature
from .structure import replaced
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
        self._known: set[str] = set()  # inputs that the model reads; it may ignore others

    def load(self, model: torch.nn.Module, example: Any) -> engine.Model:
        """Exports the module; it is left as it is: its mode, its gradients, its stubs."""
        if isinstance(model, Module):
            self._signature = model.signature
            self._forward = model.signature.python
            return self._loaded(model.model)
        self._forward = inspect.signature(model.forward)
        args, kwargs = self._call(self.separate(with_tensors(example))[0])
        exported, self._signature = export(model, args, kwargs)
        return self._loaded(exported)

    def _loaded(self, model: engine.Model) -> engine.Model:
        self._known = {port.name for port in model.inputs}
        return model

    def adopt(self, model: torch.nn.Module, exported: engine.Model) -> None:
        self._forward = inspect.signature(model.forward)
        self._signature = Signature.of(exported)
        self._loaded(exported)

    def arrays(self, item: Any) -> Any:
        return replaced(item, is_tensor, lambda tensor: as_array("the item", tensor))

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        args, kwargs = self._call(with_tensors(item))
        tensors = self._signature.tensors(args, kwargs, is_tensor)
        return {
            name: as_array(f"input '{name}'", tensor)
            for name, tensor in zip(self._signature.inputs, tensors, strict=True)
            if name in self._known
        }

    def wrap(self, model: engine.Model, original: torch.nn.Module) -> "Module":
        return Module(model, self._signature)

    def separate(self, item: Any) -> tuple[Any, Any]:
        """What of an item is arguments of `forward`, and what is a label: whatever fits the example."""
        if self._signature is None:
            return self._separate_example(item)
        readings = [self._known_names(item)]
        if isinstance(item, list | tuple) and len(item) > 1:
            readings += [(item[0], item[1])] if len(item) == 2 else []
            readings += [(item[:-1], item[-1])]
        for inputs, labels in readings:
            args, kwargs = self._call(with_tensors(inputs))
            with contextlib.suppress(InputValueError, InputTypeError):
                self._signature.tensors(args, kwargs, is_tensor)
                return with_tensors(inputs), labels
        return item, None  # `feeds` says what does not fit

    def _known_names(self, item: Any) -> tuple[Any, Any]:
        """A mapping gives the arguments that it names; what else it has, under the name of a label, is one."""
        parameters = self._forward.parameters
        any_name = any(entry.kind is inspect.Parameter.VAR_KEYWORD for entry in parameters.values())
        if not isinstance(item, Mapping) or any_name:
            return item, None
        known = {name: item[name] for name in parameters if name in item}
        labels = [item[name] for name in item if name in LABELS and name not in known]
        return known or item, labels[0] if labels else None

    def _separate_example(self, item: Any) -> tuple[Any, Any]:
        """A tuple or list gives the arguments in order. A pair is (inputs, label) when `forward` needs only one argument, or
        when its first entry alone is a collection; and one more than `forward` can take is a label at the end.
        """
        kinds = [parameter.kind for parameter in self._forward.parameters.values()]
        if not isinstance(item, list | tuple) or inspect.Parameter.VAR_POSITIONAL in kinds:
            return self._known_names(item)
        positional = [
            parameter
            for parameter in self._forward.parameters.values()
            if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ]
        needed = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
        collections = [isinstance(entry, list | tuple | Mapping) for entry in item]
        if len(item) == 2 and (needed == 1 or collections == [True, False]):
            return self._known_names(item[0])[0], item[1]
        return (item[:-1], item[-1]) if len(item) == len(positional) + 1 else (item, None)

    def _call(self, item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """How `forward` is called with the inputs of an item."""
        if isinstance(item, Mapping):
            by_name = any(name in self._forward.parameters for name in item)
            return ((), dict(item)) if by_name else ((item,), {})
        several = isinstance(item, list | tuple)
        if len(self._forward.parameters) == 1:  # takes a collection as it is, unless it takes any number
            (parameter,) = self._forward.parameters.values()
            alone = (
                several and len(item) == 1 and is_tensor(item[0])
            )  # loaders have a list of inputs, also of one
            several = several and (alone or parameter.kind is inspect.Parameter.VAR_POSITIONAL)
        return (tuple(item), {}) if several else ((item,), {})


class Module(torch.nn.Module):
    """Runs a model on kilter's engine, without copies; takes and returns what the original module does.

    It has no parameters: `state_dict` is empty, `to("cpu")` and `eval()` change nothing. `torch.save` keeps all of it.
    """

    def __init__(self, model: engine.Model, signature: Signature):
        super().__init__()
        self._model = model
        self.signature = signature
        self._build = signature.output_builder()
        # Which tensor of a call goes to which input: the model may ignore some.
        names = signature.inputs
        by_name = all(port.name in names for port in model.inputs)
        self._ports = tuple(
            (names.index(port.name) if by_name else index, port.name, port.dtype, DTYPES.get(port.dtype))
            for index, port in enumerate(model.inputs)
        )
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
        for index, name, type_name, dtype in self._ports:
            tensor = tensors[index]
            if tensor.dtype is not dtype:
                raise InputTypeError(
                    f"input '{name}' has elements of type {tensor.dtype}, the model expects {dtype or type_name}"
                )
            native.append((memory_of(name, tensor), type_name))
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
