"""The command: help, examples, exit codes, messages, files."""

import json
import os
import re

import numpy as np
import onnx
import onnxruntime
import pytest

from conftest import FIXTURE

MODEL = FIXTURE / "model.onnx"
COMMANDS = [
    "inspect",
    "run",
    "bench",
    "quantize",
    "diff",
    "tune",
    "eval",
    "recover",
    "sensitivity",
    "config",
    "tf",
]


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_on_a_screen_and_shows_an_example(cli, command):
    done = cli(*filter(None, [command]), "--help")
    assert done.status == 0
    assert len(done.out.splitlines()) <= (55 if command == "tune" else 40)
    assert max(map(len, done.out.splitlines())) <= 110
    assert "Example" in done.out


def test_help_lists_every_command(cli):
    out = cli("--help").out
    assert all(command in out for command in COMMANDS)


def test_every_documented_option_exists(cli):
    documented = (FIXTURE.parents[1] / "docs" / "cli.md").read_text().split("\n## ")[1:]
    words = [re.match(r"kilter ((?:[a-z]+ ?)+)", section)[1].split() for section in documented]
    assert list(dict.fromkeys(command for command, *_ in words)) == COMMANDS
    for command, section in zip(words, documented, strict=True):
        options = set(re.findall(r"--[a-z][a-z0-9_-]+", section))
        shown = set(re.findall(r"--[a-z][a-z0-9_-]+", cli(*command, "--help").out))
        assert options == shown - {"--help"}


def test_version(cli):
    import kilter

    assert cli("--version").out.strip() == f"kilter {kilter.__version__}"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["inspect"],
        ["bench", MODEL, "--batch", "0"],
        ["bench", MODEL, "--batch", "many"],
        ["bench", MODEL, "--shape", "image"],
        ["bench", MODEL, "--shape", "image=1x"],
        ["bench", MODEL, "--seconds", "1", "--iterations", "3"],
        ["inspect", MODEL, "--unknown"],
    ],
)
def test_wrong_usage_exits_with_2_and_one_message(cli, arguments):
    done = cli(*arguments)
    assert done.status == 2
    assert done.err.startswith("kilter: ")
    assert "--help" in done.err
    assert done.out == ""


def test_inspect_tells_what_the_model_is_made_of(cli):
    done = cli("inspect", MODEL)
    assert done.status == 0
    assert re.search(r"image +f32\[batch, 1, 28, 28\]", done.out)
    assert re.search(r"logits +f32\[batch, 10\]", done.out)
    assert re.search(r"Conv +9", done.out)
    assert "quantizable 10 of 30 operators" in done.out


def test_inspect_counts_macs_for_the_batch(cli):
    one, many = (json.loads(cli("inspect", MODEL, "--json", "--batch", n).out) for n in (1, 16))
    # By hand: over 14x14 and 7x7 positions, depthwise (9 for each channel) and pointwise convolutions; the classifier.
    first, second = 24 * (9 + 9 + 48) + 48 * (9 + 64), 64 * (9 + 96) + 96 * (9 + 96)
    per_image = 196 * first + 49 * second + 960
    assert one["macs"] == per_image
    assert many["macs"] == 16 * per_image
    assert one["all_macs_known"]
    weights = sum(int(np.prod(t.dims)) for t in onnx.load(MODEL).graph.initializer)
    assert one["parameters"] == weights
    assert len(one["quantizable"]) == 10
    assert one["inputs"] == [{"name": "image", "dtype": "f32", "shape": ["batch", 1, 28, 28]}]


def test_inspect_prints_the_graph_before_and_after_the_rewrites(cli):
    before = cli("inspect", MODEL, "--graph").out
    after = cli("inspect", MODEL, "--graph", "--optimized").out
    assert before.count("BatchNormalization(") == 9
    assert "BatchNormalization" not in after
    assert "kilter.Conv" in after


def test_run_writes_what_the_model_computes(cli, tmp_path, fashion):
    _, images, labels = fashion
    np.save(tmp_path / "x.npy", images)
    done = cli("run", MODEL, "--input", "image=x.npy", "-o", "out")
    assert done.status == 0, done.err
    logits = np.load(tmp_path / "out" / "logits.npy")
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"image": images})[0]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert np.mean(logits.argmax(1) == labels) > 0.9
    assert os.listdir(tmp_path / "out") == ["logits.npy"]


