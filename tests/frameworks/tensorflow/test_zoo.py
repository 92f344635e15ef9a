"""kilter tf zoo: the models of the zoo, run by its own script."""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import networks
from conftest import write_graph

INFER = Path(__file__).with_name("infer.py")
# What launch_benchmark.py of the zoo does, as far as calibration sees it.
LAUNCH = f"""
import subprocess, sys
options = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if "=" in a)
assert options["model-name"] and options["precision"] == "int8" and "--accuracy-only" in sys.argv
sys.exit(subprocess.call([sys.executable, {str(INFER)!r}, "--input_graph=" + options["in-graph"],
                          "--feeds=" + options["data-location"], "--outputs=predict:0"]))
"""


def zoo(*arguments):
    command = Path(sys.executable).with_name("kilter")
    return subprocess.run([command, "tf", "zoo", *map(str, arguments)], capture_output=True, text=True)


def test_models():
    models = json.loads(resources.files("kilter").joinpath("zoo/models.json").read_text())
    assert [model["MODEL_NAME"] for model in models] == [
        "resnet50",
        "resnet50v1_5",
        "resnet101",
        "mobilenet_v1",
        "ssd_mobilenet",
        "ssd_resnet34",
        "faster_rcnn",
        "rfcn",
        "inceptionv3",
    ]
    for model in models:
        assert model["QUANTIZE_GRAPH_CONVERTER_PARAMS"]["OUTPUT_NODE_LIST"]
        assert "{}" in model["LAUNCH_BENCHMARK_PARAMS"]["IN_GRAPH"]


@pytest.fixture
def checkout(tmp_path):
    """A zoo whose script is ours, a network and its data."""
    script = tmp_path / "zoo of models" / "benchmarks" / "launch_benchmark.py"
    script.parent.mkdir(parents=True)
    script.write_text(LAUNCH)
    network = networks.resnet50(size=64, width=8)
    np.savez(tmp_path / "data.npz", **network.feeds)
    write_graph(network.graph_def, tmp_path / "fp32.pb")
    return tmp_path


def test_calibrates_with_the_script_of_the_zoo(checkout):
    process = zoo(
        *("--model", "resnet50", "--in_graph", checkout / "fp32.pb", "--out_graph", checkout / "int8.pb"),
        *("--data_location", checkout / "data.npz", "--models_zoo_location", checkout / "zoo of models"),
        *("--python", sys.executable, "--debug", "false"),
    )
    assert process.returncode == 0, process.stderr
    assert "Model Config: MODEL_NAME:resnet50\n" in process.stdout
    assert "Inference Calibration Command: " in process.stdout
    assert (checkout / "int8.pb").is_file()


def test_says_what_is_missing(checkout):
    paths = ("--in_graph", checkout / "fp32.pb", "--models_zoo_location", checkout / "zoo of models")
    process = zoo("--model", "resnet5", *paths)
    assert process.returncode == 1 and "no model 'resnet5'" in process.stderr
    process = zoo("--model", "resnet50", *paths)
    assert process.returncode == 1 and "--data_location" in process.stderr
