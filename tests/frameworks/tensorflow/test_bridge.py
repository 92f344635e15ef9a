"""TensorFlow's own objects: every function of kilter takes them, and gives back what a TensorFlow user expects."""

from pathlib import Path

import keras
import numpy as np
import pytest

import kilter
import networks
from conftest import assert_close, run_tensorflow, tf, write_graph
from kilter.experimental import Quantization, common

RNG = np.random.default_rng(11)
IMAGES = RNG.standard_normal((96, 16, 16, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def network():
    """A small Keras model, and the classes that it sees in the images: INT8 is judged by them."""
    keras.utils.set_random_seed(5)
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5),
        ]
    )
    kernel, bias = model.layers[-1].get_weights()
    model.layers[-1].set_weights([kernel, bias - model(IMAGES).numpy().mean(0)])  # no class beats all others
    labels = model(IMAGES).numpy().argmax(1)
    assert len(set(labels)) == 5
    return model, labels


def batches(labels, size=16):
    return [(IMAGES[i : i + size], labels[i : i + size]) for i in range(0, len(IMAGES), size)]


def frozen(model):
    """The Keras model as a GraphDef, with the names of its ends."""
    made, _ = kilter.tensorflow.freeze(model)
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString(Path(made.path).read_bytes())
    return graph_def, made.inputs[0], made.outputs[0]


