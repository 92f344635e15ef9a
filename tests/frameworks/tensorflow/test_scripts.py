"""The scripts of examples/tensorflow: thin, but they must run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import networks
from conftest import write_graph

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "examples" / "tensorflow"
INFER = Path(__file__).with_name("infer.py")


def script(name, *arguments):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, SCRIPTS / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
    )


@pytest.fixture
def network(tmp_path):
    """The path of a small graph, and the command that runs it."""
    built = networks.resnet50(size=64, width=8)
    np.savez(tmp_path / "feeds.npz", **built.feeds)
    path = write_graph(built.graph_def, tmp_path / "fp32.pb")
    return (
        path,
        f"{sys.executable} {INFER} --input_graph={{}} --feeds={tmp_path}/feeds.npz --outputs=predict:0",
    )


def test_quantize_cmd(network, tmp_path):
    path, command = network
    done = script(
        "quantize_cmd.py",
        *("--input_graph", path, "--output_graph", tmp_path / "int8.pb", "--callback", command),
        *("--inputs", "input", "--outputs", "predict", "--per_channel", "False"),
        *("--excluded_ops", "", "--excluded_nodes", ""),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "int8.pb").is_file()


def test_quantize_python(network, tmp_path):
    done = script("quantize_python.py", *network)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "int8_final_fused_graph.pb").is_file()
    assert "55 operators on integers, 0 in floats" in done.stdout


def test_quantize_model_zoo():
    done = script("quantize_model_zoo.py", "--help")
    assert done.returncode == 0 and "--models_zoo_location" in done.stdout


def test_summarize_graph(network):
    done = script("summarize_graph.py", f"--in_graph={network[0]}", "--input_binary")
    assert done.returncode == 0, done.stderr
    assert "possible inputs" in done.stdout and "name=input" in done.stdout


def test_launch_quantization(network, tmp_path):
    path, _ = network
    options = ("--docker-image", "quantization:latest", "--models_zoo", tmp_path, "--print-command")
    done = script("launch_quantization.py", *options, "--in_graph", path, "--out_graph", tmp_path / "int8.pb")
    assert done.returncode == 0, done.stderr
    assert f"{path}:/workspace/pretrained_models/in_graph.pb:ro" in done.stdout
    assert "--out_graph /workspace/output/int8.pb --debug false" in done.stdout
    link = tmp_path / "link.pb"
    link.symlink_to(path)
    done = script("launch_quantization.py", *options, "--in_graph", link)
    assert done.returncode == 1 and "is a link" in done.stderr
