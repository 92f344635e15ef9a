"""INT8 graphs for TensorFlow, with the interface of intel_quantization's graph_converter.

    converter = GraphConverter("fp32.pb", "int8.pb", ["input"], ["predict"], per_channel=True)
    converter.gen_calib_data_cmds = "python infer.py --input_graph={} --batches 10"
    converter.convert()

kilter needs no TensorFlow for this; the inference command does. Ranges can also come from samples that kilter runs
itself: ``converter.samples = batches``, an iterable of arrays or of ``{input: array}``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _kilter
from .arrays import any_to_native

__all__ = ["ConvertedOperator", "GraphConverter", "Report"]


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


def _names(value: str | Sequence[str]) -> list[str]:
    """A list of names, also from one text with commas."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    return [name.strip() for name in parts if name.strip()]


class GraphConverter:
    """Makes an INT8 GraphDef that stock TensorFlow runs from a frozen FP32 GraphDef.

    ``output_graph`` None: int8_final_fused_graph.pb beside the input. ``algo`` says how the ranges of several batches
    become one: DIRECT (5th and 95th percentile), MA (moving average) or MINMAX.

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
            self._next_sample(),
            self.debug,
            "" if self.fused_fp32 is None else os.fspath(self.fused_fp32),
            None,
        )
        operators = [ConvertedOperator(**row) for row in report.pop("operators")]
        return Report(operators=operators, **report)

    def covert(self) -> Report:
        """``convert()`` as intel_quantization's documentation spells it."""
        return self.convert()

    def _next_sample(self) -> Callable[[], list[tuple[Any, ...]] | None] | None:
        if self.samples is None:
            return None
        batches = iter(self.samples)

        def following() -> list[tuple[Any, ...]] | None:
            batch = next(batches, None)
            if batch is None:
                return None
            if isinstance(batch, Mapping):
                batch = [batch[name] for name in self.inputs]
            return [any_to_native(array) for array in (batch if isinstance(batch, list | tuple) else [batch])]

        return following
