"""What iterables of samples yield, as inputs and labels that fit a model.

A data loader is any iterable: PyTorch's, Gluon's, lists, generators. An item is the inputs of one run, or (inputs, labels).
Inputs are one array, a list of arrays in the order of the model's inputs, or a mapping of their names to arrays.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import to_native
from .errors import InputTypeError, InputValueError
from .metrics import _native as label_to_native
from .model import Port

if TYPE_CHECKING:
    from .frameworks import Opened

Ports = tuple[Port, ...]
#: Inputs and labels as the native module takes them.
NativeBatch = tuple[list[Any], list[Any]]

# Under these names mappings hold what is true of a sample.
LABELS = ("label", "labels", "target", "targets")


def begin(data: Iterable[Any]) -> Iterator[Any]:
    """Starts from the beginning, also what has to be told so, as the iterators of MXNet."""
    reset = getattr(data, "reset", None)
    if isinstance(data, Iterator) and callable(reset):
        reset()
    return iter(data)


class Replay:
    """An iterator that can be read once, made readable again: it keeps what it gave."""

    def __init__(self, iterator: Iterator[Any]):
        self._iterator = iterator
        self._kept: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        position = 0
        while True:
            while position < len(self._kept):
                position += 1
                yield self._kept[position - 1]
            for item in self._iterator:
                self._kept.append(_copied(item))
                break
            else:
                return


def _copied(item: Any) -> Any:
    """Loaders may fill the same arrays again and again."""
    try:
        return copy.deepcopy(item)
    except Exception:  # files, tensors with a history: they stay what they are
        return item


def first_batches(data: Iterable[Any], count: int) -> Iterable[Any]:
    """The first of them, every time; all of them when `count` is negative."""
    return data if count < 0 else _First(data, count)


class _First:
    def __init__(self, data: Iterable[Any], count: int):
        self._data, self._count = data, count

    def __iter__(self) -> Iterator[Any]:
        return islice(begin(self._data), self._count)


def repeatable(data: Iterable[Any]) -> Iterable[Any]:
    """The same data, to be read as often as one likes."""
    if isinstance(data, Iterator) and not callable(getattr(data, "reset", None)):
        return Replay(data)
    return data


def separate(item: Any, count: int) -> tuple[Any, Any]:
    """The inputs of a model that has `count` of them, and the labels; None when the item has none.

    >>> separate(("pixels", 7), 1)
    ('pixels', 7)
    >>> separate(("ids", "mask", "label"), 2)
    (('ids', 'mask'), 'label')
    >>> separate({"image": "pixels", "label": 7}, 1)
    ({'image': 'pixels'}, 7)
    """
    if isinstance(getattr(item, "data", None), list | tuple) and hasattr(item, "label"):  # a batch of MXNet
        return list(item.data), _single(item.label) if item.label else None
    if isinstance(item, Mapping):
        found = [name for name in item if name in LABELS]
        if len(found) != 1 or len(item) == count:
            return item, None
        return {name: value for name, value in item.items() if name != found[0]}, item[found[0]]
    if not isinstance(item, list | tuple):
        return item, None
    if len(item) == 2 and _fits(item[0], count):
        return item[0], item[1]
    if len(item) == count:
        return item, None
    if len(item) == count + 1:
        return item[:-1], item[-1]
    raise InputTypeError(
        f"found {len(item)} values where a model with {_number(count, 'input')} was to be fed: "
        "give the inputs, or pairs of inputs and labels"
    )


def _fits(inputs: Any, count: int) -> bool:
    if isinstance(inputs, Mapping):
        return True
    return len(inputs) == count if isinstance(inputs, list | tuple) else count == 1


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def named(ports: Ports, inputs: Any) -> dict[str, Any]:
    """The inputs by their names; an error names what is missing or too much."""
    names = ", ".join(port.name for port in ports)
    if isinstance(inputs, list | tuple) and len(inputs) == len(ports) and not _is_numbers(inputs):
        return {port.name: array for port, array in zip(ports, inputs, strict=True)}
    if not isinstance(inputs, Mapping):
        if len(ports) != 1:
            raise InputTypeError(f"a sample must map input names to arrays, the model has {names}")
        return {ports[0].name: inputs}
    known = [port.name for port in ports]
    for name in [*inputs, *known]:
        if name not in known:
            raise InputValueError(f"the model has no input '{name}', its inputs are {names}")
        if name not in inputs:
            raise InputValueError(f"input '{name}' is missing, the model's inputs are {names}")
    return {name: inputs[name] for name in known}


def _is_numbers(inputs: Any) -> bool:
    return all(isinstance(entry, int | float | bool) for entry in inputs)


def native_inputs(ports: Ports, inputs: Any) -> list[Any]:
    """One run's inputs as the native module takes them."""
    given = named(ports, inputs)
    return [to_native(port, given[port.name]) for port in ports]


def calibration_batches(source: "Opened", item: Any) -> Iterator[NativeBatch]:
    """The runs an item of calibration samples stands for; labels are not looked at."""
    ports = source.model.inputs
    inputs, _ = source.separate(item)
    for part, _ in _parts(ports, named(ports, source.inputs(inputs)), None):
        yield native_inputs(ports, part), []


def labelled_batches(source: "Opened", item: Any) -> Iterator[NativeBatch]:
    """The runs an item of samples with labels stands for."""
    ports = source.model.inputs
    inputs, labels = source.separate(item)
    if labels is None:
        raise InputTypeError("data must yield pairs: inputs and labels")
    for part, truth in _parts(ports, named(ports, source.inputs(inputs)), label_list(source.arrays(labels))):
        native = [{name: label_to_native(name, value) for name, value in entry.items()} for entry in truth]
        converted = native_inputs(ports, part)
        rows = _rows(part)
        if rows is not None and rows != len(native):
            raise InputValueError(f"{rows} samples came with {len(native)} labels")
        yield converted, native


def label_list(labels: Any) -> list[Mapping[str, Any]]:
    """What is true of each sample, under names."""
    if isinstance(labels, Mapping):
        columns = {name: list(column) for name, column in labels.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if np.ndim(labels) == 0 and not hasattr(labels, "__len__"):
        labels = [labels]
    labels = _single(labels)
    return [label if isinstance(label, Mapping) else {"label": label} for label in labels]


def _single(labels: Any) -> Any:
    """The only array in a list of arrays: some loaders have a list of labels, one array for each kind."""
    if isinstance(labels, list | tuple) and len(labels) == 1 and getattr(labels[0], "ndim", 0) > 0:
        return labels[0]
    return labels


def _rows(inputs: dict[str, Any]) -> int | None:
    shapes = [array.shape if hasattr(array, "shape") else np.shape(array) for array in inputs.values()]
    rows = {shape[0] if shape else None for shape in shapes}
    return rows.pop() if len(rows) == 1 else None


def _parts(
    ports: Ports, inputs: dict[str, Any], labels: list[Any] | None
) -> Iterator[tuple[dict[str, Any], Any]]:
    """The item or, when the model fixes its batch, parts of it that have this size."""
    firsts = {port.shape[0] if port.shape else None for port in ports}
    size = firsts.pop() if len(firsts) == 1 else None
    rows = _rows(inputs) if isinstance(size, int) else None
    if not isinstance(size, int) or rows is None or size < 1 or rows <= size or rows % size != 0:
        yield inputs, labels
        return
    for first in range(0, rows, size):
        part = slice(first, first + size)
        yield {name: array[part] for name, array in inputs.items()}, None if labels is None else labels[part]
