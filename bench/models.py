#!/usr/bin/env python3
"""Generates the benchmark models as ONNX files: the graphs that PyTorch exports, with seeded random weights.

Nothing is downloaded. Each weight is drawn from a generator seeded by its own name, so a file is the same on
every machine, and the scales are chosen so that activations stay near unit size through all layers.

    python bench/models.py resnet50 -o build/models/resnet50.onnx
"""

import argparse
import os
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 13
IR_VERSION = 8
CACHE = Path(__file__).resolve().parent.parent / "build" / "models"


class GraphBuilder:
    """Collects nodes and initializers. Every method that adds a node returns the name of its output."""

    def __init__(self, name, batch):
        self.name = name
        self.batch = "batch" if batch is None else batch
        self.nodes = []
        self.initializers = []
        self.inputs = []
        self.outputs = []

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, [self.batch, *shape]))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.batch, *shape]))

    def op(self, op_type, *inputs, name=None, **attributes):
        label = f"{op_type}_{len(self.nodes)}"
        output = name or f"/{label}_output_0"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], name=label, **attributes))
        return output

    def constant(self, value, dtype):
        """A Constant node, which is how PyTorch writes scalars and shapes."""
        return self.op("Constant", value=raw_tensor("", np.asarray(value, dtype)))

    def weight(self, name, array):
        self.initializers.append(raw_tensor(name, np.ascontiguousarray(array)))
        return name

    def normal(self, name, shape, std, mean=0.0):
        return self.weight(name, normal(f"{self.name}/{name}", shape, std, mean))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        return helper.make_model(
            graph,
            producer_name="kilter-bench",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )


def raw_tensor(name, array):
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor(name, dtype, array.shape, array.tobytes(), raw=True)


def seeded(key):
    return np.random.default_rng(zlib.crc32(key.encode()))


def normal(key, shape, std, mean=0.0):
    array = seeded(key).standard_normal(shape, dtype=np.float32)
    array *= np.float32(std)
    array += np.float32(mean)
    return array


def conv_batch_norm(graph, name, src, moment, channels, kernel, stride=1, groups=1, gain=1.0):
    """Conv without bias, then BatchNormalization. `src` is (tensor, channels).

    `moment` is the mean square of the input; the running variance follows from it, so the result has a mean
    square near gain^2, which is returned with the tensor.
    """
    tensor, src_channels = src
    fan_in = src_channels // groups * kernel * kernel
    weights = normal(
        f"{graph.name}/{name}.weight",
        (channels, src_channels // groups, kernel, kernel),
        np.sqrt(2.0 / fan_in),
    )
    if groups == 1:
        # Inputs behind a Relu have a positive mean. Filters that sum to zero cancel it; without this, deep
        # random networks forget their input and all images give the same logits.
        weights -= weights.mean(axis=(1, 2, 3), keepdims=True)
    conv = graph.op(
        "Conv",
        tensor,
        graph.weight(f"{name}.weight", weights),
        dilations=[1, 1],
        group=groups,
        kernel_shape=[kernel, kernel],
        pads=[kernel // 2] * 4,
        strides=[stride, stride],
    )

    random = seeded(f"{graph.name}/{name}.bn")
    variance = 2.0 * moment
    parameters = {
        "weight": gain * random.uniform(0.7, 1.3, channels),
        "bias": gain * random.normal(0.0, 0.2, channels),
        "running_mean": np.sqrt(variance) * random.normal(0.0, 0.1, channels),
        "running_var": variance * random.uniform(0.7, 1.3, channels),
    }
    tensors = [
        graph.weight(f"{name}.bn.{key}", array.astype(np.float32)) for key, array in parameters.items()
    ]
    normalized = graph.op("BatchNormalization", conv, *tensors, epsilon=1e-5, momentum=0.9)
    return (normalized, channels), gain * gain * 1.07


def classifier_head(graph, name, src, classes=1000):
    tensor, channels = src
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", tensor), axis=1)
    # Pooling averages most of the variance away; the larger weights bring the logits back to a useful spread.
    weight = graph.normal(f"{name}.weight", (classes, channels), 3.0 / np.sqrt(channels))
    bias = graph.normal(f"{name}.bias", (classes,), 0.05)
    graph.op("Gemm", pooled, weight, bias, name="output", alpha=1.0, beta=1.0, transB=1)
    graph.output("output", [classes])


def resnet50(batch=None):
    """ResNet-50 v1.5: the stride sits on the 3x3 convolution, as in torchvision."""
    graph = GraphBuilder("resnet50", batch)

    def relu(src):
        return graph.op("Relu", src[0]), src[1]

    image = graph.input("input", [3, 224, 224]), 3
    x, moment = conv_batch_norm(graph, "conv1", image, 1.0, 64, 7, stride=2)
    x = graph.op("MaxPool", relu(x)[0], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64

    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], start=1):
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y, m = conv_batch_norm(graph, f"{name}.conv1", x, moment, width, 1)
            y, m = conv_batch_norm(graph, f"{name}.conv2", relu(y), m / 2, width, 3, stride=stride)
            y, m = conv_batch_norm(graph, f"{name}.conv3", relu(y), m / 2, 4 * width, 1, gain=0.7)
            if block == 0:
                x, moment = conv_batch_norm(graph, f"{name}.downsample", x, moment, 4 * width, 1, stride)
            x = relu((graph.op("Add", y[0], x[0]), 4 * width))
            moment = (moment + m) * 0.6

    classifier_head(graph, "fc", x)
    return graph.model()


def mobilenetv2(batch=None):
    """MobileNetV2, width 1.0, with Relu6 exported as Clip."""
    graph = GraphBuilder("mobilenetv2", batch)

    def relu6(src):
        low, high = graph.constant(0.0, np.float32), graph.constant(6.0, np.float32)
        return graph.op("Clip", src[0], low, high), src[1]

    image = graph.input("input", [3, 224, 224]), 3
    x, moment = conv_batch_norm(graph, "features.0", image, 1.0, 32, 3, stride=2)
    x, moment = relu6(x), moment / 2

    index = 1
    stages = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]
    for expansion, channels, repeats, first_stride in stages:
        for repeat in range(repeats):
            name = f"features.{index}"
            stride = first_stride if repeat == 0 else 1
            hidden = x[1] * expansion
            y, m = x, moment
            if expansion != 1:
                y, m = conv_batch_norm(graph, f"{name}.expand", y, m, hidden, 1)
                y, m = relu6(y), m / 2
            y, m = conv_batch_norm(graph, f"{name}.depthwise", y, m, hidden, 3, stride=stride, groups=hidden)
            y, m = conv_batch_norm(graph, f"{name}.project", relu6(y), m / 2, channels, 1)
            if stride == 1 and x[1] == channels:
                y, m = (graph.op("Add", x[0], y[0]), channels), moment + m
            x, moment = y, m
            index += 1

    x, moment = conv_batch_norm(graph, f"features.{index}", x, moment, 1280, 1)
    classifier_head(graph, "classifier", relu6(x))
    return graph.model()


