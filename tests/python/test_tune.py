"""kilter tune, eval, recover and sensitivity: what they find, and that their files and figures agree."""

import json

import numpy as np
import onnx
import pytest

from study import HARD, Study, records

CONFIG = """
model: {{name: chain, framework: onnxrt_qdq}}
quantization:
  calibration:
    sampling_size: 64
    dataloader: {{batch_size: 16, dataset: {{NumPy: {{root: pixels.npy}}}}, transform: {transform}}}
evaluation:
  accuracy:
    metric: {{topk: 1}}
    dataloader:
      batch_size: 20
      dataset: {{NumPy: {{root: pixels.npy, labels: labels.npy}}}}
      transform: {transform}
tuning:
  strategy: {{name: mse_v2}}
  accuracy_criterion: {{relative: 0.02}}
  objective: modelsize
  exit_policy: {{timeout: 0, max_trials: 30}}
  random_seed: 7
  workspace: {{path: from_config}}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def tuned(study):
    """The result of a search whose course does not depend on the clock."""
    result = study.result(
        "--max-loss", "1%", "--metric", "topk", "--objective", "modelsize", "--workspace", "ws"
    )
    return study, result


def evaluate(study, model, *more):
    done = study.run("eval", model, "--data", "images.npy", "--labels", "labels.npy", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_result_tells_what_was_found_and_how(tuned):
    _, result = tuned
    assert result["met"] is True
    assert result["baseline"]["accuracy"] == [1.0]
    assert result["baseline"]["samples"] == 160
    best = result["best"]
    assert best["met"] and best["outcome"]["accuracy"][0] >= 0.99
    assert best["outcome"]["samples"] == 160
    assert best["outcome"]["bytes"] < 0.6 * result["baseline"]["bytes"]
    assert best == result["trials"][best["number"] - 1]
    assert [trial["number"] for trial in result["trials"]] == [*range(1, len(result["trials"]) + 1)]
    assert all(trial["reason"] and trial["operators"] for trial in result["trials"])
    assert best["number"] in result["pareto"]
    assert result["full_evaluations"] == sum(
        not trial["outcome"]["rejected_early"] for trial in result["trials"]
    )


def test_hard_operators_are_spared_and_every_spared_one_has_a_reason(tuned):
    _, result = tuned
    spared = {entry["name"]: entry for entry in result["spared"]}
    assert {name for name in spared if name.startswith("conv")} == {f"conv{layer}" for layer in HARD}
    assert all(entry["reason"] and entry["precision"] == "f32" for entry in spared.values())


def test_the_best_is_the_cheapest_trial_that_keeps_the_promise(tuned):
    _, result = tuned
    kept = [trial for trial in result["trials"] if trial["met"]]
    assert result["best"]["objective"] == min(trial["objective"] for trial in kept)


def test_other_runtimes_get_the_reported_accuracy(tuned):
    study, result = tuned
    reported = result["best"]["outcome"]["accuracy"][0]
    assert study.accuracy() == pytest.approx(reported, abs=0.01)
    assert evaluate(study, "int8.onnx")["metrics"]["topk"] == pytest.approx(reported)
    assert evaluate(study, "model.onnx")["metrics"]["topk"] == 1.0


def test_eval_takes_several_metrics(tuned):
    study, _ = tuned
    figures = evaluate(study, "int8.onnx", "--metric", "topk:5", "--metric", "Accuracy", "--samples", "50")
    assert figures["samples"] == 50
    assert figures["metrics"]["topk:5"] == 1.0
    assert figures["metrics"]["Accuracy"] >= 0.98


def test_recover_gives_the_bytes_of_the_best_model(tuned):
    study, result = tuned
    best = (study.folder / "int8.onnx").read_bytes()
    assert (study.folder / "ws" / "best.onnx").read_bytes() == best
    for arguments in ([], [result["best"]["number"]]):
        done = study.run("recover", "ws", *arguments, "-o", "again.onnx")
        assert done.returncode == 0, done.stderr
        assert (study.folder / "again.onnx").read_bytes() == best


def test_recover_gives_the_bytes_of_any_trial(tuned):
    study, result = tuned
    # The first trial that keeps the promise is what a shorter search ends with.
    first = next(trial["number"] for trial in result["trials"] if trial["met"])
    shorter = study.run(
        *study.arguments("--objective", "modelsize", "--max-trials", first, output="first.onnx")
    )
    assert shorter.returncode == 0, shorter.stderr
    assert study.run("recover", "ws", first, "-o", "again.onnx").returncode == 0
    assert (study.folder / "again.onnx").read_bytes() == (study.folder / "first.onnx").read_bytes()
    for trial in result["trials"][::6]:
        assert study.run("recover", "ws", trial["number"], "-o", "again.onnx").returncode == 0
        if not trial["outcome"]["rejected_early"]:
            found = evaluate(study, "again.onnx")["metrics"]["topk"]
            assert found == pytest.approx(trial["outcome"]["accuracy"][0])


def test_recover_says_which_trials_there_are(tuned):
    study, result = tuned
    done = study.run("recover", "ws", 999, "-o", "again.onnx")
    assert done.returncode == 1
    assert f"there is no trial 999; there are {len(result['trials'])}" in done.stderr
    nowhere = study.run("recover", "nowhere", 1, "-o", "again.onnx")
    assert nowhere.returncode == 1 and "nowhere/study.journal" in nowhere.stderr


def test_recover_refuses_a_model_that_changed(tmp_path):
    study = Study(tmp_path)
    study.result("--max-trials", "1", "--workspace", "ws")
    model = onnx.load(tmp_path / "model.onnx")
    model.graph.initializer[0].raw_data = bytes(len(model.graph.initializer[0].raw_data))
    onnx.save(model, tmp_path / "model.onnx")
    done = study.run("recover", "ws", 1, "-o", "again.onnx")
    assert done.returncode == 1 and "the model changed" in done.stderr


def test_a_promise_that_cannot_be_kept_still_gives_the_most_accurate_model(study):
    result = study.result(
        "--max-loss=-5%", "--strategy", "random", "--max-trials", "5", "--workspace", "hopeless"
    )
    assert result["met"] is False and len(result["trials"]) == 5
    assert study.accuracy() == pytest.approx(result["best"]["outcome"]["accuracy"][0], abs=0.01)
    text = study.run(*study.arguments("--max-loss=-5%", "--strategy", "random", "--max-trials", "2")).stdout
    assert "The promise is NOT kept" in text


def test_several_metrics_must_all_keep_the_promise(study):
    result = study.result("--metric", "topk", "--metric", "topk:5", "--objective", "modelsize")
    assert len(result["baseline"]["accuracy"]) == 2
    assert result["met"] and min(result["best"]["outcome"]["accuracy"]) >= 0.99


def test_excluded_operators_stay_in_floating_point(study):
    result = study.result("--exclude", "conv1", "--objective", "modelsize")
    assert {"conv1", "conv4", "conv8"} <= {entry["name"] for entry in result["spared"]}


def test_a_seed_repeats_the_search(study):
    def course(seed):
        result = study.result("--strategy", "tpe", "--timeout", "60", "--max-trials", "8", "--seed", seed,
                              "--objective", "modelsize")  # fmt: skip
        return [(trial["operators"], trial["outcome"]["accuracy"]) for trial in result["trials"]]

    assert course(3) == course(3) != course(4)


def test_the_text_is_a_table_and_progress_holds_no_escape_codes(study):
    done = study.tune("--objective", "modelsize")
    assert done.returncode == 0
    assert done.stdout.startswith("Tune Result Statistics\n")
    assert "The promise is kept" in done.stdout and all(name in done.stdout for name in ("conv4", "conv8"))
    assert "written     int8.onnx" in done.stdout
    assert done.stderr.startswith("FP32    accuracy 1.0000") and "tune 1 " in done.stderr
    assert "\x1b" not in done.stderr and "\r" not in done.stderr


def test_every_study_gets_a_folder_of_its_own(study):
    first, second = (study.result("--max-trials", "1")["workspace"] for _ in range(2))
    assert first != second
    assert records(study.folder / first)[0]["type"] == records(study.folder / second)[0]["type"] == "study"


def test_sensitivity_ranks_the_hard_operator_first(tmp_path):
    study = Study(tmp_path, hard=(4,))
    done = study.run("sensitivity", "model.onnx", "--data", "images.npy", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows[0]["name"] == "conv4" and rows[0]["share"] > 0.5
    assert [row["error"] for row in rows] == sorted((row["error"] for row in rows), reverse=True)
    assert {row["name"] for row in rows} >= {f"conv{layer}" for layer in range(12)} | {"head"}
    text = study.run("sensitivity", "model.onnx", "--data", "images.npy").stdout
    assert text.splitlines()[0].split() == ["operator", "type", "error", "share", "gain"]
    assert text.splitlines()[1].split()[:2] == ["conv4", "Conv"]


@pytest.fixture(scope="module")
def configured(study):
    """A study by configuration: images are stored as what Rescale turns into the model's inputs."""
    pixels = np.clip(np.round(study.images * 32 + 128), 0, 255).astype(np.uint8)
    np.save(study.folder / "pixels.npy", pixels)
    transform = "{Cast: {dtype: float32}, Normalize: {mean: [128, 128, 128], std: [32, 32, 32]}}"
    (study.folder / "conf.yaml").write_text(CONFIG.format(transform=transform))
    done = study.run(
        "tune", "conf.yaml", "--model", "model.onnx", "-o", "conf.onnx", "--json", "--threads", "1"
    )
    assert done.returncode == 0, done.stderr
    return study, json.loads(done.stdout)


