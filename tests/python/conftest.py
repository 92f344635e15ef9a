"""What the Python tests share: the command, the fixture model, small models made on the spot."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "fixtures" / "fashion_mnist"
DATA = Path(os.environ.get("KILTER_DATA") or ROOT.parent / "shared" / "data")

sys.path.insert(0, str(ROOT / "bench"))


class Finished:
    """What a run of the command printed, and its exit status."""

    def __init__(self, process):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr


@pytest.fixture
def cli(tmp_path):
    """Runs the installed command in an empty folder."""
    command = Path(sys.executable).with_name("kilter")

    def run(*arguments, timeout=120):
        process = subprocess.run(
            [command, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=timeout
        )
        return Finished(process)

    return run


@pytest.fixture(scope="session")
def fashion():
    """Path of the fixture's model, a quarter of its images as the model takes them, their labels."""
    images = np.load(FIXTURE / "images.npy")[:512].astype(np.float32) / 255
    return FIXTURE / "model.onnx", images, np.load(FIXTURE / "labels.npy")[:512]


def make_model(nodes, inputs, outputs, initializers=(), opset=21):
    """A model from nodes and (name, dtype, shape) triples."""

    def values(entries):
        return [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in entries]

    graph = helper.make_graph(list(nodes), "test", values(inputs), values(outputs), list(initializers))
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


@pytest.fixture
def add_model():
    """total = a + b, difference = a - b, with a symbolic first dimension."""
    shape = ["n", 3]
    return make_model(
        [helper.make_node("Add", ["a", "b"], ["total"]), helper.make_node("Sub", ["a", "b"], ["difference"])],
        [("a", TensorProto.FLOAT, shape), ("b", TensorProto.FLOAT, shape)],
        [("total", TensorProto.FLOAT, shape), ("difference", TensorProto.FLOAT, shape)],
    )


@pytest.fixture
def add_file(add_model, tmp_path):
    path = tmp_path / "add.onnx"
    onnx.save(add_model, path)
    return path
