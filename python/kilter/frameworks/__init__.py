"""Frameworks: their models go in, and come out running on kilter's engine. None is imported before its models come.

>>> bridge = kilter.frameworks.bridge_for(module)  # None for what kilter.load reads
>>> fp32 = bridge.load(module, first_batch)  # a kilter.Model
>>> outputs = fp32.run(bridge.feeds(another_batch))
>>> module8 = bridge.wrap(kilter.quantize(fp32, map(bridge.feeds, batches)), module)  # takes and gives what the original does
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from ..batches import begin, separate
from ..errors import InputTypeError, InputValueError
from ..model import Model, load

__all__ = ["Bridge", "bridge_for", "module", "names", "open_model"]


class Bridge(Protocol):
    """Between one model of a framework and kilter. It remembers from `load` what samples look like."""

    name: str

    @staticmethod
    def accepts(model: Any) -> bool:
        """Can it take this object? Called only when the object's class comes from the framework."""
        ...

    def load(self, model: Any, example: Any) -> Model:
        """The model in FP32. `example` holds the inputs of one call, as a data loader yields them."""
        ...

    def adopt(self, model: Any, exported: Model) -> None:
        """Takes what `load` gave an earlier process for this model, instead of loading it again."""
        ...

    def arrays(self, item: Any) -> Any:
        """The item with NumPy arrays in place of the framework's tensors; memory is shared where that is possible."""
        ...

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        """The inputs of one call by their names in the loaded model."""
        ...

    def separate(self, item: Any) -> tuple[Any, Any]:
        """The inputs of an item of a data loader, and the labels; None when there are none.

        A bridge may leave this out when all arguments of its models are inputs of the loaded one, one tensor each.
        """
        ...

    def wrap(self, model: Model, original: Any) -> Any:
        """An object of the framework that runs `model`, and is called as `original` is."""
        ...

    # Where a model says by itself what it takes, there is also read(model, threads), which is `load` without an example; and
    # where it is a graph, choose(inputs, outputs) names what is fed and fetched.


#: The package whose classes a model is made of: the module with the bridge, which has to be called `Bridge`.
_MODULES = {
    "torch": "kilter.frameworks.torch",
    "mxnet": "kilter.frameworks.mxnet",
    "tensorflow": "kilter.frameworks.tensorflow",
}


def names() -> list[str]:
    """The frameworks there are bridges for."""
    return list(_MODULES)


def module(name: str) -> ModuleType:
    """The module with the bridge to a framework, which is imported now: kilter.torch."""
    return import_module(_MODULES[name])


def bridge_for(model: Any) -> Bridge | None:
    """A new bridge for this model; None when it belongs to no framework."""
    if isinstance(model, str | os.PathLike):
        files = import_module("kilter.frameworks.tensorflow_graph")  # which imports us
        return files.PathBridge() if files.is_graph_file(model) else None
    # MXNet's users hold a model as (symbol, arguments, states).
    known = model[0] if isinstance(model, tuple) and model else model
    # What a bridge made counts as the framework's.
    modules = [cls.__module__.removeprefix("kilter.frameworks.") for cls in type(known).__mro__]
    packages = {name.partition(".")[0] for name in modules}
    for package in _MODULES:
        if package in packages:
            bridge = module(package).Bridge
            if bridge.accepts(model):
                return bridge()
    return None


class Opened:
    """A model that was given in any form, and its samples."""

    def __init__(
        self,
        model: Any,
        samples: Iterable[Any] | None,
        threads: int,
        *,
        labelled: bool = False,
        exported: Model | None = None,
        ends: tuple[Sequence[str], Sequence[str]] = ((), ()),
    ):
        self.samples = samples
        self._given = model
        self._bridge = None if isinstance(model, Model) else bridge_for(model)
        if any(ends) and hasattr(self._bridge, "choose"):
            self._bridge.choose(*ends)
        if self._bridge is not None and exported is not None:
            self._bridge.adopt(model, exported)
            self.model: Model = exported
            return
        if self._bridge is None:
            self.model = model if isinstance(model, Model) else load(model, threads=threads)
            return
        if samples is None and hasattr(self._bridge, "read"):
            self.model = self._bridge.read(model, threads)
            return
        if samples is None:
            raise InputValueError(
                f"a model of {self._bridge.name} needs samples that show what its inputs look like"
            )
        example, self.samples = _peek(samples)
        self.model = self._bridge.load(model, _inputs_of(example) if labelled else example)

    @property
    def foreign(self) -> bool:
        """Is it an object of a framework's, that kilter cannot read again by itself?"""
        return self._bridge is not None and getattr(self._bridge, "foreign", True)

    def separate(self, item: Any) -> tuple[Any, Any]:
        """The inputs of an item of a data loader, and the labels; None when there are none."""
        if hasattr(self._bridge, "separate"):
            return self._bridge.separate(item)
        return separate(item, len(self.model.inputs))

    def inputs(self, item: Any) -> Any:
        """The inputs of one run as `Model.run` takes them."""
        return item if self._bridge is None else self._bridge.feeds(item)

    def arrays(self, item: Any) -> Any:
        """The same for what is no input: labels."""
        return item if self._bridge is None else self._bridge.arrays(item)

    def wrap(self, model: Model) -> Any:
        """What the user gets in place of the model that was given."""
        return model if self._bridge is None else self._bridge.wrap(model, self._given)

    @property
    def bridge(self) -> Any:
        """To the framework; None when it is none's."""
        return self._bridge

    @property
    def runs_elsewhere(self) -> bool:
        """Can the framework itself run what kilter makes?"""
        return hasattr(self._bridge, "elsewhere")

    def elsewhere(self, model: Model | None) -> Any:
        """The quantized model as the framework runs it; None: the one that was given."""
        return self._bridge.elsewhere(model, self._given)

    # What follows is for models that their framework has to run.

    def hosted(self, function: bool) -> bool:
        """Has it to? `function`: is accuracy measured by a function of the user's?"""
        return hasattr(self._bridge, "hosts") and self._bridge.hosts(function)

    def host(self) -> Any:
        """What lets the framework run it."""
        return self._bridge.host()

    def feeds(self, item: Any) -> dict[str, Any]:
        """The inputs of one run, as the framework takes them."""
        return self._bridge.host_feeds(item)

    def present(self, graph: Any) -> Any:
        """A candidate as functions of the user's take it."""
        return self._bridge.present(graph)


def open_model(
    model: Any,
    samples: Iterable[Any] | None,
    threads: int = 0,
    *,
    labelled: bool = False,
    exported: Model | None = None,
    ends: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Opened:
    """Loads a model in any form. Samples show a framework how to export it; `labelled` ones are (inputs, labels).

    `exported` is what came of it earlier: then no samples are needed. What is open already only gets other samples. `ends` are the
    names of what is fed and fetched, where a graph's own are not meant.
    """
    if isinstance(model, Opened):
        model.samples = samples
        return model
    return Opened(model, samples, threads, labelled=labelled, exported=exported, ends=ends)


def _inputs_of(item: Any) -> Any:
    """Of an item with labels; what they are in a longer one the bridge finds out."""
    if isinstance(getattr(item, "data", None), list | tuple) and hasattr(item, "label"):  # a batch of MXNet
        return list(item.data)
    return item[0] if isinstance(item, list | tuple) and len(item) == 2 else item


def _peek(samples: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """The first item, and all of them: what can be read only once loses nothing."""
    iterator = begin(samples)
    for first in iterator:
        once = isinstance(samples, Iterator) and not hasattr(samples, "reset")
        return first, chain([first], iterator) if once else samples
    raise InputTypeError("there are no samples")
