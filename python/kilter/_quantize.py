"""Quantization: from an FP32 model and some samples to an INT8 model, and how far the two are apart."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _kilter
from .batches import begin, calibration_batches
from .errors import InputTypeError, InputValueError
from .frameworks import Opened, open_model
from .hosted import quantize_hosted
from .model import Model

Samples = Iterable[Any]
#: A kilter.Model, an ONNX file, its bytes, an onnx.ModelProto, or a model of a framework (kilter.frameworks).
Source = Any


@dataclass(frozen=True)
class OperatorReport:
    """What became of one operator, and why."""

    name: str
    op: str
    precision: str
    reason: str


@dataclass(frozen=True)
class ValueRange:
    """The range an activation was quantized with: real = scale * (integer - zero_point)."""

    name: str
    dtype: str
    min: float
    max: float
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Report:
    """What quantization did. `bytes_before` and `bytes_after` count the weights."""

    operators: tuple[OperatorReport, ...]
    ranges: tuple[ValueRange, ...]
    notes: tuple[str, ...]
    bytes_before: int
    bytes_after: int

    def __str__(self) -> str:
        quantized = sum(entry.precision == "int8" for entry in self.operators)
        lines = [f"{quantized} of {len(self.operators)} operators in int8"]
        lines += [
            f"{entry.precision} {entry.op} {entry.name}" + (f": {entry.reason}" if entry.reason else "")
            for entry in self.operators
            if entry.precision != "int8" or entry.reason
        ]
        lines += [*self.notes, f"weights: {self.bytes_before} -> {self.bytes_after} bytes"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Drift:
    """How far the second model's result is from the first one's: of an operator, or of an output (`op` "output").

    `snr_db` is 10 log10(signal / noise), infinite when both are equal.
    """

    name: str
    op: str
    snr_db: float
    max_error: float
    max_signal: float


class Stats:
    """Calibration statistics of every activation; made by `kilter.calibrate`."""

    def __init__(self, native: _kilter.Stats):
        self._native = native

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Stats":
        """Reads what `save` wrote."""
        path = os.fspath(path)
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no file '{path}'")
        return Stats(_kilter.Stats.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a compact binary file; never leaves half of one."""
        self._native.save(os.fspath(path))

    def merge(self, other: "Stats") -> None:
        """Takes in the statistics of other samples; exact, in any order."""
        self._native.merge(other._native)

    @property
    def samples(self) -> int:
        """How many sets of inputs were seen."""
        return self._native.samples

    @property
    def values(self) -> dict[str, dict[str, float]]:
        """count, min, max and mean of every activation, by its name in the optimized graph."""
        return self._native.values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stats) and self._native.equal(other._native)

    __hash__ = None

    def __repr__(self) -> str:
        return f"<kilter.Stats of {len(self.values)} values over {self.samples} samples>"


class QuantizedModel(Model):
    """Made by `kilter.quantize`: a Model that also knows its plan and what was done."""

    _session: _kilter.QuantizedSession

    @property
    def plan(self) -> dict[str, Any]:
        """A copy of the plan: edit it and give it to `kilter.quantize(..., plan=...)`."""
        return json.loads(self._session.plan)

    @property
    def report(self) -> Report:
        """What became of every operator, and the ranges of the activations."""
        return Report(
            tuple(OperatorReport(*entry) for entry in self._session.report),
            tuple(ValueRange(*entry) for entry in self._session.ranges),
            tuple(self._session.notes),
            *self._session.bytes,
        )

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
        """Writes an ONNX file with QuantizeLinear and DequantizeLinear, for any ONNX runtime."""
        if external_data:
            raise InputValueError("quantized models are written to one file: external_data is not supported")
        self._session.save_quantized(os.fspath(path))


