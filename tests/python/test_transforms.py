"""Every transform against Pillow, OpenCV or NumPy."""

import numpy as np
import pytest
from PIL import Image

import kilter
from conftest import ROOT
from kilter.data import transform

cv2 = pytest.importorskip("cv2")

SIZES = [(20, 20), (64, 97), (224, 224), (37, 11), (1, 1)]
SOURCES = [(37, 53), (256, 256), (1, 5), (100, 33)]


def picture(height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, channels), np.uint8)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "name, theirs",
    [
        ("nearest", Image.NEAREST),
        ("bilinear", Image.BILINEAR),
        ("bicubic", Image.BICUBIC),
        ("area", Image.BOX),
    ],
)
def test_resize_equals_pillow(source, name, theirs):
    image = picture(*source)
    for height, width in SIZES:
        ours = transform(image, {"Resize": {"size": [height, width], "interpolation": name}})
        # Two calls, because Pillow 13 may take the vertical pass first; all before it took the horizontal one.
        wide = Image.fromarray(image).resize((width, source[0]), theirs)
        np.testing.assert_array_equal(ours, np.asarray(wide.resize((width, height), theirs)))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "name, theirs",
    [
        ("nearest", cv2.INTER_NEAREST),
        ("bilinear", cv2.INTER_LINEAR),
        ("bicubic", cv2.INTER_CUBIC),
        ("area", cv2.INTER_AREA),
    ],
)
def test_resize_agrees_with_opencv(source, name, theirs):
    image = picture(*source)
    for height, width in SIZES:
        step = {"Resize": {"size": [height, width], "interpolation": name, "library": "opencv"}}
        expected = cv2.resize(image, (width, height), interpolation=theirs)
        assert np.abs(transform(image, step).astype(int) - expected).max() <= 1
        floats = image.astype(np.float32)
        np.testing.assert_allclose(
            transform(floats, step), cv2.resize(floats, (width, height), interpolation=theirs), atol=0.02
        )


def test_what_resize_means_depends_on_the_framework():
    image = picture(60, 90)
    short_side = transform(image, {"Resize": {"size": 30}}, framework="pytorch_fx")
    np.testing.assert_array_equal(
        short_side, np.asarray(Image.fromarray(image).resize((45, 30), Image.BILINEAR))
    )
    assert transform(image, {"Resize": {"size": 30}}, framework="onnxrt_qdq").shape == (30, 30, 3)
    square = transform(image, {"Resize": {"size": 30}}, framework="mxnet").astype(int)
    assert np.abs(square - cv2.resize(image, (30, 30))).max() <= 1
    assert transform(image, {"Resize": {"size": 30, "keep_ratio": True}}).shape == (30, 45, 3)


def test_crops_take_the_right_pixels():
    image = picture(11, 14)
    np.testing.assert_array_equal(transform(image, {"CenterCrop": {"size": 6}}), image[2:8, 4:10])
    # torchvision rounds 2.5 to 2 and 3.5 to 4, as Python does.
    np.testing.assert_array_equal(
        transform(picture(13, 11), {"CenterCrop": {"size": 6}}, framework="pytorch"),
        picture(13, 11)[4:10, 2:8],
    )
    box = {"offset_height": 1, "offset_width": 2, "target_height": 3, "target_width": 4}
    np.testing.assert_array_equal(transform(image, {"CropToBoundingBox": box}), image[1:4, 2:6])
    part = {"x": 2, "y": 1, "width": 8, "height": 6, "size": [6, 8]}
    np.testing.assert_array_equal(transform(image, {"CropResize": part}), image[1:7, 2:10])
    part["size"] = [3, 5]
    expected = Image.fromarray(image[1:7, 2:10]).resize((5, 3), Image.BILINEAR)
    np.testing.assert_array_equal(transform(image, {"CropResize": part}), np.asarray(expected))
    # int(8 / (8 + 2) * 11) = 8 pixels from (11 - 8 + 1) // 2 and (14 - 8 + 1) // 2.
    padded = transform(image, {"PaddedCenterCrop": {"size": 8, "crop_padding": 2}})
    np.testing.assert_array_equal(padded, image[2:10, 3:11])


