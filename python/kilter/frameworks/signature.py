"""Signature: what a framework's model is called with and returns, written into the ONNX file that runs in its place."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputValueError
from ..model import Model
from .structure import TENSOR, Structure, builder, paths, take_apart

#: Under this key in the file's metadata.
KEY = "kilter.signature"

_Kind = inspect.Parameter
_KINDS = {kind.name: kind for kind in type(_Kind.POSITIONAL_ONLY)}


@dataclass(frozen=True)
class Signature:
    """Arguments are bound to parameters as Python does, so that it does not matter which are given by name."""

    #: (name, kind, default) of every parameter; the default only where it is a plain value.
    parameters: tuple[tuple[str, str, Any], ...]
    #: {"dict": {parameter: structure}}: what the example gave.
    arguments: Structure
    outputs: Structure
    _flat: int = field(init=False, repr=False)
    _python: inspect.Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.arguments["dict"]
        names = [name for name, kind, _ in self.parameters if kind.startswith("POSITIONAL")][: len(given)]
        flat = list(given) == names and all(entry == TENSOR for entry in given.values())
        object.__setattr__(self, "_flat", len(given) if flat else -1)
        python = inspect.Signature(
            [
                _Kind(name, _KINDS[kind]) if "VAR" in kind else _Kind(name, _KINDS[kind], default=default)
                for name, kind, default in self.parameters
            ]
        )
        object.__setattr__(self, "_python", python)

    @property
    def python(self) -> inspect.Signature:
        """How the original's `forward` is declared."""
        return self._python

    @property
    def inputs(self) -> list[str]:
        """Names of the tensors that go in, in order."""
        return paths(self.arguments)

    def tensors(
        self, args: Sequence[Any], kwargs: dict[str, Any], is_tensor: Callable[[Any], bool]
    ) -> Sequence[Any]:
        """The tensors of one call in order; all else must be as in the example, because it is part of the model now."""
        if len(args) == self._flat and not kwargs and all(map(is_tensor, args)):
            return args
        try:
            bound = self._python.bind(*args, **kwargs)
        except TypeError as error:
            raise InputValueError(f"the model is called with {self._python}: {error}") from None
        leaves, found = take_apart(_arranged(given_arguments(bound), self.arguments), is_tensor)
        if not _alike(found, self.arguments):
            raise InputValueError(
                f"the model was exported for the arguments {_text(self.arguments)}, found {_text(found)}"
            )
        return leaves

    def call(self, tensors: Iterator[Any]) -> inspect.BoundArguments:
        """The arguments that hold these tensors."""
        return inspect.BoundArguments(self._python, builder(self.arguments)(tensors))

    def output_builder(self) -> Callable[[Iterator[Any]], Any]:
        """A function that arranges output tensors as the original did."""
        return builder(self.outputs)

    def json(self) -> str:
        """For the file."""
        return json.dumps([self.parameters, self.arguments, self.outputs])

    @staticmethod
    def of(model: Model) -> "Signature":
        """What a file says; tensors in order, where it says nothing."""
        stored = model.metadata.get(KEY)
        if stored is None:
            parameters = tuple(
                (f"input_{index}", "POSITIONAL_ONLY", None) for index in range(len(model.inputs))
            )
            outputs = {"tuple": [TENSOR] * len(model.outputs)} if len(model.outputs) != 1 else TENSOR
            return Signature(parameters, {"dict": {name: TENSOR for name, _, _ in parameters}}, outputs)
        try:
            parameters, arguments, outputs = json.loads(stored)
            signature = Signature(tuple(tuple(entry) for entry in parameters), arguments, outputs)
            known = all(port.name in signature.inputs for port in model.inputs)
            fits = known and len(paths(outputs)) == len(model.outputs)
        except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
            raise InputValueError(f"the model's signature cannot be read: {error}") from None
        if not fits:
            raise InputValueError("the model's signature has other inputs or outputs than the model")
        return signature


def describe_parameters(python: inspect.Signature) -> tuple[tuple[str, str, Any], ...]:
    """For `Signature.parameters`."""
    return tuple(
        (name, parameter.kind.name, parameter.default if _plain(parameter.default) else None)
        for name, parameter in python.parameters.items()
    )


def given_arguments(bound: inspect.BoundArguments) -> dict[str, Any]:
    """By parameter. What is None, empty or the default counts as not given: the original has it from its declaration."""
    defaults = {name: parameter.default for name, parameter in bound.signature.parameters.items()}
    return {
        name: value
        for name, value in bound.arguments.items()
        if not (value is None or value is defaults[name] or _empty(value) or _same(value, defaults[name]))
    }


def _plain(value: Any) -> bool:
    """Can JSON hold it?"""
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _same(value: Any, default: Any) -> bool:
    if not _plain(value) or not _plain(default):
        return False
    both = isinstance(value, list | tuple) and isinstance(default, list | tuple)
    return list(value) == list(default) if both else type(value) is type(default) and value == default


def _empty(value: Any) -> bool:
    return isinstance(value, tuple | dict) and len(value) == 0


def _arranged(value: Any, expected: Structure) -> Any:
    """The same with named things in the expected order: it does not matter how a call has them."""
    if isinstance(value, Mapping) and isinstance(expected, dict) and "dict" in expected:
        wanted = expected["dict"]
        if set(value) == set(wanted):
            return {name: _arranged(value[name], wanted[name]) for name in wanted}
    return value


def _alike(found: Structure, expected: Structure) -> bool:
    """A list will do for a tuple."""
    if not isinstance(found, dict) or not isinstance(expected, dict):
        return found == expected
    kind, wanted = next(iter(found)), next(iter(expected))
    if "dict" in (kind, wanted) or "class" in (kind, wanted):
        kind = "fields" if "fields" in found else kind
        wanted = "fields" if "fields" in expected else wanted
        mine, other = found[kind], expected[wanted]
        same_class = found.get("class") == expected.get("class")
        return (
            kind == wanted
            and same_class
            and list(mine) == list(other)
            and all(_alike(mine[name], other[name]) for name in mine)
        )
    sequences = ("list", "tuple")
    if kind in sequences and wanted in sequences:
        mine, other = found[kind], expected[wanted]
        return len(mine) == len(other) and all(map(_alike, mine, other))
    return found == expected


def _text(structure: Structure) -> str:
    if structure == TENSOR:
        return "tensor"
    kind, content = next(iter(structure.items()))
    if kind == "value":
        return repr(content)
    if kind in ("list", "tuple"):
        return "[" + ", ".join(map(_text, content)) + "]"
    named = ", ".join(f"{name}: {_text(entry)}" for name, entry in structure.get("fields", content).items())
    return "{" + named + "}"
