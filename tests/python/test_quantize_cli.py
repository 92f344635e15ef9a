"""kilter quantize, diff and the comparing bench: what they write, print and refuse."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

import kilter
from conftest import FIXTURE

MODEL = FIXTURE / "model.onnx"
ARRAYS = ["--data", FIXTURE / "calibration.npy", "--scale", "1/255"]


@pytest.fixture
def quantized(cli, tmp_path):
    """Path of the fixture's model, quantized by the command."""
    done = cli("quantize", MODEL, *ARRAYS, "-o", "int8.onnx")
    assert done.status == 0, done.err
    return tmp_path / "int8.onnx"


def accuracy(path, images, labels):
    return np.mean(kilter.load(path)(images).argmax(1) == labels)


def test_quantize_keeps_the_accuracy_and_shrinks_the_file(quantized, fashion):
    path, images, labels = fashion
    assert accuracy(quantized, images, labels) >= accuracy(path, images, labels) - 0.01
    # The weights shrink to a quarter; beside those of so small a network, names, ranges and the plan count, too.
    assert os.path.getsize(quantized) < 0.6 * os.path.getsize(path)


def test_quantize_prints_what_was_done_and_why_not(cli):
    done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", "--exclude", "type:MatMul")
    assert done.status == 0, done.err
    assert done.err == ""
    for word in ("int8", "Conv", "f32", "the plan says f32", "size", "100 samples", "q.onnx"):
        assert word in done.out


def test_other_runtimes_agree_on_the_written_file(quantized, fashion):
    _, images, _ = fashion
    session = onnxruntime.InferenceSession(quantized, providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"image": images})[0].argmax(1)
    assert np.mean(kilter.load(quantized)(images).argmax(1) == theirs) >= 0.99
    onnx.checker.check_model(onnx.load(quantized))


def test_json_lists_operators_and_values(cli):
    done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", "--samples", "7", "--json")
    report = json.loads(done.out)
    assert report["samples"] == 7
    assert report["bytes_after"] < report["bytes_before"]
    assert {entry["precision"] for entry in report["operators"] if entry["op"] == "Conv"} == {"int8"}
    assert all(entry["scale"] > 0 for entry in report["values"])


@pytest.mark.parametrize("how", ["minmax", "kl", "percentile", "percentile:99.9", "mse"])
def test_every_calibration_gives_a_good_model(cli, tmp_path, fashion, how):
    done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", "--calibration", how)
    assert done.status == 0, done.err
    path, images, labels = fashion
    # Entropy calibration keeps the shape of the bulk and pays with outliers: on this small network that costs most.
    allowed = 0.1 if how == "kl" else 0.02
    assert accuracy(tmp_path / "q.onnx", images, labels) >= accuracy(path, images, labels) - allowed


@pytest.mark.parametrize(
    "options",
    [
        ["--weights", "per-tensor"],
        ["--scheme", "sym"],
        ["--mode", "full"],
        ["--target", "onnxruntime"],
        ["--recipe", "bias-correction", "--recipe", "equalization"],
        ["--recipe", "smooth-quant"],
        ["--batch", "4", "--instances", "2", "--threads", "1"],
    ],
)
def test_every_choice_gives_a_good_model(cli, tmp_path, fashion, options):
    done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", *options)
    assert done.status == 0, done.err
    path, images, labels = fashion
    assert accuracy(tmp_path / "q.onnx", images, labels) >= accuracy(path, images, labels) - 0.03


def test_only_and_exclude_choose_operators_by_name_glob_regex_and_type(cli):
    def int8(*options):
        out = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", "--json", *options).out
        return {entry["name"] for entry in json.loads(out)["operators"] if entry["precision"] == "int8"}

    everything = int8()
    convolutions = sorted(name for name in everything if "onv" in name)
    first = convolutions[0]
    assert int8("--only", first) == {first}
    assert first not in int8("--exclude", first)
    assert first not in int8("--exclude", f"/{first[:-1]}./")
    assert not any("onv" in name for name in int8("--exclude", "type:Conv"))


def test_unknown_names_are_errors(cli, tmp_path):
    done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", "--exclude", "nothing*")
    assert done.status == 1
    assert "nothing*" in done.err
    assert not (tmp_path / "q.onnx").exists()


