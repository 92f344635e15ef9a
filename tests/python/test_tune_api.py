"""kilter.tune, sensitivity, recover and strategies written in Python."""

import gc
import json
import os
import signal
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import kilter
from conftest import make_model
from study import HARD, SIZE, Study, batches, logits, records, trials


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def path(study):
    return study.folder / "model.onnx"


def accuracy_on(study):
    return lambda model: float((model(study.images).argmax(1) == study.labels).mean())


def small(tmp_path):
    return Study(tmp_path, samples=40, layers=4, hard=(2,))


@pytest.fixture(scope="module")
def result(study, path):
    return kilter.tune(path, metric="topk", data=batches(study), max_loss="1%", **SIZE)


def test_the_result_has_what_the_command_prints(study, result):
    assert result.met is True
    assert result.baseline.accuracy == (1.0,) and result.baseline.samples == 160
    assert result.best.met and result.best.accuracy[0] >= 0.99
    assert result.trials[result.best.number - 1] is result.best
    assert result.best in result.pareto
    convolutions = {entry.name for entry in result.spared if entry.op == "Conv"}
    assert convolutions == {f"conv{layer}" for layer in HARD}
    assert all(entry.reason for entry in result.spared)
    assert result.workspace is None and result.ended and result.seconds > 0
    assert repr(result).startswith("Tune Result Statistics\n") and "The promise is kept" in str(result)


def test_the_model_runs_and_can_be_saved(study, result, tmp_path):
    share = (result.model(study.images).argmax(1) == study.labels).mean()
    assert share == pytest.approx(result.best.accuracy[0])
    result.save(tmp_path / "int8.onnx")
    assert (logits(tmp_path / "int8.onnx", study.images).argmax(1) == study.labels).mean() == share
    assert {entry["name"]: entry["precision"] for entry in result.plan["operators"]}["conv4"] == "f32"
    again = kilter.quantize(study.folder / "model.onnx", [study.images[:100]], plan=result.plan)
    assert again.plan == result.plan


def test_the_command_and_the_function_find_the_same(study, result):
    printed = study.result("--objective", "modelsize")
    assert {entry["name"] for entry in printed["spared"]} == {entry.name for entry in result.spared}


@pytest.mark.parametrize("metric", ["topk", {"topk": {"k": 1}}, ["topk", {"topk": {"k": 5}}]])
def test_metrics_are_names_with_settings(study, path, metric):
    found = kilter.tune(path, metric=metric, data=batches(study), max_trials=1, **SIZE)
    assert found.baseline.accuracy == (1.0,) * (2 if isinstance(metric, list) else 1)


def test_data_may_be_any_iterable_with_inputs_in_any_form(study, path):
    forms = (
        ((images, labels) for images, labels in batches(study)),
        [({"image": images}, labels.tolist()) for images, labels in batches(study)],
        [([images], [{"label": label} for label in labels]) for images, labels in batches(study)],
        kilter.data.Loader(
            {"NumPy": {"root": study.folder / "images.npy", "labels": study.folder / "labels.npy"}},
            model=kilter.load(path),
            batch_size=20,
        ),
    )
    figures = {
        kilter.tune(path, metric="topk", data=data, max_trials=3, **SIZE).best.accuracy for data in forms
    }
    assert len(figures) == 1


def test_samples_in_order_of_their_classes_are_mixed_before_anything_is_rejected(study, path):
    order = np.argsort(study.labels, kind="stable")
    data = [(study.images[order[i : i + 20]], study.labels[order[i : i + 20]]) for i in range(0, 160, 20)]
    found = kilter.tune(path, metric="topk", data=data, max_trials=1, **SIZE)
    first = found.trials[0]
    assert first.rejected_early and first.samples < 160
    assert 0 < first.accuracy[0] < 1


