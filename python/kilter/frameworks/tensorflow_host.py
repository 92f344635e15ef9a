"""Graphs that TensorFlow runs and kilter quantizes: their tensors are observed in a session, candidates run as real graphs."""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from .._quantize import QuantizedModel, Stats
from ..errors import InputValueError
from ..graph_converter import Observations, QuantizableGraph
from .tensorflow_graph import FrozenGraph
from .tensorflow_session import STARTERS, make_graph, runs_of, write_graph

#: How long a graph is watched for its speed: runs, and seconds.
RUNS, SECONDS = 9, 6.0


class Graph(tf.Graph):
    """A tf.Graph that knows what is fed and fetched: sessions run it, and so does a call, on arrays."""

    #: How files are called when nobody says.
    suffix = ".pb"

    def __init__(self, graph_def: Any, inputs: Sequence[str], outputs: Sequence[str]):
        super().__init__()
        make_graph(graph_def, self)
        self.input_names, self.output_names = tuple(inputs), tuple(outputs)
        #: The same on kilter's engine, where that can run it.
        self.model: QuantizedModel | None = None
        self._session: tf.compat.v1.Session | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """One run: arrays in order or by name in; an array, or a list of them, out."""
        feeds = named or dict(zip(self.input_names, inputs, strict=True))
        if self._session is None:
            self._session = tf.compat.v1.Session(graph=self)
        outputs = self._session.run([tensor(name) for name in self.output_names], tensors(feeds))
        return outputs[0] if len(outputs) == 1 else outputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the GraphDef; the model as ONNX where the name ends in .onnx."""
        if not os.fspath(path).endswith(".onnx"):
            write_graph(self.as_graph_def(), path)
        elif self.model is None:
            raise InputValueError("only TensorFlow can run this graph, so there is no ONNX of it: save a .pb")
        else:
            self.model.save(path)

    export = save

    def close(self) -> None:
        """Gives back what the session of calls holds."""
        if self._session is not None:
            self._session.close()
            self._session = None


class HostedGraph:
    """A frozen graph with what is needed to make INT8 graphs of it."""

    def __init__(self, frozen: FrozenGraph):
        self.frozen = frozen
        self._content = frozen.path.read_bytes()
        self.stats: Stats | None = None
        #: What it was fed first, to measure with.
        self.first: Mapping[str, Any] = {}
        # What starts a graph's own data is read by nobody, and must stay.
        starters = [op.name for op in make_graph(self._content).get_operations() if op.type in STARTERS]
        ends = [[tensor.partition(":")[0] for tensor in names] for names in (frozen.inputs, frozen.outputs)]
        self.quantizable = QuantizableGraph(self._content, ends[0], list(dict.fromkeys(ends[1] + starters)))

    def graph(self, content: bytes | None = None) -> Graph:
        """The graph of a candidate; without one, FP32 as it was given."""
        return Graph(self._content if content is None else content, self.frozen.inputs, self.frozen.outputs)

    def observe(self, feeds: Iterable[Mapping[str, Any]], samples: int, told: Callable[[int], None]) -> None:
        """Learns what its tensors look like over the first samples."""
        names = self.quantizable.tensors
        seen, rows = Observations(names), 0
        with tf.compat.v1.Session(graph=make_graph(self.quantizable.fp32())) as session:
            for one in feeds:
                self.first = self.first or one
                # The tensors of one run are looked at before the next: no more than that is in memory.
                for arrays in runs_of(session, [tensor(name) for name in names], tensors(one)):
                    for name, array in zip(names, arrays, strict=True):
                        seen.add(name, array)
                    rows += _rows(one)
                    told(rows)
                    if rows >= samples:
                        break
                if rows >= samples:
                    break
        if rows == 0:
            raise InputValueError("there are no samples to calibrate with")
        self.stats = seen.stats()

    def write(self, plan: Mapping[str, Any]) -> bytes:
        """The INT8 GraphDef of a plan."""
        return self.quantizable.write(plan, self.stats).graph

    def milliseconds(self, graph: tf.Graph) -> float:
        """The median time of a run on what was fed first."""
        fetches = [tensor(name) for name in self.frozen.outputs]
        times: list[float] = []
        end = time.perf_counter() + SECONDS
        with tf.compat.v1.Session(graph=graph) as session:
            while len(times) < RUNS and time.perf_counter() < end:
                begun = time.perf_counter()
                count = len(times)
                for _ in islice(runs_of(session, fetches, tensors(self.first)), RUNS):
                    times.append(time.perf_counter() - begun)
                    begun = time.perf_counter()
                if len(times) == count:
                    break
        # The first runs make the graph ready.
        return 1000 * statistics.median(times[2:] or times) if times else 0.0


def _rows(feeds: Mapping[str, Any]) -> int:
    """How many samples a run has: those that are fed; of a graph that reads its own data, the size of its batches."""
    sizes = [np.shape(value)[0] for value in feeds.values() if np.ndim(value) > 0]
    if sizes:
        return sizes[0]
    numbers = [int(value) for value in feeds.values() if isinstance(value, int | np.integer)]
    return max(1, numbers[0]) if numbers else 1


def tensor(name: str) -> str:
    """As sessions call it."""
    return name if ":" in name else f"{name}:0"


def tensors(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Feeds as sessions take them: by tensor, and none of them one of TensorFlow's own."""
    return {tensor(name): value.numpy() if tf.is_tensor(value) else value for name, value in feeds.items()}


class Runner:
    """A graph in the place of a kilter.Model: arrays by name in and out."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """One run."""
        outputs = self.graph(**feeds)
        return dict(
            zip(self.graph.output_names, outputs if isinstance(outputs, list) else [outputs], strict=True)
        )