def test_a_saved_plan_gives_the_same_model(cli, tmp_path):
    first = cli(
        "quantize", MODEL, *ARRAYS, "-o", "a.onnx", "--exclude", "type:MatMul", "--save-plan", "plan.json"
    )
    assert first.status == 0, first.err
    second = cli("quantize", MODEL, *ARRAYS, "-o", "b.onnx", "--plan", "plan.json")
    assert second.status == 0, second.err
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    (tmp_path / "plan.json").write_text("{broken")
    broken = cli("quantize", MODEL, *ARRAYS, "-o", "c.onnx", "--plan", "plan.json")
    assert (broken.status, "plan.json" in broken.err) == (1, True)


def save_images(folder, count, size=(40, 36)):
    folder.mkdir()
    images = np.load(FIXTURE / "images.npy")
    for index in range(count):
        kind = "png" if index % 2 else "jpg"
        Image.fromarray(images[index, 0]).resize(size).convert("RGB").save(folder / f"{index:03}.{kind}")


def test_a_folder_of_images_calibrates(cli, tmp_path, fashion):
    save_images(tmp_path / "photos", 24)
    done = cli("quantize", MODEL, "--data", "photos", "--scale", "1/255", "--resize", "28", "-o", "q.onnx")
    assert done.status == 0, done.err
    path, images, labels = fashion
    assert accuracy(tmp_path / "q.onnx", images, labels) >= accuracy(path, images, labels) - 0.05


def test_a_broken_image_is_named(cli, tmp_path):
    save_images(tmp_path / "photos", 4)
    content = (tmp_path / "photos" / "002.jpg").read_bytes()
    (tmp_path / "photos" / "002.jpg").write_bytes(content[: len(content) // 2])
    done = cli("quantize", MODEL, "--data", "photos", "-o", "q.onnx")
    assert (done.status, "002.jpg" in done.err) == (1, True)
    assert os.listdir(tmp_path) == ["photos"]


def test_arrays_come_from_folders_npz_and_named_files(cli, tmp_path, fashion):
    images = fashion[1][:8]
    (tmp_path / "arrays").mkdir()
    for index, image in enumerate(images):
        np.save(tmp_path / "arrays" / f"{index}.npy", image)
    np.savez(tmp_path / "x.npz", image=images)
    np.savez_compressed(tmp_path / "packed.npz", image=images)
    np.save(tmp_path / "x.npy", images)
    written = []
    for data in ("arrays", "x.npz", "packed.npz", "x.npy", "image=x.npy"):
        done = cli("quantize", MODEL, "--data", data, "-o", "q.onnx")
        assert done.status == 0, done.err
        written.append((tmp_path / "q.onnx").read_bytes())
    assert len(set(written)) == 1


def test_damaged_npz_files_are_named(cli, tmp_path):
    np.savez(tmp_path / "x.npz", image=np.zeros((2, 1, 28, 28), np.float32))
    content = (tmp_path / "x.npz").read_bytes()
    for length in (0, 30, 100, 2000, len(content) - 30):
        (tmp_path / "x.npz").write_bytes(content[:length])
        done = cli("quantize", MODEL, "--data", "x.npz", "-o", "q.onnx")
        assert (done.status, "x.npz" in done.err) == (1, True)


def test_damage_inside_packed_arrays_is_found(cli, tmp_path, fashion):
    np.savez_compressed(tmp_path / "x.npz", image=fashion[1][:8])
    content = bytearray((tmp_path / "x.npz").read_bytes())
    for place in range(200, len(content) // 2, len(content) // 10):
        content[place] ^= 0x55
        (tmp_path / "x.npz").write_bytes(content)
        content[place] ^= 0x55
        done = cli("quantize", MODEL, "--data", "x.npz", "-o", "q.onnx")
        assert (done.status, "x.npz" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((4, 1, 28, 28)), "f64"),
        (np.zeros((4, 3, 28, 28), np.float32), "4x3x28x28"),
        (np.zeros((0, 1, 28, 28), np.float32), "no samples"),
        (np.full((1, 1, 28, 28), np.nan, np.float32), "image"),
    ],
)
def test_samples_that_do_not_fit_are_refused(cli, tmp_path, array, expected):
    np.save(tmp_path / "x.npy", array)
    done = cli("quantize", MODEL, "--data", "x.npy", "-o", "q.onnx")
    assert (done.status, expected in done.err) == (1, True), done.err
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--data", "x.npy", "--calibration", "percentile:20"],
        ["--data", "x.npy", "--weights", "per-cow"],
        ["--data", "x.npy", "--scale", "big"],
        ["--data", "x.npy", "--std", "0"],
        ["--data", "x.npy", "--samples", "0"],
    ],
)
def test_wrong_usage_exits_with_2(cli, tmp_path, options):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 28, 28), np.float32))
    done = cli("quantize", MODEL, "-o", "q.onnx", *options)
    assert done.status == 2
    assert done.err.startswith("kilter: ")
    assert done.out == ""


