"""INT8 GraphDefs: stock TensorFlow loads and runs what kilter writes, and the numbers stay near those of FP32."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kilter
import networks
from conftest import run_tensorflow, tf, write_graph
from kilter.graph_converter import GraphConverter

INFER = Path(__file__).with_name("infer.py")
CLASSIFIERS = {
    "resnet50": {"size": 96},
    "resnet50v1_5": {"size": 96},
    "mobilenet_v1": {"size": 96},
    "inception_v3": {"size": 139},
}
DETECTORS = {
    "ssd_mobilenet": {},
    "faster_rcnn": {"size": 224, "width": 32, "proposals": 20},
}


def command(feeds, outputs, tmp_path, batches=1):
    path = tmp_path / "feeds.npz"
    np.savez(path, **feeds)
    return f"{sys.executable} {INFER} --input_graph={{}} --feeds={path} --outputs={','.join(outputs)} --batches={batches}"


def names(tensors):
    return [tensor.removesuffix(":0") for tensor in tensors]


def read(path):
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString(Path(path).read_bytes())
    return graph_def


def count(graph_def, op):
    return sum(node.op == op for node in graph_def.node)


def convert(graph_def, feeds, outputs, tmp_path, **options):
    """The INT8 GraphDef, the fused FP32 one and the report, calibrated on `feeds`."""
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    converter = GraphConverter(source, tmp_path / "int8.pb", names(feeds), names(outputs), **options)
    converter.gen_calib_data_cmds = command(feeds, outputs, tmp_path)
    converter.fused_fp32 = tmp_path / "fused.pb"
    report = converter.convert()
    return read(report.output_graph), read(tmp_path / "fused.pb"), report


def distance(found, expected):
    """How far from the expected values, relative to how much these differ among themselves."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    return np.sqrt(np.mean((found - expected) ** 2)) / max(np.std(expected), 1e-12)


def logits_of(graph_def, output):
    """The tensor that a softmax at the end reads: probabilities hide differences."""
    node = next(node for node in graph_def.node if node.name == output.removesuffix(":0"))
    return f"{node.input[0]}:0"


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name, tmp_path):
    network = networks.NETWORKS[name](**CLASSIFIERS[name], batch=4)
    logits = logits_of(network.graph_def, network.outputs[0])
    int8, fused, report = convert(
        network.graph_def, network.feeds, network.outputs, tmp_path, per_channel=True
    )
    wanted = [*network.outputs, logits]
    expected = run_tensorflow(network.graph_def, network.feeds, wanted)
    for found, one in zip(run_tensorflow(fused, network.feeds, wanted), expected, strict=True):
        assert distance(found, one) < 1e-3
    found = run_tensorflow(int8, network.feeds, wanted)
    assert distance(found[1], expected[1]) < 0.2
    assert count(int8, "Conv2D") == count(int8, "DepthwiseConv2dNative") == count(int8, "MatMul") == 0
    assert report.count("fp32") == 0
    # Floats become integers at the image, and again where the mean of the last map goes into the classifier.
    assert report.quantize <= 2


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v1"])
def test_agrees_with_the_engine(name, tmp_path):
    """TensorFlow on kilter's INT8 graph and kilter's own INT8, from the same samples, differ by less than a fifth of the spread of the results."""
    network = networks.NETWORKS[name](size=96, batch=4)
    logits = logits_of(network.graph_def, network.outputs[0])
    int8, *_ = convert(network.graph_def, network.feeds, [logits], tmp_path, per_channel=True)
    (found,) = run_tensorflow(int8, network.feeds, [logits])
    model = kilter.load(str(tmp_path / "fp32.pb"), outputs=[logits])
    sample = {"input": network.feeds["input:0"]}
    own = kilter.quantize(model, calibration=[sample]).run(sample)[logits.removesuffix(":0")]
    assert distance(found, own) < 0.2


