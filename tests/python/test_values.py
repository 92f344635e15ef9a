"""Values that are no plain arrays: sequences, optionals, types below a byte, dimensions without a name."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import kilter
from conftest import make_model


def model_of(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    return kilter.load(made.SerializeToString())


def sequence_of_floats(name):
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(tensor))


def test_a_sequence_is_a_list_of_arrays():
    model = model_of(
        [helper.make_node("SequenceInsert", ["items", "x"], ["longer"])],
        [sequence_of_floats("items"), helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [sequence_of_floats("longer")],
    )
    assert model.inputs[0].dtype == "sequence"
    items = [np.zeros((1, 3), np.float32), np.float32(7)]
    longer = model(items, np.ones(2, np.float32))
    assert [item.shape for item in longer] == [(1, 3), (), (2,)]
    assert longer[1] == 7
    with pytest.raises(kilter.Error, match="sequence of f64"):
        model([np.zeros(1)], np.ones(2, np.float32))
    with pytest.raises(TypeError, match="give a list of arrays"):
        model(np.zeros(3, np.float32), np.ones(2, np.float32))


def test_an_optional_input_may_be_none():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    optional = helper.make_value_info("x", helper.make_optional_type_proto(tensor))
    there = helper.make_tensor_value_info("there", TensorProto.BOOL, [])
    model = model_of([helper.make_node("OptionalHasElement", ["x"], ["there"])], [optional], [there])
    assert model(np.zeros(2, np.float32))
    assert not model(None)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        (TensorProto.INT4, ml_dtypes.int4),
        (TensorProto.UINT4, ml_dtypes.uint4),
        (TensorProto.INT2, ml_dtypes.int2),
        (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn),
    ],
)
def test_types_below_a_byte_are_arrays_of_ml_dtypes(code, dtype):
    model = kilter.load(
        make_model(
            [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
            [("x", code, [3, 5])],
            [("y", code, [5, 3])],
        ).SerializeToString()
    )
    x = np.arange(15).reshape(3, 5).astype(dtype)  # the last byte is not full
    y = model(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), x.T.astype(np.float32))


def test_dimensions_called_question_mark_are_not_the_same():
    model = kilter.load(
        make_model(
            [helper.make_node("Relu", ["x"], ["y"])],
            [("x", TensorProto.FLOAT, ["?", "?"])],
            [("y", TensorProto.FLOAT, ["?", "?"])],
        ).SerializeToString()
    )
    assert model.inputs[0].shape == (None, None)
    assert model(np.ones((2, 3), np.float32)).shape == (2, 3)


@pytest.mark.parametrize("optimize", [True, False])
def test_training_is_refused_at_run_time(optimize):
    content = make_model(
        [helper.make_node("Dropout", ["x", "", "training"], ["y"])],
        [("x", TensorProto.FLOAT, [4]), ("training", TensorProto.BOOL, [])],
        [("y", TensorProto.FLOAT, [4])],
    ).SerializeToString()
    model = kilter.load(content, optimize=optimize)
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(model(x, np.array(False)), x)
    with pytest.raises(kilter.Error, match="inference only"):
        model(x, np.array(True))
