"""Bad input gives one clear error: no crash, no leak, no half-written file."""

import random
import resource

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import kilter
from conftest import FIXTURE, make_model

MODEL = (FIXTURE / "model.onnx").read_bytes()


def fails_cleanly(content):
    """Loads and, where that works, runs the model; only kilter.Error may come out. Tells whether it did."""
    try:
        model = kilter.load(content, threads=1)
        model.bench(iterations=1)
    except kilter.Error:
        return True
    return False


def test_truncated_models():
    lengths = [*range(64), *range(64, len(MODEL), 9973), len(MODEL) - 1]
    for length in lengths:
        assert fails_cleanly(MODEL[:length]), length


def test_flipped_bytes():
    # The structure is at the end of the file, after the weights of the first nodes: flip both.
    generator = random.Random(1)
    for _ in range(150):
        damaged = bytearray(MODEL)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        fails_cleanly(bytes(damaged))


def test_names_that_are_no_text_are_shown_as_bytes():
    with pytest.raises(kilter.Error, match=r"Re\\xffu"):
        kilter.load(MODEL.replace(b"Relu", b"Re\xffu")).bench(iterations=1)


def test_command_reports_truncated_models(cli, tmp_path):
    for length in (0, 1, 100, len(MODEL) // 2, len(MODEL) - 1):
        (tmp_path / "cut.onnx").write_bytes(MODEL[:length])
        for command in ("inspect", "run", "bench"):
            done = cli(command, "cut.onnx")
            assert done.status == 1, (length, command)
            assert done.err.startswith("kilter: cut.onnx"), done.err
            assert len(done.err.splitlines()) <= 2


def test_wrong_files(cli, tmp_path):
    (tmp_path / "text.onnx").write_text("this is a text")
    (tmp_path / "folder.onnx").mkdir()
    for name in ("text.onnx", "folder.onnx"):
        done = cli("inspect", name)
        assert done.status == 1
        assert name in done.err


def test_cyclic_graph():
    nodes = [
        helper.make_node("Relu", ["b"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
    ]
    model = make_model(nodes, [], [("b", TensorProto.FLOAT, [1])])
    with pytest.raises(kilter.Error, match="first"):
        kilter.load(model.SerializeToString())


def test_absurd_dimensions():
    huge = 2**62
    weights = TensorProto(data_type=TensorProto.FLOAT, name="w", dims=[huge, 16], raw_data=b"\0" * 16)
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, None)],
        [weights],
    )
    with pytest.raises(kilter.Error):
        kilter.load(model.SerializeToString())


def test_outputs_too_large_for_any_machine():
    model = make_model(
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        [("x", TensorProto.FLOAT, [1]), ("shape", TensorProto.INT64, [3])],
        [("y", TensorProto.FLOAT, None)],
    )
    loaded = kilter.load(model.SerializeToString())
    with pytest.raises(kilter.Error):
        loaded.run({"x": np.ones(1, np.float32), "shape": np.array([2**20, 2**20, 2**20])})


def test_unknown_operators_are_named():
    model = make_model(
        [helper.make_node("Fly", ["x"], ["y"], name="bird", domain="my.domain")],
        [("x", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, [1])],
    )
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    with pytest.raises(kilter.Error, match="bird"):
        kilter.load(model.SerializeToString())(np.ones(1, np.float32))


def test_missing_external_data(cli, tmp_path):
    onnx.save(
        onnx.load_from_string(MODEL),
        tmp_path / "split.onnx",
        save_as_external_data=True,
        location="w",
        size_threshold=0,
    )
    (tmp_path / "w").unlink()
    done = cli("inspect", "split.onnx")
    assert done.status == 1
    assert "'w'" in done.err or "/w" in done.err or " w" in done.err


def test_external_data_outside_the_models_folder_is_refused(cli, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(
        onnx.load_from_string(MODEL),
        folder / "m.onnx",
        save_as_external_data=True,
        location="w",
        size_threshold=0,
    )
    (folder / "w").rename(tmp_path / "w")
    model = onnx.load(folder / "m.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../w"
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    assert cli("inspect", folder / "m.onnx").status == 1


def test_indices_out_of_range_at_run_time():
    model = make_model(
        [helper.make_node("Gather", ["x", "i"], ["y"])],
        [("x", TensorProto.FLOAT, [4]), ("i", TensorProto.INT64, ["n"])],
        [("y", TensorProto.FLOAT, ["n"])],
    )
    loaded = kilter.load(model.SerializeToString())
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(loaded(x, np.array([-1, 2])), [3, 2])
    for bad in (4, -5, 2**62):
        with pytest.raises(kilter.Error):
            loaded(x, np.array([bad]))


def test_shapes_that_contradict_at_run_time():
    model = make_model(
        [helper.make_node("MatMul", ["a", "b"], ["y"], name="product")],
        [("a", TensorProto.FLOAT, ["n", "k"]), ("b", TensorProto.FLOAT, ["m", "p"])],
        [("y", TensorProto.FLOAT, None)],
    )
    loaded = kilter.load(model.SerializeToString())
    with pytest.raises(kilter.Error, match="product"):
        loaded(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32))
    assert loaded(np.ones((2, 3), np.float32), np.ones((3, 5), np.float32)).shape == (2, 5)


def test_errors_do_not_leak():
    cut = MODEL[: len(MODEL) // 2]
    for _ in range(20):
        fails_cleanly(cut)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        fails_cleanly(cut)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} kB more after 300 damaged models"
