"""kilter.quantize, calibrate and compare from Python."""

import gc
import threading
import weakref

import numpy as np
import onnxruntime
import pytest

import kilter


@pytest.fixture(scope="module")
def batches(fashion):
    return [fashion[1][start : start + 10] for start in range(0, 100, 10)]


@pytest.fixture(scope="module")
def small(fashion, batches):
    return kilter.quantize(fashion[0], batches)


def test_quantized_model_keeps_the_accuracy(fashion, small):
    path, images, labels = fashion
    before = np.mean(kilter.load(path)(images).argmax(1) == labels)
    assert np.mean(small(images).argmax(1) == labels) >= before - 0.01
    assert small.inputs == kilter.load(path).inputs


def test_saved_file_runs_the_same_here_and_in_onnx_runtime(fashion, small, tmp_path):
    images = fashion[1]
    small.save(tmp_path / "q.onnx")
    np.testing.assert_array_equal(kilter.load(tmp_path / "q.onnx")(images), small(images))
    session = onnxruntime.InferenceSession(tmp_path / "q.onnx", providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"image": images})[0]
    assert np.mean(theirs.argmax(1) == small(images).argmax(1)) >= 0.99


def test_samples_are_streamed(fashion):
    """No more than a few samples are alive at any time."""
    made = []
    most = 0

    class Sample(np.ndarray):
        pass

    def stream():
        nonlocal most
        for index in range(50):
            gc.collect()
            most = max(most, sum(sample() is not None for sample in made))
            array = fashion[1][index : index + 1].copy().view(Sample)
            made.append(weakref.ref(array))
            yield {"image": array}

    kilter.quantize(fashion[0], stream())
    assert most <= 4


def test_samples_stop_where_told(fashion):
    taken = []

    def stream():
        for index in range(50):
            taken.append(index)
            yield fashion[1][:1]

    assert kilter.calibrate(fashion[0], stream(), samples=5).samples == 5
    assert len(taken) <= 6


def test_errors_of_the_iterable_come_through(fashion):
    def broken():
        yield fashion[1][:1]
        raise KeyError("the disk is gone")

    with pytest.raises(KeyError, match="the disk is gone"):
        kilter.quantize(fashion[0], broken())


def test_statistics_serve_every_algorithm(fashion, batches, tmp_path):
    # The same threads everywhere: they decide in which parts the engine adds.
    stats = kilter.calibrate(fashion[0], batches, threads=1)
    stats.save(tmp_path / "stats")
    again = kilter.Stats.load(tmp_path / "stats")
    assert again == stats
    assert stats.samples == 10
    assert stats.values["image"]["min"] >= 0
    direct = kilter.quantize(fashion[0], batches, algorithm="kl", threads=1)
    reused = kilter.quantize(fashion[0], stats=again, algorithm="kl", threads=1)
    np.testing.assert_array_equal(direct(fashion[1]), reused(fashion[1]))
    merged = kilter.calibrate(fashion[0], batches[:4], threads=1)
    merged.merge(kilter.calibrate(fashion[0], batches[4:], threads=1, instances=2))
    assert merged == stats


def test_plan_can_be_edited_and_used_again(fashion, batches, small):
    plan = small.plan
    assert plan == small.plan
    operators = plan["operators"]
    chosen = next(entry for entry in operators if entry["op"] == "Conv")
    chosen["precision"] = "f32"
    edited = kilter.quantize(fashion[0], batches, plan=plan)
    report = {entry.name: entry for entry in edited.report.operators}
    assert report[chosen["name"]].precision == "f32"
    assert "plan" in report[chosen["name"]].reason
    assert edited.plan == plan


def test_report_says_what_happened(small):
    report = small.report
    assert {entry.precision for entry in report.operators if entry.op == "Conv"} == {"int8"}
    assert report.bytes_after < 0.5 * report.bytes_before
    assert all(entry.min <= 0 <= entry.max and entry.scale > 0 for entry in report.ranges)
    assert "operators in int8" in str(report)


def test_recipes_that_calibrate_twice_need_samples_twice(fashion, batches):
    kilter.quantize(fashion[0], batches, recipes="smooth-quant")
    only_products = kilter.quantize(fashion[0], iter(batches), recipes=["bias-correction", "equalization"])
    assert any("bias-correction" in note for note in only_products.report.notes)


def test_models_bytes_and_paths_are_the_same(fashion, batches):
    path, images, _ = fashion
    expected = kilter.quantize(path, batches)(images)
    for source in (kilter.load(path), str(path), path.read_bytes()):
        np.testing.assert_array_equal(kilter.quantize(source, batches)(images), expected)


def test_compare_lists_outputs_then_operators_worst_first(fashion, small):
    samples = [fashion[1][index : index + 1] for index in range(5)]
    drifts = kilter.compare(fashion[0], small, samples)
    assert (drifts[0].name, drifts[0].op) == ("logits", "output")
    assert drifts[0].snr_db > 10
    ratios = [drift.snr_db for drift in drifts[1:]]
    assert len(ratios) >= 8
    assert ratios == sorted(ratios)
    assert all(drift.snr_db == np.inf for drift in kilter.compare(fashion[0], fashion[0], samples))


def test_other_threads_run_while_it_works(fashion, batches):
    """The GIL is free: another thread makes progress during quantization."""
    done = threading.Event()
    counted = 0

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    kilter.quantize(fashion[0], batches)
    done.set()
    thread.join()
    assert counted > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, kilter.InputValueError, "calibration"),
        ({"calibration": []}, kilter.Error, "sample"),
        ({"calibration": [np.zeros((1, 1, 28, 28))]}, kilter.InputTypeError, "float64"),
        ({"calibration": [np.zeros((1, 3, 28, 28), np.float32)]}, kilter.InputValueError, "3"),
        ({"calibration": [{"picture": np.zeros(1)}]}, kilter.InputValueError, "picture"),
        ({"calibration": {"image": np.zeros(1)}}, kilter.InputTypeError, "iterable"),
        ({"calibration": [], "algorithm": "guess"}, kilter.Error, "minmax"),
        ({"calibration": [], "weights": "per-cow"}, kilter.Error, "per-channel"),
        ({"calibration": [], "recipes": ["magic"]}, kilter.Error, "bias-correction"),
        ({"calibration": [], "instances": 0}, kilter.InputValueError, "instances"),
        (
            {"calibration": [], "plan": {"mode": "smart", "operators": [], "unknown": 1}},
            kilter.Error,
            "unknown",
        ),
        ({"calibration": [np.full((1, 1, 28, 28), np.inf, np.float32)]}, kilter.Error, "image"),
    ],
)
def test_mistakes_are_named(fashion, arguments, error, message):
    with pytest.raises(error, match=message):
        kilter.quantize(fashion[0], **arguments)
