"""Benchmark: how fast and how accurate a model is, as the configuration says."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import metrics
from .._common import Model, TunedModel
from .._quantizer import Job, MetricEvaluation, Told, metric_of, named_metric
from ..batches import begin, named, separate
from ..configuration import Configuration, Given
from ..errors import InputValueError
from ..model import Model as Engine
from ..model import load

__all__ = ["Benchmark", "Measured"]


@dataclass(frozen=True)
class Measured:
    """What one mode found. Times are seconds of single runs, those for warming up left out."""

    accuracy: float | list[float] | None
    batch_size: int
    times: tuple[float, ...] = ()
    instances: int = 1

    @property
    def latency(self) -> float:
        """Milliseconds for one sample."""
        return float(np.mean(self.times)) * 1e3 / self.batch_size

    @property
    def throughput(self) -> float:
        """Samples per second, of all instances together."""
        return self.instances * 1e3 / self.latency


class Benchmark:
    """Made from a YAML file, the same as a dict, or nothing. Set `model`, then call it with a mode.

    `performance` runs the model on samples of `b_dataloader`, or of the section evaluation.performance, and prints batch size,
    latency and throughput; `num_of_instance` instances run side by side, each with `cores_per_instance` cores of its own.
    `accuracy` judges by the metric of evaluation.accuracy, by `metric`, or by `b_func`, a function of the model.
    `results` keeps what was measured, by mode.

    >>> benchmark = Benchmark({"evaluation": {"performance": {"warmup": 1, "iteration": 3}}})
    >>> benchmark.model = "model.onnx"
    >>> benchmark.b_dataloader = batches
    >>> benchmark("performance")  # doctest: +ELLIPSIS
    Batch size = 32
    Latency: ... ms
    Throughput: ... images/sec
    """

    def __init__(self, conf_fname_or_obj: Given = None):
        self.conf = Configuration(conf_fname_or_obj)
        self.model: Any = None
        self.b_dataloader: Iterable[Any] | None = None
        self.b_func: Callable[[Any], Any] | None = None
        self.metric: Any = None
        self.postprocess: Any = None
        self.results: dict[str, Measured] = {}

    def __call__(self, mode: str = "performance") -> None:
        if mode not in ("performance", "accuracy"):
            raise InputValueError(f"the modes are performance and accuracy, found '{mode}'")
        section = self.conf.performance if mode == "performance" else self.conf.accuracy
        job = Job(self.conf, Told(model=_root(self.model), evaluation=self.b_dataloader), section)
        measured = self._accuracy(job) if mode == "accuracy" else self._performance(job)
        self.results[mode] = measured
        print(f"Batch size = {measured.batch_size}")
        if mode == "accuracy":
            print(f"Accuracy is {_figures(measured.accuracy)}")
        else:
            print(f"Latency: {measured.latency:.3f} ms")
            print(f"Throughput: {measured.throughput:.3f} images/sec")

    fit = __call__

    def _accuracy(self, job: Job) -> Measured:
        size = self._batch_size(job, job.conf.accuracy)
        model = job.model.wrap(job.model.model)
        if self.b_func is not None:
            return Measured(self.b_func(model), size)
        metric = metric_of(self.metric)
        if metric is None:
            if not self.conf.accuracy.metrics:
                raise InputValueError(
                    "there is no metric: set one, or name one under evaluation.accuracy.metric"
                )
            made = [named_metric(entry["metric"]) for entry in self.conf.accuracy.metrics]
            metric = made[0] if len(made) == 1 else _Several(made)
        return Measured(MetricEvaluation(job, metric, self.postprocess)(model), size)

    def _performance(self, job: Job) -> Measured:
        section = self.conf.performance
        instances, cores = _shares(section.configs)
        engine = job.model.model if cores is None else _with_threads(job.model.model, len(cores[0]))
        wanted = None if section.iteration < 0 else section.warmup + section.iteration
        feeds = list(islice(self._feeds(job), wanted))
        if not feeds:
            raise InputValueError("there are no samples to run the model on")
        runs = wanted if wanted is not None else max(len(feeds), section.warmup + 1)
        shares: list[list[int] | None] = [None] * instances if cores is None else [*cores]
        times = _side_by_side(engine, feeds, runs, section.warmup, shares)
        return Measured(None, self._batch_size(job, section), times, instances)

    def _feeds(self, job: Job) -> Iterator[dict[str, Any]]:
        ports = job.model.model.inputs
        data = job.told.evaluation
        if data is None:
            data = self.conf.loader(self.conf.performance, job.model.model)
        if data is None:
            raise InputValueError(
                "there are no samples to run the model on: set b_dataloader, or name a dataset under "
                "evaluation.performance.dataloader"
            )
        for item in begin(data):
            if self.b_dataloader is not None:
                yield named(ports, job.model.inputs(job.model.separate(item)[0]))
            else:
                yield named(ports, separate(item, len(ports))[0])

    def _batch_size(self, job: Job, section: SimpleNamespace) -> int:
        if self.b_dataloader is None:
            own = self.conf.loader(section, job.model.model)
            return 1 if own is None else own.batch_size
        if said := getattr(self.b_dataloader, "batch_size", None):
            return int(said)
        first = next(iter(next(self._feeds(job)).values()))
        return int(first.shape[0]) if getattr(first, "ndim", 0) else 1


class _Several:
    """Several metrics as one."""

    def __init__(self, parts: list[metrics.Metric]):
        self._parts = parts

    def reset(self) -> None:
        for part in self._parts:
            part.reset()

    def update(self, outputs: Any, labels: Any) -> None:
        for part in self._parts:
            part.update(outputs, labels)

    def result(self) -> list[float]:
        return [part.result() for part in self._parts]


def _root(model: Any) -> Any:
    if isinstance(model, TunedModel):
        return model.quantized
    return model.model if isinstance(model, Model) else model


def _figures(accuracy: Any) -> str:
    figures = accuracy if isinstance(accuracy, list | tuple) else [accuracy]
    return ", ".join(f"{figure:.4f}" for figure in figures)


def _shares(configs: dict[str, int]) -> tuple[int, list[list[int]] | None]:
    """How many instances there are, and the cores of each; None: one instance that takes what it can get."""
    instances, each = configs["instances"], configs["cores_per_instance"]
    cores = sorted(os.sched_getaffinity(0))
    if instances == 1 and each == 0:
        return 1, None
    each = each or max(len(cores) // instances, 1)
    if instances * each > len(cores):
        raise InputValueError(
            f"{instances} instances of {each} cores need {instances * each} cores, this process may use {len(cores)}"
        )
    return instances, [cores[first : first + each] for first in range(0, instances * each, each)]


def _with_threads(model: Engine, threads: int) -> Engine:
    """The same model with another number of threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.save(path)
        return load(path, threads=threads)


def _side_by_side(
    model: Engine, feeds: list[dict[str, Any]], runs: int, warmup: int, cores: list[list[int] | None]
) -> tuple[float, ...]:
    """Seconds of the runs after those for warming up, of all instances."""
    times: list[float] = []
    failures: list[BaseException] = []
    together = threading.Barrier(len(cores))

    def instance(own: list[int] | None) -> None:
        try:
            if own is not None:
                # Of this thread alone; threads that it starts for a run inherit it.
                os.sched_setaffinity(0, own)
            supply = cycle(feeds)
            for feed in islice(supply, warmup):
                model.run(feed)
            together.wait()
            mine = []
            for feed in islice(supply, max(runs - warmup, 1)):
                start = time.perf_counter()
                model.run(feed)
                mine.append(time.perf_counter() - start)
            times.extend(mine)
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            failures.append(error)
            together.abort()

    # In threads of their own, also a single one: cores of the caller stay what they are.
    threads = [threading.Thread(target=instance, args=(own,)) for own in cores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return tuple(times)
