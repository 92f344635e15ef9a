"""Embedding tables: integers in the file, rows made real when they are looked up."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import kilter

ROWS, WIDTH = 200, 24


def model(*, shared=False, rows=ROWS):
    """Rows of a table, looked up, added to those of a second look-up when `shared`, and multiplied."""
    rng = np.random.default_rng(3)
    # Columns of very different size, as in trained embeddings.
    table = rng.normal(size=(rows, WIDTH)).astype(np.float32) * np.geomspace(0.1, 3, WIDTH, dtype=np.float32)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["first"], "look_up")]
    found = "first"
    if shared:
        nodes += [
            helper.make_node("Gather", ["table", "more"], ["second"], "look_up_again"),
            helper.make_node("Add", ["first", "second"], ["sum"], "sum"),
        ]
        found = "sum"
    nodes.append(helper.make_node("MatMul", [found, "weights"], ["y"], "product"))
    names = ["ids", "more"] if shared else ["ids"]
    graph = helper.make_graph(
        nodes,
        "embeddings",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "t", 5])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(rng.normal(size=(WIDTH, 5)).astype(np.float32), "weights"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(4)
    return [rng.integers(0, ROWS, (2, 7)) for _ in range(10)]


def signal_to_noise(expected, found):
    return 10 * np.log10(np.mean(expected**2) / np.mean((expected - found) ** 2))


def test_a_table_becomes_integers(samples, tmp_path):
    source = model()
    small = kilter.quantize(source, samples)
    report = {entry.name: entry for entry in small.report.operators}
    assert report["look_up"].op == "Embedding" and report["look_up"].precision == "int8"
    assert small.report.bytes_after < 0.35 * small.report.bytes_before
    ids = samples[0]
    assert signal_to_noise(kilter.load(source)(ids), small(ids)) > 30

    small.save(tmp_path / "small.onnx")
    saved = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(saved, full_check=True)
    gather = next(node for node in saved.graph.node if node.op_type == "Gather")
    table = next(tensor for tensor in saved.graph.initializer if tensor.name == gather.input[0])
    assert table.data_type == TensorProto.INT8
    after = next(node for node in saved.graph.node if gather.output[0] in node.input)
    assert after.op_type == "DequantizeLinear"
    session = onnxruntime.InferenceSession(tmp_path / "small.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"ids": ids})[0], small(ids), atol=0.02, rtol=0)


def test_every_row_is_what_its_integers_say(samples):
    """The integers are the nearest ones, column by column."""
    table = numpy_helper.to_array(model().graph.initializer[0])
    scales = np.abs(table).max(axis=0) / np.float32(127)
    # Without the product, to see the rows themselves.
    alone = model()
    del alone.graph.node[1]
    alone.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("first", TensorProto.FLOAT, ["n", "t", WIDTH])
    )
    del alone.graph.initializer[1]
    small = kilter.quantize(alone, samples)
    ids = np.arange(ROWS)[None]
    np.testing.assert_allclose(small(ids)[0], np.round(table / scales) * scales, rtol=1e-5, atol=1e-6)


def test_two_readers_share_one_table(samples, tmp_path):
    pairs = [{"ids": ids, "more": ids[:, ::-1].copy()} for ids in samples]
    small = kilter.quantize(model(shared=True), pairs)
    small.save(tmp_path / "small.onnx")
    sizes = [np.prod(tensor.dims) for tensor in onnx.load(tmp_path / "small.onnx").graph.initializer]
    assert sizes.count(ROWS * WIDTH) == 1


def test_tables_can_be_left_alone(samples):
    for options in ({"exclude": "look_up"}, {"exclude": "type:Embedding"}):
        small = kilter.quantize(model(), samples, **options)
        assert {entry.precision for entry in small.report.operators if entry.op == "Embedding"} == {"f32"}
    whole = kilter.quantize(model(), samples, weights="per-tensor")
    each = kilter.quantize(model(), samples)
    expected = kilter.load(model())(samples[0])
    assert signal_to_noise(expected, each(samples[0])) > signal_to_noise(expected, whole(samples[0]))


def test_small_tables_are_left_alone():
    samples = [np.random.default_rng(5).integers(0, 8, (2, 7)) for _ in range(3)]
    (entry,) = (e for e in kilter.quantize(model(rows=8), samples).report.operators if e.op == "Embedding")
    assert entry.precision == "f32" and entry.reason == "its table is small"


def test_strategies_may_leave_a_table_in_floating_point(samples):
    expected = kilter.load(model())

    def evaluate(trial):
        errors = [np.abs(expected(ids) - trial(ids)).mean() / np.abs(expected(ids)).mean() for ids in samples]
        return 1 - float(np.mean(errors))

    @kilter.register_strategy("spares_tables")
    class SparesTables:
        def run(self, search):
            (table,) = (entry for entry in search.space.operators if entry.role == "table")
            first = search.space.first()
            search.evaluate(first, "all on integers")
            search.evaluate(search.space.with_float(first, table.name), "but the table")

    result = kilter.tune(model(), samples, evaluate=evaluate, max_loss="abs:0", strategy="spares_tables")
    both, spared = result.trials
    assert spared.accuracy > both.accuracy
    assert spared.bytes > 3 * both.bytes
