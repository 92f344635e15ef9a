"""TensorFlow graphs without TensorFlow: a small one in text form, as every command and function takes it."""

from pathlib import Path

import numpy as np
import pytest

import kilter

GRAPH = Path(__file__).parents[1] / "fuzz" / "graph_seeds" / "network.pbtxt"
FLOW = GRAPH.with_name("flow.pbtxt")
IMAGE = np.random.default_rng(1).uniform(-1, 1, (2, 8, 8, 3)).astype(np.float32)


def expected_norm():
    """What the graph computes up to its normalization, in NumPy."""
    padded = np.pad(IMAGE, ((0, 0), (0, 1), (0, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    conv = 0.5 * windows.sum((3, 4, 5))[..., None]
    scale = np.array([1, 2, 0.25, 1e-3], np.float32)
    return (conv - scale) / np.sqrt(scale + 0.001) * scale + scale


def test_load_text():
    model = kilter.load(GRAPH)
    assert [(port.name, port.shape) for port in model.inputs] == [("x", ("x_0", 8, 8, 3))]
    assert [port.name for port in model.outputs] == ["y"]
    result = model.run({"x": IMAGE})["y"]
    assert result.shape == (2, 4)
    np.testing.assert_allclose(result.sum(-1), 1, rtol=1e-5)


def test_load_a_part():
    model = kilter.load(GRAPH, outputs=["norm:0"])
    np.testing.assert_allclose(model.run({"x": IMAGE})["norm"], expected_norm(), rtol=1e-4, atol=1e-5)
    model = kilter.load(GRAPH, inputs=["norm"], outputs=["relu"])
    assert [port.name for port in model.inputs] == ["norm"]
    norm = expected_norm().astype(np.float32)
    np.testing.assert_allclose(model.run({"norm": norm})["relu"], norm.clip(0, 6), rtol=1e-6)


def test_conditional_and_function_and_loop():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    model = kilter.load(FLOW, outputs=["m"])
    for flag, sign in ((False, 1), (True, -1)):
        np.testing.assert_array_equal(model.run({"p": np.array(flag), "x": x})["m"], sign * x)
    with pytest.raises(kilter.Error, match=r"operator 'enter' \(tensorflow.Enter\): kilter cannot execute"):
        kilter.load(FLOW, outputs=["exit"]).run({"x": x})


def test_errors_name_the_file(tmp_path):
    with pytest.raises(kilter.Error, match="there is no node 'z', which was given as output"):
        kilter.load(GRAPH, outputs=["z"])
    with pytest.raises(kilter.Error, match="only SavedModel folders have signatures"):
        kilter.load(GRAPH, signature="serve")
    with pytest.raises(kilter.Error, match=r"there is no saved_model\.pb in this folder"):
        kilter.load(tmp_path)
    broken = tmp_path / "broken.pb"
    broken.write_bytes(b"\n\x10half of a node")
    with pytest.raises(kilter.Error, match=r"broken.pb: the data ends in the middle of a field"):
        kilter.load(broken)
    text = tmp_path / "broken.pbtxt"
    text.write_text("node {\n  nama: 'x'\n}\n")
    with pytest.raises(kilter.Error, match=r"broken.pbtxt: line 2: NodeDef has no field 'nama'"):
        kilter.load(text)


def test_commands(cli, tmp_path):
    done = cli("inspect", GRAPH)
    assert done.status == 0
    assert done.out.startswith(
        "Found  1  possible inputs: \n"
        "(name=x, type=float(1), shape=[?,8,8,3])\n"
        "Found  1  possible outputs: \n"
        "(name=y, op=Softmax)\n"
        "Op types used: 3  Const , 1  Conv2D , 1  FusedBatchNormV3 , "
    )
    assert "TensorFlow graph" in done.out
    np.save(tmp_path / "x.npy", IMAGE)
    done = cli(
        "run", GRAPH, "--inputs", "x:0", "--outputs", "norm,relu", "-i", tmp_path / "x.npy", "-o", tmp_path
    )
    assert done.status == 0
    np.testing.assert_allclose(np.load(tmp_path / "norm.npy"), expected_norm(), rtol=1e-4, atol=1e-5)
    done = cli(
        "quantize", GRAPH, "--outputs", "pool", "--data", tmp_path / "x.npy", "-o", tmp_path / "int8.onnx"
    )
    assert done.status == 0
    done = cli("diff", GRAPH, tmp_path / "int8.onnx", "--outputs", "pool", "--data", tmp_path / "x.npy")
    assert done.status == 0
    assert "conv" in done.out
    assert cli("bench", GRAPH, "--outputs", "pool", "--iterations", "1").status == 0
    done = cli("inspect", GRAPH, "--signature", "serve")
    assert done.status == 1
    assert "only SavedModel folders have signatures" in done.err


def test_tune_and_recover(cli, tmp_path):
    rng = np.random.default_rng(2)
    np.save(tmp_path / "x.npy", rng.uniform(-1, 1, (16, 8, 8, 3)).astype(np.float32))
    np.save(tmp_path / "labels.npy", rng.integers(0, 4, 16))
    done = cli(
        *(
            "tune",
            GRAPH,
            "--outputs",
            "flat",
            "--data",
            tmp_path / "x.npy",
            "--labels",
            tmp_path / "labels.npy",
        ),
        *("--performance-only", "--workspace", tmp_path / "study", "-o", tmp_path / "int8.onnx"),
    )
    assert done.status == 0, done.err
    done = cli("recover", tmp_path / "study", "1", "-o", tmp_path / "again.onnx")
    assert done.status == 0, done.err
    assert [port.name for port in kilter.load(tmp_path / "again.onnx").outputs] == ["flat"]
    done = cli("recover", tmp_path / "study", "1", "-o", tmp_path / "again.pb")
    assert done.status == 1
    assert "--save-plan" in done.err
    plan = tmp_path / "plan.json"
    done = cli("recover", tmp_path / "study", "1", "-o", tmp_path / "again.onnx", "--save-plan", plan)
    assert done.status == 0, done.err
    data = ("--data", tmp_path / "x.npy", "--plan", plan, "-o", tmp_path / "int8.pb")
    done = cli("quantize", GRAPH, "--outputs", "flat", *data)
    assert done.status == 0, done.err
    assert (tmp_path / "int8.pb").stat().st_size > 0


def test_a_short_file_cannot_ask_for_all_memory(tmp_path):
    """Constants of one repeated value are short in a file: each may be long, all together may not."""
    constant = """node {{ name: "c{0}" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
        attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ dim {{ size: 60000000 }} }} float_val: 1 }} }} }} }}"""
    inputs = " ".join(f'input: "c{index}"' for index in range(6))
    text = "\n".join(constant.format(index) for index in range(6))
    text += f'node {{ name: "y" op: "AddN" {inputs} attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}'
    path = tmp_path / "fills.pbtxt"
    path.write_text(text)
    with pytest.raises(kilter.Error, match="claim more than 1024 MiB that the file does not hold"):
        kilter.load(path)
