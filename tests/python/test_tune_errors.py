"""What goes wrong around tuning, and what the user is told."""

import json
import re

import numpy as np
import onnx
import pytest

from study import Study, records

STUDY = ("--objective", "modelsize", "--workspace", "ws")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("errors"), samples=40, layers=4, hard=(2,))


@pytest.fixture
def begun(tmp_path):
    """A study of three trials in the folder ws."""
    study = Study(tmp_path, samples=40, layers=4, hard=(2,))
    study.result(*STUDY, "--strategy", "basic", "--max-trials", "3")
    return study


def resume(study, *more, strategy="basic"):
    return study.tune(*STUDY, "--strategy", strategy, "--max-trials", "5", "--resume", *more)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategy", "bayessian"], "there is no strategy 'bayessian'.*did you mean 'bayesian'"),
        (["--metric", "topkk"], "there is no metric 'topkk'.*did you mean 'topk'"),
        (["--metric", "topk:many"], "expected a whole number, found 'many'|expected .*many"),
        (["--max-loss", "tiny"], "tiny"),
        (["--objective", "speed"], "speed.*performance"),
        (["--exclude", "conv99"], "conv99"),
        (["--workspace", "elsewhere", "--resume"], "elsewhere: there is no study to resume"),
    ],
)
def test_bad_values_are_named(study, arguments, message):
    done = study.tune(*arguments)
    assert done.returncode == 1
    assert re.search(message, done.stderr, re.DOTALL), done.stderr
    assert "internal" not in done.stderr and done.stdout == ""
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-trials", "0"],
        ["--max-trials", "many"],
        ["--timeout", "-1"],
        ["--threads", "0"],
        ["--calibration-samples", "0"],
        ["--resume"],
        ["--unknown"],
    ],
)
def test_wrong_usage_is_told_apart(study, arguments):
    done = study.tune(*arguments)
    assert done.returncode == 2
    assert "kilter tune --help" in done.stderr


def test_files_that_are_not_there_are_named(study):
    for data, labels in (("nothing.npy", "labels.npy"), ("images.npy", "nothing.npy")):
        done = study.run("tune", "model.onnx", "--data", data, "--labels", labels, "-o", "x.onnx")
        assert done.returncode == 1 and "nothing.npy" in done.stderr


def test_data_and_output_must_be_said(study):
    done = study.run("tune", "model.onnx", "-o", "x.onnx")
    assert done.returncode == 2 and "--data" in done.stderr
    done = study.run("tune", "model.onnx", "--data", "images.npy")
    assert done.returncode == 2 and "--output" in done.stderr


def test_missing_labels_are_asked_for(study):
    for command in (["tune", "model.onnx", "-o", "x.onnx"], ["eval", "model.onnx"]):
        done = study.run(*command, "--data", "images.npy")
        assert done.returncode == 1
        assert "label" in done.stderr and "internal" not in done.stderr
        assert "--labels" in done.stderr


def test_labels_must_fit_the_data(study):
    np.save(study.folder / "few.npy", study.labels[:10])
    done = study.run("eval", "model.onnx", "--data", "images.npy", "--labels", "few.npy")
    assert done.returncode == 1 and "10" in done.stderr and "40" in done.stderr
    np.save(study.folder / "wrong.npy", study.labels + 100)
    done = study.run("eval", "model.onnx", "--data", "images.npy", "--labels", "wrong.npy")
    assert done.returncode == 1 and "10" in done.stderr


def test_a_study_is_not_overwritten(begun):
    before = (begun.folder / "ws" / "study.journal").read_bytes()
    done = begun.tune(*STUDY, "--strategy", "basic")
    assert done.returncode == 1
    assert "ws: there is a study already" in done.stderr and "--resume" in done.stderr
    assert (begun.folder / "ws" / "study.journal").read_bytes() == before


def test_resume_goes_on(begun):
    done = resume(begun, "--json")
    assert done.returncode == 0, done.stderr
    assert [trial["number"] for trial in json.loads(done.stdout)["trials"]] == [1, 2, 3, 4, 5]
    numbers = [entry["number"] for entry in records(begun.folder / "ws") if entry["type"] == "trial"]
    assert numbers == [1, 2, 3, 4, 5]