def near(found, expected, share=0.1):
    """INT8 of FP32: the error is small beside how much the values differ among themselves."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert np.sqrt(np.mean((found - expected) ** 2)) < share * expected.std()


def test_keras(network, tmp_path):
    model, labels = network
    assert_close(kilter.load(model)(IMAGES), model(IMAGES).numpy())
    small = kilter.quantize(model, [IMAGES[:32], tf.constant(IMAGES[32:64])])
    expected = model(IMAGES).numpy()
    found = small(tf.constant(IMAGES), training=False)
    assert tf.is_tensor(found)
    near(found, expected)
    np.testing.assert_array_equal(small.predict(IMAGES, batch_size=40), found.numpy())
    np.testing.assert_array_equal(
        small.predict(tf.data.Dataset.from_tensor_slices((IMAGES, labels)).batch(16)), found.numpy()
    )
    small.save(tmp_path / "int8.onnx")
    np.testing.assert_array_equal(kilter.load(tmp_path / "int8.onnx")(IMAGES), found.numpy())
    report = small.export(tmp_path / "int8.pb")
    assert sum(entry.precision == "int8" for entry in report.operators) == 3
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString((tmp_path / "int8.pb").read_bytes())
    ends = kilter.tensorflow.graph_ends(graph_def)
    near(run_tensorflow(graph_def, {f"{ends[0][0]}:0": IMAGES}, [f"{ends[1][0]}:0"])[0], expected)


def test_keras_with_several_inputs_and_named_outputs(tmp_path):
    left, right = keras.Input((6,), name="left"), keras.Input((4,), name="right")
    joined = keras.layers.Concatenate()([keras.layers.Dense(8, activation="relu")(left), right])
    model = keras.Model(
        {"left": left, "right": right},
        {"score": keras.layers.Dense(1)(joined), "classes": keras.layers.Dense(3)(joined)},
    )
    sample = {
        "left": RNG.standard_normal((32, 6)).astype(np.float32),
        "right": RNG.standard_normal((32, 4)).astype(np.float32),
    }
    small = kilter.quantize(model, [sample])
    found, expected = small(sample), model(sample)
    assert set(found) == {"score", "classes"}
    for name in found:
        near(found[name], expected[name])


def test_a_class_of_ones_own_needs_an_example():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(4)

        def call(self, x):
            return self.dense(x) + 1

    model = Own()
    with pytest.raises(kilter.InputValueError, match="only on an example"):
        kilter.load(model)
    sample = RNG.standard_normal((8, 5)).astype(np.float32)
    near(kilter.quantize(model, [sample])(sample), model(sample))


def test_tune_keras(network):
    model, labels = network

    def accuracy(candidate):
        return np.mean(candidate(IMAGES).numpy().argmax(1) == labels)

    result = kilter.tune(model, batches(labels), evaluate=accuracy, max_loss="5%", progress=False)
    assert result.met and result.baseline.accuracy == (1.0,)
    assert isinstance(result.model, kilter.tensorflow.Model)
    assert accuracy(result.model) == result.best.accuracy[0]


def test_graph(network, tmp_path):
    model, _ = network
    graph_def, given, wanted = frozen(model)
    expected = model(IMAGES).numpy()
    for form in (graph_def, kilter.tensorflow.make_graph(graph_def)):
        assert_close(kilter.load(form)(IMAGES), expected)
        small = kilter.quantize(form, [IMAGES[:32]])
        assert isinstance(small, tf.Graph)
        with tf.compat.v1.Session(graph=small) as session:
            near(session.run(f"{wanted}:0", {f"{given}:0": IMAGES}), expected)
        near(small.model(IMAGES), expected)
    small.save(tmp_path / "int8.pb")
    small.save(tmp_path / "int8.onnx")
    assert {"QuantizeV2"} <= {
        node.op for node in kilter.tensorflow.make_graph(tmp_path / "int8.pb").as_graph_def().node
    }
    near(kilter.load(tmp_path / "int8.onnx")(IMAGES), expected)


def test_files(network, tmp_path):
    """A path needs no TensorFlow, and can become a GraphDef all the same."""
    model, labels = network
    graph_def, *_ = frozen(model)
    model.export(tmp_path / "saved", verbose=False)
    expected = model(IMAGES).numpy()
    for path in (write_graph(graph_def, tmp_path / "graph.pb"), tmp_path / "saved"):
        result = kilter.tune(path, metric="topk", data=batches(labels), max_loss="5%", progress=False)
        assert result.met
        assert isinstance(result.model, kilter.QuantizedModel)
        near(result.model(IMAGES), expected)
        result.save(tmp_path / "int8.onnx")
        result.export(tmp_path / "int8.pb")
        graph = kilter.tensorflow.make_graph(tmp_path / "int8.pb")
        inputs, outputs = kilter.tensorflow.graph_ends(graph.as_graph_def())
        with tf.compat.v1.Session(graph=graph) as session:
            near(session.run(f"{outputs[0]}:0", {f"{inputs[0]}:0": IMAGES}), expected)


def test_saved_model_object(network, tmp_path):
    model, _ = network
    model.export(tmp_path / "saved", verbose=False)
    saved = tf.saved_model.load(str(tmp_path / "saved"))
    function = saved.signatures["serving_default"]
    small = kilter.quantize(saved, [IMAGES[:32]])
    (name,) = function.structured_input_signature[1]
    found = small(**{name: tf.constant(IMAGES)})
    assert set(found) == set(function.structured_outputs)
    near(found["output_0"], model(IMAGES))


def test_the_older_interfaces(network, tmp_path):
    model, labels = network
    graph_def, given, wanted = frozen(model)
    path = write_graph(graph_def, tmp_path / "graph.pb")
    config = {
        "model": {"name": "m", "framework": "tensorflow", "inputs": given, "outputs": wanted},
        "tuning": {"accuracy_criterion": {"relative": 0.05}, "workspace": {"path": str(tmp_path / "study")}},
    }
    for given_model in (path, graph_def, model, common.Model(model)):
        quantizer = Quantization(config)
        quantizer.model = given_model
        quantizer.calib_dataloader = common.DataLoader(list(zip(IMAGES, labels, strict=True)), batch_size=32)
        quantizer.eval_dataloader = common.DataLoader(list(zip(IMAGES, labels, strict=True)), batch_size=32)
        quantizer.metric = "topk"
        best = quantizer()
        assert best.met
        best.save(tmp_path / "out")
    assert (tmp_path / "out" / "best_model.pb").exists() and (tmp_path / "out" / "best_model.onnx").exists()


def test_what_cannot_be_written_says_so(network, tmp_path):
    model, labels = network
    tuned = kilter.tune(
        model,
        batches(labels),
        metric="topk",
        data=batches(labels),
        workspace=tmp_path,
        max_trials=1,
        progress=False,
    )
    again = kilter.recover(tmp_path, model=model)
    near(again(IMAGES), tuned.model(IMAGES), 1e-3)
    with pytest.raises(kilter.InputValueError, match="samples to learn ranges from"):
        again.export(tmp_path / "int8.pb")
    again.export(tmp_path / "int8.pb", samples=[{again.frozen.inputs[0]: IMAGES}])


def test_bert_graph(tmp_path):
    network = networks.bert(layers=1, hidden=32, heads=2, length=16, vocabulary=50, batch=2)
    samples = [{name.removesuffix(":0"): value for name, value in network.feeds.items()}]
    graph = kilter.tensorflow.SavedGraph(network.graph_def, list(network.feeds), network.outputs)
    small = kilter.quantize(graph, samples)
    expected = run_tensorflow(network.graph_def, network.feeds, network.outputs)
    with tf.compat.v1.Session(graph=small) as session:
        for found, one in zip(session.run(network.outputs, network.feeds), expected, strict=True):
            near(found, one, 0.2)
