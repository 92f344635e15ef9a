"""Whole networks: kilter's FP32 is TensorFlow's, between the inputs and outputs that kilter can run."""

import numpy as np
import pytest

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
    # The rest survives, and says what it is when it should run.
    whole = kilter.load(path, outputs=network.outputs)
    assert [port.name for port in whole.outputs] == [tensor.removesuffix(":0") for tensor in network.outputs]
    with pytest.raises(kilter.Error, match="kilter cannot execute this operator"):
        whole.run({"image_tensor": network.feeds["image_tensor:0"]})


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
