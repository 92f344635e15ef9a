"""Writes the single-operator cases of the `onnx` package's node tests as text.

python make_cases.py OUTPUT [MAX_NUMBERS]: cases with more numbers than that in all their
tensors (default: 40) are left out, as are those with sub-graphs or types that are no tensors.
tests/ops/cases_test.cc describes and reads the format.
"""

import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.helper import get_attribute_value

# By the number ONNX gives the type; "-" where the text format has none.
NAMES = [
    "-",
    "f32",
    "u8",
    "i8",
    "u16",
    "i16",
    "i32",
    "i64",
    "-",
    "bool",
    "f16",
    "f64",
    "u32",
    "u64",
    "-",
    "-",
    "bf16",
]
NAMES += [
    "f8e4m3fn",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "u4",
    "i4",
    "f4e2m1",
    "f8e8m0",
    "u2",
    "i2",
]

# Layers have tests of their own; the others are no operators on tensors of numbers.
LEFT_OUT = "Resize Upsample Attention Conv Pool Softmax Norm MatMul Gemm Einsum LSTM GRU RNN"
LEFT_OUT += " Loss Roi Grid Dropout LRN Hardmax MaxUnpool SwiGLU Rotary Bernoulli Sequence"
LEFT_OUT += " Optional String Regex TfIdf ImageDecoder Momentum Adagrad Adam Gradient"


def tensor_text(value):
    """`type shape: numbers`, or None for what is not a tensor of numbers."""
    if value is None:
        return "-"
    if isinstance(value, onnx.TensorProto):
        code, array = value.data_type, onnx.numpy_helper.to_array(value)
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        try:
            code = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        except (KeyError, ValueError):
            return None
    else:
        return None
    if NAMES[code] == "-":
        return None
    numbers = np.asarray(array).reshape(-1)
    if numbers.dtype.kind in "iub":
        text = " ".join(str(int(number)) for number in numbers)
    else:
        text = " ".join(f"{float(number):.9g}" for number in numbers.astype(np.float64))
    return f"{NAMES[code]} {'x'.join(map(str, array.shape)) or 'scalar'}: {text}"


def attribute_text(attribute):
    value = get_attribute_value(attribute)
    kind = attribute.type
    if kind == onnx.AttributeProto.INT:
        return f"attr {attribute.name} int {value}"
    if kind == onnx.AttributeProto.INTS:
        return f"attr {attribute.name} ints {' '.join(map(str, value))}"
    if kind == onnx.AttributeProto.FLOAT:
        return f"attr {attribute.name} float {value:.9g}"
    if kind == onnx.AttributeProto.FLOATS:
        return f"attr {attribute.name} floats {' '.join(f'{number:.9g}' for number in value)}"
    if kind == onnx.AttributeProto.STRING:
        return f"attr {attribute.name} string {value.decode()}"
    if kind == onnx.AttributeProto.TENSOR:
        text = tensor_text(value)
        return text and f"attr {attribute.name} tensor {text}"
    return None


def numbers_in(values):
    arrays = [value for value in values if isinstance(value, (np.ndarray, np.generic))]
    return sum(np.asarray(array).size for array in arrays)


def case_text(case, limit):
    graph = case.model.graph
    if len(graph.node) != 1 or graph.initializer or not case.data_sets:
        return None
    node = graph.node[0]
    inputs, outputs = case.data_sets[0]
    if node.domain or any(part in node.op_type for part in LEFT_OUT.split()):
        return None
    # Forms that upgrading the opset replaces, and copies of other cases.
    old = node.op_type == "Scatter" or "opset" in case.name
    if old or case.name.endswith("_expanded"):
        return None
    if numbers_in(inputs) + numbers_in(outputs) > limit:
        return None
    by_name = dict(zip([value.name for value in graph.input], inputs, strict=False))
    lines = [f"case {case.name} {node.op_type}"]
    lines += [attribute_text(attribute) for attribute in node.attribute]
    for name in node.input:
        text = tensor_text(by_name.get(name)) if name else "-"
        lines.append(text and f"in {text}")
    by_name = dict(zip([value.name for value in graph.output], outputs, strict=False))
    for name in node.output:
        text = tensor_text(by_name[name]) if name else "-"
        lines.append(text and f"out {text}")
    return None if None in lines else "\n".join(lines)


def main():
    warnings.simplefilter("ignore")
    path = sys.argv[1]
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    texts = []
    for case in collect_testcases(None):
        if case.kind == "node" and (text := case_text(case, limit)):
            texts.append(text)
    with open(path, "w", encoding="utf-8") as file:
        # One raw string per case: compilers limit the length of a single one.
        source = f"the node tests of onnx {onnx.__version__}"
        file.write(f"// Made by make_cases.py from {source}.\n")
        for text in sorted(texts):
            file.write(f'R"({text}\n)",\n')
    print(f"{len(texts)} cases")


if __name__ == "__main__":
    main()
