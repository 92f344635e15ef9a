"""Benchmark: the lines that the old tools print, instances side by side, accuracy."""

import os
import re
import threading

import numpy as np
import pytest

import kilter
from kilter.experimental import Benchmark, common
from study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="module")
def path(study):
    return study.folder / "model.onnx"


class Loader:
    batch_size = 20

    def __init__(self, study):
        self.study = study

    def __iter__(self):
        for first in range(0, len(self.study.images), self.batch_size):
            part = slice(first, first + self.batch_size)
            yield self.study.images[part], self.study.labels[part]


def section(study, **more):
    files = {"root": str(study.folder / "images.npy"), "labels": str(study.folder / "labels.npy")}
    return {"dataloader": {"batch_size": 20, "dataset": {"NumPy": files}}} | more


def performance(**more):
    return {"evaluation": {"performance": {"warmup": 2, "iteration": 5} | more}}


LINES = r"Batch size = 20\nLatency: (\d+\.\d{3}) ms\nThroughput: (\d+\.\d{3}) images/sec\n"


def test_performance_prints_the_documented_lines(study, path, capsys):
    benchmark = Benchmark(performance())
    benchmark.model, benchmark.b_dataloader = path, Loader(study)
    benchmark("performance")
    latency, throughput = map(float, re.fullmatch(LINES, capsys.readouterr().out).groups())
    found = benchmark.results["performance"]
    assert len(found.times) == 5 and found.batch_size == 20 and found.instances == 1
    assert latency == pytest.approx(np.mean(found.times) * 1e3 / 20, abs=1e-3)
    assert throughput == pytest.approx(1e3 / found.latency, rel=1e-3)


def test_samples_may_come_from_the_configuration(study, path, capsys):
    benchmark = Benchmark({"evaluation": {"performance": section(study, warmup=1)}})
    benchmark.model = path
    benchmark()
    assert re.fullmatch(LINES, capsys.readouterr().out)
    assert len(benchmark.results["performance"].times) == 8 - 1  # what the data has


def test_instances_run_side_by_side_on_cores_of_their_own(study, path, capsys, monkeypatch):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    used = {}
    run = kilter.Model.run

    def watched(model, inputs):
        used.setdefault(threading.get_ident(), set()).add(tuple(sorted(os.sched_getaffinity(0))))
        return run(model, inputs)

    monkeypatch.setattr(kilter.Model, "run", watched)
    benchmark = Benchmark(performance(configs={"cores_per_instance": 1, "num_of_instance": 2}))
    benchmark.model, benchmark.b_dataloader = path, Loader(study)
    benchmark()
    assert len(used) == 2 and set().union(*used.values()) == {(cores[0],), (cores[1],)}
    assert sorted(os.sched_getaffinity(0)) == cores
    found = benchmark.results["performance"]
    assert found.instances == 2 and len(found.times) == 10
    assert found.throughput == pytest.approx(2e3 / found.latency)
    too_many = Benchmark(performance(configs={"cores_per_instance": len(cores), "num_of_instance": 2}))
    too_many.model, too_many.b_dataloader = path, Loader(study)
    with pytest.raises(kilter.Error, match=f"need {2 * len(cores)} cores"):
        too_many()


def test_accuracy_is_that_of_the_metric(study, path, capsys):
    quantized = kilter.quantize(path, [study.images])
    right = float((quantized(study.images).argmax(1) == study.labels).mean())
    in_yaml = Benchmark({"evaluation": {"accuracy": section(study, metric={"topk": 1})}})
    given = Benchmark({"evaluation": {"accuracy": {"metric": {"topk": 1}}}})
    given.b_dataloader = Loader(study)
    by_function = Benchmark()
    by_function.b_dataloader = Loader(study)
    by_function.b_func = lambda model: float((model(study.images).argmax(1) == study.labels).mean())
    for benchmark in (in_yaml, given, by_function):
        for model in (quantized, common.Model(quantized), common.TunedModel(quantized, quantized)):
            benchmark.model = model
            benchmark("accuracy")
            assert capsys.readouterr().out == f"Batch size = 20\nAccuracy is {right:.4f}\n"
            assert benchmark.results["accuracy"].accuracy == pytest.approx(right)


def test_a_saved_model_is_as_accurate(study, path, tmp_path, capsys):
    quantized = kilter.quantize(path, [study.images])
    quantized.save(tmp_path / "int8.onnx")
    found = []
    for model in (quantized, tmp_path / "int8.onnx"):
        benchmark = Benchmark({"evaluation": {"accuracy": section(study, metric={"topk": 1})}})
        benchmark.model = model
        benchmark("accuracy")
        found.append(benchmark.results["accuracy"].accuracy)
    assert found[0] == found[1]


def test_what_goes_wrong_is_said(study, path):
    benchmark = Benchmark(performance())
    with pytest.raises(kilter.Error, match="there is no model"):
        benchmark()
    benchmark.model = path
    with pytest.raises(kilter.Error, match="no samples to run the model on"):
        benchmark()
    with pytest.raises(kilter.Error, match="modes are performance and accuracy"):
        benchmark("speed")
    benchmark.b_dataloader = Loader(study)
    with pytest.raises(kilter.Error, match="there is no metric"):
        benchmark("accuracy")
    benchmark.b_dataloader = [(study.images[:20, :1], study.labels[:20])]
    with pytest.raises(kilter.InputValueError, match="shape"):
        benchmark()
