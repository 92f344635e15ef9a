"""Whole networks: kilter's FP32 is TensorFlow's."""

import numpy as np
import pytest
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import kilter
import networks
from conftest import assert_close, check_graph, run_tensorflow, tf, write_graph

CLASSIFIERS = {
    "resnet50": {},
    "resnet50v1_5": {},
    "resnet101": {"size": 128, "width": 32},
    "mobilenet_v1": {},
    "inception_v3": {},
}
DETECTORS = {
    "ssd_mobilenet": {},
    "ssd_resnet34": {"size": 300, "width": 32},
    "faster_rcnn": {"size": 224, "width": 32, "proposals": 20},
    "rfcn": {"size": 224, "width": 32, "proposals": 20},
}


CUTS = ["features:0", "proposals:0"]


def transposes_inside(model):
    """Transposes of images that the passes could not cancel: all but that of the input."""
    lines = [line for line in model.graph_text(optimized=True).splitlines() if " = Transpose(" in line]
    return lines[1:] if lines else lines


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name, tmp_path):
    network = networks.NETWORKS[name](**CLASSIFIERS[name])
    model = check_graph(network.graph_def, network.feeds, network.outputs, tmp_path / "graph.pb")
    assert not transposes_inside(model)
    assert [port.name for port in model.outputs] == [network.outputs[0].removesuffix(":0")]


@pytest.mark.parametrize("name", DETECTORS)
def test_detector(name, tmp_path):
    network = networks.NETWORKS[name](**DETECTORS[name])
    wanted = sorted({tensor for inputs, outputs in network.islands for tensor in [*inputs, *outputs]})
    values = dict(zip(wanted, run_tensorflow(network.graph_def, network.feeds, wanted), strict=True))
    path = write_graph(network.graph_def, tmp_path / "graph.pb")
    for inputs, outputs in network.islands:
        model = kilter.load(path, inputs=inputs, outputs=outputs)
        assert "tensorflow." not in model.graph_text()
        found = model.run({tensor.removesuffix(":0"): values[tensor] for tensor in inputs})
        for tensor in outputs:
            assert_close(found[tensor.removesuffix(":0")], values[tensor])
    # From images to detections: the loops over images are Scans.
    whole = kilter.load(path, outputs=network.outputs)
    text = whole.graph_text()
    assert "tensorflow." not in text
    assert text.count(" = Scan(") == 2
    found = whole.run({"image_tensor": network.feeds["image_tensor:0"]})
    if name in ("faster_rcnn", "rfcn"):
        # Regions that end at the border of the image lie inside or outside of it by the last bit of the boxes.
        inner = dict(zip(CUTS, run_tensorflow(network.graph_def, network.feeds, CUTS), strict=True))
        behind = kilter.load(path, inputs=CUTS, outputs=network.outputs)
        found = behind.run({tensor.removesuffix(":0"): value for tensor, value in inner.items()})
    expected = run_tensorflow(network.graph_def, network.feeds, network.outputs)
    for tensor, value in zip(network.outputs, expected, strict=True):
        assert_close(found[tensor.removesuffix(":0")], value)


def loops(old):
    """A map_fn over two tensors with an outer value, as both TensorFlows write it."""

    def compute(x, y, factor):
        def one(pair):
            return pair[0] * factor + tf.reduce_sum(pair[1]), tf.argmax(pair[1])

        return tf.map_fn(one, (x, y), fn_output_signature=(tf.float32, tf.int64))

    specs = [([None, 3], "x"), ([None, 5], "y"), ([3], "factor")]
    if old:
        graph = tf.Graph()
        with graph.as_default():
            tf.compat.v1.disable_control_flow_v2()
            found = compute(*(tf.compat.v1.placeholder(tf.float32, shape, name) for shape, name in specs))
            tf.compat.v1.enable_control_flow_v2()
            outputs = [tensor.name for tensor in found]
        return graph.as_graph_def(), outputs
    function = tf.function(compute).get_concrete_function(
        *(tf.TensorSpec(shape, tf.float32, name) for shape, name in specs)
    )
    frozen = convert_variables_to_constants_v2(function)
    return frozen.graph.as_graph_def(), [tensor.name for tensor in frozen.outputs]


@pytest.mark.parametrize("old", [True, False])
def test_maps(old, tmp_path):
    graph_def, outputs = loops(old)
    rng = np.random.default_rng(1)
    shapes = {"x:0": (4, 3), "y:0": (4, 5), "factor:0": (3,)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = check_graph(graph_def, feeds, outputs, tmp_path / "graph.pb")
    assert model.graph_text().count(" = Scan(") == 1


def test_other_loops_survive(tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.disable_control_flow_v2()
        x = tf.compat.v1.placeholder(tf.float32, [3], "x")
        y = tf.while_loop(lambda y: tf.reduce_sum(y) < 100, lambda y: 2 * y, [x])
        tf.compat.v1.enable_control_flow_v2()
        tf.identity(y, "y")
    path = write_graph(graph.as_graph_def(), tmp_path / "graph.pb")
    model = kilter.load(path, outputs=["y"])
    with pytest.raises(kilter.Error, match="kilter cannot execute this operator"):
        model.run({"x": np.ones(3, np.float32)})


@pytest.mark.parametrize("gelu", ["erf", "tanh"])
@pytest.mark.parametrize("one_hot", [False, True])
def test_bert(gelu, one_hot, tmp_path):
    network = networks.bert(
        layers=2, hidden=64, heads=4, length=32, vocabulary=100, batch=3, gelu=gelu, one_hot=one_hot
    )
    model = check_graph(network.graph_def, network.feeds, network.outputs, tmp_path / "graph.pb")
    text = model.graph_text(optimized=True)
    assert text.count("Attention") == 2
    assert text.count("LayerNormalization") == 5
    assert [port.name for port in model.outputs] == ["unstack", "unstack:1"]


def test_real_classifier(data, tmp_path):
    # Dropout asks a placeholder whether this is training: a conditional of TensorFlow 1.
    graph_def = tf.compat.v1.GraphDef.FromString((data / "tensorflow" / "cnn_cifar10.pb").read_bytes())
    rng = np.random.default_rng(3)
    feeds = {
        "conv2d_1_input:0": rng.uniform(0, 1, (4, 32, 32, 3)).astype(np.float32),
        "dropout_1/keras_learning_phase:0": np.array(False),
    }
    check_graph(graph_def, feeds, ["output_node0:0"], tmp_path / "graph.pb")


def test_real_detector(data):
    path = data / "tensorflow" / "ssdlite_mobilenet_v2_coco.pb"
    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    image = np.random.default_rng(3).integers(0, 256, (1, 200, 300, 3)).astype(np.uint8)
    names = [
        "Preprocessor/sub:0",
        "concat:0",
        "concat_1:0",
        "Postprocessor/Slice:0",
        "Postprocessor/ExpandDims_1:0",
    ]
    values = run_tensorflow(graph_def, {"image_tensor:0": image}, names)
    model = kilter.load(path, inputs=names[:1], outputs=names[1:])
    found = model.run({"Preprocessor/sub": values[0]})
    for name, value in zip(names[1:], values[1:], strict=True):
        assert_close(found[name.removesuffix(":0")], value)
