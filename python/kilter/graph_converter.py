"""INT8 graphs for TensorFlow, with the interface of intel_quantization's graph_converter.

    converter = GraphConverter("fp32.pb", "int8.pb", ["input"], ["predict"], per_channel=True)
    converter.gen_calib_data_cmds = "python infer.py --input_graph={} --batches 10"
    converter.convert()

kilter needs no TensorFlow for this; the inference command does. Ranges can also come from samples that kilter runs
itself: ``converter.samples = batches``, an iterable of arrays or of ``{input: array}``.

QuantizableGraph is the same in stages, for programs that run the graph themselves and choose per operator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _kilter
from ._quantize import Stats
from .arrays import any_to_native

__all__ = [
    "ConvertedOperator",
    "GraphConverter",
    "IntegerGraph",
    "Observations",
    "QuantizableGraph",
    "QuantizableOperator",
    "Report",
]


@dataclass(frozen=True)
class ConvertedOperator:
    """What became of an operator: ``note`` says what was fused into it, or why it stayed in floats."""

    name: str
    op: str
    precision: str
    note: str


@dataclass(frozen=True)
class Report:
    """What ``convert()`` did. ``quantize`` and ``dequantize`` count the borders between floats and integers."""

    output_graph: str
    operators: list[ConvertedOperator]
    quantize: int
    dequantize: int
    tensors: int
    batches: int

    def count(self, precision: str) -> int:
        return sum(operator.precision == precision for operator in self.operators)


@dataclass(frozen=True)
class QuantizableOperator:
    """``fused``: nodes that become part of it; ``tensors``: what it reads as integers."""

    name: str
    op: str
    fused: list[str]
    tensors: list[str]


@dataclass(frozen=True)
class IntegerGraph:
    """A serialized INT8 GraphDef, and what became of every operator."""

    graph: bytes
    operators: list[ConvertedOperator]
    quantize: int
    dequantize: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the GraphDef; never leaves half of one."""
        aside = f"{os.fspath(path)}.{os.getpid()}"
        with open(aside, "wb") as file:
            file.write(self.graph)
        os.replace(aside, path)


class Observations:
    """Collects statistics of tensors from whoever runs the graph."""

    def __init__(self, tensors: Sequence[str]) -> None:
        self._native = _kilter.Observations(list(tensors))

    def add(self, tensor: str, values: Any) -> None:
        """What a tensor was in one batch: an array of floats."""
        self._native.add(tensor, [any_to_native(values)])

    def stats(self) -> Stats:
        """Of all batches; tensors that were never seen, or seen infinite, are missing."""
        return Stats(self._native.stats())


class QuantizableGraph:
    """A TensorFlow graph made ready for quantization: optimized, and what of it could run on integers is known.

    ``source``: a frozen graph (.pb, .pbtxt), a SavedModel folder, or the bytes of a GraphDef. Without ``inputs`` and
    ``outputs`` these are the placeholders, and what nobody reads.

        graph = QuantizableGraph("fp32.pb")
        stats = graph.observe(batches)
        graph.write({"conv1": {"precision": "f32"}}, stats).save("int8.pb")
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes,
        inputs: str | Sequence[str] = (),
        outputs: str | Sequence[str] = (),
        excluded_ops: str | Sequence[str] = (),
        excluded_nodes: str | Sequence[str] = (),
        signature: str = "",
    ) -> None:
        self._native = _kilter.QuantizableGraph(
            source if isinstance(source, bytes) else os.fspath(source),
            _names(inputs),
            _names(outputs),
            _names(excluded_ops),
            _names(excluded_nodes),
            signature,
        )

    @property
    def inputs(self) -> list[str]:
        return self._native.inputs

    @property
    def outputs(self) -> list[str]:
        return self._native.outputs

    @property
    def operators(self) -> list[QuantizableOperator]:
        """Convolutions and products, then the pools, concatenations and reshapes that may run on bytes between them."""
        return [QuantizableOperator(**row) for row in self._native.operators]

    @property
    def left_out(self) -> list[ConvertedOperator]:
        """What stays in floats, and why."""
        return [ConvertedOperator(**row) for row in self._native.left_out]

    @property
    def tensors(self) -> list[str]:
        """Tensors of `fp32` whose ranges are needed: names of nodes, "node:1" for other outputs than the first."""
        return self._native.tensors

    def fp32(self) -> bytes:
        """The optimized FP32 GraphDef: the one whose tensors are observed."""
        return self._native.fp32()

    def logging(self) -> bytes:
        """The same with a Print of the extremes behind every tensor."""
        return self._native.logging()

    def observe(self, samples: Iterable[Any]) -> Stats:
        """Runs the graph in kilter. ``samples``: arrays, lists of arrays in the order of `inputs`, or ``{input: array}``."""
        return Stats(self._native.observe(_feeder(samples, self.inputs)))

    def write(
        self,
        choices: Mapping[str, Mapping[str, Any]],
        measured: Stats | Mapping[str, tuple[float, float]],
    ) -> IntegerGraph:
        """The INT8 graph. ``choices`` by name of the operator: precision (int8 or f32), weights (per-channel or per-tensor), bits,
        algorithm (minmax, kl, percentile, mse) and percentile; the default is int8 per-channel minmax. Or a plan, as
        ``QuantizedModel.plan`` gives it for the same model: what it does not know stays in floats.

        ``measured``: statistics, or ``{tensor: (min, max)}``, for which algorithms make no difference.
        """
        is_plan = "operators" in choices and isinstance(choices["operators"], list)
        graph, operators, *borders = self._native.write(
            json.dumps(choices) if is_plan else {name: dict(choice) for name, choice in choices.items()},
            measured._native if isinstance(measured, Stats) else dict(measured),
        )
        return IntegerGraph(graph, [ConvertedOperator(**row) for row in operators], *borders)


def _feeder(samples: Iterable[Any], inputs: Sequence[str]) -> Callable[[], list[tuple[Any, ...]] | None]:
    """A function that gives the arrays of the next batch, in the order of the inputs."""
    batches = iter(samples)

    def following() -> list[tuple[Any, ...]] | None:
        batch = next(batches, None)
        if batch is None:
            return None
        if isinstance(batch, Mapping):
            batch = [batch[name] for name in inputs]
        return [any_to_native(array) for array in (batch if isinstance(batch, list | tuple) else [batch])]

    return following


def _names(value: str | Sequence[str]) -> list[str]:
    """A list of names, also from one text with commas."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    return [name.strip() for name in parts if name.strip()]


