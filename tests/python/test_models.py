"""Whole networks agree with ONNX Runtime: real ones where the data is at hand, generated ones always."""

import numpy as np
import onnx
import onnxruntime
import pytest

import kilter
import models  # bench/models.py
from conftest import DATA

TOLERANCE = 1e-4  # of the largest absolute value


def runtime(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def assert_agree(found, wanted, what):
    assert found.dtype == wanted.dtype, what
    assert found.shape == wanted.shape, what
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert error <= TOLERANCE, f"{what}: relative error {error:.2g}"


def compare(path, inputs):
    """Outputs of both engines by name, after comparing them."""
    names = [value.name for value in runtime(path).get_outputs()]
    wanted = dict(zip(names, runtime(path).run(None, inputs), strict=True))
    found = kilter.load(path).run(inputs)
    assert list(found) == names
    for name in names:
        assert_agree(found[name], wanted[name], f"{path}: {name}")
    return found, wanted


# File, and how it wants its pixels: (x - shift) / scale on values from 0 to 255, channels first.
IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
REAL = {
    "mobilenetv2-7.onnx": IMAGENET,
    "squeezenet1.1-7.onnx": IMAGENET,
    "efficientnet-lite0.onnx": ([127, 127, 127], [128, 128, 128]),
}


def photographs(shift, scale, count):
    """Centre crops of the first images of imagenet_val1000; skips the test where they are missing."""
    image = pytest.importorskip("PIL.Image", reason="real images need Pillow")
    files = sorted((DATA / "imagenet_val1000").glob("*.jp*g"))[:count]
    if not files:
        pytest.skip(f"no images in {DATA / 'imagenet_val1000'}: set KILTER_DATA")
    pixels = np.stack([np.asarray(image.open(file).convert("RGB"))[16:240, 16:240] for file in files])
    normalized = (pixels - np.array(shift, np.float32)) / np.array(scale, np.float32)
    return np.ascontiguousarray(normalized.transpose(0, 3, 1, 2), dtype=np.float32)


@pytest.mark.parametrize("name", REAL)
def test_real_model_on_real_images(name):
    path = DATA / "onnx" / name
    if not path.exists():
        pytest.skip(f"{path} is missing: set KILTER_DATA")
    images = photographs(*REAL[name], count=32)
    session, model = runtime(path), kilter.load(path)
    port = session.get_inputs()[0]
    for image in images[:, None]:
        wanted = session.run(None, {port.name: image})[0]
        found = model(image)
        assert_agree(found, wanted, name)
        assert found.argmax() == wanted.argmax()


def test_every_real_model_is_listed():
    here = {path.name for path in (DATA / "onnx").glob("*.onnx")}
    if not here:
        pytest.skip(f"no models in {DATA / 'onnx'}: set KILTER_DATA")
    assert here == set(REAL)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2"])
def test_generated_image_network(name, batch):
    random = np.random.default_rng(batch)
    image = random.standard_normal((batch, 3, 224, 224), dtype=np.float32)
    found, wanted = compare(models.cached(name), {"input": image})
    np.testing.assert_array_equal(found["output"].argmax(1), wanted["output"].argmax(1))


@pytest.mark.parametrize(("batch", "sequence"), [(1, 128), (2, 31)])
def test_generated_bert(batch, sequence):
    random = np.random.default_rng(sequence)
    shape = (batch, sequence)
    mask = np.ones(shape, np.int64)
    mask[-1, sequence // 2 :] = 0
    found, wanted = compare(
        models.cached("bert-base"),
        {
            "input_ids": random.integers(0, 30522, shape),
            "attention_mask": mask,
            "token_type_ids": random.integers(0, 2, shape),
        },
    )
    np.testing.assert_array_equal(found["logits"].argmax(1), wanted["logits"].argmax(1))


@pytest.mark.parametrize(
    ("name", "shapes"), [("resnet50", {}), ("mobilenetv2", {}), ("bert-base", {"sequence": [128]})]
)
def test_hot_operators_have_fast_kernels(name, shapes):
    steps = kilter.load(models.cached(name)).profile(shapes=shapes)
    total = sum(step["milliseconds"] for step in steps)
    slow = [
        step for step in steps if step["kernel"].startswith("ref") and step["milliseconds"] > 0.01 * total
    ]
    assert not slow
    assert any(step["kernel"] for step in steps if "Conv" in step["op"] or "MatMul" in step["op"])


def test_fixture_agrees(fashion):
    path, images, labels = fashion
    found, wanted = compare(path, {"image": images})
    np.testing.assert_array_equal(found["logits"].argmax(1), wanted["logits"].argmax(1))
    assert np.mean(found["logits"].argmax(1) == labels) > 0.9


def test_saved_models_give_the_same_outputs_in_onnx_runtime(fashion, tmp_path):
    path, images, _ = fashion
    kilter.load(path).save(tmp_path / "copy.onnx")
    before = runtime(path).run(None, {"image": images[:8]})[0]
    after = runtime(tmp_path / "copy.onnx").run(None, {"image": images[:8]})[0]
    np.testing.assert_array_equal(before, after)
    assert onnx.load(tmp_path / "copy.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