def test_a_configuration_says_everything_that_flags_can(configured):
    study, result = configured
    assert result["met"] and result["workspace"] == "from_config"
    assert result["best"]["outcome"]["samples"] == 160
    settings = records(study.folder / "from_config")[0]["settings"]
    assert settings["strategy"] == "mse_v2" and settings["objective"] == "modelsize"
    assert settings["seed"] == 7 and settings["samples"] == [64]
    assert result["ended"] == "the first model that keeps the promise"


def test_flags_beat_the_configuration(configured):
    study, _ = configured
    done = study.run(
        *(
            "tune",
            "conf.yaml",
            "--model",
            "model.onnx",
            "-o",
            "other.onnx",
            "--json",
            "--workspace",
            "flags",
            "--threads",
            "1",
        ),
        *("--strategy", "basic", "--max-loss", "abs:0.5", "--objective", "footprint", "--seed", "9"),
        *("--max-trials", "3", "--calibration-samples", "32", "--exclude", "conv2", "--metric", "topk:5"),
    )
    assert done.returncode == 0, done.stderr
    settings = records(study.folder / "flags")[0]["settings"]
    assert settings["strategy"] == "basic" and settings["objective"] == "footprint" and settings["seed"] == 9
    assert settings["samples"] == [32] and settings["exclude"] == ["conv2"]
    assert "0.5" in settings["criterion"]
    result = json.loads(done.stdout)
    assert len(result["trials"]) <= 3
    assert "conv2" in {entry["name"] for entry in result["spared"]}
    # Among ten classes, the right one is more often among the first five.
    assert result["trials"][0]["outcome"]["accuracy"][0] > 0.3


