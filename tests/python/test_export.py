"""The files kilter writes run on integers in ONNX Runtime and OpenVINO: nothing is left unfused, and the results agree."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import kilter


class Builder:
    """A model, operator by operator; weights are random."""

    def __init__(self, shape):
        self.random = np.random.default_rng(7)
        self.nodes, self.weights = [], []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x, name, inputs, outputs, kernel=3, group=1):
        fan_in = inputs // group * kernel * kernel
        w = self.random.standard_normal((outputs, inputs // group, kernel, kernel)) * (2 / fan_in) ** 0.5
        b = 0.1 * self.random.standard_normal(outputs)
        args = [
            x,
            self.constant(f"{name}.w", w.astype(np.float32)),
            self.constant(f"{name}.b", b.astype(np.float32)),
        ]
        return self.op("Conv", args, name, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, group=group)

    def dense(self, x, name, inputs, outputs):
        w = self.random.standard_normal((inputs, outputs)) / inputs**0.5
        b = 0.1 * self.random.standard_normal(outputs)
        product = self.op("MatMul", [x, self.constant(f"{name}.w", w.astype(np.float32))], f"{name}.product")
        return self.op("Add", [product, self.constant(f"{name}.b", b.astype(np.float32))], name)

    def save(self, path, y, shape):
        outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return str(path)


def convolutions(path):
    """Plain and depthwise convolutions, a residual, a concatenation, pools, a classifier."""
    net = Builder([1, 3, 32, 32])
    six = net.constant("six", np.array(6, np.float32))
    zero = net.constant("zero", np.array(0, np.float32))
    y = net.op("Relu", [net.conv("x", "stem", 3, 16)], "stem.relu")
    y = net.op("MaxPool", [y], "pool", kernel_shape=[2, 2], strides=[2, 2])
    wide = net.op("Clip", [net.conv(y, "expand", 16, 32, 1), zero, six], "expand.clip")
    deep = net.op("Clip", [net.conv(wide, "depthwise", 32, 32, 3, 32), zero, six], "depthwise.clip")
    y = net.op(
        "Relu", [net.op("Add", [net.conv(deep, "project", 32, 16, 1), y], "residual")], "residual.relu"
    )
    left = net.op("Relu", [net.conv(y, "left", 16, 16, 1)], "left.relu")
    right = net.op("Relu", [net.conv(y, "right", 16, 16)], "right.relu")
    y = net.conv(net.op("Concat", [left, right], "join", axis=1), "mix", 32, 32)
    y = net.op("GlobalAveragePool", [net.op("Relu", [y], "mix.relu")], "average")
    weights = net.constant("fc.w", net.random.standard_normal((10, 32)).astype(np.float32))
    y = net.op("Gemm", [net.op("Flatten", [y], "flat"), weights], "logits", transB=1)
    return net.save(path, y, [1, 10]), (1, 3, 32, 32)


def transformer(path):
    """One block of a transformer: attention, normalization, products with GELU."""
    net = Builder([2, 16, 64])

    def norm(x, name):
        scale = net.constant(f"{name}.scale", np.ones(64, np.float32))
        return net.op("LayerNormalization", [x, scale], name, axis=-1)

    def heads(name, perm):
        shape = net.constant(f"{name}.shape", np.array([0, 0, 4, 16]))
        y = net.op("Reshape", [net.dense(start, name, 64, 64), shape], f"{name}.heads")
        return net.op("Transpose", [y], f"{name}.split", perm=perm)

    start = norm("x", "start")
    q, k, v = heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]), heads("v", [0, 2, 1, 3])
    scores = net.op("MatMul", [q, k], "scores")
    scores = net.op("Mul", [scores, net.constant("scale", np.array(0.25, np.float32))], "scaled")
    y = net.op("MatMul", [net.op("Softmax", [scores], "softmax", axis=-1), v], "context")
    y = net.op("Transpose", [y], "merge", perm=[0, 2, 1, 3])
    y = net.op("Reshape", [y, net.constant("join", np.array([0, 0, 64]))], "joined")
    y = norm(net.op("Add", [net.dense(y, "output", 64, 64), start], "add"), "middle")
    inner = net.dense(y, "up", 64, 128)
    erf = net.op("Erf", [net.op("Div", [inner, net.constant("r", np.array(2**0.5, np.float32))], "d")], "erf")
    gate = net.op("Add", [erf, net.constant("one", np.array(1, np.float32))], "gate")
    half = net.op("Mul", [inner, net.constant("half", np.array(0.5, np.float32))], "halved")
    inner = net.op("Mul", [half, gate], "gelu")
    y = norm(net.op("Add", [net.dense(inner, "down", 128, 64), y], "last"), "end")
    return net.save(path, y, [2, 16, 64]), (2, 16, 64)


@pytest.fixture(params=[convolutions, transformer], ids=["convolutions", "transformer"])
def network(request, tmp_path):
    path, shape = request.param(tmp_path / "fp32.onnx")
    random = np.random.default_rng(1)
    return path, [random.standard_normal(shape).astype(np.float32) for _ in range(8)]


@pytest.fixture(params=["kilter", "onnxruntime"])
def exported(request, network, tmp_path):
    path, samples = network
    quantized = kilter.quantize(path, samples, target=request.param)
    file = str(tmp_path / "int8.onnx")
    quantized.save(file)
    return file, samples, request.param


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def session(path, optimized=None, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, **sizes):
    options = onnxruntime.SessionOptions()
    for dimension, size in sizes.items():
        options.add_free_dimension_override_by_name(dimension, size)
    options.graph_optimization_level = level
    options.log_severity_level = 3
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def test_the_file_is_valid_and_means_what_kilter_runs(exported):
    path, samples, _ = exported
    onnx.checker.check_model(onnx.load(path), full_check=True)
    plain = session(path, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    model = kilter.load(path)
    for sample in samples[:3]:
        assert relative(model(sample), plain.run(None, {"x": sample})[0]) < 0.02


def test_onnx_runtime_fuses_every_product(exported, tmp_path):
    path, samples, target = exported
    fused = session(path, tmp_path / "optimized.onnx")
    kinds = Counter(node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node)
    assert kinds["MatMul"] == kinds["Gemm"] == 0, kinds
    # The other target keeps residual additions inside the convolution before them.
    if target == "onnxruntime":
        assert kinds["Conv"] == kinds["FusedConv"] == kinds["DequantizeLinear"] == 0, kinds
    model = kilter.load(path)
    for sample in samples[:3]:
        assert relative(fused.run(None, {"x": sample})[0], model(sample)) < 0.02


@pytest.mark.parametrize("sizes", [{}, {"batch": 2}], ids=["open", "overridden"])
def test_onnx_runtime_fuses_products_of_open_batches(tmp_path, sizes):
    path, shape = transformer(tmp_path / "fp32.onnx")
    model = onnx.load(path)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, path)
    random = np.random.default_rng(1)
    samples = [random.standard_normal(shape).astype(np.float32) for _ in range(4)]
    kilter.quantize(path, samples).save(tmp_path / "int8.onnx")
    session(str(tmp_path / "int8.onnx"), tmp_path / "optimized.onnx", **sizes)
    kinds = Counter(node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node)
    assert kinds["MatMul"] == kinds["Gemm"] == 0, kinds


def test_openvino_runs_every_product_on_integers(exported):
    openvino = pytest.importorskip("openvino")
    path, samples, _ = exported
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for op in compiled.get_runtime_model().get_ops():
        info = op.get_rt_info()
        if info["layerType"].astype(str) in ("Convolution", "FullyConnected", "MatMul"):
            assert info["runtimePrecision"].astype(str) in ("u8", "i8"), op.get_friendly_name()
    model = kilter.load(path)
    for sample in samples[:3]:
        assert relative(next(iter(compiled([sample]).values())), model(sample)) < 0.02


def test_the_file_is_about_a_quarter(tmp_path):
    net = Builder([1, 256])
    y = net.dense(net.dense("x", "a", 256, 1024), "b", 1024, 256)
    path = net.save(tmp_path / "fp32.onnx", y, [1, 256])
    kilter.quantize(path, [np.random.default_rng(0).standard_normal((1, 256)).astype(np.float32)]).save(
        str(tmp_path / "int8.onnx")
    )
    assert (tmp_path / "int8.onnx").stat().st_size < 0.28 * (tmp_path / "fp32.onnx").stat().st_size