def test_an_evaluation_function_gets_a_model(study, path):
    seen = []

    def evaluate(model):
        seen.append(model)
        assert [port.name for port in model.inputs] == ["image"]
        assert set(model.run({"image": study.images[:2]})) == {"logits"}
        return accuracy_on(study)(model)

    found = kilter.tune(path, [study.images[:64]], evaluate=evaluate, strategy="mse_v2", **SIZE)
    assert found.met and len(seen) == len(found.trials) + 1
    assert found.best.accuracy == ((found.model(study.images).argmax(1) == study.labels).mean(),)
    with pytest.raises(kilter.Error, match="lent for one evaluation"):
        seen[0](study.images)
    with pytest.raises(kilter.InputValueError, match="recover"):
        seen[0].save("x.onnx")


def test_several_figures_and_losses(study, path):
    def evaluate(model):
        outputs = model(study.images)
        return (outputs.argmax(1) == study.labels).mean(), np.abs(outputs).mean() * 0 + 1.0

    found = kilter.tune(
        path, [study.images[:64]], evaluate=evaluate, higher_is_better=[True, False], max_trials=2, **SIZE
    )
    assert found.baseline.accuracy == (1.0, 1.0)


def test_what_an_evaluation_function_raises_comes_out_as_it_is(study, path, tmp_path):
    class Trouble(Exception):
        pass

    def unlucky(count):
        calls = []

        def evaluate(model):
            calls.append(model)
            if len(calls) == count:
                raise Trouble("the test set is on fire")
            return accuracy_on(study)(model)

        return evaluate

    arguments = dict(strategy="basic", workspace=tmp_path / "ws", max_trials=20, **SIZE)
    with pytest.raises(Trouble, match="on fire") as caught:
        kilter.tune(path, [study.images[:64]], evaluate=unlucky(6), **arguments)
    assert caught.traceback[-1].name == "evaluate"
    assert [entry["number"] for entry in trials(tmp_path / "ws")] == [1, 2, 3, 4]
    found = kilter.tune(path, [study.images[:64]], evaluate=accuracy_on(study), resume=True, **arguments)
    whole = kilter.tune(
        path,
        [study.images[:64]],
        evaluate=accuracy_on(study),
        **arguments | {"workspace": tmp_path / "whole"},
    )
    assert trials(tmp_path / "ws") == trials(tmp_path / "whole")
    assert found.plan == whole.plan