class GraphConverter:
    """Makes an INT8 GraphDef that stock TensorFlow runs from a frozen FP32 GraphDef.

    ``output_graph`` None: int8_final_fused_graph.pb beside the input. ``algo`` says how the ranges of several batches
    become one: DIRECT (5th and 95th percentile), MA (moving average) or MINMAX; or how they are found from how often values
    occur: KL, MSE, PERCENTILE or PERCENTILE:99.9, for which the command runs twice.

    Attributes: ``gen_calib_data_cmds``, the shell command that runs the model on a few batches, with ``{}`` for the path of
    the graph; ``samples``, batches that kilter runs itself instead of the command; ``debug``, which keeps the intermediate graphs beside the output; ``fused_fp32``, where the optimized FP32 graph is written too.
    """

    def __init__(
        self,
        input_graph: str | os.PathLike[str],
        output_graph: str | os.PathLike[str] | None,
        inputs: str | Sequence[str] = (),
        outputs: str | Sequence[str] = (),
        excluded_ops: str | Sequence[str] = (),
        excluded_nodes: str | Sequence[str] = (),
        per_channel: bool = False,
        input_graph_is_binary: bool = True,
        algo: str = "DIRECT",
    ) -> None:
        self.input_graph = os.fspath(input_graph)
        self.output_graph = None if output_graph is None else os.fspath(output_graph)
        self.inputs = _names(inputs)
        self.outputs = _names(outputs)
        self.excluded_ops = _names(excluded_ops)
        self.excluded_nodes = _names(excluded_nodes)
        self.per_channel = bool(per_channel)
        # Kept for old programs: kilter sees by itself whether a file is text.
        self.input_graph_is_binary = input_graph_is_binary
        self.algo = algo
        self.gen_calib_data_cmds: str | None = None
        self.samples: Iterable[Any] | None = None
        self.debug = False
        self.fused_fp32: str | os.PathLike[str] | None = None

    def convert(self) -> Report:
        """Calibrates and writes the INT8 graph. Raises kilter.Error, and writes nothing, when the command fails, prints no
        ranges or misses a tensor that is quantized."""
        report = _kilter.convert_graph(
            self.input_graph,
            self.output_graph or "",
            self.inputs,
            self.outputs,
            self.excluded_ops,
            self.excluded_nodes,
            self.per_channel,
            self.algo,
            self.gen_calib_data_cmds or "",
            None if self.samples is None else _feeder(self.samples, self.inputs),
            self.debug,
            "" if self.fused_fp32 is None else os.fspath(self.fused_fp32),
            None,
        )
        operators = [ConvertedOperator(**row) for row in report.pop("operators")]
        return Report(operators=operators, **report)

    def covert(self) -> Report:
        """``convert()`` as intel_quantization's documentation spells it."""
        return self.convert()