def test_random_transforms_depend_on_seed_and_sample_only():
    image = picture(40, 50)
    for step in (
        {"RandomCrop": {"size": 20}},
        {"RandomResizedCrop": {"size": 20}},
        {"RandomHorizontalFlip": {}},
        {"RandomVerticalFlip": {}},
    ):
        results = [transform(image, step, index=index) for index in range(20)]
        for index, result in enumerate(results):
            np.testing.assert_array_equal(result, transform(image, step, index=index))
        assert any((result != results[0]).any() for result in results), step
    parts = {image[y : y + 20, x : x + 20].tobytes() for y in range(21) for x in range(31)}
    assert transform(image, {"RandomCrop": {"size": 20, "seed": 5}}, index=3).tobytes() in parts
    always = {"RandomHorizontalFlip": {"p": 1.0}}
    np.testing.assert_array_equal(transform(image, always), image[:, ::-1])
    np.testing.assert_array_equal(transform(image, {"RandomVerticalFlip": {"p": 1.0}}), image[::-1])
    np.testing.assert_array_equal(transform(image, {"RandomVerticalFlip": {"p": 0.0}}), image)
    whole = {"RandomResizedCrop": {"size": [40, 50], "scale": [1, 1], "ratio": [1.25, 1.25]}}
    np.testing.assert_array_equal(transform(image, whole), image)


def test_resizes_that_keep_the_ratio():
    image = picture(100, 200)
    step = {"ResizeWithRatio": {"min_dim": 150, "max_dim": 250, "library": "opencv"}}
    assert transform(image, step).shape == (125, 250, 3)
    step["ResizeWithRatio"] |= {"padding": True, "constant_value": 7}
    padded = transform(image, step)
    assert padded.shape == (250, 250, 3)
    assert (padded[:62] == 7).all()
    assert np.abs(padded[62:187].astype(int) - cv2.resize(image, (250, 125))).max() <= 1
    # Both sides by 100 / 87.5, then the long one by the ratio.
    aspect = transform(image, {"ResizeWithAspectRatio": {"height": 56, "width": 56}})
    assert aspect.shape == (64, 128, 3)
    expected = cv2.resize(image, (128, 64), interpolation=cv2.INTER_AREA)
    assert np.abs(aspect.astype(int) - expected).max() <= 1


def test_arithmetic():
    image = picture(5, 7)
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    scaled = image.astype(np.float32) * np.float32(1 / 255)
    np.testing.assert_array_equal(transform(image, "Rescale"), scaled)
    normalize = {"Normalize": {"mean": mean.tolist(), "std": std.tolist()}}
    np.testing.assert_allclose(transform(image, ["Rescale", normalize]), (scaled - mean) / std, rtol=1e-6)
    # Channels first after ToTensor.
    planes = (image.astype(np.float32) / 255).transpose(2, 0, 1)
    np.testing.assert_array_equal(transform(image, "ToTensor"), planes)
    expected = (planes - mean[:, None, None]) / std[:, None, None]
    np.testing.assert_allclose(transform(image, ["ToTensor", normalize]), expected, rtol=1e-6)
    np.testing.assert_allclose(
        transform(image, {"Normalize": {"mean": 1, "std": 2, "rescale": [255, 0.5]}}),
        (image.astype(np.float32) / 255 - 0.5 - 1) / 2,
        rtol=1e-5,
    )
    signed = transform(np.float32([-9, 0.3, 0.5, 90]), {"QuantizedInput": {"dtype": "int8", "scale": 2.0}})
    np.testing.assert_array_equal(signed, np.int8([-18, 1, 1, 127]))
    unsigned = transform(np.float32([-90, 0, 1]), {"QuantizedInput": {"dtype": "uint8", "scale": 2.0}})
    np.testing.assert_array_equal(unsigned, np.uint8([0, 128, 130]))
    np.testing.assert_array_equal(transform(image, {"QuantizedInput": {"dtype": "int8"}}), image)


