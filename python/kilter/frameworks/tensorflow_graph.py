"""Frozen TensorFlow graphs, without TensorFlow: what is fed and fetched, and the INT8 GraphDef made from one.

>>> small = kilter.quantize("frozen.pb", batches)  # doctest: +SKIP
>>> small.export("int8.pb")  # runs in stock TensorFlow
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .. import _kilter
from .. import model as engine
from .._quantize import QuantizedModel
from ..batches import Ports, named
from ..errors import InputValueError
from ..graph_converter import IntegerGraph, QuantizableGraph

__all__ = ["FrozenGraph", "GraphModel", "PathBridge", "graph_for_sessions", "is_graph_file"]

#: What is kept of the samples a model is fed with, to learn the ranges of an INT8 GraphDef from: rows and bytes.
KEPT_ROWS, KEPT_BYTES = 128, 1 << 30


def node_name(tensor: str) -> str:
    """Tensors are called "node:0" by TensorFlow; kilter leaves the 0 out."""
    return tensor.removesuffix(":0")


def is_graph_file(model: Any) -> bool:
    """Is it the path of a GraphDef, or of a SavedModel's folder?"""
    if not isinstance(model, str | os.PathLike) or not os.path.exists(model):
        return False
    return _kilter.model_format(os.fspath(model)) in ("graph_def", "saved_model")


class FrozenGraph:
    """A GraphDef in a file, the names of what is fed and fetched, and the first samples it was fed with."""

    def __init__(self, path: str | os.PathLike[str], inputs: Sequence[str], outputs: Sequence[str]):
        self.path = Path(path)
        self.inputs, self.outputs = tuple(map(node_name, inputs)), tuple(map(node_name, outputs))
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._fed: list[dict[str, np.ndarray]] = []
        self._rows = self._bytes = 0

    @classmethod
    def of_bytes(cls, content: bytes, inputs: Sequence[str], outputs: Sequence[str]) -> "FrozenGraph":
        """The file lives as long as this object."""
        folder = tempfile.TemporaryDirectory(prefix="kilter-tensorflow-")
        path = Path(folder.name) / "frozen.pb"
        path.write_bytes(content)
        made = cls(path, inputs, outputs)
        made._folder = folder
        return made

    def load(self, threads: int = 0) -> engine.Model:
        """The graph in FP32 on kilter's engine."""
        model = engine.load(self.path, threads=threads, inputs=self.inputs, outputs=self.outputs)
        self.inputs = tuple(port.name for port in model.inputs) if not self.inputs else self.inputs
        self.outputs = tuple(port.name for port in model.outputs) if not self.outputs else self.outputs
        return model

    def remember(self, feeds: dict[str, np.ndarray]) -> None:
        """Calibration is what a model is fed first."""
        if self._rows < KEPT_ROWS and self._bytes < KEPT_BYTES:
            self._fed.append(
                {name: np.array(array) for name, array in feeds.items()}
            )  # loaders may lend theirs
            self._bytes += sum(array.nbytes for array in feeds.values())
            first = next(iter(feeds.values()), np.zeros(()))
            self._rows += first.shape[0] if first.ndim else 1

    def integer_graph(
        self, plan: Mapping[str, Any], samples: Iterable[dict[str, np.ndarray]] | None = None
    ) -> IntegerGraph:
        """The GraphDef with integer operators where the plan has them; ranges come from `samples`, or those remembered."""
        samples = self._fed if samples is None else list(samples)
        if not samples:
            raise InputValueError(
                "an INT8 GraphDef needs samples to learn ranges from: give export(..., samples=batches)"
            )
        graph = QuantizableGraph(self.path, self.inputs, self.outputs)
        # TensorFlow's graph has other tensors than kilter's: they are looked at once more.
        return graph.write(plan, graph.observe(samples))

    def write_int8(
        self,
        plan: Mapping[str, Any],
        path: str | os.PathLike[str],
        samples: Iterable[dict[str, np.ndarray]] | None = None,
    ) -> IntegerGraph:
        """The same into a file."""
        made = self.integer_graph(plan, samples)
        made.save(path)
        return made