@pytest.mark.parametrize("name", DETECTORS)
def test_detector(name, tmp_path):
    """What surrounds the convolutions (loops, suppression) is untouched and runs."""
    network = networks.NETWORKS[name](**DETECTORS[name])
    inner = [tensor for _, outputs in network.islands for tensor in outputs]
    outputs = [*network.outputs, *inner]
    int8, *_ = convert(network.graph_def, network.feeds, outputs, tmp_path, per_channel=True)
    expected = run_tensorflow(network.graph_def, network.feeds, outputs)
    found = run_tensorflow(int8, network.feeds, outputs)
    assert [one.shape for one in found] == [one.shape for one in expected]
    first = len(network.outputs)
    assert distance(found[first], expected[first]) < 0.2
    assert count(int8, "NonMaxSuppressionV3") == count(network.graph_def, "NonMaxSuppressionV3")
    assert count(int8, "Conv2D") == 0


def test_real_classifier(data, tmp_path):
    """A frozen Keras model with its dropout switches, on CIFAR-10."""
    graph_def = read(data / "tensorflow" / "cnn_cifar10.pb")

    def images(name):
        pixels = tf.io.decode_png((data / "cifar10" / f"{name}.png").read_bytes()).numpy()
        return pixels.reshape(-1, 32, 32, 3).astype(np.float32) / 255

    labels = np.loadtxt(data / "cifar10" / "test1000_labels.txt", dtype=int)
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    converter = GraphConverter(
        source, tmp_path / "int8.pb", ["conv2d_1_input"], ["output_node0"], per_channel=True
    )
    feeds = {"conv2d_1_input:0": images("calib500")[:200]}
    converter.gen_calib_data_cmds = command(feeds, ["output_node0:0"], tmp_path)
    int8 = read(converter.convert().output_graph)
    test = {"conv2d_1_input:0": images("test1000")}
    (quantized,) = run_tensorflow(int8, test, ["output_node0:0"])
    phase = {"dropout_1/keras_learning_phase:0": False}
    (full,) = run_tensorflow(graph_def, {**test, **phase}, ["output_node0:0"])
    accuracy = (full.argmax(1) == labels).mean(), (quantized.argmax(1) == labels).mean()
    assert accuracy[0] > 0.65
    assert accuracy[1] > accuracy[0] - 0.01


def small(relu=True):
    """Image → convolution → pool → convolution → softmax."""
    layers = networks.Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 16, 16, 3], "input")
        y = layers.conv_norm(x, 8, name="first")
        y = layers.conv_norm(
            tf.nn.max_pool2d(y, 2, 2, "SAME"), 8, relu=tf.nn.relu if relu else None, name="second"
        )
        tf.nn.softmax(tf.reduce_mean(y, [1, 2]), name="predict")
    feeds = {"input:0": layers.rng.uniform(-1, 1, (4, 16, 16, 3)).astype(np.float32)}
    return graph.as_graph_def(), feeds, ["predict:0"]


def test_linear_residuals(tmp_path):
    """Sums without Relu, as MobileNetV2 has them: signed tensors with an offset."""
    layers = networks.Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 16, 16, 3], "input")
        y = layers.conv_norm(x, 8, relu=None, name="stem")
        for block in range(3):
            wide = layers.conv_norm(y, 24, 1, relu=tf.nn.relu6, name=f"expand{block}")
            deep = tf.nn.relu6(layers.norm(layers.depthwise(wide)))
            y = y + layers.conv_norm(deep, 8, 1, relu=None, name=f"project{block}")
        tf.identity(layers.conv_norm(y, 8, 1, relu=None, name="last"), "out")
    feeds = {"input:0": layers.rng.uniform(-1, 1, (4, 16, 16, 3)).astype(np.float32)}
    int8, _, report = convert(graph.as_graph_def(), feeds, ["out:0"], tmp_path, per_channel=True)
    (expected,) = run_tensorflow(graph.as_graph_def(), feeds, ["out:0"])
    (found,) = run_tensorflow(int8, feeds, ["out:0"])
    assert distance(found, expected) < 0.1
    assert (report.quantize, count(int8, "AddV2")) == (1, 0)


