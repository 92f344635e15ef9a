"""Tuning: the fastest INT8 model that keeps a promise about accuracy.

>>> def evaluate(model):  # or metric="topk" and data=batches
...     return np.mean(model(images).argmax(1) == labels)
>>> result = kilter.tune("model.onnx", calibration=batches, evaluate=evaluate, max_loss="2%")
>>> print(result)  # doctest: +ELLIPSIS
Tune Result Statistics
...
>>> result.save("int8.onnx")
"""

import json
import numbers
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _kilter
from ._quantize import QuantizedModel, Samples, Source, _words
from .batches import NativeBatch, begin, calibration_batches, labelled_batches, named, separate
from .configuration import Configuration
from .errors import InputTypeError, InputValueError
from .frameworks import Opened, open_model
from .hosted import judge_by_metrics, tune_hosted
from .model import Model, load
from .progress import All, Calls, Lines, Listener, shown
from .report import result_html
from .search import Outcome, StudyOf, Trial, about, make_outcome, make_trial

Config = str | os.PathLike[str] | Mapping[str, Any]

_LENT = "a model under evaluation cannot be saved: kilter.recover builds any trial again"


class TrialModel(Model):
    """A model under evaluation. It can be run until the evaluation function returns."""

    def save(self, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
        """Not for a model that is only lent."""
        raise InputValueError(_LENT)

    def to_bytes(self) -> bytes:
        """Not for a model that is only lent."""
        raise InputValueError(_LENT)

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

    def __init__(self, entries: dict[str, Any], quantized: QuantizedModel | None, model: Any):
        #: The best model that keeps the promise; when none does, the most accurate one. None where only its framework can run it.
        self.quantized = quantized
        #: The same as what was given: a framework's model for a framework's model, otherwise `quantized`.
        self.model: Any = model
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
        self._plan: str = entries["plan"]

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the best model: edit it and give it to `kilter.quantize(..., plan=...)`."""
        return json.loads(self._plan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the best model as an ONNX file with QuantizeLinear and DequantizeLinear.

        One that was a TensorFlow graph is written as a GraphDef where the name ends in .pb.
        """
        own = getattr(self.model, "save", None)
        (own if callable(own) else self.quantized.save)(path)

    def export(self, path: str | os.PathLike[str]) -> Any:
        """Writes the best model for the framework it came from: a GraphDef for TensorFlow, symbol and parameters for MXNet.

        Returns what the framework's part has to report.
        """
        own = getattr(self.model, "export", None)
        if not callable(own):
            raise InputValueError(
                "only models of TensorFlow and MXNet are written for them: save writes ONNX"
            )
        return own(path)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        """The same table for notebooks."""
        return result_html(self)


def tune(
    model: Source,
    calibration: Samples | None = None,
    *,
    evaluate: Callable[[Any], float | Sequence[float]] | None = None,
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
    progress: bool | Callable[[Trial], None] | Listener | None = None,
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

    `progress`: a bar in terminals and notebooks, and nothing elsewhere, unless you say otherwise: True prints a line for every
    trial as well, a function is called with it, False shows nothing. `threads` is what latency is measured
    with, `instances` how many evaluations with a metric run side by side (0: one per core). Further keywords are those of
    `kilter.quantize`: algorithm, percentile, weights, scheme, mode, exclude, only, overrides, recipes, smooth_alpha, target.

    >>> result = kilter.tune("model.onnx", metric="topk", data=batches, max_loss="2%", exclude="type:MatMul")
    >>> result.met, {entry.op for entry in result.spared} >= {"MatMul"}
    (True, True)
    """
    if evaluate is not None and (metric is not None or data is not None):
        raise InputValueError("tune takes evaluate, or metric and data, not both")
    if evaluate is None and config is None and (metric is None or data is None):
        raise InputValueError("tune needs evaluate, or metric and data, or config, to measure accuracy")
    if evaluate is not None and calibration is None and config is None:
        raise InputValueError("tune with an evaluation function needs calibration samples")
    if calibration is None:
        source = open_model(model, data, labelled=True, ends=_ends(config))
        data = source.samples
    else:
        source = open_model(model, calibration, ends=_ends(config))
        calibration = source.samples
    higher = [higher_is_better] if isinstance(higher_is_better, bool) else list(higher_is_better)
    hosted = source.hosted(evaluate is not None)
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
    if workspace is not None and source.foreign and not hosted:
        _keep(source, Path(workspace))
    elsewhere = quantization.get("target") == "mxnet"
    if elsewhere and (evaluate is None or not source.runs_elsewhere):
        raise InputValueError(
            "the target mxnet evaluates models in MXNet: give a Gluon block or a checkpoint, and an evaluation function"
        )
    listener = _listener(progress)
    if hosted:
        judge = (
            (_judge(evaluate, len(higher)), higher)
            if evaluate
            else judge_by_metrics(source, _metrics(metric), data, config)
        )
        said = _quantization(quantization, configured=config is not None)
        try:
            found = tune_hosted(
                source, calibration, data, judge, config, words, said, _teller(listener), listener
            )
        finally:
            listener.close()
        return Result(found[0], None, found[1])
    study = StudyOf(source.model, lambda: _samples(source, calibration, data, config))
    try:
        with about(study):
            session = _kilter.tune(
                source.model._session,
                None
                if calibration is None
                else _opener(calibration, lambda item: calibration_batches(source, item)),
                None if evaluate is None else _evaluator(evaluate, len(higher), source, elsewhere),
                higher,
                None if data is None else _opener(data, lambda item: labelled_batches(source, item)),
                _metrics(metric),
                config,
                words,
                _quantization(quantization, configured=config is not None),
                instances,
                _teller(listener),
                listener.working,
                elsewhere,
            )
    finally:
        listener.close()
    quantized = QuantizedModel(session)
    return Result(session.result | {"plan": session.plan}, quantized, source.wrap(quantized))


def sensitivity(
    model: Source,
    calibration: Samples,
    *,
    samples: int = 100,
    scoring_samples: int = 32,
    threads: int = 0,
    progress: bool | None = None,
    **quantization: Any,
) -> list[Sensitivity]:
    """What each operator costs and gains on integers, worst first. Nothing is evaluated: samples need no labels.

    Ranges come from the first `samples` of `calibration`, errors from the first `scoring_samples`. Further keywords are those of
    `kilter.quantize`; `progress=False` shows no bar.

    >>> worst, *others = kilter.sensitivity("model.onnx", batches)
    >>> print(f"{worst.op} has {worst.share:.0%} of the error")  # doctest: +ELLIPSIS
    Conv has ...% of the error
    """
    source = open_model(model, calibration)
    words = {"samples": _counts(samples), "scoring_samples": scoring_samples, "threads": threads}
    opener = _opener(source.samples, lambda item: calibration_batches(source, item))
    listener = _listener(progress)
    try:
        session = source.model._session
        rows = _kilter.sensitivity(
            session, opener, words, _quantization(quantization, configured=False), listener.working
        )
    finally:
        listener.close()
    return [Sensitivity(*row) for row in rows]


def recover(
    workspace: str | os.PathLike[str],
    number: int | None = None,
    *,
    model: Source | None = None,
    threads: int = 0,
) -> Any:
    """Builds a trial of an earlier study again, without calibrating; the best one when no number is given.

    `model` is needed only when the study does not know the file it was about, or when that has moved. Given a framework's model,
    it returns one of that framework, otherwise a QuantizedModel.

    >>> result = kilter.tune("model.onnx", metric="topk", data=batches, workspace="study", max_trials=2)
    >>> kilter.recover("study", 1).save("trial1.onnx")
    """
    if number is not None and number < 1:
        raise InputValueError(f"trials count from 1, found {number}")
    return recovered(workspace, number, model, threads)[0]


def recovered(
    workspace: str | os.PathLike[str], number: int | None, model: Source | None, threads: int = 0
) -> tuple[Any, QuantizedModel]:
    """What `recover` returns, and the model that runs in it."""
    exported = load(Path(workspace) / _EXPORTED) if (Path(workspace) / _EXPORTED).exists() else None
    source = open_model(model, None, exported=exported) if model is not None else None
    fp32 = source.model if source is not None else exported
    session = None if fp32 is None else fp32._session
    quantized = QuantizedModel(_kilter.recover(os.fspath(workspace), number or 0, session, threads))
    return quantized if source is None else source.wrap(quantized), quantized


def _samples(source: Opened, calibration: Any, data: Any, config: Any) -> Iterator[dict[str, Any]]:
    """The inputs of the calibration samples, wherever they come from."""
    ports = source.model.inputs
    conf = Configuration(config)
    given = calibration if calibration is not None else data if conf.calibration.dataloader is None else None
    own = given is None
    if own:
        section = conf.calibration if conf.calibration.dataloader is not None else conf.accuracy
        given = conf.loader(section, source.model)
    for item in begin(given if given is not None else ()):
        inputs, _ = separate(item, len(ports)) if own else source.separate(item)
        yield named(ports, inputs if own else source.inputs(inputs))


def _ends(config: Config | None) -> tuple[list[str], list[str]]:
    """What a configuration says is fed and fetched of a graph."""
    if config is None:
        return [], []
    said = Configuration(config).model
    return said.inputs, said.outputs


# What a framework's model was exported to, beside its study.
_EXPORTED = "fp32.onnx"


def _keep(source: Opened, workspace: Path) -> None:
    """Lets `recover` do without the framework and without samples."""
    workspace.mkdir(parents=True, exist_ok=True)
    if not (workspace / "study.journal").exists():
        source.model.save(workspace / _EXPORTED)
    # What is read again may have other names for the same things: the study is about that.
    source.model = load(source.model.to_bytes())


def _counts(samples: int | Sequence[int] | None) -> list[int] | None:
    if samples is None:
        return None
    return [int(count) for count in samples] if isinstance(samples, Iterable) else [int(samples)]


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


def _opener(
    data: Iterable[Any], convert: Callable[[Any], Iterator[NativeBatch]]
) -> Callable[[], Callable[[], NativeBatch | None]]:
    """A function that starts the samples from the beginning: it returns one that returns the next ones, or None."""
    if isinstance(data, Mapping | str | bytes):
        raise InputTypeError("samples must come as an iterable, one item for each run")
    opened: list[bool] = []

    def start() -> Callable[[], NativeBatch | None]:
        if opened and isinstance(data, Iterator) and not hasattr(data, "reset"):
            raise InputValueError(
                "these samples are needed again, but an iterator can be read once: give a list, or another object "
                "that can be iterated again"
            )
        opened.append(True)
        batches = (batch for item in begin(data) for batch in convert(item))
        return lambda: next(batches, None)

    return start


def _evaluator(
    evaluate: Callable[[Any], Any], figures: int, source: Opened, elsewhere: bool
) -> Callable[[Any], list[float]]:
    judge = _judge(evaluate, figures)

    def run(session: _kilter.ProgramSession) -> list[float]:
        if isinstance(session, _kilter.QuantizedSession):
            return judge(source.elsewhere(QuantizedModel(session)))
        return judge(source.elsewhere(None) if elsewhere else source.wrap(TrialModel(session)))

    return run


def _judge(evaluate: Callable[[Any], Any], figures: int) -> Callable[[Any], list[float]]:
    """What a function of the user's returns, as a list of numbers."""

    def run(model: Any) -> list[float]:
        found = evaluate(model)
        several = isinstance(found, list | tuple) or getattr(found, "ndim", 0) > 0
        values = list(found) if several else [found]
        if len(values) != figures:
            raise InputValueError(f"evaluate returned {len(values)} figures, higher_is_better has {figures}")
        if not all(isinstance(value, numbers.Real) or hasattr(value, "__float__") for value in values):
            raise InputTypeError(f"evaluate must return a number, found {found!r}")
        return [float(value) for value in values]

    return run


def _listener(progress: bool | Callable[[Trial], None] | Listener | None) -> Listener:
    if isinstance(progress, Listener):
        return progress
    if progress is None:
        return shown()
    if progress is True:
        return All(shown(), Lines(sys.stderr))
    return Calls(progress) if progress else Listener()


def _teller(listener: Listener) -> Callable[[dict[str, Any], str], None]:
    def tell(entry: dict[str, Any], text: str) -> None:
        if "number" in entry:
            listener.trial(make_trial(entry), text)
        else:
            listener.baseline(make_outcome(entry), text)

    return tell
