"""MXNet's own functions for quantization, with its words, on kilter: `quantize_net` and `quantize_model`.

>>> small = kilter.mxnet.quantize_net(block, calib_data=loader, calib_mode="entropy")  # what quantize gives: small(x)
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import mxnet as mx
import numpy as np

from .. import _kilter
from .._quantize import Stats, calibrate, quantize
from ..batches import begin
from ..errors import InputTypeError, InputValueError
from . import Opened
from .mxnet_names import operators_named

__all__ = ["entropy_ranges", "naive_ranges", "quantize_model", "quantize_net"]

Range = tuple[float, float]
_BINS = 8001


def quantize_net(
    network: Any,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Iterable[str] | None = None,
    exclude_layers_match: Iterable[str] | None = None,
    exclude_operators: Iterable[str] | None = None,
    calib_data: Iterable[Any] | None = None,
    data_shapes: Any = None,
    calib_mode: str = "naive",
    num_calib_examples: int | None = None,
    ctx: Any = None,
    logger: Any = None,
) -> Any:
    """A Gluon block, or (symbol, arguments, states), on integers as MXNet would do it: symmetric ranges.

    `calib_mode`: naive (the extremes) or entropy; ranges that are found at run time (none) kilter has not. `quantized_dtype`:
    auto (unsigned where nothing is negative), int8, or uint8 (with zero points, which MXNet has not). `quantize_granularity`
    is about dense layers, as there; convolutions have a scale for each channel. `exclude_layers` takes names of operators
    and of fused ones (sg_mkldnn_conv_bn_act_0, sg_onednn_conv_bn_act_0), `exclude_layers_match` parts of names,
    `exclude_operators` types. `data_shapes` and `ctx` are not needed: samples tell shapes, and kilter runs on CPUs.
    """
    _one_of("quantized_dtype", quantized_dtype, ("auto", "int8", "uint8"))
    _one_of("quantize_mode", quantize_mode, ("full", "smart"))
    _one_of("quantize_granularity", quantize_granularity, ("tensor-wise", "channel-wise"))
    _one_of("calib_mode", calib_mode, ("naive", "entropy"), "kilter finds ranges before it runs")
    if calib_data is None:
        raise InputTypeError("quantize_net needs calib_data: samples that show the ranges of values")
    batches = _Batches(calib_data, num_calib_examples)
    source = Opened(network, batches, 0, labelled=True)
    prefix = source.bridge.checkpoint
    symbol = mx.sym.load(f"{prefix}-symbol.json")
    stats = calibrate(source, batches)
    _assume(stats, prefix, batches, quantized_dtype, calib_mode)
    excluded = _excluded(symbol, exclude_layers or (), exclude_layers_match or (), exclude_operators or ())
    # The plan speaks of operators under their names, or as parts of others; the rest is none here.
    plan = quantize(source, stats=stats, algorithm="minmax").plan
    known = {name for entry in plan["operators"] for name in (entry["name"], *entry.get("origins", ()))}
    if logger is not None:
        logger.info("These layers have been excluded %s", excluded)
    return quantize(
        source,
        stats=stats,
        algorithm="minmax",
        scheme="asym" if quantized_dtype == "uint8" else "sym",
        mode=quantize_mode,
        exclude=[name for name in excluded if name in known],
        overrides=_granularity(symbol, known, quantize_granularity),
    )


def quantize_model(
    sym: Any,
    arg_params: dict[str, Any],
    aux_params: dict[str, Any],
    data_names: Iterable[str] = ("data",),
    label_names: Iterable[str] = ("softmax_label",),
    ctx: Any = None,
    excluded_sym_names: Iterable[str] | None = None,
    excluded_op_names: Iterable[str] | None = None,
    calib_mode: str = "entropy",
    calib_data: Iterable[Any] | None = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> Any:
    """The same for a symbol and its parameters, with the names and defaults that MXNet's function of this name has.

    It returns a block: its `export` writes the symbol and the parameters. Inputs and labels are told apart by the symbol.
    """
    return quantize_net(
        (sym, arg_params, aux_params),
        quantized_dtype=quantized_dtype,
        quantize_mode=quantize_mode,
        quantize_granularity=quantize_granularity,
        exclude_layers=excluded_sym_names,
        exclude_operators=excluded_op_names,
        calib_data=calib_data,
        calib_mode=calib_mode,
        num_calib_examples=num_calib_examples,
        ctx=ctx,
        logger=logger,
    )


def _one_of(what: str, found: str, words: tuple[str, ...], hint: str = "") -> None:
    if found not in words:
        text = f"{what} is {' or '.join(words)}, found '{found}'"
        raise InputValueError(f"{text}: {hint}" if hint else text)


class _Batches:
    """Samples that can be read again, up to a number of examples, in whole batches as MXNet counts them."""

    def __init__(self, data: Iterable[Any], examples: int | None):
        self._data, self._examples = data, examples

    def __iter__(self) -> Iterator[Any]:
        seen = 0
        for item in begin(self._data):
            if self._examples is not None and seen >= self._examples:
                return
            yield item
            first = (
                item.data[0]
                if hasattr(item, "label")
                else item[0]
                if isinstance(item, list | tuple)
                else item
            )
            seen += first.shape[0]


def _assume(stats: Stats, prefix: str, batches: _Batches, dtype: str, mode: str) -> None:
    """Puts the ranges of MXNet's calibrator in place of what kilter saw."""
    ranges = naive_ranges(stats)
    if mode == "entropy":
        ranges |= entropy_ranges(prefix, batches, list(ranges), dtype)
    for name, (low, high) in ranges.items():
        if dtype == "int8":
            low, high = -max(-low, high), max(-low, high)
        stats._native.assume(name, low, high)


