"""TensorFlow: Keras models, graphs, GraphDefs and SavedModels go in; what comes out is called, or run in a session, as they are.

>>> small = kilter.quantize(keras_model, dataset)  # small(x), small.predict(x): on kilter's engine
>>> small.export("int8.pb")  # a GraphDef for stock TensorFlow
>>> graph8 = kilter.quantize(graph, samples)  # a tf.Graph with integer operators, for sessions
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from .. import _kilter
from .. import model as engine
from .._quantize import QuantizedModel
from ..batches import separate
from ..errors import InputTypeError, InputValueError
from ..graph_converter import IntegerGraph
from .structure import replaced
from .tensorflow_graph import FrozenGraph, converted, fed, node_name
from .tensorflow_host import Graph, HostedGraph, Runner
from .tensorflow_session import STARTERS, iterator_sess_run, make_graph, write_graph

__all__ = ["Bridge", "Graph", "Model", "SavedGraph", "iterator_sess_run", "make_graph", "write_graph"]

# Nodes that nobody reads and that are still no result.
_NO_RESULTS = {"Const", "NoOp", "Assign", "Assert", *STARTERS}


class SavedGraph:
    """A graph and what is fed and fetched, where that is not all placeholders and everything that nobody reads."""

    def __init__(self, graph: Any, inputs: Sequence[str] = (), outputs: Sequence[str] = ()):
        self.graph_def = graph.as_graph_def() if isinstance(graph, tf.Graph) else graph
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)


class Bridge:
    """Made by `kilter.frameworks.bridge_for(model)`."""

    name = "TensorFlow"

    @staticmethod
    def accepts(model: Any) -> bool:
        return (
            _is_graph(model) or _is_keras(model) or hasattr(model, "signatures") or isinstance(model, Model)
        )

    def __init__(self) -> None:
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._frozen: FrozenGraph | None = None
        self._outputs: Any = None  # the structure of what a call returns
        self._dtypes: dict[str, np.dtype] = {}
        self._is_graph = False
        self._native = True

    def choose(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """What is fed and fetched of a graph, when that is not what it says itself."""
        self._names = (inputs, outputs)

    def read(self, model: Any, threads: int = 0) -> engine.Model:
        """Loads a model that says itself what its inputs look like."""
        return self._loaded(model, None, threads)

    def load(self, model: Any, example: Any) -> engine.Model:
        return self._loaded(model, example, 0)

    def adopt(self, model: Any, exported: engine.Model) -> None:
        self._loaded(model, None, 0)

    def _loaded(self, model: Any, example: Any, threads: int) -> engine.Model:
        if isinstance(model, Model):
            self._frozen, self._outputs = model.frozen, model.outputs
            loaded = model.model
        else:
            self._frozen, self._outputs = freeze(model, example, *self._names)
            loaded = self._frozen.load(threads)
        self._is_graph = _is_graph(model)
        self._native = not _kilter.opaque_operators(loaded._session)
        self._dtypes = {port.name: port.numpy_dtype for port in loaded.inputs}
        return loaded

    def separate(self, item: Any) -> tuple[Any, Any]:
        return separate(item, len(self._frozen.inputs))

    def arrays(self, item: Any) -> Any:
        return replaced(item, tf.is_tensor, np.asarray)

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        feeds = dict(converted(fed(self._frozen.inputs, self.arrays(item)), self._dtypes))
        self._frozen.remember(feeds)
        return feeds

    def _integer_graph(self, model: QuantizedModel) -> Graph:
        content = self._frozen.integer_graph(model.plan).graph
        graph = Graph(content, self._frozen.inputs, self._frozen.outputs)
        graph.model = model
        return graph

    def hosts(self, function: bool) -> bool:
        """Must TensorFlow run it? What a function of the user's evaluates in sessions, and what kilter cannot run."""
        return (self._is_graph and function) or not self._native

    def host(self) -> HostedGraph:
        """The graph for TensorFlow to run."""
        return HostedGraph(self._frozen)

    def host_feeds(self, item: Any) -> dict[str, Any]:
        """The inputs of one call by the names of the tensors, as sessions take them."""
        return fed(self._frozen.inputs, self.arrays(item))

    def present(self, graph: Graph) -> Any:
        """A graph as the user's functions expect the model."""
        return graph if self._is_graph else Model(Runner(graph), self._frozen, self._outputs)

    def wrap(self, model: engine.Model, original: Any) -> Any:
        if not _is_graph(original):
            return Model(model, self._frozen, self._outputs)
        if isinstance(model, QuantizedModel):
            return self._integer_graph(model)
        raise InputTypeError(
            "a graph that runs in sessions cannot be watched: give a calibration data loader instead of q_func"
        )


