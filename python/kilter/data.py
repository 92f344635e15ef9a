"""Datasets, transforms and batches: what configurations name, for programs.

>>> model, steps = kilter.load("model.onnx"), [{"Cast": {"dtype": "float32"}}, {"Rescale": {}}]
>>> files = {"root": "images.npy", "labels": "labels.npy"}
>>> for inputs, labels in kilter.data.Loader({"NumPy": files}, steps, batch_size=8):
...     outputs = model(inputs[0])  # labels[i]["label"] is the class of sample i
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _kilter
from .arrays import any_to_native, from_native
from .errors import InputValueError
from .model import Model

__all__ = ["Dataset", "Loader", "Tokenizer", "dataset_names", "transform", "transform_names"]

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
    """What the transforms make of one array; `index` is the sample's, which random transforms depend on.

    >>> transform(np.zeros((300, 200, 3), np.uint8), [{"Resize": {"size": 64}}, "ToTensor"]).shape
    (3, 64, 64)
    """
    chosen = [steps] if isinstance(steps, str | dict) else list(steps)
    return from_native(_kilter.transform([any_to_native(array)], chosen, framework, index)[0])


class Dataset:
    """Samples of a dataset by its name in configurations: (inputs, label), one array or a tuple of them, and what is true.

    Settings may come without their names, in the order in which docs/data.md lists them; `transform` is a list of steps
    as in a configuration, or a function of the pair.

    >>> inputs, label = Dataset("dummy", shape=(4, 3, 8, 8))[0]
    >>> inputs.shape, label
    ((3, 8, 8), 0)
    """

    def __init__(
        self, dataset_type: str, *args: Any, transform: Any = None, framework: str = "", **settings: Any
    ) -> None:
        order = _ORDER.get(dataset_type, ("root",))
        if len(args) > len(order):
            raise InputValueError(f"the settings of '{dataset_type}' in order are {', '.join(order)}")
        for name, value in zip(order, args, strict=False):
            if name in settings:
                raise InputValueError(f"the setting '{name}' of '{dataset_type}' is given twice")
            settings[name] = value
        settings.pop("filter", None)  # all samples are taken, as in configurations
        if dataset_type.startswith("dummy"):
            settings.pop("label", None)  # samples always come with one
        self._function = transform if callable(transform) else None
        steps = [] if transform is None or self._function else transform
        steps = [steps] if isinstance(steps, str | dict) else list(steps)
        self._native = _kilter.make_samples({dataset_type: settings}, steps, framework)

    def __len__(self) -> int:
        return self._native.size

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        inputs, label = self._native.sample(index + len(self) if index < 0 else index)
        arrays = tuple(from_native(entry) for entry in inputs)
        entries = {name: from_native(entry) for name, entry in label.items()}
        truth: Any = entries["label"] if set(entries) == {"label"} else entries or None
        if isinstance(truth, np.ndarray) and truth.size == 1:
            truth = truth.item()
        pair = (arrays[0] if len(arrays) == 1 else arrays, truth)
        return self._function(pair) if self._function else pair

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return (self[index] for index in range(len(self)))


#: Settings that the old tools take without names.
_ORDER = {
    "dummy": ("shape", "low", "high", "dtype"),
    "dummy_v2": ("input_shape", "label_shape", "low", "high", "dtype"),
    "ImagenetRaw": ("data_path", "image_list"),
    "COCORaw": ("root", "img_dir", "anno_dir"),
    "GLUE": ("data_dir", "vocab_file"),
}


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
        self.batch_size = batch_size
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


class Tokenizer:
    """BERT's tokens: the pieces of a vocabulary file, one piece a line, that words are made of."""

    def __init__(self, vocabulary: str | os.PathLike[str], *, lower_case: bool = True) -> None:
        self._pieces = _kilter.WordPiece(os.fspath(vocabulary), lower_case)

    def ids(self, text: str) -> list[int]:
        """The numbers of the pieces; words that cannot be made of pieces are [UNK]."""
        return self._pieces.ids(text)

    def encode(self, first: str, second: str = "", *, length: int = 128) -> dict[str, np.ndarray]:
        """[CLS] first [SEP] second [SEP], padded to `length`: input_ids, attention_mask and token_type_ids.

        What is too long loses tokens at the end, the longer text first.
        """
        names = ("input_ids", "attention_mask", "token_type_ids")
        arrays = map(from_native, self._pieces.encode(first, second, length))
        return dict(zip(names, arrays, strict=True))
