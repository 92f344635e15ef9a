"""The tuning job behind both generations of quantizers: what they were told, brought to `kilter.tune`."""

import copy
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import _kilter, metrics
from ._common import Metric, Model, Postprocess, TunedModel, check_metric, stack
from .arrays import from_native
from .batches import begin, first_batches, label_list, named, repeatable
from .configuration import Configuration
from .errors import InputTypeError, InputValueError
from .frameworks import Opened, open_model
from .frameworks.tensorflow_graph import graph_for_sessions
from .metrics import _native as label_to_native
from .model import Model as Engine
from .progress import All, Listener, shown
from .search import Outcome, Trial
from .tuning import Result, tune

logger = logging.getLogger("kilter")

WORKSPACE = "kilter_workspace"


@dataclass
class Told:
    """What a quantizer was told besides its configuration."""

    model: Any = None
    calibration: Any = None
    evaluation: Any = None
    eval_func: Callable[[Any], Any] | None = None
    q_func: Callable[[Any], Any] | None = None
    metric: Any = None
    postprocess: Any = None
    objective: str | None = None


class Study:
    """What can be asked about a search that has ended, under the names of the old tools."""

    def __init__(self, best: TunedModel, result: Result):
        #: The model that was returned.
        self.best_qmodel = best
        self.baseline = result.baseline.pair
        self.best_tune_result = result.best.pair
        self.last_tune_result = result.trials[-1].pair
        #: Accuracy and seconds of every trial.
        self.tuning_history = [trial.pair for trial in result.trials]


class Job:
    """One search. Everything the user's functions raise comes out as it is."""

    def __init__(self, conf: Configuration, told: Told, *sections: SimpleNamespace):
        """`sections` of the configuration may show what samples look like."""
        # What can be read once serves for the example, the calibration and every evaluation.
        self.told = replace(
            told,
            calibration=None if told.calibration is None else repeatable(told.calibration),
            evaluation=None if told.evaluation is None else repeatable(told.evaluation),
        )
        self.conf = conf
        self.judged = True
        self.model = _opened(conf, self.told, sections or (conf.calibration, conf.accuracy))

    def run(self) -> tuple[TunedModel, Result]:
        conf, told = self.conf, self.told
        for note in conf.notes:
            logger.info("%s", note)
        words: dict[str, Any] = {"config": conf.given, "objective": told.objective}
        words |= self._calibration() | self._judge()
        words |= _workspace(conf)  # last: what is wrong above leaves an earlier study where it is
        listener = All(shown(), Log())
        result = tune(self.model, progress=listener, **words)
        met = result.met if self.judged else None
        text = "Found a quantized model that meets the accuracy goal."
        if not met:
            text = "Its accuracy is not known."
        if met is False:
            text = "No quantized model meets the accuracy goal: the most accurate one is returned, with met == False."
        logger.log(
            logging.WARNING if met is False else logging.INFO, "Tuning ended: %s. %s", result.ended, text
        )
        return TunedModel(result.model, result.quantized, result, met), result

    def _calibration(self) -> dict[str, Any]:
        """A loader of the user's, what his function feeds the model, or what the configuration names."""
        given = self.told.calibration
        if given is not None:
            return {"calibration": given}
        if self.conf.calibration.dataloader is not None:
            return {}
        if self.told.q_func is not None:
            return {
                "calibration": _fed(self.model, self.told.q_func, max(self.conf.calibration.sampling_sizes))
            }
        if self.told.evaluation is None and self.conf.accuracy.dataloader is None:
            raise InputValueError(
                "there are no samples to calibrate with: give a calibration data loader, or name a dataset under "
                "quantization.calibration.dataloader"
            )
        return {} if self.told.evaluation is None else {"calibration": self.told.evaluation}

    def _judge(self) -> dict[str, Any]:
        """How accuracy is measured: by a function, by metrics over samples, or not at all."""
        conf, told = self.conf, self.told
        higher = conf.higher_is_better
        if told.eval_func is not None:
            return {"evaluate": told.eval_func, "higher_is_better": higher}
        samples = told.evaluation is not None or conf.accuracy.dataloader is not None
        data = {}
        if told.evaluation is not None:
            data["data"] = first_batches(told.evaluation, conf.accuracy.iteration)
        metric = metric_of(told.metric)
        if not samples and metric is None and not conf.accuracy.metrics:
            logger.warning(
                "There is nothing to evaluate with: neither an evaluation function nor samples and a metric. "
                "The first quantized model is returned, and its accuracy is not known."
            )
            self.judged = False
            return {"evaluate": lambda model: 1.0, "performance_only": True}
        if not samples:
            raise InputValueError(
                "there are no samples to evaluate with: give an evaluation data loader, or name a dataset under "
                "evaluation.accuracy.dataloader"
            )
        if metric is None and not conf.accuracy.metrics:
            raise InputValueError(
                "there is no metric: set one, name one under evaluation.accuracy.metric, or give an evaluation function"
            )
        if told.postprocess is None and (metric is None or isinstance(told.metric, str | Mapping)):
            return data | ({} if metric is None else {"metric": told.metric})
        if metric is None:
            if len(conf.accuracy.metrics) > 1:
                raise InputValueError(
                    "a postprocess of your own goes with one metric, the configuration names several"
                )
            metric = named_metric(conf.accuracy.metrics[0]["metric"])
        evaluation = MetricEvaluation(self, metric, told.postprocess)
        return {"evaluate": evaluation, "higher_is_better": [evaluation.higher_is_better]}


