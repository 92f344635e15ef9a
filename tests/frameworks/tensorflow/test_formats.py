"""The other forms a TensorFlow model comes in: text, SavedModel folders of both TensorFlows, and what the commands say."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import kilter
import networks
from conftest import assert_close, run_tensorflow, tf, write_graph

tf1 = tf.compat.v1


def command(*arguments):
    tool = Path(sys.executable).with_name("kilter")
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)


SMALL = {
    "resnet": lambda: networks.resnet((1, 1, 1, 1), "v1.5", size=64, width=8, batch=2),
    "bert": lambda: networks.bert(layers=1, hidden=32, heads=2, length=16, vocabulary=50, batch=2),
}


@pytest.mark.parametrize("name", SMALL)
def test_text(name, tmp_path):
    network = SMALL[name]()
    path = tmp_path / "graph.pbtxt"
    path.write_text(text_format.MessageToString(network.graph_def))
    expected = run_tensorflow(network.graph_def, network.feeds, network.outputs)
    model = kilter.load(path, outputs=network.outputs)
    found = model.run({name.removesuffix(":0"): value for name, value in network.feeds.items()})
    for name, value in zip(network.outputs, expected, strict=True):
        assert_close(found[name.removesuffix(":0")], value)


class Embedder(tf.Module):
    """A table, a function that calls another one, and two signatures."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(5)
        self.table = tf.Variable(rng.standard_normal((20, 6)).astype(np.float32))
        self.kernel = tf.Variable(rng.standard_normal((6, 3)).astype(np.float32))

    @tf.function
    def project(self, x):
        return tf.matmul(x, self.kernel)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.int32, name="ids")])
    def embed(self, ids):
        rows = tf.reduce_mean(tf.nn.embedding_lookup(self.table, ids), 1)
        best = tf.math.top_k(self.project(rows), 2)
        return {"scores": best.values, "classes": best.indices, "rows": rows}

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="rows")])
    def only_project(self, rows):
        return {"projected": self.project(rows)}


def test_saved_module(tmp_path):
    module = Embedder()
    signatures = {"serving_default": module.embed, "project": module.only_project}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    ids = np.random.default_rng(1).integers(0, 20, (5, 4)).astype(np.int32)
    model = kilter.load(tmp_path)
    assert [port.name for port in model.inputs] == ["ids"]
    assert [port.name for port in model.outputs] == ["classes", "rows", "scores"]
    expected = module.embed(ids)
    for name, value in model.run({"ids": ids}).items():
        assert_close(value, expected[name].numpy())
    rows = np.random.default_rng(2).standard_normal((3, 6)).astype(np.float32)
    projected = kilter.load(tmp_path, signature="project").run({"rows": rows})["projected"]
    assert_close(projected, module.only_project(rows)["projected"].numpy())
    with pytest.raises(kilter.Error, match="its signatures are project, serving_default"):
        kilter.load(tmp_path, signature="nothing")


def test_study_of_another_signature(tmp_path):
    """A trial is recovered from the signature that was tuned, and written for TensorFlow."""
    module = Embedder()
    signatures = {"serving_default": module.embed, "project": module.only_project}
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=signatures)
    rows = np.random.default_rng(2).standard_normal((16, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "labels.npy", np.zeros(16, np.int64))
    arguments = ["tune", tmp_path / "model", "--signature", "project", "--data", tmp_path / "x.npy"]
    arguments += [
        "--labels",
        tmp_path / "labels.npy",
        "--performance-only",
        "--workspace",
        tmp_path / "study",
    ]
    done = command(*arguments, "-o", tmp_path / "int8.pb")
    assert done.returncode == 0, done.stderr
    (found,) = run_tensorflow(
        tf.compat.v1.GraphDef.FromString((tmp_path / "int8.pb").read_bytes()),
        {"rows:0": rows},
        ["projected:0"],
    )
    expected = module.only_project(rows)["projected"].numpy()
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()
    done = command("recover", tmp_path / "study", "1", "-o", tmp_path / "again.onnx")
    assert done.returncode == 0, done.stderr
    again = kilter.load(tmp_path / "again.onnx").run({"rows": rows})["projected"]
    assert np.abs(again - expected).max() < 0.05 * np.abs(expected).max()


def test_saved_keras_model(tmp_path):
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    image = layers.Input((32, 32, 3), name="image")
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(16, 3, padding="same", activation="swish")(x)
    x = layers.Add()([x, layers.Conv2D(16, 1)(x)])
    x = layers.Dense(10, activation="softmax")(layers.Dropout(0.5)(layers.GlobalAveragePooling2D()(x)))
    keras = tf.keras.Model(image, x)
    keras.export(str(tmp_path), verbose=False)
    batch = np.random.default_rng(1).uniform(-1, 1, (3, 32, 32, 3)).astype(np.float32)
    model = kilter.load(tmp_path)
    assert_close(model(batch), keras(batch, training=False).numpy())
    assert "tensorflow." not in model.graph_text()


def test_saved_by_tensorflow_1(tmp_path):
    graph = tf.Graph()
    rng = np.random.default_rng(1)
    with graph.as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None, 4], "x")
        with tf1.variable_scope("dense", use_resource=False):
            w = tf1.get_variable("w", initializer=rng.standard_normal((4, 3)).astype(np.float32))
        with tf1.variable_scope("other", use_resource=True):
            b = tf1.get_variable("b", initializer=rng.standard_normal(3).astype(np.float32))
        y = tf.nn.relu(tf.matmul(x, w) + b)
        session.run(tf1.global_variables_initializer())
        tf1.saved_model.simple_save(session, str(tmp_path / "saved"), {"features": x}, {"scores": y})
        batch = rng.standard_normal((5, 4)).astype(np.float32)
        expected = session.run(y, {x: batch})
    model = kilter.load(tmp_path / "saved")
    assert_close(model.run({"features": batch})["scores"], expected)


def test_inspect_prints_the_summary(tmp_path):
    network = SMALL["resnet"]()
    path = write_graph(network.graph_def, tmp_path / "graph.pb")
    done = command("inspect", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Found  1  possible inputs: \n"
        "(name=input, type=float(1), shape=[?,64,64,3])\n"
        "Found  2  possible outputs: \n"
        "(name=predict, op=Softmax)\n"
        "(name=ArgMax, op=ArgMax)\n"
        "Op types used: "
    )
    assert f"{sum(node.op == 'Conv2D' for node in network.graph_def.node)}  Conv2D , " in done.stdout


def test_commands_take_graphs(tmp_path):
    network = SMALL["resnet"]()
    path = write_graph(network.graph_def, tmp_path / "graph.pb")
    np.save(tmp_path / "x.npy", network.feeds["input:0"])
    done = command("run", path, "--outputs", "predict:0", "--input", tmp_path / "x.npy", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    expected = run_tensorflow(network.graph_def, network.feeds, network.outputs)[0]
    assert_close(np.load(tmp_path / "predict.npy"), expected)
    done = command(
        "quantize", path, "--outputs", "predict", "--data", tmp_path / "x.npy", "-o", tmp_path / "int8.onnx"
    )
    assert done.returncode == 0, done.stderr
    done = command("diff", path, tmp_path / "int8.onnx", "--outputs", "predict")
    assert done.returncode == 0, done.stderr
    assert "stage1/block1/conv2/Conv2D" in done.stdout
    done = command("run", path, "--outputs", "nothing")
    assert done.returncode == 1
    assert "there is no node 'nothing'" in done.stderr