def test_resume_refuses_a_changed_model(begun):
    model = onnx.load(begun.folder / "model.onnx")
    weights = model.graph.initializer[0]
    weights.raw_data = weights.raw_data[:-1] + bytes([weights.raw_data[-1] ^ 64])
    onnx.save(model, begun.folder / "model.onnx")
    done = resume(begun)
    assert done.returncode == 1 and "the model changed" in done.stderr
    assert "data" not in done.stderr.split("\n")[0]


def test_resume_refuses_changed_images(begun):
    images = begun.images.copy()
    images[-1, 0, 0, 0] += 1
    np.save(begun.folder / "images.npy", images)
    done = resume(begun)
    assert done.returncode == 1
    assert "the calibration data, the evaluation data changed" in done.stderr


def test_resume_refuses_changed_labels(begun):
    np.save(begun.folder / "labels.npy", np.roll(begun.labels, 1))
    done = resume(begun)
    assert done.returncode == 1
    assert "about something else: the evaluation data changed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--max-loss", "3%"], "criterion"),
        (["--seed", "5"], "seed"),
        (["--exclude", "conv1"], "exclude"),
        (["--weights", "per-tensor"], "overrides"),
        (["--recipe", "equalization"], "recipes"),
        (["--no-early-rejection"], "early_rejection"),
        (["--calibration-samples", "20"], "samples"),
        (["--metric", "Accuracy"], "metrics"),
        (["--metric", "topk:5"], "metrics"),
    ],
)
def test_resume_refuses_changed_settings(begun, arguments, named):
    done = resume(begun, *arguments)
    assert done.returncode == 1, done.stdout
    assert re.search(rf"{named}.* changed", done.stderr), done.stderr


def test_resume_refuses_another_strategy(begun):
    done = resume(begun, strategy="mse")
    assert done.returncode == 1 and "'strategy' changed" in done.stderr


def test_what_a_deleted_journal_leaves_behind_is_not_used(begun):
    (begun.folder / "ws" / "study.journal").unlink()
    images = begun.images * 100  # other statistics
    np.save(begun.folder / "images.npy", images)
    arguments = ("--objective", "modelsize", "--max-trials", "1", "--performance-only")
    begun.run(*begun.arguments(*arguments, "--workspace", "ws"))
    begun.run(*begun.arguments(*arguments, "--workspace", "fresh", output="fresh.onnx"))
    assert (begun.folder / "int8.onnx").read_bytes() == (begun.folder / "fresh.onnx").read_bytes()


def test_a_damaged_journal_is_recognised(begun):
    path = begun.folder / "ws" / "study.journal"
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"baseline", b"bxseline"), *lines[3:]]))
    done = resume(begun)
    assert done.returncode == 1 and "study.journal: record 2 is damaged" in done.stderr
    path.write_bytes(content[:-7])  # the last record is half there
    done = resume(begun)
    assert done.returncode == 0, done.stderr
    path.write_bytes(b"something else\n")
    done = resume(begun)
    assert done.returncode == 1 and "no journal of kilter" in done.stderr


def test_errors_in_a_configuration_name_line_and_key(study):
    (study.folder / "bad.yaml").write_text(
        "model: {name: x, framework: onnxrt_qdq}\ntuning:\n  stratgy: {name: mse}\n"
    )
    done = study.run("tune", "bad.yaml", "--model", "model.onnx", "-o", "x.onnx")
    assert done.returncode == 1
    assert "bad.yaml:3" in done.stderr and "did you mean 'strategy'" in done.stderr


def test_a_configuration_needs_a_model_data_and_a_metric(study):
    (study.folder / "empty.yaml").write_text("model: {name: x, framework: onnxrt_qdq}\n")
    done = study.run("tune", "empty.yaml", "-o", "x.onnx")
    assert done.returncode == 1 and "--model" in done.stderr
    done = study.run("tune", "empty.yaml", "--model", "model.onnx", "-o", "x.onnx")
    assert done.returncode == 1 and "evaluation" in done.stderr
    done = study.run(
        *(
            "tune",
            "empty.yaml",
            "--model",
            "model.onnx",
            "-o",
            "x.onnx",
            "--threads",
            "1",
            "--max-trials",
            "1",
        ),
        *("--data", "images.npy", "--labels", "labels.npy", "--metric", "topk"),
    )
    assert done.returncode == 0, done.stderr
    done = study.run("tune", "empty.yaml", "--model", "model.onnx", "-o", "x.onnx", "--labels", "labels.npy")
    assert done.returncode == 2 and "--labels" in done.stderr