def test_run_takes_a_single_input_without_its_name(cli, tmp_path, fashion):
    np.save(tmp_path / "x.npy", fashion[1][:2])
    done = cli("run", MODEL, "-i", "x.npy")
    assert done.status == 0
    assert "f32[2, 10]" in done.out


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((1, 1, 28, 28)), "f64"),
        (np.zeros((1, 3, 28, 28), np.float32), "3"),
        (np.zeros((28, 28), np.float32), "28, 28"),
    ],
)
def test_run_refuses_arrays_that_do_not_fit(cli, tmp_path, array, expected):
    np.save(tmp_path / "x.npy", array)
    done = cli("run", MODEL, "--input", "image=x.npy", "-o", "out")
    assert done.status == 1
    assert done.err.startswith("kilter: ")
    assert "image" in done.err
    assert expected in done.err
    assert not (tmp_path / "out").exists()


def test_run_names_missing_and_unknown_inputs(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    missing = cli("run", MODEL)
    assert (missing.status, "'image' is missing" in missing.err) == (1, True)
    assert "--input image=" in missing.err
    unknown = cli("run", MODEL, "--input", "picture=x.npy")
    assert (unknown.status, "no input 'picture'" in unknown.err) == (1, True)


def test_run_survives_damaged_arrays(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 28, 28), np.float32))
    content = (tmp_path / "x.npy").read_bytes()
    for length in (0, 5, 20, 100, 1000):
        (tmp_path / "x.npy").write_bytes(content[:length])
        done = cli("run", MODEL, "--input", "image=x.npy")
        assert done.status == 1
        assert "x.npy" in done.err


def test_outputs_with_odd_names_become_files(cli, tmp_path):
    from onnx import TensorProto, helper

    from conftest import make_model

    names = ["a/b", "a:b", ".hidden"]
    model = make_model(
        [helper.make_node("Relu", ["x"], [name]) for name in names],
        [("x", TensorProto.FLOAT, [2])],
        [(name, TensorProto.FLOAT, [2]) for name in names],
    )
    onnx.save(model, tmp_path / "odd.onnx")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    done = cli("run", "odd.onnx", "--input", "x=x.npy", "-o", "out")
    assert done.status == 0, done.err
    assert sorted(os.listdir(tmp_path / "out")) == ["_hidden.npy", "a_b.npy", "a_b_1.npy"]


def test_bench_reports_times_and_kernels(cli):
    done = cli("bench", MODEL, "--batch", "4", "--iterations", "5", "--per-op", "--json")
    assert done.status == 0, done.err
    report = json.loads(done.out)
    assert report["runs"] == 5
    assert report["shapes"] == {"image": [4, 1, 28, 28]}
    assert 0 < report["min_ms"] <= report["median_ms"] <= report["p90_ms"]
    assert report["samples_per_second"] == pytest.approx(4 * report["runs_per_second"])
    assert report["operators"]
    assert all(step["kernel"] for step in report["operators"])


def test_bench_prints_a_table(cli):
    done = cli("bench", MODEL, "--iterations", "3", "--per-op", "--threads", "1")
    assert done.status == 0, done.err
    for word in ("median", "p90", "throughput", "kernel", "1 instance of 1 thread"):
        assert word in done.out
    assert done.err == ""


def test_bench_runs_instances_side_by_side(cli):
    report = json.loads(cli("bench", MODEL, "--instances", "2", "--iterations", "4", "--json").out)
    assert (report["instances"], report["runs"]) == (2, 8)


def test_bench_takes_shapes_by_input_and_by_dimension(cli, add_file):
    for shape in ("n=7", "a=7x3"):
        done = cli("bench", add_file, "--shape", shape, "--shape", "b=7x3", "--iterations", "1", "--json")
        assert done.status == 0, done.err
        assert json.loads(done.out)["shapes"]["a"] == [7, 3]


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["--shape", "a=2x4"], "2x4"), (["--shape", "nothing=3"], "nothing")],
)
def test_bench_refuses_shapes_that_do_not_fit(cli, add_file, options, expected):
    done = cli("bench", add_file, *options)
    assert done.status == 1
    assert expected in done.err


def test_missing_model(cli):
    data = ["--data", "x.npy"]
    more = {
        "quantize": [*data, "-o", "q.onnx"],
        "diff": [MODEL],
        "bench": [MODEL],
        "tune": [*data, "-o", "q.onnx"],
        "eval": data,
        "recover": ["-o", "q.onnx"],
        "sensitivity": data,
    }
    commands = [[name, "nowhere.onnx", *more.get(name, [])] for name in COMMANDS if name != "tf"]
    names = ["--inputs", "x", "--outputs", "y"]
    commands.append(["tf", "quantize", "--input_graph", "nowhere.onnx", "--callback", "true", *names])
    for command in commands:
        done = cli(*command)
        assert done.status == 1
        assert "nowhere.onnx" in done.err
