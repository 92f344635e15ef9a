"""Small graphs on which a rewrite, the INT8 writer or the reader of SavedModels could go wrong without a word."""

import re
import time

import numpy as np
import pytest

import kilter
from conftest import run_tensorflow, tf, write_graph
from kilter import _kilter
from kilter.graph_converter import GraphConverter

v1 = tf.compat.v1
RNG = np.random.default_rng(0)
IMAGES = np.abs(RNG.standard_normal((2, 8, 8, 4))).astype(np.float32)
ROWS = np.abs(RNG.standard_normal((2, 4))).astype(np.float32)


def weights(*shape):
    return RNG.standard_normal(shape).astype(np.float32) * 0.3


def conv(x, values, name=None, padding="SAME"):
    return tf.nn.conv2d(x, tf.constant(values), 1, padding, name=name)


def biased(x, values, name=None):
    return tf.nn.bias_add(conv(x, values, name), tf.constant(weights(values.shape[-1])))


def graph_of(build, shape=(None, 8, 8, 4)):
    graph = tf.Graph()
    with graph.as_default():
        tf.identity(build(v1.placeholder(tf.float32, shape, name="x")), name="y")
    return graph.as_graph_def()


def read(path):
    graph_def = v1.GraphDef()
    graph_def.ParseFromString(path.read_bytes())
    return graph_def


def convert(graph_def, x, folder, *, samples=None, inputs=("x",), **options):
    source = write_graph(graph_def, folder / "fp32.pb")
    options = {"per_channel": True, "algo": "MINMAX"} | options
    converter = GraphConverter(source, folder / "int8.pb", list(inputs), ["y"], **options)
    converter.samples = samples if samples is not None else [{inputs[0]: x}]
    converter.fused_fp32 = folder / "fused.pb"
    return converter.convert()


def check(build, folder, x=IMAGES, tolerance=0.06, **options):
    """The fused FP32 graph computes what the original does, the INT8 graph nearly."""
    graph_def = graph_of(build, (None, *x.shape[1:]))
    report = convert(graph_def, x, folder, **options)
    (expected,) = run_tensorflow(graph_def, {"x:0": x}, ["y:0"])
    for file, bound in (("fused.pb", 1e-4), ("int8.pb", tolerance)):
        (found,) = run_tensorflow(read(folder / file), {"x:0": x}, ["y:0"])
        assert found.shape == expected.shape, file
        assert np.abs(found - expected).max() <= bound * np.abs(expected).max(), file
    return report