def test_deploy_yaml_evaluates_the_tuned_model(configured):
    study, result = configured
    done = study.run("eval", "conf.onnx", "--config", "from_config/deploy.yaml", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["samples"] == 160
    assert figures["metrics"]["topk"] == pytest.approx(result["best"]["outcome"]["accuracy"][0])


def test_deploy_yaml_keeps_several_metrics_and_their_weights(configured):
    study, _ = configured
    text = (study.folder / "conf.yaml").read_text().replace("from_config", "several")
    several = "multi_metrics: {topk: 1, Accuracy: {}, weight: [0.75, 0.25]}\n    iteration: 4"
    (study.folder / "several.yaml").write_text(text.replace("metric: {topk: 1}", several))
    done = study.run(
        "tune", "several.yaml", "--model", "model.onnx", "-o", "x.onnx", "--json", "--threads", "1"
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["best"]["outcome"]["accuracy"]
    done = study.run("eval", "x.onnx", "--config", "several/deploy.yaml", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 80
    assert [*json.loads(done.stdout)["metrics"].values()] == pytest.approx(figures)
    assert "weight" in (study.folder / "several" / "deploy.yaml").read_text()


def test_the_configuration_is_not_written_to(configured):
    study, _ = configured
    before = (study.folder / "conf.yaml").read_bytes()
    study.run(
        "tune", "conf.yaml", "--model", "model.onnx", "-o", "x.onnx", "--workspace", "third", "--threads", "1"
    )
    assert (study.folder / "conf.yaml").read_bytes() == before