def test_products(tmp_path):
    """Dense layers with the activations that TensorFlow fuses into them."""
    layers = networks.Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 40], "input")
        y = tf.nn.relu(layers.dense(x, 64))
        y = tf.tanh(layers.dense(y, 48))
        y = tf.sigmoid(layers.dense(y, 32, bias=False))
        tf.identity(layers.dense(tf.nn.relu6(layers.dense(y, 32, scale=4.0)), 10), "out")
    feeds = {"input:0": layers.rng.uniform(-1, 1, (64, 40)).astype(np.float32)}
    int8, _, report = convert(graph.as_graph_def(), feeds, ["out:0"], tmp_path, per_channel=True)
    (expected,) = run_tensorflow(graph.as_graph_def(), feeds, ["out:0"])
    (found,) = run_tensorflow(int8, feeds, ["out:0"])
    assert distance(found, expected) < 0.1
    assert (count(int8, "_QuantizedMatMul"), report.quantize, report.dequantize) == (5, 1, 0)


def test_samples(tmp_path):
    """Ranges that kilter measures itself give the graph that the command gives."""
    graph_def, feeds, outputs = small()
    int8, _, _ = convert(graph_def, feeds, outputs, tmp_path)
    native = GraphConverter(tmp_path / "fp32.pb", tmp_path / "native.pb", ["input"], ["predict"])
    native.samples = [{"input": feeds["input:0"]}]
    report = native.convert()
    assert report.batches == 1
    expected = run_tensorflow(int8, feeds, outputs)[0]
    found = run_tensorflow(read(report.output_graph), feeds, outputs)[0]
    assert np.abs(found - expected).max() < 1e-3


def test_text(tmp_path):
    graph_def, feeds, _ = small()
    (tmp_path / "fp32.pbtxt").write_text(str(graph_def))
    converter = GraphConverter(tmp_path / "fp32.pbtxt", tmp_path / "int8.pb", ["input"], ["predict"])
    converter.samples = [feeds["input:0"]]
    assert converter.convert().count("int8") == 3


def test_exclusions_and_debug(tmp_path):
    graph_def, feeds, outputs = small()
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    converter = GraphConverter(source, tmp_path / "int8.pb", "input", "predict")
    converter.gen_calib_data_cmds = command(feeds, outputs, tmp_path)
    converter.debug = True
    converter.covert()
    for name in ("fp32_optimized_graph.pb", "int8_logged_graph.pb", "int8_frozen_range_graph.pb"):
        assert read(tmp_path / name).node
    assert count(read(tmp_path / "int8_frozen_range_graph.pb"), "Requantize") == 1
    converter.excluded_nodes = ["second/Conv2D"]
    report = converter.convert()
    assert count(read(tmp_path / "int8.pb"), "Conv2D") == 1
    assert [one.note for one in report.operators if one.precision == "fp32"] == ["excluded"]
    converter.excluded_nodes = ["secnd/Conv2D"]
    with pytest.raises(kilter.Error, match="no node 'secnd/Conv2D'"):
        converter.convert()


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("exit 3", "failed with status 3"),
        ("echo it went well", "printed no ranges"),
        ("echo ';input__print__;__requant_min_max:[-1][1]'", "never saw"),
        ("kill -9 $$", "failed with status 137"),
    ],
)
def test_bad_commands(shell, message, tmp_path):
    graph_def, _, _ = small()
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    converter = GraphConverter(source, tmp_path / "int8.pb", ["input"], ["predict"])
    converter.gen_calib_data_cmds = f"({shell}); exit $? # {{}}"
    with pytest.raises(kilter.Error, match=message):
        converter.convert()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fp32.pb"]


def test_command_line(tmp_path):
    graph_def, feeds, outputs = small()
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    kilter_command = Path(sys.executable).with_name("kilter")
    callback = command(feeds, outputs, tmp_path, batches=3).replace("{}", "some/old.pb")
    arguments = ["--input_graph", source, "--output_graph", tmp_path / "int8.pb", "--callback", callback]
    arguments += ["--inputs", "input", "--outputs", "predict", "--excluded_ops", "", "--excluded_nodes", ""]

    def per_channel(*value):
        process = subprocess.run(
            [kilter_command, "tf", "quantize", *arguments, "--per_channel", *value],
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        assert "calibrated  2 tensors, 3 batches" in process.stdout
        constants = {node.name: node for node in read(tmp_path / "int8.pb").node}
        return constants["first/Conv2D/int8_weights_max"].attr["value"].tensor.tensor_shape.dim

    assert not per_channel("False")
    assert per_channel("yes")
    assert per_channel()