def naive_ranges(stats: Stats) -> dict[str, Range]:
    """The extremes of every value, by its name in MXNet: an input's, or that of an operator with _output."""
    return {name: (entry["min"], entry["max"]) for name, entry in stats.values.items()}


def entropy_ranges(
    prefix: str, batches: Iterable[Any], names: Iterable[str], quantized_dtype: str = "auto"
) -> dict[str, Range]:
    """The thresholds of MXNet's entropy calibration, from values that MXNet itself computes, batch by batch."""
    wanted = set(names)
    histograms: dict[str, _Histogram] = {}

    def see(name: str, array: np.ndarray) -> None:
        if name in wanted:
            histograms.setdefault(name, _Histogram()).add(array)

    _watch(prefix, batches, see)
    return {name: histogram.range(quantized_dtype) for name, histogram in histograms.items()}


class _Histogram:
    """Bins around zero, as wide as the first batch asks for; later batches may only add bins at both ends."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)
        self._reach = 0.0
        self._low = np.inf

    def add(self, array: np.ndarray) -> None:
        array = array.ravel()
        reach = float(np.abs(array).max(initial=0))
        self._low = min(self._low, float(array.min(initial=np.inf)))
        if not self._reach:
            self._counts, self._reach = np.zeros(_BINS, np.int64), reach
        elif reach > self._reach:
            step = 2 * self._reach / len(self._counts)
            more = int((reach - self._reach) // step + 1)
            self._counts = np.pad(self._counts, more)
            self._reach += more * step
        if self._reach:
            self._counts += np.histogram(array, len(self._counts), (-self._reach, self._reach))[0]

    def range(self, dtype: str) -> Range:
        never_negative = self._low >= 0 and dtype != "int8"
        width = 2 * self._reach / len(self._counts)
        threshold = _kilter.entropy_threshold(self._counts.astype(float).tolist(), width, never_negative)
        return (0.0 if never_negative else -threshold, threshold)


def _watch(prefix: str, batches: Iterable[Any], see: Callable[[str, np.ndarray], None]) -> None:
    """Runs the symbol in MXNet, not fused, and shows the inputs and the result of every operator."""
    symbol, arguments, states = mx.model.load_checkpoint(prefix, 0)
    held = {**arguments, **states}
    names = [name for name in symbol.list_inputs() if name not in held and not name.endswith("label")]
    executor = None

    def callback(name: bytes | str, handle: Any) -> None:
        array = mx.nd.NDArray(mx.base.ctypes.cast(handle, mx.base.NDArrayHandle), writable=False)
        see(mx.base.py_str(name), array.asnumpy())

    with _unfused():
        for item in batches:
            given = (
                item.data if hasattr(item, "label") else item if isinstance(item, list | tuple) else [item]
            )
            feeds = {
                name: mx.nd.array(array) for name, array in zip(names, islice(given, len(names)), strict=True)
            }
            if executor is None:
                executor = symbol.simple_bind(
                    mx.cpu(), grad_req="null", **{name: array.shape for name, array in feeds.items()}
                )
                executor.copy_params_from(arguments, states, allow_extra_params=True)
                executor.set_monitor_callback(callback)
            elif any(executor.arg_dict[name].shape != array.shape for name, array in feeds.items()):
                executor = executor.reshape(**{name: array.shape for name, array in feeds.items()})
                executor.set_monitor_callback(callback)
            for name, array in feeds.items():
                see(name, array.asnumpy())
            executor.forward(is_train=False, **feeds)
            mx.nd.waitall()


@contextmanager
def _unfused() -> Iterator[None]:
    key = "MXNET_SUBGRAPH_BACKEND"
    before = os.environ.get(key)
    os.environ[key] = "NONE"
    try:
        yield
    finally:
        if before is None:
            del os.environ[key]
        else:
            os.environ[key] = before


def _excluded(symbol: Any, names: Iterable[str], parts: Iterable[str], operators: Iterable[str]) -> list[str]:
    nodes = [node for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]
    found = operators_named(symbol, names)
    types = set(operators)
    parts = list(parts)
    for node in nodes:
        if node["op"] in types or any(part in node["name"] for part in parts):
            found.append(node["name"])
    return list(dict.fromkeys(found))


def _granularity(symbol: Any, known: set[str], granularity: str) -> dict[str, Any] | None:
    if granularity == "channel-wise":
        return None
    nodes = json.loads(symbol.tojson())["nodes"]
    dense = [node["name"] for node in nodes if node["op"] == "FullyConnected" and node["name"] in known]
    return {"operators": {name: {"weights": "per-tensor"} for name in dense}} if dense else None