class Model:
    """A model that is called as a Keras model or the function of a SavedModel is, and runs on kilter's engine."""

    def __init__(self, model: engine.Model, frozen: FrozenGraph, outputs: Any):
        #: The kilter.Model that runs.
        self.model = model
        self.frozen = frozen
        self.outputs = outputs

    def __call__(self, *inputs: Any, training: bool = False, mask: Any = None, **named: Any) -> Any:
        """Tensors or arrays in, tensors out: in order, as one collection, or by name."""
        del training, mask  # there is nothing to train
        given = named or (inputs[0] if len(inputs) == 1 else list(inputs))
        return tf.nest.map_structure(tf.convert_to_tensor, self._run(given))

    def predict(self, x: Any, batch_size: int = 32, verbose: Any = None, steps: int | None = None) -> Any:
        """Arrays in, arrays out, in batches."""
        del verbose
        if isinstance(x, tf.data.Dataset):
            batches: Iterable[Any] = (
                separate(item, len(self.frozen.inputs))[0] for item in x.take(steps or -1)
            )
        else:
            flat = tf.nest.flatten(x)
            batches = (
                tf.nest.pack_sequence_as(x, [array[i : i + batch_size] for array in flat])
                for i in range(0, len(flat[0]), batch_size)
            )
        parts = [self._run(batch) for batch in batches]
        return tf.nest.map_structure(lambda *arrays: np.concatenate(arrays), *parts)

    def _run(self, given: Any) -> Any:
        feeds = fed(self.frozen.inputs, given)
        if isinstance(self.model, engine.Model):
            feeds = dict(converted(feeds, {port.name: port.numpy_dtype for port in self.model.inputs}))
        results = self.model.run(feeds)
        return tf.nest.pack_sequence_as(self.outputs, [results[name] for name in self.frozen.outputs])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ONNX file; a GraphDef for TensorFlow where the name ends in .pb or .pbtxt."""
        if os.fspath(path).endswith((".pb", ".pbtxt")):
            self.export(path)
        else:
            self.model.save(path)

    def export(
        self, path: str | os.PathLike[str], *, samples: Iterable[dict[str, Any]] | None = None
    ) -> IntegerGraph | None:
        """Writes an INT8 GraphDef that stock TensorFlow runs. What is returned says what runs on integers there."""
        if isinstance(self.model, Runner):
            return self.model.graph.save(path)
        if not isinstance(self.model, QuantizedModel):
            raise InputValueError("only quantized models are written for TensorFlow")
        return self.frozen.write_int8(self.model.plan, path, samples)

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not made yet: while it is copied
            raise AttributeError(name)
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"<kilter.tensorflow.Model {self.model!r}>"


def freeze(
    model: Any, example: Any = None, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> tuple[FrozenGraph, Any]:
    """The model with constants in place of variables, and the structure of what a call returns."""
    if isinstance(model, SavedGraph):
        inputs, outputs, model = inputs or model.inputs, outputs or model.outputs, model.graph_def
    if _is_graph(model):
        graph_def = model.as_graph_def() if isinstance(model, tf.Graph) else model
        found = graph_ends(graph_def)
        inputs, outputs = inputs or found[0], outputs or found[1]
        return FrozenGraph.of_bytes(graph_def.SerializeToString(deterministic=True), inputs, outputs), list(
            outputs
        )
    function = _keras_function(model, example) if _is_keras(model) else _signature(model)
    frozen = convert_variables_to_constants_v2(function)
    names = [node_name(tensor.name) for tensor in frozen.outputs]
    flat = [node_name(tensor.name) for tensor in frozen.inputs]
    content = frozen.graph.as_graph_def().SerializeToString(deterministic=True)
    return FrozenGraph.of_bytes(content, flat, names), function.structured_outputs


def graph_ends(graph_def: Any) -> tuple[list[str], list[str]]:
    """The placeholders, and the nodes that compute something nobody reads."""
    read = {name.lstrip("^").partition(":")[0] for node in graph_def.node for name in node.input}
    inputs = [node.name for node in graph_def.node if node.op == "Placeholder"]
    outputs = [node.name for node in graph_def.node if node.name not in read and node.op not in _NO_RESULTS]
    return inputs, [name for name in outputs if name not in inputs]


def _is_graph(model: Any) -> bool:
    return isinstance(model, tf.Graph | SavedGraph | tf.compat.v1.GraphDef)


def _is_keras(model: Any) -> bool:
    return hasattr(model, "predict") and hasattr(model, "layers") and callable(model)


def _keras_function(model: Any, example: Any) -> Any:
    """One call of the model, for any number of samples."""
    specs = [
        tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name)
        for tensor in tf.nest.flatten(getattr(model, "inputs", None) or [])
    ]
    structure: Any = getattr(model, "inputs", None)
    if isinstance(getattr(model, "input", None), Mapping):
        structure = model.input
    if not specs:
        if example is None:
            raise InputValueError(
                "a Keras model of a class of yours shows its inputs only on an example: give samples"
            )
        structure = example
        specs = [
            tf.TensorSpec([None, *np.shape(array)[1:]], tf.as_dtype(np.asarray(array).dtype))
            for array in tf.nest.flatten(example)
        ]
    one = len(specs) == 1 and not isinstance(structure, Mapping)

    def call(*tensors: Any) -> Any:
        return model(tensors[0] if one else tf.nest.pack_sequence_as(structure, tensors), training=False)

    return tf.function(call).get_concrete_function(*specs)


def _signature(model: Any) -> Any:
    """The function that serves, of what tf.saved_model.load gives."""
    signatures = dict(model.signatures)
    if not signatures:
        raise InputValueError("the SavedModel has no signatures: save it with signatures=…")
    return signatures.get("serving_default") or next(iter(signatures.values()))
