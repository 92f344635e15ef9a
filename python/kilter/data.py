"""Datasets, transforms and batches: what configurations name, for programs.

>>> steps = [{"Resize": {"size": 256}}, {"CenterCrop": {"size": 224}}, "ToTensor"]
>>> for inputs, labels in kilter.data.Loader({"ImageFolder": {"root": "val"}}, steps, batch_size=8):
...     outputs = model(inputs[0])
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _kilter
from .arrays import any_to_native, from_native
from .model import Model

__all__ = ["Loader", "dataset_names", "transform", "transform_names"]

#: A name, or {name: settings}, as in a configuration; docs/data.md lists the names.
Step = str | dict[str, Any]


def dataset_names() -> list[str]:
    """The datasets there are."""
    return _kilter.dataset_names()


def transform_names() -> list[str]:
    """The transforms there are."""
    return _kilter.transform_names()


def transform(
    array: np.ndarray, steps: Step | Sequence[Step], framework: str = "", index: int = 0
) -> np.ndarray:
    """What the transforms make of one array; `index` is the sample's, which random transforms depend on."""
    chosen = [steps] if isinstance(steps, str | dict) else list(steps)
    return from_native(_kilter.transform([any_to_native(array)], chosen, framework, index)[0])


class Loader:
    """Batches of a dataset: (inputs, labels), the inputs a list of arrays, the labels one dict for each sample.

    Samples are prepared ahead on `threads` threads (0: as many as there are cores, at most 4). With `count_errors`,
    damaged samples are left out and `errors` tells which. Iterating again starts again.
    """

    def __init__(
        self,
        dataset: Step,
        transforms: Sequence[Step] = (),
        *,
        model: Model | None = None,
        framework: str = "",
        batch_size: int = 1,
        drop_last: bool = False,
        shuffle: bool = False,
        seed: int = 0,
        threads: int = 0,
        limit: int = 0,
        count_errors: bool = False,
    ) -> None:
        options = {
            "batch_size": batch_size,
            "drop_last": drop_last,
            "shuffle": shuffle,
            "seed": seed,
            "threads": threads,
            "limit": limit,
            "count_errors": count_errors,
        }
        session = None if model is None else model._session
        self._loader = _kilter.make_loader(dataset, list(transforms), framework, session, options)

    def __len__(self) -> int:
        """The number of samples, not of batches."""
        return self._loader.samples

    @property
    def errors(self) -> list[str]:
        """What was wrong with the samples left out since the iteration began."""
        return self._loader.errors

    def __iter__(self) -> Iterator[tuple[list[np.ndarray], list[dict[str, np.ndarray]]]]:
        self._loader.rewind()
        while (batch := self._loader.next()) is not None:
            inputs, labels = batch
            yield (
                [from_native(item) for item in inputs],
                [{name: from_native(value) for name, value in label.items()} for label in labels],
            )