def test_unknown_words_list_the_known_ones(cli, tmp_path):
    for option, known in (("--recipe", "bias-correction"), ("--calibration", "minmax")):
        done = cli("quantize", MODEL, *ARRAYS, "-o", "q.onnx", option, "magic")
        assert (done.status, known in done.err) == (1, True)


def test_capabilities_need_no_model(cli):
    done = cli("quantize", "--capabilities")
    assert done.status == 0
    assert "Conv" in done.out


def test_interrupting_leaves_no_file(tmp_path):
    # So many samples that it cannot be done before the signal comes.
    np.save(tmp_path / "x.npy", np.zeros((20000, 1, 28, 28), np.float32))
    command = [
        Path(sys.executable).with_name("kilter"),
        "quantize",
        MODEL,
        "--data",
        "x.npy",
        "--samples",
        "20000",
    ]
    process = subprocess.Popen([*command, "-o", "q.onnx"], cwd=tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.7)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (130, -signal.SIGINT)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_diff_lists_operators_worst_first(cli, quantized):
    report = json.loads(cli("diff", MODEL, quantized, *ARRAYS, "--json").out)
    ratios = [entry["snr_db"] for entry in report["operators"]]
    assert len(ratios) >= 8
    assert ratios == sorted(ratios)
    assert 10 < report["outputs"][0]["snr_db"] < 60
    assert all(ratio > 10 for ratio in ratios)
    text = cli("diff", MODEL, quantized, *ARRAYS, "--rows", "3")
    assert text.status == 0
    assert "logits" in text.out
    assert "more" in text.out


def test_diff_of_a_model_with_itself_is_equal(cli):
    report = json.loads(cli("diff", MODEL, MODEL, *ARRAYS, "--samples", "2", "--json").out)
    assert report["outputs"][0]["snr_db"] is None
    assert all(entry["snr_db"] is None for entry in report["operators"])


def test_diff_refuses_models_that_do_not_match(cli, add_file):
    done = cli("diff", MODEL, add_file)
    assert done.status == 1
    assert "no input 'image'" in done.err


def test_bench_compares_two_models_and_explains(cli, quantized):
    report = json.loads(cli("bench", MODEL, quantized, "--seconds", "1", "--json").out)
    assert report["ratio"] > 0
    convolutions = [entry for entry in report["operators"] if "Conv" in entry["op_a"]]
    assert convolutions
    assert all(entry["op_b"].startswith(("Q", "kilter.Q")) for entry in convolutions)
    slow = [
        entry for entry in report["operators"] if entry["milliseconds_b"] >= 0.95 * entry["milliseconds_a"]
    ]
    assert all(entry["why"] for entry in slow)
    text = cli("bench", MODEL, quantized, "--seconds", "0.3")
    assert text.status == 0, text.err
    assert "as fast" in text.out


def test_bench_names_excluded_operators(cli, tmp_path):
    cli("quantize", MODEL, *ARRAYS, "-o", "part.onnx", "--exclude", "type:Conv")
    report = json.loads(cli("bench", MODEL, "part.onnx", "--seconds", "0.5", "--json").out)
    reasons = {entry["why"] for entry in report["operators"] if "Conv" in entry["op_a"]}
    assert "runs in float32: excluded by the plan" in reasons