FIVE = [1.0, 2.0, 3.0, 4.0, 5.0]
GRAPHS = {
    "a factor that is the product of a number in four dimensions and a vector": lambda x: tf.add(
        conv(x, weights(3, 3, 4, 5)) * tf.multiply(tf.constant(2.0, shape=[1, 1, 1, 1]), tf.constant(FIVE)),
        tf.constant([0.5] * 5),
    ),
    "a factor along the columns of an image": lambda x: tf.add(
        conv(x, weights(3, 3, 4, 8)) * tf.raw_ops.Squeeze(input=tf.constant(weights(1, 8, 1)), axis=[0]),
        tf.constant([0.5] * 8),
    ),
    "two halves of a tensor": lambda x: (
        conv(tf.split(x, 2, axis=3)[0], weights(3, 3, 2, 4))
        + conv(tf.split(x, 2, axis=3, name="again")[1], weights(3, 3, 2, 4))
    ),
    "both outputs of one split": lambda x: tf.add_n(
        [conv(part, weights(3, 3, 2, 4)) for part in tf.split(x, 2, axis=3)]
    ),
    "a convolution in groups": lambda x: conv(
        tf.nn.relu(biased(x, weights(3, 3, 2, 4))), weights(1, 1, 4, 3)
    ),
    "a channel with hardly any weights": lambda x: tf.nn.bias_add(
        conv(x, weights(3, 3, 4, 5) * np.float32([1e-9, 1, 1, 1, 1])), tf.constant([1.0, 0, 0, 0, 0.5])
    ),
    "an input that is always zero": lambda x: tf.nn.bias_add(
        conv(tf.nn.relu(biased(x, -np.abs(weights(3, 3, 4, 4))) - 9.0), weights(1, 1, 4, 3)),
        tf.constant([1.0, 2.0, 3.0]),
    ),
    "Relu6 beside negative values": lambda x: conv(
        tf.concat(
            [
                tf.nn.relu6(biased(x, weights(3, 3, 4, 5) * 30)),
                biased(x, -np.abs(weights(3, 3, 4, 5)) * 30),
            ],
            3,
        ),
        weights(1, 1, 10, 3),
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name, tmp_path):
    check(GRAPHS[name], tmp_path)


def test_constants_of_more_dimensions_keep_their_shape(tmp_path):
    check(lambda x: x @ tf.constant(weights(4, 5)) * tf.constant(weights(1, 1, 5)), tmp_path, ROWS)


def test_an_excluded_convolution_stays_also_when_a_factor_is_folded_into_it(tmp_path):
    def build(x):
        scaled = tf.multiply(conv(x, weights(3, 3, 4, 5), "c1"), tf.constant(FIVE), name="scale")
        return conv(tf.nn.relu(scaled), weights(3, 3, 5, 5), "c2")

    report = check(build, tmp_path, excluded_nodes=["c1"])
    assert {entry.name: entry.precision for entry in report.operators} == {"c1": "fp32", "c2": "int8"}


def test_nodes_on_the_device_of_one_that_is_gone(tmp_path):
    def build(x):
        sums = biased(x, weights(3, 3, 4, 4), "c1")
        with v1.colocate_with(x.graph.get_operation_by_name("c1")):
            return tf.exp(sums * 0.1)

    check(build, tmp_path)


@pytest.mark.parametrize("place", range(3))
def test_samples_that_are_no_numbers_are_refused(place, tmp_path):
    batch = np.float32(50) * IMAGES
    batch.ravel()[[0, batch.size // 2, -1][place]] = np.nan
    with pytest.raises(kilter.Error, match="not a number"):
        convert(graph_of(lambda x: conv(x, weights(3, 3, 4, 4))), batch, tmp_path)
    assert not (tmp_path / "int8.pb").exists()


def test_weights_that_are_no_numbers_stay(tmp_path):
    values = weights(4, 3)
    values[1, 0] = np.nan
    graph_def = graph_of(
        lambda x: tf.nn.relu(x @ tf.constant(weights(4, 4))) @ tf.constant(values), (None, 4)
    )
    report = convert(graph_def, ROWS, tmp_path)
    assert [entry.note for entry in report.operators if entry.precision == "fp32"] == [
        "its weights are not all finite numbers"
    ]
    (found,) = run_tensorflow(read(tmp_path / "int8.pb"), {"x:0": ROWS}, ["y:0"])
    assert np.isnan(found[:, 0]).all() and np.isfinite(found[:, 1:]).all()


@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_without_columns_stay(per_channel, tmp_path):
    def build(x):
        return tf.concat([x @ tf.constant(weights(4, 0)), x @ tf.constant(weights(4, 3))], 1)

    check(build, tmp_path, ROWS, per_channel=per_channel)


def test_an_input_inside_of_the_graph_has_the_type_and_shape_it_would_have(tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        pixels = v1.placeholder(tf.uint8, (None, 16, 16, 3), name="pixels")
        resized = v1.image.resize_bilinear(pixels, [8, 8], name="resized")
        tf.identity(conv(resized, weights(3, 3, 3, 4)), name="y")
    small = np.abs(RNG.standard_normal((2, 8, 8, 3))).astype(np.float32)
    convert(graph.as_graph_def(), small, tmp_path, inputs=["resized"])
    (placeholder,) = (node for node in read(tmp_path / "int8.pb").node if node.name == "resized")
    assert placeholder.attr["dtype"].type == tf.float32.as_datatype_enum
    assert [dim.size for dim in placeholder.attr["shape"].shape.dim] == [-1, 8, 8, 3]


def test_transposed_convolution_with_a_kernel_smaller_than_its_stride(tmp_path):
    def build(x):
        size = tf.stack([tf.shape(x)[0], tf.shape(x)[1] * 2, tf.shape(x)[2] * 2, 3])
        return tf.nn.conv2d_transpose(x, tf.constant(weights(1, 1, 3, 4)), size, 2, "VALID")

    graph_def = graph_of(build, (None, None, None, 4))
    (expected,) = run_tensorflow(graph_def, {"x:0": IMAGES}, ["y:0"])
    found = kilter.load(write_graph(graph_def, tmp_path / "t.pb")).run({"x": IMAGES})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# SavedModels


def saved(folder, function, x):
    """What TensorFlow and the graph that kilter freezes make of x, by name of the output."""
    module = tf.Module()
    module.f = tf.function(function, input_signature=[tf.TensorSpec(x.shape, tf.float32, name="x")])
    tf.saved_model.save(module, folder, signatures=module.f)
    expected = {name: tensor.numpy() for name, tensor in module.f(tf.constant(x)).items()}
    content, inputs, outputs = _kilter.freeze_saved_model(str(folder), "")
    graph_def = v1.GraphDef.FromString(content)
    tensors = [name if ":" in name else f"{name}:0" for name in outputs]
    return expected, dict(
        zip(outputs, run_tensorflow(graph_def, {f"{inputs[0]}:0": x}, tensors), strict=True)
    )


MATRIX = np.float32([[2, 1], [1, 3]])


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: {"d": tf.linalg.slogdet(x)[1]}, MATRIX),
        (lambda x: dict(zip("ev", tf.linalg.eigh(x), strict=True)), MATRIX),
        (lambda x: {"c": tf.unique_with_counts(x)[2]}, np.float32([1, 1, 2, 1])),
        (
            lambda x: {
                "lp": tf.nn.ctc_greedy_decoder(x, [3])[1],
                "d": tf.sparse.to_dense(tf.nn.ctc_greedy_decoder(x, [3])[0][0]),
            },
            np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 1, 4),
        ),
        (lambda x: {"y": x, "z": x + 1}, np.float32([1, 2])),
    ],
    ids=["slogdet", "eigh", "unique", "ctc", "the input itself"],
)
def test_outputs_of_a_saved_model(function, x, tmp_path):
    expected, found = saved(tmp_path / "model", function, x)
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_names_that_no_node_can_have(tmp_path):
    x = np.float32([1, 2])
    _, found = saved(tmp_path / "model", lambda x: {"a b": x + 1, "dense/out": x * 2}, x)
    assert all(re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_./-]*(:\d+)?", name) for name in found)
    assert sorted(values.tolist() for values in found.values()) == [[2, 3], [2, 4]]


