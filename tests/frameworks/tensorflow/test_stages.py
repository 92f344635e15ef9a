"""The way to an INT8 graph in stages: tensors that TensorFlow computes, choices per operator, plans, and the commands that use them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_int8 import command, count, distance, read, small

import kilter
from conftest import run_tensorflow, tf, write_graph
from kilter.graph_converter import GraphConverter, Observations, QuantizableGraph


def observe(graph, feeds):
    """Statistics of the tensors of the optimized graph, as TensorFlow computes them."""
    graph_def = tf.compat.v1.GraphDef.FromString(graph.fp32())
    seen = Observations(graph.tensors)
    values = run_tensorflow(
        graph_def, feeds, [name if ":" in name else f"{name}:0" for name in graph.tensors]
    )
    for name, value in zip(graph.tensors, values, strict=True):
        seen.add(name, value)
    return seen.stats()


def parse(written):
    return tf.compat.v1.GraphDef.FromString(written.graph)


def test_tensors_of_tensorflow(tmp_path):
    graph_def, feeds, outputs = small()
    graph = QuantizableGraph(graph_def.SerializeToString())
    assert (graph.inputs, graph.outputs) == (["input"], ["predict"])
    assert [entry.op for entry in graph.operators].count("Conv2D") == 2
    stats = observe(graph, feeds)
    native = graph.observe([feeds["input:0"]])
    assert stats.samples == native.samples == 1
    for name in graph.tensors:
        assert stats.values[name]["max"] == pytest.approx(native.values[name]["max"], rel=1e-4)
    written = graph.write({}, stats)
    (expected,) = run_tensorflow(graph_def, feeds, outputs)
    (found,) = run_tensorflow(parse(written), feeds, outputs)
    assert distance(found, expected) < 0.1
    written.save(tmp_path / "int8.pb")
    assert (tmp_path / "int8.pb").read_bytes() == written.graph


def test_choices():
    graph_def, feeds, _ = small()
    graph = QuantizableGraph(graph_def.SerializeToString())
    stats = observe(graph, feeds)
    written = graph.write(
        {"second/Conv2D": {"precision": "f32"}, "first/Conv2D": {"weights": "per-tensor"}}, stats
    )
    int8 = parse(written)
    assert count(int8, "Conv2D") == 1
    weights = next(node for node in int8.node if node.name == "first/Conv2D/int8_weights_max")
    assert not weights.attr["value"].tensor.tensor_shape.dim
    assert [one.name for one in written.operators if one.precision == "fp32"] == ["second/Conv2D"]
    with pytest.raises(kilter.Error, match="no operator 'secnd'"):
        graph.write({"secnd": {}}, stats)
    with pytest.raises(kilter.Error, match="no 'precison'"):
        graph.write({"second/Conv2D": {"precison": "f32"}}, stats)
    with pytest.raises(kilter.Error, match="no range for tensor"):
        graph.write({}, {"input": (-1.0, 1.0)})


def heavy_tails(feeds):
    """One value in ten thousand is far out."""
    rng = np.random.default_rng(1)
    image = feeds["input:0"]
    return {"input:0": np.where(rng.random(image.shape) < 1e-3, image * 40, image).astype(np.float32)}


@pytest.mark.parametrize("algorithm", ["KL", "PERCENTILE:99.9", "MSE"])
def test_histograms_of_a_command(algorithm, tmp_path):
    """The ranges that the counts of a TensorFlow run give are those of kilter's own run."""
    graph_def, feeds, outputs = small()
    feeds = heavy_tails(feeds)
    source = write_graph(graph_def, tmp_path / "fp32.pb")

    def ranges(**attributes):
        converter = GraphConverter(source, tmp_path / "int8.pb", ["input"], ["predict"], algo=algorithm)
        for name, value in attributes.items():
            setattr(converter, name, value)
        assert converter.convert().batches == 1
        return {
            node.name: tf.make_ndarray(node.attr["value"].tensor)
            for node in read(tmp_path / "int8.pb").node
            if node.name.endswith("/int8_max")
        }

    by_command = ranges(gen_calib_data_cmds=command(feeds, outputs, tmp_path))
    by_kilter = ranges(samples=[feeds["input:0"]])
    assert by_command.keys() == by_kilter.keys()
    for name, value in by_kilter.items():
        assert by_command[name] == pytest.approx(value, rel=0.02), name
    if algorithm != "MSE":  # which finds that clipping such values costs more than it gains
        assert by_command["input/int8_max"] < np.abs(feeds["input:0"]).max() * 0.9


def test_plans(tmp_path):
    """A plan for the model that kilter reads says what becomes of TensorFlow's operators."""
    graph_def, feeds, _ = small()
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    samples = [{"input": feeds["input:0"]}]
    plan = kilter.quantize(source, samples, exclude="second/Conv2D").plan
    graph = QuantizableGraph(source)
    written = graph.write(plan, graph.observe(samples))
    assert {one.name: one.precision for one in written.operators}["second/Conv2D"] == "fp32"
    assert count(parse(written), "Conv2D") == 1
    for entry in plan["operators"]:
        entry["name"] = "other_" + entry["name"]
        entry["origins"] = []
    with pytest.raises(kilter.Error, match="another model"):
        graph.write(plan, graph.observe(samples))


def run_command(*arguments):
    executable = Path(sys.executable).with_name("kilter")
    return subprocess.run([executable, *map(str, arguments)], capture_output=True, text=True)


def test_commands_write_graphs(tmp_path):
    graph_def, feeds, outputs = small()
    source = write_graph(graph_def, tmp_path / "fp32.pb")
    images = np.concatenate([feeds["input:0"]] * 4)
    np.save(tmp_path / "x.npy", images)
    (expected,) = run_tensorflow(graph_def, feeds, outputs)

    plan = tmp_path / "plan.json"
    arguments = [
        "quantize",
        source,
        "--data",
        tmp_path / "x.npy",
        "-o",
        tmp_path / "int8.pb",
        "--save-plan",
        plan,
    ]
    process = run_command(*arguments, "--exclude", "second/Conv2D")
    assert process.returncode == 0, process.stderr
    assert "operators on integers" in process.stdout
    int8 = read(tmp_path / "int8.pb")
    assert count(int8, "Conv2D") == 1
    (found,) = run_tensorflow(int8, feeds, outputs)
    assert distance(found, expected) < 0.1
    assert json.loads(plan.read_text())["operators"]

    np.save(tmp_path / "labels.npy", np.tile(expected.argmax(-1), 4))
    arguments = ["tune", source, "--data", tmp_path / "x.npy", "--labels", tmp_path / "labels.npy"]
    process = run_command(
        *arguments,
        "-o",
        tmp_path / "tuned.pb",
        "--workspace",
        tmp_path / "study",
        "--max-loss",
        "50%",
        "--timeout",
        0,
    )
    assert process.returncode == 0, process.stderr
    (found,) = run_tensorflow(read(tmp_path / "tuned.pb"), feeds, outputs)
    assert distance(found, expected) < 0.1

    process = run_command("quantize", source, "--data", tmp_path / "x.npy", "-o", tmp_path / "a-symbol.json")
    assert process.returncode == 1 and "only models of MXNet" in process.stderr
