"""Tuning: the fastest INT8 model that keeps a promise about accuracy.

>>> def evaluate(model):  # or metric="topk" and data=batches
...     return accuracy_on_my_test_set(model)
>>> result = kilter.tune("model.onnx", calibration=batches, evaluate=evaluate, max_loss="1%")
>>> print(result)
>>> result.save("int8.onnx")
"""

import numbers
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _kilter
from .errors import InputTypeError, InputValueError
from .metrics import _native as _label
from .model import Model, Port
from .quantization import QuantizedModel, Samples, Source, _inputs, _model, _words
from .search import Outcome, Trial, make_outcome, make_trial

Config = str | os.PathLike[str] | Mapping[str, Any]


class TrialModel(Model):
    """A model under evaluation. It can be run until the evaluation function returns."""

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
        """Not for a model that is only lent."""
        raise InputValueError(
            "a model under evaluation cannot be saved: kilter.recover builds any trial again"
        )

    def graph_text(self, *, optimized: bool = False) -> str:
        """Not for a model that is only lent."""
        raise InputValueError("a model under evaluation cannot be printed")


@dataclass(frozen=True)
class Spared:
    """An operator that runs in floating point in the end, and why."""

    name: str
    op: str
    precision: str
    reason: str


@dataclass(frozen=True)
class Sensitivity:
    """What an operator costs and gains on integers.

    `error` is what goes away of the outputs' error when it alone returns to floating point, `share` the same as a share of
    the whole; `gain` the share of FP32's time that it saves.
    """

    name: str
    op: str
    error: float
    share: float
    gain: float


class Result:
    """What `kilter.tune` found. Printing it shows the table that the command prints."""

    def __init__(self, session: _kilter.TunedSession):
        entries = session.result
        #: The best model that keeps the promise; when none does, the most accurate one.
        self.model = QuantizedModel(session)
        #: Is the promise kept?
        self.met: bool = entries["met"]
        #: FP32.
        self.baseline: Outcome = make_outcome(entries["baseline"])
        #: Every candidate that was evaluated.
        self.trials: tuple[Trial, ...] = tuple(make_trial(entry) for entry in entries["trials"])
        #: The trial that `model` is.
        self.best: Trial = self.trials[entries["best"] - 1]
        #: Operators in floating point.
        self.spared: tuple[Spared, ...] = tuple(Spared(*entry) for entry in entries["spared"])
        #: Trials that no other beats in both accuracy and objective.
        self.pareto: tuple[Trial, ...] = tuple(self.trials[number - 1] for number in entries["pareto"])
        #: Why the search ended.
        self.ended: str = entries["ended"]
        self.seconds: float = entries["seconds"]
        #: How many trials were evaluated on all samples.
        self.full_evaluations: int = entries["full_evaluations"]
        #: The folder of the study; None when it was not kept.
        self.workspace: str | None = entries["workspace"] or None
        self._text: str = entries["text"]

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the best model: edit it and give it to `kilter.quantize(..., plan=...)`."""
        return self.model.plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the best model as an ONNX file with QuantizeLinear and DequantizeLinear."""
        self.model.save(path)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


