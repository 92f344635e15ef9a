"""Tuning and quantization of models that their framework has to run: kilter chooses, the framework observes and evaluates."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _kilter
from .batches import begin
from .configuration import Configuration
from .errors import InputTypeError, InputValueError
from .frameworks import Opened
from .metrics import Metric
from .progress import Listener

Evaluate = Callable[[Any], list[float]]
DEFAULT_SAMPLES = 100


def quantize_hosted(
    source: Opened, samples: Iterable[Any], count: int | None, words: Mapping[str, Any]
) -> Any:
    """Everything that can be on integers, but for what the words say."""
    host = source.host()
    host.observe(_feeds(source, samples), count or DEFAULT_SAMPLES, lambda rows: None)
    plan = json.loads(_kilter.graph_plan(host.quantizable._native, host.stats._native, dict(words)))
    return source.present(host.graph(host.write(plan)))


def tune_hosted(
    source: Opened,
    calibration: Iterable[Any] | None,
    data: Iterable[Any] | None,
    judge: tuple[Evaluate, Sequence[bool]],
    config: Any,
    words: Mapping[str, Any],
    quantization: Mapping[str, Any],
    teller: Callable[[dict[str, Any], str], None],
    listener: Listener,
) -> tuple[dict[str, Any], Any]:
    """What the search found, and the best model as the framework's users hold it."""
    host = source.host()
    conf = Configuration(config)
    samples = calibration if calibration is not None else data
    if samples is None:
        section = conf.calibration if conf.calibration.dataloader is not None else conf.accuracy
        samples = conf.loader(section, source.model)
    count = max(
        words["samples"] or (conf.calibration.sampling_sizes if config is not None else [DEFAULT_SAMPLES])
    )
    host.observe(_feeds(source, samples), count, lambda rows: listener.working("calibrating", rows, count))
    evaluate, higher = judge

    def run(content: bytes | None) -> tuple[list[float], float, int]:
        graph = host.graph(content)
        try:
            figures = evaluate(source.present(graph))
        finally:
            graph.close()
        return figures, host.milliseconds(graph), 0

    entries = _kilter.tune_graph(
        host.quantizable._native,
        host.stats._native,
        run,
        list(higher),
        config,
        dict(words),
        dict(quantization),
        teller,
        listener.working,
    )
    return entries, source.present(host.graph(entries.pop("graph")))


def judge_by_metrics(
    source: Opened, metric: Sequence[Any], data: Any, config: Any
) -> tuple[Evaluate, list[bool]]:
    """Accuracy by metrics over samples with labels, which the framework runs."""
    conf = Configuration(config)
    names = list(metric) or [entry["metric"] for entry in conf.accuracy.metrics]
    metrics = [_metric(entry) for entry in names]
    samples = conf.loader(conf.accuracy, source.model) if data is None else data
    if not metrics or samples is None:
        raise InputValueError("there is nothing to measure accuracy with: give evaluate, or metric and data")

    def evaluate(model: Any) -> list[float]:
        for one in metrics:
            one.reset()
        for item in begin(samples):
            inputs, labels = source.separate(item)
            if labels is None:
                raise InputTypeError("data must yield pairs: inputs and labels")
            outputs = model(**source.feeds(inputs))
            for one in metrics:
                one.update(outputs, source.arrays(labels))
        return [one.result() for one in metrics]

    return evaluate, [one.higher_is_better for one in metrics]


def _metric(entry: Any) -> Metric:
    if isinstance(entry, str):
        return Metric(entry)
    ((name, settings),) = entry.items()
    return Metric(name, **settings) if isinstance(settings, Mapping) else Metric(name, k=settings)


def _feeds(source: Opened, samples: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for item in begin(samples):
        yield source.feeds(source.separate(item)[0])