class MetricEvaluation:
    """Accuracy by a metric in Python, over the samples of the job."""

    def __init__(self, job: Job, metric: Any, postprocess: Any):
        self._model, self._metric = job.model, metric
        self._postprocess = postprocess.postprocess if isinstance(postprocess, Postprocess) else postprocess
        conf = job.conf
        iteration = conf.accuracy.iteration
        self._batches = None if iteration < 0 else iteration
        self._own = job.told.evaluation is None
        self._labels_of = (
            [] if self._own else conf.accuracy.postprocess
        )  # a loader of the configuration does it
        self._framework = conf.model.framework
        self._data: Any = conf.loader(conf.accuracy, job.model.model) if self._own else job.told.evaluation
        said = conf.tuning.higher_is_better
        self.higher_is_better: bool = (
            bool(getattr(metric, "higher_is_better", True)) if said is None else said
        )

    def __call__(self, model: Any) -> Any:
        self._metric.reset()
        for item in islice(begin(self._data), self._batches):
            inputs, labels = self._model.separate(item)
            if labels is None:
                raise InputTypeError("data must yield pairs: inputs and labels")
            outputs = self._outputs(model, inputs)
            if self._own:
                labels = [entry["label"] if set(entry) == {"label"} else entry for entry in labels]
                labels = labels if isinstance(labels[0], Mapping) else stack(labels)
            labels = self._shifted(labels)
            if self._postprocess is not None:
                outputs, labels = self._postprocess((outputs, labels))
            self._metric.update(outputs, labels)
        return self._metric.result()

    def _outputs(self, model: Any, inputs: Any) -> Any:
        if not isinstance(model, Engine):  # of a framework
            if isinstance(inputs, Mapping):
                return model(**inputs)
            return model(*inputs) if isinstance(inputs, list | tuple) else model(inputs)
        outputs = list(model.run(named(model.inputs, inputs)).values())
        return outputs[0] if len(outputs) == 1 else outputs

    def _shifted(self, labels: Any) -> Any:
        """What the configuration does to labels."""
        if not self._labels_of:
            return labels
        entries = [
            {name: label_to_native(name, value) for name, value in entry.items()}
            for entry in label_list(self._model.arrays(labels))
        ]
        changed = _kilter.transform_labels(entries, self._labels_of, self._framework)
        return stack([from_native(entry["label"]) for entry in changed])


class Log(Listener):
    """The lines that the old tools print, in the log of kilter."""

    def __init__(self) -> None:
        self._fp32: Outcome | None = None
        self._best: Trial | None = None

    def working(self, what: str, done: int, of: int) -> None:
        if what == "evaluating FP32" and self._fp32 is None:
            logger.info("Get FP32 model baseline.")

    def baseline(self, outcome: Outcome, text: str) -> None:
        self._fp32 = outcome
        logger.info(
            "FP32 baseline is: [Accuracy: %s, Duration (seconds): %.4f]", _figures(outcome), outcome.seconds
        )

    def trial(self, trial: Trial, text: str) -> None:
        if trial.met and (self._best is None or trial.objective < self._best.objective):
            self._best = trial
        best = "n/a"
        if self._best is not None:
            best = f"[Accuracy: {_figures(self._best)}, Duration (seconds): {self._best.seconds:.4f}]"
        logger.info(
            "Tune %d result is: [Accuracy (int8|fp32): %s|%s, Duration (seconds) (int8|fp32): %.4f|%.4f], "
            "Best tune result is: %s",
            trial.number,
            _figures(trial),
            "n/a" if self._fp32 is None else _figures(self._fp32),
            trial.seconds,
            0.0 if self._fp32 is None else self._fp32.seconds,
            best,
        )
        logger.debug("%s", text.rstrip())


def _figures(outcome: Outcome) -> str:
    return ", ".join(f"{figure:.4f}" for figure in outcome.accuracy)