def quantize(
    model: Source,
    calibration: Samples | None = None,
    *,
    stats: Stats | None = None,
    algorithm: str = "auto",
    percentile: float | None = None,
    samples: int | None = None,
    weights: str = "per-channel",
    scheme: str = "asym",
    mode: str = "smart",
    exclude: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    recipes: str | Sequence[str] = (),
    smooth_alpha: float | None = None,
    target: str = "kilter",
    plan: Mapping[str, Any] | None = None,
    threads: int = 0,
    instances: int = 1,
) -> Any:
    """Quantizes a model (or the file it is in) to INT8: a QuantizedModel. A framework's model comes back as one of its own.

    `calibration` yields inputs, one run each: an array, or a mapping of names to arrays. It is read one item at a
    time and never collected; `samples` stops after so many items. `stats` from `kilter.calibrate` replaces it.

    `algorithm` chooses ranges: minmax, kl, percentile (with `percentile`), mse, or auto: percentile 99.99 for
    convolutions, minmax for all others. `weights`: per-channel or
    per-tensor; `scheme`: asym or sym zero points; `mode`: smart or full. `exclude` and `only` take names, globs,
    "re:..." or "type:Conv". `overrides` are {"model": {...}, "types": {...}, "operators": {...}}. `recipes`:
    equalization, smooth-quant, overflow-safe, float-first, float-last, no-bias-correction. `plan` replaces all
    of these choices but the recipes.

    >>> small = kilter.quantize("model.onnx", batches, samples=4, exclude="type:MatMul")
    >>> small.report.bytes_after < 0.5 * small.report.bytes_before
    True
    """
    words = _words(
        algorithm=algorithm,
        percentile=percentile,
        weights=weights,
        scheme=scheme,
        mode=mode,
        exclude=exclude,
        only=only,
        overrides=overrides,
        recipes=recipes,
        smooth_alpha=smooth_alpha,
        target=target,
        plan=plan,
    )
    if calibration is None and stats is None:
        raise InputValueError("quantize needs calibration samples, or stats from kilter.calibrate")
    source = open_model(model, calibration, threads)
    if source.hosted(False) and calibration is not None:
        return quantize_hosted(source, source.samples, samples, words)
    first = second = None
    if calibration is not None:
        first = _puller(source, source.samples, samples)
        # An iterator can be read once only; recipes that calibrate twice say so when they find no second way.
        if not isinstance(calibration, Iterator):
            second = _puller(source, source.samples, samples)
    native = stats._native if stats is not None else None
    session = source.model._session
    quantized = _kilter.quantize(session, first, second, native, words, threads, _positive(instances))
    return source.wrap(QuantizedModel(quantized))


def calibrate(
    model: Source,
    data: Samples,
    *,
    samples: int | None = None,
    recipes: str | Sequence[str] = (),
    target: str = "kilter",
    threads: int = 0,
    instances: int = 1,
) -> Stats:
    """Runs the FP32 model over `data` once and returns the statistics of all activations.

    They serve every algorithm, plan and granularity: `kilter.quantize(model, stats=stats, algorithm="kl")`.
    `recipes` and `target` must be those of the quantization: equalization changes weights before calibration.

    >>> stats = kilter.calibrate("model.onnx", batches)
    >>> plans = [kilter.quantize("model.onnx", stats=stats, algorithm=name).plan for name in ("minmax", "kl")]
    """
    source = open_model(model, data, threads)
    words = _words(recipes=recipes, target=target)
    pull = _puller(source, source.samples, samples)
    return Stats(_kilter.calibrate(source.model._session, pull, words, threads, _positive(instances)))


def compare(
    a: Source, b: Source, data: Samples, *, samples: int | None = None, threads: int = 0
) -> list[Drift]:
    """Runs both models on `data` and says how far apart they are: outputs first, then operators, worst first.

    >>> drifts = kilter.compare("model.onnx", kilter.quantize("model.onnx", batches), batches, samples=1)
    >>> drifts[0].name, drifts[0].op, drifts[0].snr_db > 10
    ('logits', 'output', True)
    """
    first = open_model(a, data, threads)
    second = open_model(b, first.samples, threads)
    outputs, operators = _kilter.compare(
        first.model._session, second.model._session, _puller(first, second.samples, samples)
    )
    return [
        *(Drift(name, "output", *figures) for name, _, *figures in outputs),
        *(Drift(*entry) for entry in operators),
    ]


def _positive(instances: int) -> int:
    if instances < 1:
        raise InputValueError(f"instances must be at least 1, found {instances}")
    return instances


def _names(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _words(**given: Any) -> dict[str, Any]:
    """All options of the native side, with their defaults."""
    words: dict[str, Any] = {
        "algorithm": "auto",
        "percentile": None,
        "weights": "per-channel",
        "scheme": "asym",
        "mode": "smart",
        "target": "kilter",
        "smooth_alpha": None,
    }
    words |= {key: value for key, value in given.items() if value is not None}
    if words["target"] == "mxnet" and words["scheme"] == "asym":
        words["scheme"] = None  # MXNet knows no zero points
    for key in ("exclude", "only", "recipes"):
        words[key] = _names(words.get(key, ()))
    for key in ("overrides", "plan"):
        words[key] = json.dumps(words[key]) if words.get(key) is not None else None
    return words


def _puller(source: Opened, data: Samples | None, samples: int | None) -> Any:
    """A function that returns the next inputs in native form, or None at the end."""
    if data is None or isinstance(data, Mapping | str | bytes):
        raise InputTypeError("samples must come as an iterable of arrays or of mappings from names to arrays")
    state: dict[str, Any] = {"runs": None, "count": 0}

    def runs() -> Iterator[Any]:
        for item in begin(data):
            yield from calibration_batches(source, item)

    def pull() -> list[tuple[Any, ...]] | None:
        if state["runs"] is None:
            state["runs"] = runs()
        if samples is not None and state["count"] >= samples:
            return None
        for inputs, _ in state["runs"]:
            state["count"] += 1
            return inputs
        return None

    return pull
