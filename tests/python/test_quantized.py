"""QDQ models made by others run on integers and agree with the runtime they were made for."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import kilter

quantization = pytest.importorskip("onnxruntime.quantization")


def convolution(random, nodes, weights, x, name, channels_in, channels, kernel, group=1, stride=1):
    fan_in = channels_in // group * kernel * kernel
    filters = random.standard_normal((channels, channels_in // group, kernel, kernel)) / np.sqrt(fan_in / 2)
    weights.append(numpy_helper.from_array(filters.astype(np.float32), f"{name}.weight"))
    bias = 0.1 * random.standard_normal(channels)
    weights.append(numpy_helper.from_array(bias.astype(np.float32), f"{name}.bias"))
    nodes.append(
        helper.make_node(
            "Conv",
            [x, f"{name}.weight", f"{name}.bias"],
            [name],
            name=name,
            group=group,
            kernel_shape=[kernel] * 2,
            pads=[kernel // 2] * 4,
            strides=[stride] * 2,
        )
    )
    return name


def small_network(path):
    """Plain, depthwise and strided convolutions, a residual, a concatenation, pools and a classifier."""
    random = np.random.default_rng(3)
    nodes, weights = [], []

    def op(kind, inputs, name, **attributes):
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(*arguments, **options):
        return convolution(random, nodes, weights, *arguments, **options)

    x = op("Relu", [conv("image", "stem", 3, 16, 3, stride=2)], "stem_relu")
    pooled = op("MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    depthwise = op("Relu", [conv(pooled, "depthwise", 16, 16, 3, group=16)], "depthwise_relu")
    summed = op("Add", [conv(depthwise, "point", 16, 16, 1), pooled], "sum")
    joined = op("Concat", [op("Relu", [summed], "sum_relu"), depthwise], "join", axis=1)
    last = op("Relu", [conv(joined, "last", 32, 32, 3)], "last_relu")
    flat = op("Flatten", [op("GlobalAveragePool", [last], "mean")], "flat")
    weights.append(numpy_helper.from_array(random.standard_normal((10, 32)).astype(np.float32), "fc.weight"))
    weights.append(numpy_helper.from_array(np.zeros(10, np.float32), "fc.bias"))
    op("Gemm", [flat, "fc.weight", "fc.bias"], "logits", transB=1)
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 32])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Images(quantization.CalibrationDataReader):
    def __init__(self, images):
        self.images = iter(images)

    def get_next(self):
        image = next(self.images, None)
        return None if image is None else {"image": image[None]}


@pytest.mark.parametrize(
    ("per_channel", "activation_type", "weight_type"),
    [
        (True, "QUInt8", "QInt8"),
        (False, "QUInt8", "QInt8"),
        (True, "QInt8", "QInt8"),
        (False, "QUInt8", "QUInt8"),
    ],
)
def test_models_quantized_by_onnx_runtime(tmp_path, per_channel, activation_type, weight_type):
    images = np.random.default_rng(5).standard_normal((64, 3, 32, 32), dtype=np.float32)
    small_network(tmp_path / "float.onnx")
    quantization.quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "int8.onnx",
        Images(images[:16]),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=per_channel,
        activation_type=getattr(quantization.QuantType, activation_type),
        weight_type=getattr(quantization.QuantType, weight_type),
    )
    model = kilter.load(tmp_path / "int8.onnx")
    found = model.run({"image": images})["logits"]
    session = onnxruntime.InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"image": images})[0]
    spread = wanted.max() - wanted.min()
    assert np.abs(found - wanted).max() < 0.05 * spread
    assert np.mean(found.argmax(1) == wanted.argmax(1)) >= 0.98

    steps = model.profile(shapes={"image": [1, 3, 32, 32]})
    # Weights with a zero point of their own are no operand of the integer kernels: those operators stay in float.
    convolutions = "QConv" if weight_type == "QInt8" else "Conv"
    assert [step["op"] for step in steps].count(convolutions) == 4
    assert not [step for step in steps if step["kernel"].startswith("ref")]
