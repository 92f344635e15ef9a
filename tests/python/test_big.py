"""A model of 1 GiB loads at once: its weights are mapped, and not read before the first run."""

import json
import subprocess
import sys

import pytest
from onnx import TensorProto, helper

from conftest import make_model

LAYERS, WIDTH = 16, 4096
BYTES = 4 * WIDTH * WIDTH

MEASURE = """
import json, sys, time
import kilter

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

before, start = resident(), time.perf_counter()
model = kilter.load(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start, "bytes": resident() - before}))
"""


@pytest.fixture
def big_model(tmp_path):
    """A chain of products whose weights are in a sparse file: no disk is filled, no time lost."""
    (tmp_path / "weights").touch()
    with open(tmp_path / "weights", "r+b") as file:
        file.truncate(LAYERS * BYTES)
    nodes, weights = [], []
    for layer in range(LAYERS):
        tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", layer * BYTES), ("length", BYTES)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [f"x{layer}", f"w{layer}"], [f"x{layer + 1}"]))
    shape = ["batch", WIDTH]
    ends = [(f"x{index}", TensorProto.FLOAT, shape) for index in (0, LAYERS)]
    path = tmp_path / "big.onnx"
    path.write_bytes(make_model(nodes, ends[:1], ends[1:], weights).SerializeToString())
    return path


def test_loading_takes_neither_time_nor_memory(big_model):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(big_model)], capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    assert report["seconds"] < 1
    assert report["bytes"] < 64e6


def test_inspect_is_quick(cli, big_model):
    done = cli("inspect", big_model, "--json", timeout=10)
    assert done.status == 0, done.err
    assert json.loads(done.out)["parameter_bytes"] == LAYERS * BYTES