def test_outputs_that_are_no_numbers_make_a_bad_trial_not_an_error():
    # On integers the difference of two channels, zero in FP32, is noise around zero, and its root no number.
    random = np.random.default_rng(0)
    first = random.normal(0, 1, (8, 3, 3, 3))
    first[1] = 2.3 * first[0]
    second, bias = np.abs(random.normal(0, 0.3, (8, 8, 1, 1))), np.full(8, 0.1)
    second[0], bias[0] = 0, 1e-3
    second[0, :2, 0, 0] = 2.3, -1
    weights = {"first": first, "second": second, "bias": bias, "classes": random.normal(0, 1, (8, 10))}
    model = make_model(
        [
            helper.make_node("Conv", ["image", "first"], ["a"], name="conv0", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Conv", ["b", "second", "bias"], ["c"], name="conv1"),
            helper.make_node("Sqrt", ["c"], ["d"]),
            helper.make_node("GlobalAveragePool", ["d"], ["e"], name="pool"),
            helper.make_node("Flatten", ["e"], ["f"]),
            helper.make_node("Gemm", ["f", "classes"], ["logits"], name="head"),
        ],
        [("image", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
        opset=17,
    ).SerializeToString()
    images = random.normal(0, 1, (80, 3, 8, 8)).astype(np.float32)
    labels = logits(model, images).argmax(1)
    data = [(images[i : i + 8], labels[i : i + 8]) for i in range(0, 80, 8)]
    found = kilter.tune(model, metric="topk", data=data, exclude=["pool", "head"], strategy="basic", **SIZE)
    assert np.isnan(found.trials[0].accuracy[0]) and not found.trials[0].met
    assert found.met and found.trials[0] not in found.pareto


def test_what_an_iterable_raises_comes_out_as_it_is(study, path):
    def broken(pairs):
        for i, (images, labels) in enumerate(batches(study)):
            if i == 3:
                raise OSError("the disk is gone")
            yield (images, labels) if pairs else images

    with pytest.raises(OSError, match="the disk is gone"):
        kilter.tune(path, metric="topk", data=broken(True), **SIZE)
    with pytest.raises(OSError, match="the disk is gone"):
        kilter.tune(path, broken(False), metric="topk", data=batches(study), **SIZE)


def test_ctrl_c_ends_a_search_and_keeps_the_study(study, path, tmp_path):
    main = threading.get_ident()
    assert main == threading.main_thread().ident
    arguments = dict(metric="topk", data=batches(study), strategy="random", timeout=60, max_trials=100000)
    # Shells start background jobs with SIGINT ignored; Python then has no handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(trial):
        if trial.number == 3:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            kilter.tune(path, workspace=tmp_path / "ws", progress=interrupt, **arguments, **SIZE)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(trials(tmp_path / "ws")) >= 3


def test_other_threads_run_meanwhile(study, path):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        found = kilter.tune(path, metric="topk", data=batches(study), strategy="basic", **SIZE)
    finally:
        done.set()
        thread.join()
    assert len(ticks) > 20 and found.seconds > 0


def test_studies_are_kept_resumed_and_recovered(tmp_path):
    study = small(tmp_path)
    arguments = dict(metric="topk", data=batches(study), strategy="basic", workspace=tmp_path / "ws", **SIZE)
    first = kilter.tune(tmp_path / "model.onnx", max_trials=3, **arguments)
    assert first.workspace == str(tmp_path / "ws")
    with pytest.raises(kilter.Error, match="there is a study already"):
        kilter.tune(tmp_path / "model.onnx", max_trials=3, **arguments)
    with pytest.raises(kilter.Error, match="'seed' changed"):
        kilter.tune(tmp_path / "model.onnx", resume=True, seed=3, **arguments)
    found = kilter.tune(tmp_path / "model.onnx", resume=True, **arguments)
    assert len(found.trials) > 3 and found.trials[2].accuracy == first.trials[2].accuracy
    found.save(tmp_path / "a.onnx")
    for number in (None, found.best.number):
        kilter.recover(tmp_path / "ws", number).save(tmp_path / "b.onnx")
        assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    with pytest.raises(kilter.Error, match="there is no trial 77"):
        kilter.recover(tmp_path / "ws", 77)
    with pytest.raises(kilter.InputValueError, match="from 1"):
        kilter.recover(tmp_path / "ws", 0)


def test_a_model_from_memory_is_given_to_recover(tmp_path):
    study = small(tmp_path)
    content = (tmp_path / "model.onnx").read_bytes()
    found = kilter.tune(
        content, metric="topk", data=batches(study), workspace=tmp_path / "ws", max_trials=2, **SIZE
    )
    with pytest.raises(kilter.Error, match="does not know the file"):
        kilter.recover(tmp_path / "ws")
    assert kilter.recover(tmp_path / "ws", model=content).plan == found.plan


def test_sensitivity_ranks_the_hard_operator_first(tmp_path):
    study = Study(tmp_path, hard=(4,))
    rows = kilter.sensitivity(tmp_path / "model.onnx", [study.images[:50]], samples=50, threads=1)
    assert rows[0].name == "conv4" and rows[0].share > 0.5
    assert "head" in {row.name for row in rows}


def test_progress_tells_every_trial(study, path, capfd):
    told = []
    found = kilter.tune(path, metric="topk", data=batches(study), progress=told.append, max_trials=4, **SIZE)
    assert [trial.number for trial in told] == [trial.number for trial in found.trials]
    kilter.tune(path, metric="topk", data=batches(study), progress=True, max_trials=2, **SIZE)
    printed = capfd.readouterr().err
    assert printed.startswith("FP32    accuracy 1.0000") and "tune 2 " in printed
    with pytest.raises(ZeroDivisionError):
        kilter.tune(path, metric="topk", data=batches(study), progress=lambda trial: 1 / 0, **SIZE)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "evaluate, or metric and data"),
        ({"metric": "topk"}, ValueError, "evaluate, or metric and data"),
        ({"evaluate": float}, ValueError, "calibration"),
        ({"evaluate": float, "metric": "topk"}, ValueError, "not both"),
        ({"metric": "topkk", "data": None}, ValueError, "did you mean 'topk'"),
        ({"metric": "topk", "data": None, "strategy": "bayes"}, ValueError, "no strategy 'bayes'"),
        ({"metric": "topk", "data": None, "max_loss": "tiny"}, ValueError, "tiny"),
        ({"metric": "topk", "data": None, "objective": "speed"}, ValueError, "speed"),
        ({"metric": "topk", "data": None, "wheights": "per-tensor"}, TypeError, "wheights"),
        ({"metric": "topk", "data": None, "timeout": -1}, ValueError, "timeout"),
        ({"metric": "topk", "data": None, "max_trials": 0}, ValueError, "0 trials"),
        ({"metric": "topk", "data": None, "resume": True}, ValueError, "workspace"),
        ({"metric": "topk", "data": [(1, 2, 3)]}, TypeError, "pairs"),
        ({"metric": "topk", "data": []}, ValueError, "no samples"),
        ({"evaluate": lambda model: "good", "calibration": None}, TypeError, "must return a number"),
        ({"evaluate": lambda model: [1, 2], "calibration": None}, ValueError, "2 figures"),
    ],
)
def test_wrong_arguments_are_named(study, path, arguments, error, message):
    if "data" in arguments and arguments["data"] is None:
        arguments = arguments | {"data": batches(study)}
    if "calibration" in arguments:
        arguments = arguments | {"calibration": [study.images[:8]]}
    with pytest.raises(error, match=message):
        kilter.tune(path, **arguments, threads=1)