def test_conversions():
    image = picture(3, 4)
    for perm in ([2, 0, 1], [0, 1, 2], [1, 2, 0], [2, 1, 0]):
        np.testing.assert_array_equal(transform(image, {"Transpose": {"perm": perm}}), image.transpose(perm))
        doubles = image.astype(np.float64)
        np.testing.assert_array_equal(
            transform(doubles, {"Transpose": {"perm": perm}}), doubles.transpose(perm)
        )
    for dtype in ("float32", "uint8", "int64", "float64"):
        cast = transform(np.float32([1.7, 200]), {"Cast": {"dtype": dtype}})
        np.testing.assert_array_equal(cast, np.float32([1.7, 200]).astype(dtype))
        assert cast.dtype == dtype
    for name in (
        "Collect",
        "SquadV1",
        "SquadV1ModelZoo",
        "DecodeImage",
        "ToArray",
        "ToNDArray",
        "ToPILImage",
        "ParseDecodeImagenet",
        "ParseDecodeCoco",
        "ParseDecodeVoc",
    ):
        np.testing.assert_array_equal(transform(image, name), image)
    grey = np.asarray(Image.fromarray(image).convert("L"))
    np.testing.assert_array_equal(transform(image, {"AlignImageChannel": {"dim": 1}})[:, :, 0], grey)
    np.testing.assert_array_equal(transform(grey, "AlignImageChannel"), np.stack([grey] * 3, -1))
    padded = transform(image, {"Pad": {"padding": [1, 2, 3, 4], "fill": 9}})
    np.testing.assert_array_equal(padded, np.pad(image, ((2, 4), (1, 3), (0, 0)), constant_values=9))


def test_imagenet_recipes():
    image = picture(300, 400)
    step = {"height": 224, "width": 224, "mean_value": [123.68, 116.78, 103.94], "scale": 0.017}
    resized = cv2.resize(image.astype(np.float32), (341, 256))
    expected = (resized[16:240, 58:282] - np.float32(step["mean_value"])) * np.float32(0.017)
    ours = transform(image, {"ResizeCropImagenet": step})
    np.testing.assert_allclose(ours, expected, atol=1e-3)
    first = transform(
        image, {"ResizeCropImagenet": step | {"data_format": "channels_first", "subpixels": "BGR"}}
    )
    bgr = (resized[16:240, 58:282, ::-1] - np.float32(step["mean_value"])) * np.float32(0.017)
    np.testing.assert_allclose(first, bgr.transpose(2, 0, 1), atol=1e-3)

    ours = transform(image, {"BilinearImagenet": {"height": 100, "width": 120}})
    middle = image[18:282, 25:375].astype(np.float32) / 255
    np.testing.assert_allclose(ours, (cv2.resize(middle, (120, 100)) - 0.5) * 2, atol=1e-4)


@pytest.mark.parametrize(
    "step, word",
    [
        ("Resise", "did you mean 'Resize'"),
        ({"Resize": {"sise": 3}}, "did you mean 'size'"),
        ({"Resize": {}}, "'size' is missing"),
        ({"Resize": {"size": -1}}, "positive"),
        ({"Resize": {"size": 8, "interpolation": "magic"}}, "bilinear"),
        ({"CenterCrop": {"size": 99}}, "too small"),
        (
            {"CropToBoundingBox": dict.fromkeys(("offset_height", "offset_width", "target_height"), 9)},
            "missing",
        ),
        ({"Transpose": {"perm": [0, 0, 1]}}, "every axis once"),
        ({"Cast": {"dtype": "float31"}}, "element type"),
        ({"Normalize": {"mean": [1, 2], "std": [1, 2]}}, "3 channels"),
        ({"Normalize": {"std": 0}}, "must not be 0"),
        ({"RandomHorizontalFlip": {"p": 2.0}}, "between 0 and 1"),
        ({"LabelShift": 1}, "no label"),
        ([{"Transpose": {"perm": [2, 0, 1]}}, {"CenterCrop": {"size": 2}}], "before ToTensor"),
    ],
)
def test_errors_say_what_is_wrong(step, word):
    with pytest.raises(kilter.Error, match=word):
        transform(picture(10, 12), step)


def test_everything_is_tested_and_documented():
    docs = (ROOT / "docs" / "data.md").read_text()
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "python").glob("test_*.py"))
    for name in kilter.data.transform_names() + kilter.data.dataset_names():
        assert f"`{name}`" in docs, name
        assert f'"{name}"' in tests, name
