"""Structure: how tensors are arranged in tuples, lists, dicts and dataclasses; taken apart and put together again.

A structure is made of plain values, so that it can be written as JSON beside a model:
"*" is a tensor, {"tuple": [...]}, {"list": [...]}, {"dict": {...}}, {"class": "module:name", "fields": {...}} hold
further ones, and {"value": v} is anything that is no tensor: None, a number, text.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from ..errors import InputTypeError, InputValueError

Structure = Any
TENSOR = "*"


def take_apart(item: Any, is_tensor: Callable[[Any], bool]) -> tuple[list[Any], Structure]:
    """The tensors in order, and how they were arranged."""
    leaves: list[Any] = []

    def walk(value: Any) -> Structure:
        if is_tensor(value):
            leaves.append(value)
            return TENSOR
        fields = _fields(value)
        if fields is not None:
            return {
                "class": _class_name(value),
                "fields": {name: walk(entry) for name, entry in fields.items()},
            }
        if isinstance(value, Mapping):
            return {"dict": {_key(key): walk(entry) for key, entry in value.items()}}
        if isinstance(value, list | tuple):
            return {"list" if isinstance(value, list) else "tuple": [walk(entry) for entry in value]}
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        raise InputTypeError(
            f"found a {type(value).__name__} where a tensor, a number or a collection was expected"
        )

    return leaves, walk(item)


def replaced(item: Any, is_tensor: Callable[[Any], bool], convert: Callable[[Any], Any]) -> Any:
    """The item with something else in place of its tensors, in lists and dicts.

    >>> replaced({"a": (1, [2]), "b": "text"}, lambda value: isinstance(value, int), str)
    {'a': ['1', ['2']], 'b': 'text'}
    """
    if is_tensor(item):
        return convert(item)
    if isinstance(item, Mapping):
        return {name: replaced(entry, is_tensor, convert) for name, entry in item.items()}
    if isinstance(item, list | tuple):
        return [replaced(entry, is_tensor, convert) for entry in item]
    return item


def builder(structure: Structure) -> Callable[[Iterator[Any]], Any]:
    """A function that puts tensors together again. Classes are looked up now, not at every call."""
    if structure == TENSOR:
        return next
    kind = next(iter(structure))
    content = structure[kind]
    if kind == "value":
        return lambda leaves: content
    if kind in ("list", "tuple"):
        entries = [builder(entry) for entry in content]
        if kind == "list":
            return lambda leaves: [build(leaves) for build in entries]
        return lambda leaves: tuple(build(leaves) for build in entries)
    named = {
        name: builder(entry) for name, entry in (content if kind == "dict" else structure["fields"]).items()
    }
    make = dict if kind == "dict" else _class_named(content)
    return lambda leaves: make(**{name: build(leaves) for name, build in named.items()})


def paths(structure: Structure, prefix: str = "") -> list[str]:
    """A name for every tensor: "x", "x.1", "x.mask"."""
    if structure == TENSOR:
        return [prefix]
    if "value" in structure:
        return []
    content = structure.get("dict") or structure.get("fields")
    if content is None:
        content = dict(enumerate(structure.get("list") or structure.get("tuple") or []))
    dot = "." if prefix else ""
    return [path for name, entry in content.items() for path in paths(entry, f"{prefix}{dot}{name}")]


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise InputTypeError(f"found a dict with the key {key!r}: only text can name tensors")
    return key


def _fields(value: Any) -> dict[str, Any] | None:
    """By name, for dataclasses and named tuples. Fields that are None and need not be given are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if field.init and not (getattr(value, field.name) is None and field.default is None)
        }
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    return None


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _class_named(name: str) -> Any:
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputValueError(
            f"the model returns a {path} of {module}, which cannot be found: {error}"
        ) from None
    # The name may come from a file: nothing that does more than hold its fields is ever called.
    if not dataclasses.is_dataclass(found) and not (isinstance(found, type) and hasattr(found, "_asdict")):
        raise InputValueError(f"{name} is neither a dataclass nor a named tuple")
    return found
