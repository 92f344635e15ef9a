"""The Python package: loading, running, errors, memory, threads."""

import subprocess
import sys
import threading
import weakref

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import kilter
from conftest import make_model


@pytest.fixture
def adder(add_model):
    return kilter.load(add_model.SerializeToString(), threads=1)


def identity(dtype, shape=("n",)):
    model = make_model(
        [helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)]
    )
    return kilter.load(model.SerializeToString())


def test_ports_have_names_types_and_symbolic_shapes(adder):
    assert [port.name for port in adder.inputs] == ["a", "b"]
    assert [port.name for port in adder.outputs] == ["total", "difference"]
    assert adder.inputs[0] == kilter.Port("a", "f32", ("n", 3))
    assert adder.inputs[0].numpy_dtype == np.float32
    assert "a: f32[n, 3]" in repr(adder)


def test_run_returns_outputs_in_the_models_order(adder):
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    outputs = adder.run({"b": b, "a": a})
    assert list(outputs) == ["total", "difference"]
    np.testing.assert_array_equal(outputs["total"], a + b)
    np.testing.assert_array_equal(outputs["difference"], a - b)


def test_call_takes_arrays_in_order(adder, fashion):
    total, difference = adder(np.ones((1, 3), np.float32), np.zeros((1, 3), np.float32))
    assert (total.sum(), difference.sum()) == (3, 3)
    path, images, labels = fashion
    logits = kilter.load(path)(images)
    assert isinstance(logits, np.ndarray)
    assert np.mean(logits.argmax(1) == labels) > 0.9


def test_loads_paths_and_bytes(add_file):
    content = add_file.read_bytes()
    for source in (add_file, str(add_file), content, bytearray(content), memoryview(content)):
        assert len(kilter.load(source).inputs) == 2


def test_dynamic_batch_gives_the_same_rows(fashion):
    path, images, _ = fashion
    model = kilter.load(path, threads=2)
    whole = model(images[:17])
    for size in (1, 5, 17, 5):
        np.testing.assert_allclose(model(images[:size]), whole[:size], rtol=1e-4, atol=1e-4)


NUMPY_TYPES = [
    (TensorProto.FLOAT, np.float32),
    (TensorProto.FLOAT16, np.float16),
    (TensorProto.DOUBLE, np.float64),
    (TensorProto.BOOL, np.bool_),
    (TensorProto.INT8, np.int8),
    (TensorProto.UINT8, np.uint8),
    (TensorProto.INT16, np.int16),
    (TensorProto.UINT16, np.uint16),
    (TensorProto.INT32, np.int32),
    (TensorProto.UINT32, np.uint32),
    (TensorProto.INT64, np.int64),
    (TensorProto.UINT64, np.uint64),
]


