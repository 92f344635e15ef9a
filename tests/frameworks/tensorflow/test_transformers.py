"""Transformers as INT8 graphs: products with their bias and GELU are one operator, whatever rank their inputs have."""

import numpy as np
import pytest
from test_int8 import count, distance

import networks
from conftest import run_tensorflow, tf
from kilter.graph_converter import QuantizableGraph

SIZES = {"layers": 2, "hidden": 64, "heads": 4, "length": 32, "vocabulary": 100, "batch": 3}


def fused_ops(graph_def):
    return [
        b" ".join(node.attr["fused_ops"].list.s).decode()
        for node in graph_def.node
        if node.op == "_QuantizedMatMul"
    ]


def quantize(graph_def, feeds, outputs):
    """The INT8 GraphDef, the optimized FP32 one and what became of the operators."""
    graph = QuantizableGraph(
        graph_def.SerializeToString(), outputs=[name.removesuffix(":0") for name in outputs]
    )
    stats = graph.observe([{name.removesuffix(":0"): value for name, value in feeds.items()}])
    written = graph.write({}, stats)
    parse = tf.compat.v1.GraphDef.FromString
    return parse(written.graph), parse(graph.fp32()), written


@pytest.mark.parametrize(("gelu", "fused"), [("erf", "GeluExact"), ("tanh", "GeluApproximate")])
def test_bert(gelu, fused):
    network = networks.bert(**SIZES, gelu=gelu)
    int8, fp32, written = quantize(network.graph_def, network.feeds, network.outputs)
    expected = run_tensorflow(network.graph_def, network.feeds, network.outputs)
    for found, one in zip(run_tensorflow(fp32, network.feeds, network.outputs), expected, strict=True):
        assert distance(found, one) < 1e-4
    for found, one in zip(run_tensorflow(int8, network.feeds, network.outputs), expected, strict=True):
        assert distance(found, one) < 0.25
    ops = fused_ops(int8)
    # Bytes go from the first product of the feed-forward part straight into the second.
    assert ops.count(f"BiasAdd {fused} Requantize") == SIZES["layers"]
    assert count(int8, "Erf") == count(int8, "Tanh") == 0
    assert count(int8, "GatherV2") == 1
    left = {entry.note for entry in written.operators if entry.precision == "fp32"}
    assert left == {"TensorFlow has no integer kernel for products of batches"}


def test_products_of_any_rank():
    """Dense layers of Keras multiply tensors of rank three with a matrix."""
    rng = np.random.default_rng(1)

    def weights(*shape):
        return tf.constant(rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0])))

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, None, 16], "x")
        hidden = tf.nn.gelu(tf.matmul(x, weights(16, 32)) + weights(32), approximate=False)
        y = tf.raw_ops.BatchMatMulV2(x=hidden, y=weights(8, 32), adj_y=True)
        y = tf.identity(tf.nn.bias_add(y, weights(8)), "y")
        z = tf.raw_ops.BatchMatMulV2(x=x, y=weights(16, 4), name="z")
    feeds = {"x:0": rng.standard_normal((2, 5, 16)).astype(np.float32)}
    outputs = [y.name, z.name]
    graph_def = graph.as_graph_def()
    int8, fp32, written = quantize(graph_def, feeds, outputs)
    expected = run_tensorflow(graph_def, feeds, outputs)
    for found, one in zip(run_tensorflow(fp32, feeds, outputs), expected, strict=True):
        assert distance(found, one) < 1e-5
    for found, one in zip(run_tensorflow(int8, feeds, outputs), expected, strict=True):
        assert found.shape == one.shape
        assert distance(found, one) < 0.05
    assert sorted(fused_ops(int8)) == [
        "BiasAdd Dequantize",
        "BiasAdd Dequantize",
        "BiasAdd GeluExact Requantize",
    ]
    assert (written.quantize, written.dequantize) == (1, 0)