def tune(
    model: Source,
    calibration: Samples | None = None,
    *,
    evaluate: Callable[[Model], float | Sequence[float]] | None = None,
    higher_is_better: bool | Sequence[bool] = True,
    metric: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None = None,
    data: Iterable[tuple[Any, Any]] | None = None,
    config: Config | None = None,
    max_loss: str | float | None = None,
    objective: str | None = None,
    strategy: str | None = None,
    strategy_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    max_trials: int | None = None,
    performance_only: bool | None = None,
    seed: int | None = None,
    samples: int | Sequence[int] | None = None,
    workspace: str | os.PathLike[str] | None = None,
    resume: bool | None = None,
    early_rejection: bool | None = None,
    threads: int = 0,
    instances: int = 0,
    progress: bool | Callable[[Trial], None] | None = None,
    **quantization: Any,
) -> Result:
    """Finds the fastest INT8 model that keeps a promise about accuracy; there is always a result.

    How accurate a model is, `evaluate` says: a function that takes a model and returns a number (or several;
    `higher_is_better` tells which way they count). Or `metric` does, a name ("topk", "F1") or {name: settings}, over `data`,
    an iterable of (inputs, labels): an array, a list of arrays or a mapping of names to arrays whose first axis counts
    samples, and one label for each. Or `config`, a YAML file or the same as a dict; arguments beat it.

    `calibration` yields inputs as for `kilter.quantize`; the first `samples` (100) are used, of `data` when it is left out.

    The promise is `max_loss`: "1%" (the default) relative to FP32, "abs:0.5" in units of the metric. `objective`: performance
    (default), modelsize, footprint, or "performance=0.7,footprint=0.3". `strategy`: auto (default), basic, mse, mse_v2,
    bayesian, random, exhaustive, tpe, conservative, or one of `kilter.register_strategy`. `timeout` is how many seconds to look
    for the best; 0 stops at the first success. `performance_only` takes the first model.

    With a `workspace`, every trial is on the disk as soon as it is done, and `resume` goes on with it; an exception, Ctrl-C or
    the end of the process loses nothing. What `evaluate` or an iterable raises comes out of tune as it is.

    `progress`: True prints a line for every trial, a function is called with it. `threads` is what latency is measured
    with, `instances` how many evaluations with a metric run side by side (0: one per core). Further keywords are those of
    `kilter.quantize`: algorithm, percentile, weights, scheme, mode, exclude, only, overrides, recipes, smooth_alpha, target.

    >>> result = kilter.tune("model.onnx", metric="topk", data=batches, max_loss="0.5%", exclude="head")
    >>> result.met, result.best.accuracy, [entry.name for entry in result.spared]
    """
    source = _model(model, 0)
    if evaluate is not None and (metric is not None or data is not None):
        raise InputValueError("tune takes evaluate, or metric and data, not both")
    if evaluate is None and config is None and (metric is None or data is None):
        raise InputValueError("tune needs evaluate, or metric and data, or config, to measure accuracy")
    if evaluate is not None and calibration is None and config is None:
        raise InputValueError("tune with an evaluation function needs calibration samples")
    higher = [higher_is_better] if isinstance(higher_is_better, bool) else list(higher_is_better)
    words = {
        "max_loss": None if max_loss is None else str(max_loss),
        "objective": objective,
        "strategy": strategy,
        "strategy_options": None if strategy_options is None else dict(strategy_options),
        "timeout": None if timeout is None else float(timeout),
        "max_trials": max_trials,
        "performance_only": performance_only,
        "seed": seed,
        "samples": _counts(samples),
        "workspace": None if workspace is None else os.fspath(workspace),
        "resume": resume,
        "early_rejection": early_rejection,
        "threads": threads,
    }
    if timeout is not None and not timeout >= 0:
        raise InputValueError(f"timeout must not be negative, found {timeout}")
    if resume and workspace is None and config is None:
        raise InputValueError("resume needs the workspace of the study to go on with")
    if isinstance(config, Mapping):
        config = dict(config)
    elif config is not None:
        config = os.fspath(config)
    return Result(
        _kilter.tune(
            source._session,
            None
            if calibration is None
            else _opener(calibration, lambda item: (_inputs(source.inputs, item), [])),
            None if evaluate is None else _evaluator(evaluate, len(higher)),
            higher,
            None if data is None else _opener(data, lambda item: _batch(source.inputs, item)),
            _metrics(metric),
            config,
            words,
            _quantization(quantization, configured=config is not None),
            instances,
            _teller(progress),
        )
    )


def sensitivity(
    model: Source,
    calibration: Samples,
    *,
    samples: int = 100,
    scoring_samples: int = 32,
    threads: int = 0,
    **quantization: Any,
) -> list[Sensitivity]:
    """What each operator costs and gains on integers, worst first. Nothing is evaluated: samples need no labels.

    Ranges come from the first `samples` of `calibration`, errors from the first `scoring_samples`. Further keywords are those of
    `kilter.quantize`.

    >>> for row in kilter.sensitivity("model.onnx", batches)[:5]:
    ...     print(row.name, f"{row.share:.1%} of the error")
    """
    source = _model(model, 0)
    words = {"samples": _counts(samples), "scoring_samples": scoring_samples, "threads": threads}
    opener = _opener(calibration, lambda item: (_inputs(source.inputs, item), []))
    rows = _kilter.sensitivity(source._session, opener, words, _quantization(quantization, configured=False))
    return [Sensitivity(*row) for row in rows]