def _opened(conf: Configuration, told: Told, sections: Iterable[SimpleNamespace]) -> Opened:
    given = told.model.model if isinstance(told.model, Model) else told.model
    if given is None:
        given = conf.model.path or None
    if given is None:
        raise InputValueError("there is no model: set one, or name its file under model.path")
    if told.eval_func is not None and "tensorflow" in conf.model.framework:
        given = graph_for_sessions(given)
    samples: Any = told.calibration if told.calibration is not None else told.evaluation
    for section in sections:
        if samples is None and section.dataloader is not None:
            samples = conf.loader(section)
    return open_model(given, samples, labelled=True, ends=_ends(conf, told.model))


def _ends(conf: Configuration, model: Any) -> tuple[list[str], list[str]]:
    """What is fed and fetched of a graph: `common.Model` may say it, and the configuration."""
    settings = model.settings if isinstance(model, Model) else {}
    inputs = settings.get("input_tensor_names") or settings.get("inputs") or conf.model.inputs
    outputs = settings.get("output_tensor_names") or settings.get("outputs") or conf.model.outputs
    return list(inputs), list(outputs)


def metric_of(given: Any) -> Any:
    """A metric object, from all the forms users give one in; None when there is none."""
    if given is None:
        return None
    if isinstance(given, str):
        return metrics.Metric(given)
    if isinstance(given, Mapping):
        return named_metric(given)
    metric = given.metric if isinstance(given, Metric) else given() if isinstance(given, type) else given
    check_metric(metric)
    return metric


def named_metric(given: Mapping[str, Any]) -> metrics.Metric:
    """{name: settings} as in configurations; `topk: 5` is short for `topk: {k: 5}`."""
    if len(given) != 1:
        raise InputValueError(f"expected one metric, {{name: settings}}, found {len(given)}")
    ((name, settings),) = given.items()
    if isinstance(settings, Mapping) or settings is None:
        return metrics.Metric(name, **(settings or {}))
    if name != "topk":
        raise InputValueError(f"the settings of metric '{name}' are a map, found {settings!r}")
    return metrics.Metric(name, k=settings)


class _Recorder:
    """The session of an FP32 model, which remembers what it was fed, whoever feeds it."""

    def __init__(self, model: Engine, samples: int):
        self._session: Any = model._session
        self._names = [port.name for port in model.inputs]
        self._left = samples
        self.fed: list[dict[str, Any]] = []

    def run(self, inputs: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self._left > 0:
            arrays = [copy.deepcopy(from_native(native)) for native in inputs]
            self.fed.append(dict(zip(self._names, arrays, strict=True)))
            shapes = [getattr(array, "shape", ()) for array in arrays]
            self._left -= shapes[0][0] if shapes and shapes[0] else 1
        return self._session.run(inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _fed(model: Opened, function: Callable[[Any], Any], samples: int) -> list[dict[str, Any]]:
    """What a calibration function of the user's runs the model on."""
    recorder = _Recorder(model.model, samples)
    function(model.wrap(Engine(recorder)))
    if not recorder.fed:
        raise InputValueError(
            "q_func ran the model on nothing that could be seen: give a calibration data loader instead"
        )
    return recorder.fed


def _workspace(conf: Configuration) -> dict[str, Any]:
    """Where the study is kept: what the configuration says, or a new folder as the old tools make one."""
    if conf.tuning.resume:
        return {"workspace": study_folder(conf.tuning.resume), "resume": True}
    if conf.tuning.workspace:
        path = Path(conf.tuning.workspace)
        _put_aside(path)
        return {"workspace": path}
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    path = Path(WORKSPACE) / stamp
    number = 1
    while path.exists():
        number += 1
        path = Path(WORKSPACE) / f"{stamp}-{number}"
    return {"workspace": path}


def study_folder(snapshot: str | os.PathLike[str]) -> Path:
    """The folder of a study, from itself, its journal, or the history.snapshot that the old tools kept in its place."""
    path = Path(snapshot)
    inside = (path / "study.journal").exists()
    return path.parent if not inside and (path.parent / "study.journal").exists() else path


def _put_aside(path: Path) -> None:
    """The old tools write over an earlier study; here it moves into a folder of its own, where it can still be recovered."""
    if not (path / "study.journal").exists():
        return
    number = 1
    while (path / f"earlier-{number}").exists():
        number += 1
    aside = path / f"earlier-{number}"
    aside.mkdir()
    for entry in list(_study_files(path)):
        shutil.move(entry, aside / entry.name)


def _study_files(path: Path) -> Iterator[Path]:
    for pattern in ("study.journal", "*.kstats", "best.onnx", "fp32.onnx", "deploy.yaml"):
        yield from path.glob(pattern)
