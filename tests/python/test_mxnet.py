"""MXNet models without MXNet: files made here, judged by ONNX Runtime; tests/frameworks/mxnet has MXNet itself."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import kilter
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
from make_mxnet_corpus import params, symbol, variable

random = np.random.default_rng(4)
W = random.standard_normal((4, 3, 3, 3)).astype(np.float32)
BIAS = random.standard_normal(4).astype(np.float32)
FC = random.standard_normal((5, 4)).astype(np.float32)


def write(folder, name="net", epoch=0, layout="NCHW", **more):
    """A convolution, ReLU, global pooling and a dense layer."""
    conv = {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)", "layout": layout}
    weights = W if layout == "NCHW" else np.ascontiguousarray(W.transpose(0, 2, 3, 1))
    nodes = symbol(
        variable("data"),
        variable("w"),
        variable("b"),
        ("Convolution", "conv", conv, ["data", "w", "b"]),
        ("Activation", "act", {"act_type": "relu"}, ["conv"]),
        ("Pooling", "pool", {"global_pool": "True", "pool_type": "avg", "layout": layout}, ["act"]),
        variable("f"),
        ("FullyConnected", "fc", {"num_hidden": "5", "no_bias": "True"}, ["pool", "f"]),
    )
    (folder / f"{name}-symbol.json").write_bytes(nodes)
    arrays = {"arg:w": weights, "arg:b": BIAS, "arg:f": FC} | more
    (folder / f"{name}-{epoch:04}.params").write_bytes(params(arrays))
    return folder / name


def expected(x):
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["t"]),
        helper.make_node("Gemm", ["t", "f"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (("w", W), ("b", BIAS), ("f", FC))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.fixture
def images():
    return np.random.default_rng(5).standard_normal((8, 3, 10, 9)).astype(np.float32)


@pytest.mark.parametrize("ending", ["", "-symbol.json", "-0000.params"])
def test_prefix_symbol_and_parameters_name_the_model(tmp_path, images, ending):
    model = kilter.load(f"{write(tmp_path)}{ending}")
    assert model.inputs[0].shape == ("batch", 3, "height", "width")
    np.testing.assert_allclose(model(images), expected(images), rtol=1e-4, atol=1e-5)


def test_channels_may_come_last(tmp_path, images):
    model = kilter.load(write(tmp_path, layout="NHWC"))
    found = model(np.ascontiguousarray(images.transpose(0, 2, 3, 1)))
    np.testing.assert_allclose(found, expected(images), rtol=1e-4, atol=1e-5)


def test_the_last_epoch_is_taken_unless_one_is_named(tmp_path, images):
    write(tmp_path, epoch=3, **{"arg:f": np.zeros_like(FC)})
    prefix = write(tmp_path, epoch=12)
    np.testing.assert_allclose(kilter.load(prefix)(images), expected(images), rtol=1e-4, atol=1e-5)
    assert not kilter.load(f"{prefix}-0003.params")(images).any()


def test_missing_halves_are_named(tmp_path):
    write(tmp_path)
    (tmp_path / "net-0000.params").unlink()
    with pytest.raises(kilter.Error, match=r"no parameters[^$]*net-0000\.params"):
        kilter.load(tmp_path / "net-symbol.json")
    (tmp_path / "alone-0000.params").write_bytes(params({}))
    with pytest.raises(kilter.Error, match=r"alone-symbol\.json"):
        kilter.load(tmp_path / "alone-0000.params")


def test_unknown_operators_load_and_are_named_when_they_run(tmp_path):
    (tmp_path / "odd-symbol.json").write_bytes(symbol(variable("data"), ("NoSuchThing", "odd", {}, ["data"])))
    (tmp_path / "odd-0000.params").write_bytes(params({}))
    with pytest.raises(kilter.Error, match="odd"):
        kilter.load(tmp_path / "odd", shapes={"data": (2, 3)})(np.zeros((2, 3), np.float32))


def test_shapes_can_be_told(tmp_path, cli):
    (tmp_path / "r-symbol.json").write_bytes(
        symbol(variable("data"), ("mean", "mean", {"axis": "1", "exclude": "True"}, ["data"]))
    )
    (tmp_path / "r-0000.params").write_bytes(params({}))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_allclose(kilter.load(tmp_path / "r", shapes={"data": (-1, 3, 4)})(x), x.mean((0, 2)))
    assert "3, 4" in cli("inspect", "r", "--input-shape", "data=-1x3x4").out
    with pytest.raises(kilter.Error, match="no input 'date'"):
        kilter.load(tmp_path / "r", shapes={"date": (1,)})
    done = cli("inspect", ROOT / "fixtures/fashion_mnist/model.onnx", "--input-shape", "image=1x1x28x28")
    assert (done.status, "MXNet" in done.err) == (1, True)


def test_quantize_writes_for_mxnet_and_for_others(tmp_path, images, cli):
    write(tmp_path)
    np.save(tmp_path / "x.npy", images)
    for output in ("q-symbol.json", "q.onnx"):
        done = cli("quantize", "net", "--data", "x.npy", "-o", output, "--json")
        assert done.status == 0, done.err
        sizes = [(tmp_path / f"net{end}").stat().st_size for end in ("-symbol.json", "-0000.params")]
        assert json.loads(done.out)["bytes_before"] == sum(sizes)
    nodes = json.loads((tmp_path / "q-symbol.json").read_text())["nodes"]
    assert [node["op"] for node in nodes if node["op"].startswith("_sg_")] == [
        "_sg_mkldnn_conv",
        "_sg_mkldnn_fully_connected",
    ]
    assert (tmp_path / "q-0000.params").stat().st_size > 0
    found, wanted = kilter.load(tmp_path / "q.onnx")(images), expected(images)
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)


def test_tune_writes_for_mxnet(tmp_path, images, cli):
    write(tmp_path)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "labels.npy", expected(images).argmax(1))
    options = (
        "--data x.npy --labels labels.npy --strategy basic --max-loss 50% --target mxnet -o t-symbol.json"
    )
    done = cli("tune", "net", *options.split())
    assert done.status == 0, done.err
    nodes = json.loads((tmp_path / "t-symbol.json").read_text())["nodes"]
    assert "_sg_mkldnn_conv" in [node["op"] for node in nodes]


def test_words_of_mxnet_mean_the_same(tmp_path, images, cli):
    prefix = write(tmp_path)
    np.save(tmp_path / "x.npy", images)
    for theirs, ours in (("naive", "minmax"), ("entropy", "kl")):
        plans = [kilter.quantize(prefix, [images], algorithm=word).plan for word in (theirs, ours)]
        assert plans[0] == plans[1]
    plans = [kilter.quantize(prefix, [images], weights=word).plan for word in ("tensor-wise", "per-tensor")]
    assert plans[0] == plans[1]
    for words in (("naive", "channel-wise"), ("minmax", "per-channel")):
        options = f"--data x.npy --calibration {words[0]} --weights {words[1]} -o {words[0]}.onnx"
        assert cli("quantize", "net", *options.split()).status == 0
    a, b = (kilter.load(tmp_path / f"{name}.onnx")(images) for name in ("naive", "minmax"))
    np.testing.assert_array_equal(a, b)
    config = {
        "quantization": {
            "model_wise": {
                "activation": {"algorithm": ["entropy"]},
                "weight": {"granularity": ["tensor-wise"]},
            }
        }
    }
    labels = expected(images).argmax(1)
    result = kilter.tune(
        prefix, metric="topk", data=[(images, labels)], config=config, strategy="basic", max_loss="90%"
    )
    (plan,) = (entry for entry in result.plan["operators"] if entry["op"] == "Conv")
    assert (plan["activation"]["algorithm"], plan["weights"]["granularity"]) == ("kl", "per-tensor")


def test_the_target_mxnet_has_no_zero_points(tmp_path, images):
    small = kilter.quantize(write(tmp_path), [images], target="mxnet")
    assert all(value.min in (0, -value.max) for value in small.report.ranges)


def test_only_models_of_mxnet_are_written_for_it(tmp_path, cli):
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 28, 28), np.float32))
    model = ROOT / "fixtures/fashion_mnist/model.onnx"
    done = cli("quantize", model, "--data", "x.npy", "-o", "q-symbol.json")
    assert (done.status, "MXNet" in done.err) == (1, True)
    assert not (tmp_path / "q-symbol.json").exists()
