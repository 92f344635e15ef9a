"""Model: a loaded network that runs on NumPy arrays. Arrays go in and come out without copies."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from . import _kilter
from .arrays import from_native, numpy_dtype, to_native
from .errors import InputTypeError, InputValueError

__all__ = ["InputTypeError", "InputValueError", "Model", "Port", "load"]


@dataclass(frozen=True)
class Port:
    """An input or output.

    `shape` holds numbers, names of symbolic dimensions, and None for nameless open ones; it is None when
    the model leaves even the rank open.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None

    @property
    def numpy_dtype(self) -> np.dtype:
        return numpy_dtype(self.dtype)


class Model:
    """Made by `kilter.load`. Immutable; any number of threads may run it at the same time."""

    def __init__(self, session: _kilter.Session):
        self._session = session
        self._inputs = tuple(Port(*entry) for entry in session.inputs)
        self._outputs = tuple(Port(*entry) for entry in session.outputs)

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self._outputs

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Runs the model once. `inputs` maps names to arrays; the result is in the model's output order.

        Anything that NumPy or DLPack can see as an array on the CPU will do. It is read in place when it is
        contiguous and has the right element type already; nothing is converted silently.

        >>> kilter.load("model.onnx").run({"image": images[:2]})["logits"].shape
        (2, 10)
        """
        results = self._session.run(self._native(inputs))
        return {port.name: from_native(result) for port, result in zip(self._outputs, results, strict=True)}

    def _native(self, inputs: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        known = [port.name for port in self._inputs]
        for name in inputs:
            if name not in known:
                raise InputValueError(f"the model has no input '{name}', its inputs are {', '.join(known)}")
        missing = [name for name in known if name not in inputs]
        if missing:
            raise InputValueError(
                f"input '{missing[0]}' is missing, the model's inputs are {', '.join(known)}"
            )
        return [to_native(port, inputs[port.name]) for port in self._inputs]

    def __call__(self, *inputs: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Runs the model on arrays in the order of `model.inputs`; returns one array, or a tuple."""
        if len(inputs) != len(self._inputs):
            names = ", ".join(port.name for port in self._inputs)
            raise InputValueError(
                f"the model takes {len(self._inputs)} inputs ({names}), found {len(inputs)}"
            )
        named = {port.name: array for port, array in zip(self._inputs, inputs, strict=True)}
        outputs = tuple(self.run(named).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def inspect(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """What every operator of the optimized graph computes, by its name; integers as the numbers they stand for.

        Give one sample at a time: of larger batches the engine may compute parts one after another, which are left out.

        >>> model = kilter.load("model.onnx")
        >>> {array.dtype.name for array in model.inspect({"image": images[:1]}).values()}
        {'float32'}
        """
        return {name: from_native(result) for name, result in self._session.inspect(self._native(inputs))}

    def bench(
        self,
        *,
        batch: int = 0,
        shapes: Mapping[str, Sequence[int]] | None = None,
        instances: int = 1,
        seconds: float = 3.0,
        iterations: int = 0,
    ) -> dict[str, float]:
        """Measures runs on made-up inputs: median_ms, p90_ms, min_ms, runs and runs_per_second.

        `batch` is the size of an open first dimension (0: one); `shapes` gives the shape of an input, or,
        under the name of a symbolic dimension, its size. `instances` run side by side, each with the model's
        threads.

        >>> figures = kilter.load("model.onnx").bench(batch=4, iterations=3)
        >>> figures["runs"], figures["median_ms"] > 0
        (3, True)
        """
        return self._session.bench(batch, _lists(shapes), instances, seconds, iterations)

    def profile(
        self, *, batch: int = 0, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> list[dict[str, Any]]:
        """Time and kernel of every operator of the optimized graph, on made-up inputs as in `bench`."""
        return self._session.profile(batch, _lists(shapes))

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
        """Writes the model, as it was loaded, as an ONNX file; never leaves half of one."""
        self._session.save(os.fspath(path), external_data)

    def to_bytes(self) -> bytes:
        """The content of the file that `save` writes."""
        return self._session.to_bytes()

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says about itself."""
        return self._session.metadata

    def graph_text(self, *, optimized: bool = False) -> str:
        """The graph in readable form, one line per operator: as loaded, or as it runs."""
        return self._session.graph_text(optimized)

    def __repr__(self) -> str:
        def ports(entries: tuple[Port, ...]) -> str:
            return ", ".join(f"{port.name}: {port.dtype}{_shape_text(port.shape)}" for port in entries)

        return f"<kilter.Model ({ports(self._inputs)}) -> ({ports(self._outputs)})>"


def load(
    model: Any,
    *,
    threads: int = 0,
    optimize: bool = True,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    signature: str = "",
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Model:
    """Loads a model: an ONNX file, its bytes or an onnx.ModelProto; a TensorFlow graph (.pb, .pbtxt), a
    SavedModel folder, or such objects of TensorFlow itself (GraphDef, tf.Graph, Keras models); an MXNet symbol (-symbol.json), its parameters, or the prefix of both.

    `threads` is how many one run uses; 0 means all cores that this process may use. `optimize=False` runs the
    operators one by one as the file has them. Of a TensorFlow graph, `inputs` and `outputs` choose what is
    fed and fetched ("name", "name:1"), and only what lies between them needs to be known to kilter; by
    default these are the placeholders and what no node reads. `signature` chooses one of a SavedModel.
    `shapes` tells what an MXNet symbol seldom does, the shapes of its inputs; -1 for what stays open.

    >>> kilter.load("model.onnx")
    <kilter.Model (image: f32[batch, 1, 28, 28]) -> (logits: f32[batch, 10])>
    """
    if threads < 0:
        raise InputValueError(f"threads must not be negative, found {threads}")
    if type(model).__name__ == "ModelProto":
        model = model.SerializeToString()
    if isinstance(model, bytes | bytearray | memoryview):
        return Model(_kilter.load_bytes(bytes(model), threads, optimize))
    if not isinstance(model, str | os.PathLike):
        bridge = import_module("kilter.frameworks").bridge_for(model)  # which imports us
        if hasattr(bridge, "read"):
            bridge.choose(inputs, outputs)
            return bridge.read(model, threads)
        raise InputTypeError(f"a {type(model).__name__} is no model that kilter knows")
    path = os.fspath(model)
    if not os.path.exists(path) and not os.path.exists(f"{path}-symbol.json"):
        raise FileNotFoundError(f"there is no file '{path}'")
    return Model(
        _kilter.load_file(path, threads, optimize, list(inputs), list(outputs), signature, _lists(shapes))
    )


def _lists(shapes: Mapping[str, Sequence[int]] | None) -> dict[str, list[int]]:
    return {name: [int(size) for size in shape] for name, shape in (shapes or {}).items()}


def _shape_text(shape: tuple[int | str | None, ...] | None) -> str:
    if shape is None:
        return "[...]"
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