class GraphModel(QuantizedModel):
    """A quantized model that was a TensorFlow graph, and can become one again."""

    def __init__(self, session: _kilter.QuantizedSession, frozen: FrozenGraph):
        super().__init__(session)
        self._frozen = frozen

    def export(
        self, path: str | os.PathLike[str], *, samples: Iterable[dict[str, np.ndarray]] | None = None
    ) -> IntegerGraph:
        """Writes an INT8 GraphDef that stock TensorFlow runs. What is returned says what runs on integers there.

        Ranges are learnt from the first samples that the model was calibrated with, or from `samples`, as the plan says.
        """
        return self._frozen.write_int8(self.plan, path, samples)

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
        """Writes an ONNX file; a GraphDef for TensorFlow where the name ends in .pb or .pbtxt."""
        if os.fspath(path).endswith((".pb", ".pbtxt")):
            self.export(path)
        else:
            super().save(path, external_data=external_data)


class PathBridge:
    """Files need no TensorFlow: what comes back is a kilter.Model that can be written as a GraphDef too."""

    name = "TensorFlow"
    foreign = False

    def __init__(self) -> None:
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._frozen: FrozenGraph | None = None
        self._ports: Ports = ()
        self._native = True

    def choose(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """What is fed and fetched, when it is not what the graph itself says."""
        self._names = (inputs, outputs)

    def read(self, model: str | os.PathLike[str], threads: int = 0) -> engine.Model:
        """Loads the file."""
        if _kilter.model_format(os.fspath(model)) == "saved_model":
            content, inputs, outputs = _kilter.freeze_saved_model(os.fspath(model), "")
            given, wanted = self._names
            self._frozen = FrozenGraph.of_bytes(content, given or inputs, wanted or outputs)
        else:
            self._frozen = FrozenGraph(model, *self._names)
        loaded = self._frozen.load(threads)
        self._ports = loaded.inputs
        self._native = not _kilter.opaque_operators(loaded._session)
        return loaded

    def load(self, model: str | os.PathLike[str], example: Any) -> engine.Model:
        return self.read(model)

    def adopt(self, model: str | os.PathLike[str], exported: engine.Model) -> None:
        self.read(model)

    def arrays(self, item: Any) -> Any:
        return item

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        feeds = named(self._ports, item)
        self._frozen.remember({name: np.asarray(array) for name, array in feeds.items()})
        return feeds

    def hosts(self, function: bool) -> bool:
        """Only TensorFlow runs all operators: it has to where it is there and kilter cannot."""
        return not self._native and find_spec("tensorflow") is not None

    def host(self) -> Any:
        return import_module("kilter.frameworks.tensorflow_host").HostedGraph(self._frozen)

    def host_feeds(self, item: Any) -> dict[str, Any]:
        return fed(self._frozen.inputs, item)

    def present(self, graph: Any) -> Any:
        return graph

    def wrap(self, model: engine.Model, original: Any) -> engine.Model:
        return GraphModel(model._session, self._frozen) if isinstance(model, QuantizedModel) else model


def graph_for_sessions(model: Any) -> Any:
    """A file as the tf.Graph that functions written for TensorFlow expect; anything else, and without TensorFlow, as it is."""
    if not is_graph_file(model) or find_spec("tensorflow") is None:
        return model
    bridge = import_module("kilter.frameworks.tensorflow")
    if _kilter.model_format(os.fspath(model)) == "saved_model":
        content, inputs, outputs = _kilter.freeze_saved_model(os.fspath(model), "")
        return bridge.SavedGraph(bridge.make_graph(content), inputs, outputs)
    return bridge.make_graph(model)


def fed(names: Sequence[str], item: Any) -> dict[str, Any]:
    """The inputs of one run by name, from a mapping, from values in order, or from the only one."""
    if isinstance(item, Mapping):
        return {node_name(name): value for name, value in item.items()}
    values = list(item) if isinstance(item, list | tuple) else [item]
    if len(values) != len(names):
        raise InputValueError(f"found {len(values)} inputs, the model has {len(names)}: {', '.join(names)}")
    return dict(zip(names, values, strict=True))


def converted(feeds: Mapping[str, Any], dtypes: Mapping[str, np.dtype]) -> Iterator[tuple[str, np.ndarray]]:
    """With the element types that the model has: TensorFlow's users give numbers of one for those of another."""
    for name, value in feeds.items():
        if name in dtypes:
            yield name, np.asarray(value).astype(dtypes[name], copy=False)