@pytest.mark.parametrize(("onnx_type", "dtype"), NUMPY_TYPES)
def test_every_numpy_type_passes_through(onnx_type, dtype):
    x = np.array([0, 1, 2, 100], dtype)
    y = identity(onnx_type)(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_bfloat16_passes_through():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.5, -2], ml_dtypes.bfloat16)
    y = identity(TensorProto.BFLOAT16)(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_strings_pass_through():
    x = np.array(["a", "größer"], object)
    np.testing.assert_array_equal(identity(TensorProto.STRING)(x), x)


def test_empty_arrays_and_scalars():
    assert identity(TensorProto.FLOAT)(np.zeros(0, np.float32)).shape == (0,)
    y = identity(TensorProto.FLOAT, ())(np.float32(3))
    assert (y.shape, float(y)) == ((), 3.0)


def test_strided_swapped_and_read_only_inputs(adder):
    base = np.arange(12, dtype=np.float32).reshape(3, 4).T
    strided = base[:, :3][::2]
    zeros = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(adder(strided, zeros)[0], strided)
    np.testing.assert_array_equal(adder(strided.astype(">f4"), zeros)[0], strided)
    zeros.flags.writeable = False
    np.testing.assert_array_equal(adder(strided, zeros)[0], strided)


def test_accepts_anything_with_dlpack_or_the_buffer_protocol(adder):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(adder(Foreign(a), memoryview(a))[0], a + a)


def test_outputs_own_their_memory(adder):
    a = np.ones((2, 3), np.float32)
    first, _ = adder(a, a)
    second, _ = adder(2 * a, a)
    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    first += 1
    np.testing.assert_array_equal(second, 3 * a)
    del adder
    np.testing.assert_array_equal(first, 3 * a)


def test_outputs_never_alias_inputs():
    x = np.ones(4, np.float32)
    y = identity(TensorProto.FLOAT)(x)
    y[:] = 7
    np.testing.assert_array_equal(x, 1)


def test_inputs_are_released_after_the_run(adder):
    class Array(np.ndarray):
        pass

    a = np.ones((2, 3), np.float32).view(Array)
    alive = weakref.ref(a)
    adder(a, a)
    del a
    assert alive() is None


def test_errors_say_what_was_found_and_expected(adder):
    good = np.zeros((2, 3), np.float32)
    cases = [
        ({"a": good}, ValueError, "input 'b' is missing"),
        ({"a": good, "b": good, "c": good}, ValueError, "no input 'c'"),
        ({"a": good, "b": np.zeros((2, 4), np.float32)}, ValueError, r"\[2, 4\].*\[n, 3\]"),
        ({"a": good, "b": np.zeros(3, np.float32)}, ValueError, r"\[3\].*\[n, 3\]"),
        ({"a": good, "b": np.zeros((5, 3), np.float32)}, ValueError, "b"),
        ({"a": good, "b": good.astype(np.float64)}, TypeError, "float64.*f32"),
        ({"a": good, "b": [[1.0, 2.0, 3.0]]}, TypeError, "list"),
        ({"a": good, "b": None}, TypeError, "NoneType"),
    ]
    for inputs, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            adder.run(inputs)
        assert isinstance(caught.value, kilter.Error)
    with pytest.raises(ValueError, match="takes 2 inputs"):
        adder(good)


def test_bad_models_raise():
    with pytest.raises(FileNotFoundError):
        kilter.load("nowhere.onnx")
    with pytest.raises(kilter.Error):
        kilter.load(b"this is not a model")
    with pytest.raises(ValueError, match="threads"):
        kilter.load(b"", threads=-1)


def test_save_writes_the_model_as_loaded(fashion, tmp_path):
    path, images, _ = fashion
    model = kilter.load(path)
    model.save(tmp_path / "copy.onnx")
    original, copy = onnx.load(path), onnx.load(tmp_path / "copy.onnx")
    onnx.checker.check_model(copy)
    assert [n.op_type for n in copy.graph.node] == [n.op_type for n in original.graph.node]
    np.testing.assert_array_equal(kilter.load(tmp_path / "copy.onnx")(images[:4]), model(images[:4]))
    model.save(tmp_path / "external.onnx", external_data=True)
    assert (tmp_path / "external.onnx").stat().st_size < path.stat().st_size / 4
    np.testing.assert_array_equal(kilter.load(tmp_path / "external.onnx")(images[:4]), model(images[:4]))


def test_bench_and_profile(fashion):
    model = kilter.load(fashion[0], threads=1)
    report = model.bench(batch=2, iterations=4, instances=2)
    assert report["runs"] == 8
    assert 0 < report["median_ms"] <= report["p90_ms"]
    steps = model.profile(shapes={"image": (3, 1, 28, 28)})
    assert any("Conv" in step["op"] for step in steps)
    with pytest.raises(ValueError, match="image"):
        model.bench(shapes={"image": (1, 2, 3)})


def test_graph_text(fashion):
    model = kilter.load(fashion[0])
    assert "BatchNormalization" in model.graph_text()
    assert "BatchNormalization" not in model.graph_text(optimized=True)


def test_unoptimized_runs_agree(fashion):
    path, images, _ = fashion
    plain = kilter.load(path, optimize=False)(images[:8])
    np.testing.assert_allclose(kilter.load(path)(images[:8]), plain, rtol=0, atol=1e-4 * np.abs(plain).max())


def test_many_threads_run_one_model(fashion):
    path, images, _ = fashion
    model = kilter.load(path, threads=1)
    expected = [model(images[i : i + 1 + i % 3]) for i in range(12)]
    failures = []

    def work(offset):
        for step in range(12):
            i = (step + offset) % 12
            if not np.array_equal(model(images[i : i + 1 + i % 3]), expected[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_runs_release_the_gil(fashion):
    path, images, _ = fashion
    model = kilter.load(path, threads=1)
    big = np.concatenate([images] * 4)
    model(big)
    done = threading.Event()

    def work():
        model(big)
        done.set()

    ticks = 0
    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
    thread.join()
    assert ticks > 1000  # with the GIL held, this loop would have stood still


def test_import_leaves_logging_and_threads_alone():
    code = """
import logging, os, threading, numpy

def state():
    return logging.getLogger().handlers[:], threading.active_count(), len(os.listdir("/proc/self/task"))

before = state()
import kilter
assert state() == before, (before, state())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_outputs_that_are_one_value_have_memory_of_their_own():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["b"])],
        "twice",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "ab"],
    )
    model = kilter.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    outputs = model.run({"x": np.ones(3, np.float32)})
    outputs["a"][:] = 7
    assert outputs["b"].tolist() == [1, 1, 1]


def test_a_model_lent_for_an_evaluation_outlives_runs_of_other_threads(tmp_path):
    """A thread that an evaluation function leaves behind ends its run, and only then hears that the model is gone."""
    rng = np.random.default_rng(0)
    batch = rng.random((64, 256), dtype=np.float32)
    weights = helper.make_tensor("w", TensorProto.FLOAT, [256, 256], rng.random(256 * 256, dtype=np.float32))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 256])],
        [weights],
    )
    ended = []

    def forever(model):
        try:
            while True:
                model(batch)
        except kilter.Error as error:
            ended.append(str(error))

    def evaluate(model):
        thread = threading.Thread(target=forever, args=(model,))
        thread.start()
        threads.append(thread)
        return 1.0

    threads = []
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    kilter.tune(model.SerializeToString(), [batch], evaluate=evaluate, max_trials=2)
    for thread in threads:
        thread.join()
    assert len(ended) == len(threads) >= 2 and all("lent" in text for text in ended)
