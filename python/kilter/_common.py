"""What programs of LPOT and Intel Neural Compressor wrap their models, data and metrics in.

>>> loader = DataLoader([(np.zeros(3, np.float32), 1), (np.ones(3, np.float32), 0)], batch_size=2)
>>> [(inputs.shape, labels.tolist()) for inputs, labels in loader]
[((2, 3), [1, 0])]
"""

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._quantize import QuantizedModel
from .errors import InputTypeError, InputValueError
from .tuning import Result

__all__ = ["DataLoader", "Metric", "Model", "Postprocess", "TunedModel"]


class Model:
    """A model of yours: an ONNX file or its bytes, a kilter.Model, or a model of a framework. `model` is what was given."""

    def __init__(self, root: Any, **settings: Any):
        self.model: Any = root.model if isinstance(root, Model) else root
        #: Names of nodes and the like, for frameworks that ask for them.
        self.settings = settings

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.model(*inputs, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)


class TunedModel(Model):
    """What tuning gave. There is always one; `met` says whether it keeps the promise."""

    def __init__(
        self,
        root: Any,
        quantized: QuantizedModel | None,
        result: Result | None = None,
        met: bool | None = None,
    ):
        super().__init__(root)
        #: The same as a kilter.QuantizedModel.
        self.quantized = quantized
        #: The `kilter.Result` that tells everything; None for a model that was recovered.
        self.result = result
        #: None when nobody measured its accuracy.
        self.met = met

    @property
    def q_config(self) -> dict[str, Any]:
        """How it is quantized: `quant_cfg` in a few words, `plan` for every operator."""
        plan = self.result.plan if self.quantized is None else self.quantized.plan
        operators = plan["operators"]
        weights = {
            entry["weights"]["granularity"]
            for entry in operators
            if "granularity" in entry.get("weights", {})
        }
        excluded = [entry["name"] for entry in operators if entry["precision"] != "int8"]
        if hasattr(self.model, "excluded_symbols"):  # a framework with names of its own
            excluded = self.model.excluded_symbols(excluded)
        return {
            "quant_cfg": {
                "excluded_symbols": excluded,
                "quantized_dtype": "auto",
                "quantize_mode": plan["mode"],
                "quantize_granularity": "tensor-wise" if weights == {"per-tensor"} else "channel-wise",
            },
            "plan": plan,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ONNX file, also where `path` is a folder or has no ending: then it is best_model.onnx in there.

        A framework's model is written by its own `save`, where it has one: a tf.Graph as best_model.pb.
        """
        path = os.fspath(path)
        suffix = getattr(self.model, "suffix", ".onnx")
        if not path.endswith((".onnx", ".pb", ".pbtxt")):
            os.makedirs(path, exist_ok=True)
            path = os.path.join(path, "best_model" + suffix)
        own = getattr(self.model, "save", None)
        (own if callable(own) else self.quantized.save)(path)

    def __repr__(self) -> str:
        return repr(self.model if self.result is None else self.result)


class DataLoader:
    """Batches of a dataset: anything that can be indexed or iterated, whose samples are (input, label) or other tuples.

    Samples are stacked unless `collate_fn` makes a batch of a list of them. `last_batch`: rollover keeps a last batch that is
    not full, discard drops it. `sampler` yields indices, `batch_sampler` lists of indices. `shuffle` mixes samples that can be indexed,
    in the same way every time.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        last_batch: str = "rollover",
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Iterable[int]] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        shuffle: bool = False,
        distributed: bool = False,
    ):
        if not hasattr(dataset, "__getitem__") and not hasattr(dataset, "__iter__"):
            raise InputTypeError(
                f"a dataset is indexed or iterated, which a {type(dataset).__name__} cannot be"
            )
        if last_batch not in ("rollover", "discard"):
            raise InputValueError(f"last_batch must be rollover or discard, found '{last_batch}'")
        if batch_size < 1:
            raise InputValueError(f"a batch has at least one sample, found {batch_size}")
        if (sampler is not None or batch_sampler is not None) and not hasattr(dataset, "__getitem__"):
            raise InputTypeError(
                "samplers choose samples by index: the dataset must be one that can be indexed"
            )
        if shuffle and not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
            raise InputTypeError("only a dataset that has a length and can be indexed can be shuffled")
        if shuffle and (sampler is not None or batch_sampler is not None):
            raise InputValueError("a sampler says the order of samples: shuffle does not go with it")
        self.dataset, self.batch_size, self.collate_fn = dataset, batch_size, collate_fn or stack
        self.last_batch, self.sampler, self.batch_sampler = last_batch, sampler, batch_sampler
        # Samples are Python objects made by Python code: workers would not help.
        self.num_workers, self.pin_memory, self.shuffle, self.distributed = (
            num_workers,
            pin_memory,
            shuffle,
            distributed,
        )

    def batch(self, batch_size: int, last_batch: str | None = None) -> None:
        """Changes the size of batches."""
        self.batch_size, self.last_batch = batch_size, last_batch or self.last_batch

    def __len__(self) -> int:
        """The number of batches."""
        counted: Any = self.batch_sampler
        if counted is not None:
            return len(counted)
        counted = self.sampler if self.sampler is not None else self.dataset
        samples = len(counted)
        return samples // self.batch_size if self.last_batch == "discard" else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            for indices in self.batch_sampler:
                yield self.collate_fn([self.dataset[index] for index in indices])
            return
        batch: list[Any] = []
        for sample in self._samples():
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and self.last_batch == "rollover":
            yield self.collate_fn(batch)

    def _samples(self) -> Iterator[Any]:
        if self.sampler is not None:
            return (self.dataset[index] for index in self.sampler)
        if self.shuffle:
            order = list(range(len(self.dataset)))
            random.Random(1978).shuffle(order)
            return (self.dataset[index] for index in order)
        if hasattr(self.dataset, "__iter__"):
            return iter(self.dataset)
        if hasattr(self.dataset, "__len__"):
            return (self.dataset[index] for index in range(len(self.dataset)))
        return iter(self.dataset)  # indexed until it raises IndexError