@pytest.mark.parametrize("form", ["echo", "colon", "two"])
def test_signatures_of_old_graphs(form, tmp_path):
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, (None, 3), name="xin")
        y = x @ v1.get_variable("w", [3, 2])
        session.run(v1.global_variables_initializer())
        inputs = {"a": x, "b": x} if form == "two" else {"data": x}
        outputs = {"y:0": y} if form == "colon" else {"echo": x, "y": y} if form == "echo" else {"y": y}
        v1.saved_model.simple_save(session, str(tmp_path / "model"), inputs, outputs)
        batch = np.float32([[1, 2, 3]])
        expected = session.run(y, {x: batch})
    model = kilter.load(tmp_path / "model")
    results = model.run({port.name: batch for port in model.inputs})
    assert len(results) == len(outputs)
    assert any(value.shape == expected.shape and np.allclose(value, expected) for value in results.values())


def test_calls_in_a_frozen_graph(tmp_path):
    kernel, matrix = weights(3, 3, 4, 4), weights(4, 3)

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 4), tf.float32)])
    def block(x):
        hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return tf.reduce_mean(hidden, [1, 2]), hidden

    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, (None, 8, 8, 4), name="x")
        mean, hidden = block.get_concrete_function()(x)
        tf.identity(mean @ matrix, name="y")
    graph_def = graph.as_graph_def()
    assert any(node.op == "PartitionedCall" for node in graph_def.node)
    (call,) = (node.name for node in graph_def.node if node.op == "PartitionedCall")
    expected = run_tensorflow(graph_def, {"x:0": IMAGES}, ["y:0", hidden.name])
    path = write_graph(graph_def, tmp_path / "calls.pb")
    np.testing.assert_allclose(
        kilter.load(path, outputs=["y"]).run({"x": IMAGES})["y"], expected[0], rtol=1e-4, atol=1e-5
    )
    (found,) = kilter.load(path, outputs=[f"{call}:1"]).run({"x": IMAGES}).values()
    np.testing.assert_allclose(found, expected[1], rtol=1e-4, atol=1e-5)
    report = convert(graph_def, IMAGES, tmp_path)
    assert report.count("int8") == 2


def test_functions_that_call_each_other_twice_do_not_take_forever(tmp_path):
    library = [
        """function { signature { name: "f0" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
           node_def { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } } ret { key: "y" value: "n:y:0" } }"""
    ]
    depth = 17
    library += [
        f"""function {{ signature {{ name: "f{i}" input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }}
           node_def {{ name: "a" op: "f{i - 1}" input: "x" }} node_def {{ name: "b" op: "f{i - 1}" input: "a:y:0" }}
           ret {{ key: "y" value: "b:y:0" }} }}"""
        for i in range(1, depth + 1)
    ]
    path = tmp_path / "twice.pbtxt"
    path.write_text(
        f"""node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
        node {{ name: "y" op: "f{depth}" input: "x" }}
        library {{ {" ".join(library)} }}"""
    )
    begun = time.monotonic()
    model = kilter.load(path, optimize=False)
    assert model.run({"x": np.float32([3])})["y"].tolist() == [3]
    assert time.monotonic() - begun < 300  # an hour, when every call searched the whole graph