def layer_norm(graph, name, src, width):
    """LayerNormalization as PyTorch wrote it before opset 17."""
    centered = graph.op("Sub", src, graph.op("ReduceMean", src, axes=[-1], keepdims=1))
    squared = graph.op("Pow", centered, graph.constant(2.0, np.float32))
    variance = graph.op("ReduceMean", squared, axes=[-1], keepdims=1)
    deviation = graph.op("Sqrt", graph.op("Add", variance, graph.constant(1e-12, np.float32)))
    scaled = graph.op(
        "Mul", graph.op("Div", centered, deviation), graph.normal(f"{name}.weight", (width,), 0.1, mean=1.0)
    )
    return graph.op("Add", scaled, graph.normal(f"{name}.bias", (width,), 0.1))


def linear(graph, name, src, inputs, outputs, gain=1.0):
    weights = normal(f"{graph.name}/{name}.weight", (inputs, outputs), gain / np.sqrt(inputs))
    weights -= weights.mean(axis=0)  # cancels the mean that Gelu leaves, as in conv_batch_norm
    product = graph.op("MatMul", src, graph.weight(f"{name}.weight", weights))
    return graph.op("Add", graph.normal(f"{name}.bias", (outputs,), 0.05), product)


def gelu(graph, src):
    erf = graph.op("Erf", graph.op("Div", src, graph.constant(np.sqrt(2.0), np.float32)))
    gated = graph.op("Mul", src, graph.op("Add", erf, graph.constant(1.0, np.float32)))
    return graph.op("Mul", gated, graph.constant(0.5, np.float32))


def reshape_keeping_batch_and_sequence(graph, src, tail):
    """Reshape to [batch, sequence, *tail] with the shape computed in the graph, as tensor.view() exports."""
    sizes = []
    for axis in (0, 1):
        size = graph.op("Gather", graph.op("Shape", src), graph.constant(axis, np.int64), axis=0)
        sizes.append(graph.op("Unsqueeze", size, graph.constant([0], np.int64)))
    shape = graph.op("Concat", *sizes, *[graph.constant([size], np.int64) for size in tail], axis=0)
    return graph.op("Reshape", src, shape)