def stack(samples: list[Any]) -> Any:
    """A batch: arrays and numbers one above the other, tuples and mappings part by part.

    >>> stack([(1.0, {"a": 2}), (3.0, {"a": 4})])
    (array([1., 3.]), {'a': array([2, 4])})
    """
    first = samples[0]
    if isinstance(first, Mapping):
        return {name: stack([sample[name] for sample in samples]) for name in first}
    if isinstance(first, tuple | list) and not all(isinstance(entry, int | float) for entry in first):
        return tuple(stack(list(parts)) for parts in zip(*samples, strict=True))
    if first is None:  # no labels
        return None
    if isinstance(first, str | bytes):
        return samples
    return np.stack([np.asarray(sample) for sample in samples])


class Metric:
    """A metric of yours: a class whose objects have reset(), update(predictions, labels) and result().

    Arguments after the name are those of the class. An object that is made already will do as well.
    """

    def __init__(self, metric_cls: Any, name: str = "user_metric", **settings: Any):
        self.name = name
        self.metric = metric_cls(**settings) if isinstance(metric_cls, type) or settings else metric_cls
        check_metric(self.metric)


def check_metric(metric: Any) -> None:
    """An error says what a metric lacks."""
    missing = [part for part in ("reset", "update", "result") if not callable(getattr(metric, part, None))]
    if missing:
        raise InputTypeError(
            f"a metric has reset, update and result; {type(metric).__name__} lacks {missing[0]}"
        )


class Postprocess:
    """What is done to predictions and labels before the metric sees them: a class whose objects are called with both.

    The pair comes as one argument, (predictions, labels), and goes the same way.
    """

    def __init__(self, postprocess_cls: Any, name: str = "user_postprocess", **settings: Any):
        self.name = name
        made = (
            postprocess_cls(**settings) if isinstance(postprocess_cls, type) or settings else postprocess_cls
        )
        if not callable(made):
            raise InputTypeError(
                f"a postprocess is called with (predictions, labels), which {type(made).__name__} cannot be"
            )
        self.postprocess = made
