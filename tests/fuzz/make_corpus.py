"""Writes the seed corpus of the ONNX reader's fuzzer: python make_corpus.py DIRECTORY."""

import sys
import warnings
from pathlib import Path

import onnx
import onnx.parser
from onnx import TensorProto, helper
from onnx.backend.test.case.node import collect_testcases

LARGEST = 4096  # bytes; larger inputs only slow the fuzzer down

CONTROL_FLOW = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1], producer_name: "seed">
main (bool flag, float[2] x, int64 n) => (float[2] y, float[2] z)
<float[2] w = {1.0, -2.0}>
{
    a = local.Leak <slope: float = 0.25> (x)
    y = If (flag) <
        then_branch = one () => (float[2] r) { r = Add (a, w) },
        else_branch = two () => (float[2] r) { r = Mul (x, w) }
    >
    z = Loop (n, flag, x) <
        body = step (int64 i, bool go, float[2] s) => (bool go_out, float[2] s_out) {
            go_out = Identity (go)
            s_out = Add (s, w)
        }
    >
}
<domain: "local", opset_import: ["" : 21]>
Leak <slope: float = 0.5> (v) => (u) { u = LeakyRelu <alpha: float = @slope> (v) }
"""


def old_forms() -> list[onnx.ModelProto]:
    """Operators whose attributes became inputs, in the opsets that had them as attributes."""
    specs = [
        (6, helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=1)),
        (
            6,
            helper.make_node("BatchNormalization", ["x", "w", "w", "w", "w"], ["y"], is_test=1),
        ),
        (7, helper.make_node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 2.0])),
        (9, helper.make_node("Softmax", ["x"], ["y"], axis=1)),
        (9, helper.make_node("Slice", ["x"], ["y"], starts=[0], ends=[1], axes=[1])),
        (9, helper.make_node("TopK", ["x"], ["y", "i"], k=1)),
        (10, helper.make_node("Pad", ["x"], ["y"], pads=[0] * 8, value=1.0)),
        (10, helper.make_node("Clip", ["x"], ["y"], min=0.0, max=6.0)),
        (11, helper.make_node("Squeeze", ["x"], ["y"], axes=[0])),
        (11, helper.make_node("Split", ["x"], ["y", "z"], axis=1, split=[1, 1])),
        (13, helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3])),
        (
            18,
            helper.make_node("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=2),
        ),
    ]
    models = []
    for opset, node in specs:
        graph = helper.make_graph(
            [node],
            "old",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "h", 4])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output],
            [helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])],
        )
        models.append(helper.make_model(graph, ir_version=4, opset_imports=[helper.make_opsetid("", opset)]))
    return models


def element_types() -> list[onnx.ModelProto]:
    """One initializer of every element type, in typed fields and as raw bytes."""
    models = []
    for name, data_type in TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        for raw in (False, True):
            try:
                values = b"\0" * 32 if raw else [1, 0]
                dims = [2]
                if raw:
                    size = helper.tensor_dtype_to_np_dtype(data_type).itemsize
                    values = b"\0" * (2 * size)
                tensor = helper.make_tensor("w", data_type, dims, values, raw=raw)
            except (ValueError, TypeError, KeyError):
                continue
            graph = helper.make_graph(
                [helper.make_node("Identity", ["w"], ["y"])],
                name,
                [],
                [helper.make_tensor_value_info("y", data_type, dims)],
                [tensor],
            )
            models.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    return models


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    models = [onnx.parser.parse_model(CONTROL_FLOW), *old_forms(), *element_types()]
    models += [case.model for case in collect_testcases(None) if case.model is not None]
    written = 0
    for index, model in enumerate(models):
        text = model.SerializeToString()
        if len(text) <= LARGEST:
            (directory / f"{index:04}.onnx").write_bytes(text)
            written += 1
    print(f"{written} seeds in {directory}")


if __name__ == "__main__":
    main()
