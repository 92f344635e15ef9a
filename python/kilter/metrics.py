"""Metrics: how good the outputs of a model are, judged batch by batch.

>>> model, metric = kilter.load("model.onnx"), kilter.metrics.topk(k=5)
>>> for images, labels in batches:
...     metric.update(model(images), labels)
>>> metric.result() > 0.9
True

Every metric of a configuration is here under its name, and takes the same settings; docs/metrics.md lists them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _kilter
from .arrays import _as_array, _name_of
from .errors import InputTypeError, InputValueError

__all__ = ["Metric", "names", *_kilter.metric_names()]


def names() -> list[str]:
    """The metrics there are."""
    return _kilter.metric_names()


class Metric:
    """One metric, made by its name in configurations."""

    def __init__(self, name: str, /, **settings: Any):
        self.name = name
        self._native = _kilter.make_metric(name, settings)

    def reset(self) -> None:
        """Forgets everything it saw."""
        self._native.reset()

    def update(self, outputs: Any, labels: Any) -> None:
        """Takes in one batch: the output (or a list or mapping of outputs), and what is true of each sample.

        `labels` is an array whose first axis counts samples, or a sequence with one entry for each: a value, an
        array, text, or a mapping of names to these ("boxes", "classes", ...).
        """
        if isinstance(outputs, Mapping):
            outputs = list(outputs.values())
        if not isinstance(outputs, list | tuple):
            outputs = [outputs]
        entries = [label if isinstance(label, Mapping) else {"label": label} for label in labels]
        self._native.update(
            [_native(f"output {i}", output) for i, output in enumerate(outputs)],
            [{name: _native(name, value) for name, value in entry.items()} for entry in entries],
        )

    def result(self) -> float:
        """Over everything since it was made or reset."""
        return self._native.result()

    @property
    def per_sample(self) -> list[float]:
        """What each sample contributed, where the result is their mean; empty for other metrics."""
        return self._native.per_sample()

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that every entry of `per_sample` lies in."""
        return self._native.bounds()

    @property
    def higher_is_better(self) -> bool:
        """Which way the metric counts."""
        return self._native.higher_is_better

    def __repr__(self) -> str:
        return f"<kilter.metrics.{self.name}>"


def _native(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes):
        value = np.array(value, dtype=object)
    elif isinstance(value, Sequence) and any(isinstance(item, str | bytes) for item in value):
        value = np.array(list(value), dtype=object)
    array = np.asarray(value) if isinstance(value, int | float | Sequence) else _as_array(name, value)
    if array.dtype.kind in "OSU":
        texts = [item.decode() if isinstance(item, bytes) else item for item in array.ravel().tolist()]
        if not all(isinstance(item, str) for item in texts):
            raise InputTypeError(f"'{name}' is neither numbers nor text")
        return texts, array.shape, "string"
    if array.dtype.name not in _NUMBERS:
        raise InputValueError(f"'{name}' has elements of type {array.dtype.name}, which metrics do not read")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array), _name_of(array.dtype)


_NUMBERS = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def __getattr__(name: str) -> Any:
    if name not in _kilter.metric_names():
        raise AttributeError(
            f"module 'kilter.metrics' has no attribute '{name}'; metrics: {', '.join(names())}"
        )

    def make(**settings: Any) -> Metric:
        return Metric(name, **settings)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The metric {name} of configurations, with its settings."
    return make