def bert_base(
    batch=None,
    layers=12,
    hidden=768,
    heads=12,
    vocabulary=30522,
    positions=512,
    labels=2,
    title="bert-base",
):
    """BERT base with pooler and classifier. Any sequence up to `positions` runs."""
    graph = GraphBuilder(title, batch)
    ids, mask, types = (
        graph.input(name, ["sequence"], TensorProto.INT64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )

    mask = graph.op(
        "Unsqueeze", graph.op("Unsqueeze", mask, graph.constant([1], np.int64)), graph.constant([2], np.int64)
    )
    mask = graph.op("Sub", graph.constant(1.0, np.float32), graph.op("Cast", mask, to=TensorProto.FLOAT))
    mask = graph.op("Mul", mask, graph.constant(np.finfo(np.float32).min, np.float32))

    length = graph.op("Gather", graph.op("Shape", ids), graph.constant(1, np.int64), axis=0)
    all_positions = graph.weight("embeddings.position_ids", np.arange(positions, dtype=np.int64)[None])
    position_ids = graph.op(
        "Slice",
        all_positions,
        graph.constant([0], np.int64),
        graph.op("Unsqueeze", length, graph.constant([0], np.int64)),
        graph.constant([1], np.int64),
        graph.constant([1], np.int64),
    )

    def embedding(name, rows, indices):
        return graph.op("Gather", graph.normal(f"embeddings.{name}.weight", (rows, hidden), 0.05), indices)

    words = embedding("word_embeddings", vocabulary, ids)
    x = graph.op("Add", words, embedding("token_type_embeddings", 2, types))
    x = graph.op("Add", x, embedding("position_embeddings", positions, position_ids))
    x = layer_norm(graph, "embeddings.LayerNorm", x, hidden)

    head_size = hidden // heads
    for layer in range(layers):
        name = f"encoder.layer.{layer}"

        # Sharp attention and branches weaker than the residual keep the tokens apart; with equal gains all
        # tokens converge to one vector after a few layers and Softmax becomes uniform.
        def split_heads(part, perm, gain):
            projected = linear(graph, f"{name}.attention.self.{part}", x, hidden, hidden, gain)
            split = reshape_keeping_batch_and_sequence(graph, projected, [heads, head_size])
            return graph.op("Transpose", split, perm=perm)

        query = split_heads("query", [0, 2, 1, 3], gain=1.5)
        key = split_heads("key", [0, 2, 3, 1], gain=1.5)
        value = split_heads("value", [0, 2, 1, 3], gain=1.0)
        scores = graph.op("MatMul", query, key)
        scores = graph.op("Div", scores, graph.constant(np.sqrt(head_size), np.float32))
        weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
        context = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        context = reshape_keeping_batch_and_sequence(graph, context, [hidden])
        attention = linear(graph, f"{name}.attention.output.dense", context, hidden, hidden, gain=0.5)
        x = layer_norm(graph, f"{name}.attention.output.LayerNorm", graph.op("Add", attention, x), hidden)

        inner = gelu(graph, linear(graph, f"{name}.intermediate.dense", x, hidden, 4 * hidden))
        inner = linear(graph, f"{name}.output.dense", inner, 4 * hidden, hidden, gain=0.7)
        x = layer_norm(graph, f"{name}.output.LayerNorm", graph.op("Add", inner, x), hidden)

    graph.nodes[-1].output[0] = x = "last_hidden_state"
    graph.output("last_hidden_state", ["sequence", hidden])

    first_token = graph.op("Gather", x, graph.constant(0, np.int64), axis=1)
    pooled = graph.op(
        "Gemm",
        first_token,
        graph.normal("pooler.weight", (hidden, hidden), 0.04),
        graph.normal("pooler.bias", (hidden,), 0.05),
        transB=1,
    )
    graph.op(
        "Gemm",
        graph.op("Tanh", pooled),
        graph.normal("classifier.weight", (labels, hidden), 0.1),
        graph.normal("classifier.bias", (labels,), 0.05),
        name="logits",
        transB=1,
    )
    graph.output("logits", [labels])
    return graph.model()


def bert_large(batch=None):
    return bert_base(batch, layers=24, hidden=1024, heads=16, title="bert-large")


def big(batch=None, layers=16, width=4096):
    """A chain of MatMuls with 1 GiB of weights, for load time and memory. Stays below protobuf's 2 GiB."""
    graph = GraphBuilder("big", batch)
    x = graph.input("input", [width])
    for layer in range(layers):
        x = graph.op("MatMul", x, graph.normal(f"layer{layer}.weight", (width, width), np.sqrt(2.0 / width)))
        if layer + 1 < layers:
            x = graph.op("Relu", x)
    graph.nodes[-1].output[0] = "output"
    graph.output("output", [width])
    return graph.model()


MODELS = {
    "resnet50": resnet50,
    "mobilenetv2": mobilenetv2,
    "bert-base": bert_base,
    "bert-large": bert_large,
    "big": big,
}


def generate(name, batch=None) -> onnx.ModelProto:
    """The model `name`; its first dimension is the symbol 'batch' unless `batch` fixes it."""
    return MODELS[name](batch)


def save(name, path, batch=None):
    """Writes the model whole or not at all, so that an interrupted run leaves no broken file in the cache."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    onnx.save(generate(name, batch), partial)
    os.replace(partial, path)


def cached(name) -> Path:
    """The path of the model under build/models, generated on first use."""
    path = CACHE / f"{name}.onnx"
    if not path.exists():
        save(name, path)
    return path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(MODELS))
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    parser.add_argument("--batch", type=int, metavar="N", help="fix the batch size (default: symbolic)")
    arguments = parser.parse_args()
    save(arguments.name, arguments.output, arguments.batch)


if __name__ == "__main__":
    main()
