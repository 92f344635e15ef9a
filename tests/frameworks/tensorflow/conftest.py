"""TensorFlow is the judge: graphs run there and in kilter, on the same inputs."""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "tensorflow" / "bert_squad"))

import numpy as np
import pytest

tf = pytest.importorskip(
    "tensorflow", reason="TensorFlow is not installed: tools/framework_env.sh tensorflow"
)

import kilter  # noqa: E402


def run_tensorflow(graph_def, feeds, outputs):
    """The outputs ("name:0") of a GraphDef in TensorFlow, for arrays by tensor name."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(outputs, {name: value for name, value in feeds.items()})


def write_graph(graph_def, path):
    Path(path).write_bytes(graph_def.SerializeToString())
    return str(path)


def assert_close(found, expected, tolerance=1e-4):
    """Equal type and shape, and equal elements relative to the largest one."""
    assert found.shape == expected.shape, f"{found.shape} instead of {expected.shape}"
    assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
    if not np.issubdtype(expected.dtype, np.floating):
        np.testing.assert_array_equal(found, expected)
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    scale = np.abs(expected[finite]).max(initial=1e-6)
    error = np.abs(found[finite].astype(np.float64) - expected[finite]).max(initial=0) / scale
    assert error <= tolerance, f"relative error {error:.3g}"


def check_graph(graph_def, feeds, outputs, path, tolerance=1e-4, **options):
    """kilter computes what TensorFlow computes. `feeds` are arrays by tensor name; returns kilter's model."""
    expected = run_tensorflow(graph_def, feeds, outputs)
    model = kilter.load(write_graph(graph_def, path), outputs=outputs, **options)
    names = {name.removesuffix(":0"): value for name, value in feeds.items()}
    found = model.run({port.name: names[port.name] for port in model.inputs})
    for name, one in zip(outputs, expected, strict=True):
        assert_close(found[name.removesuffix(":0")], np.asarray(one), tolerance)
    return model


@pytest.fixture
def data():
    """The folder of real models and data."""
    root = Path(os.environ.get("KILTER_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (root / "tensorflow").is_dir():
        pytest.skip(f"there are no TensorFlow models in {root}")
    return root