def recover(
    workspace: str | os.PathLike[str],
    number: int | None = None,
    *,
    model: Source | None = None,
    threads: int = 0,
) -> QuantizedModel:
    """Builds a trial of an earlier study again, without calibrating; the best one when no number is given.

    `model` is needed only when the study does not know the file it was about, or when that has moved.

    >>> kilter.recover("workspace", 3).save("trial3.onnx")
    """
    if number is not None and number < 1:
        raise InputValueError(f"trials count from 1, found {number}")
    session = None if model is None else _model(model, 0)._session
    return QuantizedModel(_kilter.recover(os.fspath(workspace), number or 0, session, threads))


def _counts(samples: int | Sequence[int] | None) -> list[int] | None:
    if samples is None:
        return None
    return [int(samples)] if isinstance(samples, numbers.Integral) else [int(count) for count in samples]


def _quantization(given: dict[str, Any], *, configured: bool) -> dict[str, Any]:
    known = (
        "algorithm percentile weights scheme mode exclude only overrides recipes smooth_alpha target".split()
    )
    for name in given:
        if name not in known:
            raise InputTypeError(
                f"there is no keyword '{name}'; those of quantization are {', '.join(known)}"
            )
    words = _words(**given)
    # Beside a configuration only what was said counts.
    return {key: words[key] for key in words if key in given} if configured else words


def _metrics(metric: Any) -> list[Any]:
    if metric is None:
        return []
    entries = [metric] if isinstance(metric, str | Mapping) else metric
    return [dict(entry) if isinstance(entry, Mapping) else entry for entry in entries]


def _opener(data: Iterable[Any], convert: Callable[[Any], tuple[list[Any], list[Any]]]) -> Callable[[], Any]:
    """A function that starts the samples from the beginning: it returns one that returns the next ones, or None."""
    if isinstance(data, Mapping | str | bytes):
        raise InputTypeError("samples must come as an iterable, one item for each run")
    opened = []

    def start() -> Callable[[], Any]:
        if opened and isinstance(data, Iterator):
            raise InputValueError(
                "these samples are needed again, but an iterator can be read once: give a list, or another object "
                "that can be iterated again"
            )
        opened.append(True)
        iterator = iter(data)

        def pull() -> tuple[list[Any], list[Any]] | None:
            for item in iterator:
                return convert(item)
            return None

        return pull

    return start


def _batch(ports: tuple[Port, ...], item: Any) -> tuple[list[Any], list[Any]]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InputTypeError("data must yield pairs: inputs and labels")
    inputs, labels = item
    if isinstance(inputs, list | tuple):
        if len(inputs) != len(ports):
            raise InputValueError(f"found {len(inputs)} inputs, the model has {len(ports)}")
        inputs = {port.name: array for port, array in zip(ports, inputs, strict=True)}
    entries = [label if isinstance(label, Mapping) else {"label": label} for label in labels]
    converted = _inputs(ports, inputs)
    native = [{name: _label(name, value) for name, value in entry.items()} for entry in entries]
    first = converted[0][0] if len(converted[0]) == 2 else None
    if first is not None and getattr(first, "ndim", 0) > 0 and len(first) != len(native):
        raise InputValueError(f"{len(first)} samples came with {len(native)} labels")
    return converted, native


def _evaluator(evaluate: Callable[[Model], Any], figures: int) -> Callable[[Any], list[float]]:
    def run(session: _kilter.ProgramSession) -> list[float]:
        found = evaluate(TrialModel(session))
        several = isinstance(found, list | tuple) or getattr(found, "ndim", 0) > 0
        values = list(found) if several else [found]
        if len(values) != figures:
            raise InputValueError(f"evaluate returned {len(values)} figures, higher_is_better has {figures}")
        if not all(isinstance(value, numbers.Real) or hasattr(value, "__float__") for value in values):
            raise InputTypeError(f"evaluate must return a number, found {found!r}")
        return [float(value) for value in values]

    return run


def _teller(progress: bool | Callable[[Trial], None] | None) -> Callable[[Any, str], None] | None:
    if progress is None or progress is False:
        return None

    def tell(trial: dict[str, Any] | None, text: str) -> None:
        if progress is True:
            print(text, end="", file=sys.stderr, flush=True)
        elif trial is not None:
            progress(make_trial(trial))

    return tell