def test_labels_must_be_as_many_as_samples(study, path):
    with pytest.raises(ValueError, match="20 samples came with 3 labels"):
        kilter.tune(path, metric="topk", data=[(study.images[:20], study.labels[:3])], **SIZE)


def test_a_configuration_may_be_a_dict_and_arguments_beat_it(study, path, tmp_path):
    loader = {
        "batch_size": 20,
        "dataset": {
            "NumPy": {"root": str(study.folder / "images.npy"), "labels": str(study.folder / "labels.npy")}
        },
    }
    config = {
        "model": {"name": "chain", "framework": "onnxrt_qdq"},
        "quantization": {"calibration": {"sampling_size": 40}},
        "evaluation": {"accuracy": {"metric": {"topk": 1}, "dataloader": loader}},
        "tuning": {"objective": "modelsize", "exit_policy": {"max_trials": 30}, "random_seed": 5},
    }
    found = kilter.tune(path, config=config, threads=1, workspace=tmp_path / "ws", exclude=["conv1"], seed=6)
    assert found.met and "conv1" in {entry.name for entry in found.spared}
    settings = records(tmp_path / "ws")[0]["settings"]
    assert settings["seed"] == 6 and settings["objective"] == "modelsize" and settings["samples"] == [40]
    (tmp_path / "conf.yaml").write_text(json.dumps(config))
    again = kilter.tune(path, config=tmp_path / "conf.yaml", threads=1, exclude="conv1", seed=6)
    assert again.plan == found.plan
    by_function = kilter.tune(path, config=config, evaluate=accuracy_on(study), threads=1, max_trials=2)
    assert len(by_function.trials) == 2


def test_nothing_of_a_study_stays_in_memory(study, path):
    class Batch(list):
        alive = 0

        def __init__(self, items):
            super().__init__(items)
            Batch.alive += 1

        def __del__(self):
            Batch.alive -= 1

    def data():
        for pair in batches(study):
            yield Batch(pair)

    kilter.tune(path, metric="topk", data=data(), max_trials=2, **SIZE)
    gc.collect()
    assert Batch.alive == 0
