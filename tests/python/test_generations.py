"""The interfaces of LPOT and Intel Neural Compressor: what quantizers take, what they give, and what they do when things go wrong."""

import logging
import traceback
from pathlib import Path

import numpy as np
import onnx
import pytest

import kilter
import kilter.experimental
import kilter.quantization
from kilter.experimental import common
from kilter.utils.utility import recover
from study import Study

# The first trial will do; two are made.
QUICK = {
    "tuning": {
        "objective": "modelsize",
        "accuracy_criterion": {"absolute": 1.0},
        "exit_policy": {"max_trials": 2, "timeout": 0},
    }
}
TWO = {"tuning": {"objective": "modelsize", "exit_policy": {"max_trials": 2}}}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("generations"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def path(study):
    return study.folder / "model.onnx"


def pairs(study, size=20):
    for first in range(0, len(study.images), size):
        yield study.images[first : first + size], study.labels[first : first + size]


class Loader:
    def __init__(self, study, size=20):
        self.study, self.batch_size = study, size

    def __iter__(self):
        return pairs(self.study, self.batch_size)


def accuracy_on(study):
    return lambda model: float((model(study.images).argmax(1) == study.labels).mean())


class Right:
    """A metric of one's own."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def reset(self):
        self.right = self.all = 0

    def update(self, predictions, labels):
        self.right += int((predictions.argmax(1) == labels).sum())
        self.all += len(labels)

    def result(self):
        return self.factor * self.right / self.all


def test_attributes_can_be_read_back(study, path):
    quantizer = kilter.experimental.Quantization(QUICK)
    loader, metric = Loader(study), common.Metric(Right)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_dataloader = path, loader, loader
    quantizer.metric, quantizer.eval_func, quantizer.q_func = metric, len, print
    assert quantizer.model.model == path and quantizer.calib_dataloader is loader
    assert quantizer.metric is metric and quantizer.eval_func is len and quantizer.q_func is print
    wrapped = common.Model(path)
    quantizer.model = wrapped
    assert quantizer.model is wrapped


@pytest.mark.parametrize("form", ["path", "text", "bytes", "proto", "kilter", "wrapped"])
def test_models_come_in_many_forms(study, path, form):
    given = {
        "path": path,
        "text": str(path),
        "bytes": path.read_bytes(),
        "proto": onnx.load(path),
        "kilter": kilter.load(path),
        "wrapped": common.Model(str(path)),
    }[form]
    quantizer = kilter.experimental.Quantization(QUICK)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_func = (
        given,
        Loader(study),
        accuracy_on(study),
    )
    assert isinstance(quantizer().model, kilter.QuantizedModel)


@pytest.mark.parametrize("form", ["loader", "generator", "list", "dicts", "iterator"])
def test_loaders_come_in_many_forms(study, path, form):
    def data():
        dicts = [{"image": images, "label": labels} for images, labels in pairs(study)]
        return {
            "loader": Loader(study),
            "generator": pairs(study),
            "list": list(pairs(study)),
            "dicts": dicts,
            "iterator": iter(dicts),
        }[form]

    config = QUICK | {"evaluation": {"accuracy": {"metric": {"topk": 1}}}}
    quantizer = kilter.quantization.Quantization(config)
    found = quantizer(path, q_dataloader=Loader(study), eval_dataloader=data())
    assert quantizer.result.best.accuracy == (accuracy_on(study)(found),)
    calibrated = kilter.quantization.Quantization(QUICK)
    again = calibrated(path, q_dataloader=data(), eval_func=accuracy_on(study))
    assert again.plan == found.plan


def test_sampling_size_counts_samples_in_whole_batches(study, path):
    read = []

    class Counting(Loader):
        def __iter__(self):
            for images, labels in pairs(self.study, self.batch_size):
                read.append(len(images))
                yield images, labels

    config = QUICK | {"quantization": {"calibration": {"sampling_size": 50}}}
    quantizer = kilter.quantization.Quantization(config)
    quantizer(path, q_dataloader=Counting(study), eval_func=accuracy_on(study))
    assert read == [20, 20, 20]


def test_labels_are_ignored_in_calibration(study, path):
    class Silent:
        batch_size = 20

        def __iter__(self):
            for images, _ in pairs(study):
                yield images, None

    plans = []
    for loader in (Loader(study), Silent(), [images for images, _ in pairs(study)]):
        quantizer = kilter.quantization.Quantization(QUICK)
        plans.append(quantizer(path, q_dataloader=loader, eval_func=accuracy_on(study)).plan)
    assert plans[0] == plans[1] == plans[2]


def test_a_missed_goal_gives_the_best_model(study, path, caplog):
    config = {
        "tuning": {
            "accuracy_criterion": {"relative": -0.5},  # better than FP32, which is right everywhere
            "exit_policy": {"max_trials": 2},
            "objective": "modelsize",
        }
    }
    quantizer = kilter.experimental.Quantization(config)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_func = path, Loader(study), accuracy_on(study)
    with caplog.at_level(logging.INFO, "kilter"):
        q_model = quantizer.fit()
    assert q_model is not None and q_model.met is False
    assert q_model(study.images[:3]).shape == (3, 10)
    assert quantizer.strategy.best_qmodel is q_model
    assert "met == False" in caplog.text and caplog.records[-1].levelname == "WARNING"
    older = kilter.quantization.Quantization(config)
    assert older.met is None
    assert older(path, q_dataloader=Loader(study), eval_func=accuracy_on(study)) is not None
    assert older.met is False


def test_what_users_functions_raise_reaches_the_user(study, path):
    class Trouble(Exception):
        pass

    def broken_evaluation(model):
        raise Trouble("in the evaluation")

    class BrokenLoader(Loader):
        def __iter__(self):
            yield next(pairs(self.study))
            raise Trouble("in the loader")

    class BrokenMetric(Right):
        def update(self, predictions, labels):
            raise Trouble("in the metric")

    def broken_q_func(model):
        raise Trouble("in q_func")

    good = accuracy_on(study)
    cases = {
        "broken_evaluation": lambda q: q(path, q_dataloader=Loader(study), eval_func=broken_evaluation),
        "__iter__": lambda q: q(path, q_dataloader=BrokenLoader(study), eval_func=good),
        "update": lambda q: (
            q.metric("broken", BrokenMetric)
            or q(path, q_dataloader=Loader(study), eval_dataloader=Loader(study))
        ),
        "broken_q_func": lambda q: q(path, q_func=broken_q_func, eval_func=good),
    }
    for where, call in cases.items():
        with pytest.raises(Trouble) as caught:
            call(
                kilter.quantization.Quantization(
                    QUICK | {"quantization": {"calibration": {"sampling_size": 60}}}
                )
            )
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == where


def test_nothing_to_evaluate_with_gives_the_first_model_and_says_so(study, path, caplog):
    quantizer = kilter.quantization.Quantization()
    with caplog.at_level(logging.WARNING, "kilter"):
        found = quantizer(path, q_dataloader=Loader(study))
    assert "nothing to evaluate with" in caplog.text
    assert quantizer.met is None and len(quantizer.result.trials) == 1
    assert isinstance(found, kilter.QuantizedModel)


def test_what_is_missing_is_named(study, path):
    def quantizer(config=QUICK):
        return kilter.quantization.Quantization(config)

    with pytest.raises(kilter.Error, match="no samples to calibrate with"):
        quantizer()(path, eval_func=accuracy_on(study))
    with pytest.raises(kilter.Error, match="there is no metric"):
        quantizer()(path, q_dataloader=Loader(study), eval_dataloader=Loader(study))
    with pytest.raises(kilter.Error, match="no samples to evaluate with"):
        config = QUICK | {"evaluation": {"accuracy": {"metric": {"topk": 1}}}}
        quantizer(config)(path, q_dataloader=Loader(study))
    with pytest.raises(kilter.Error, match="there is no model"):
        kilter.experimental.Quantization(QUICK)()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        quantizer("nowhere.yaml")
    with pytest.raises(kilter.Error, match="did you mean 'tuning'"):
        quantizer({"tunning": {}})
    with pytest.raises(TypeError, match="YAML file or a dict"):
        quantizer(3)
    with pytest.raises(TypeError, match="lacks update"):
        quantizer().metric("half", type("Half", (), {"reset": len, "result": len}))


def test_metrics_and_postprocessing_of_ones_own(study, path):
    class Shift:
        """Labels that count from 1."""

        def __init__(self, by=0):
            self.by = by

        def __call__(self, sample):
            predictions, labels = sample
            return predictions, labels - self.by

    shifted = [(images, labels + 1) for images, labels in pairs(study)]
    expected = None
    for metric in (common.Metric(Right, factor=1.0), Right(), "topk", {"topk": 1}):
        quantizer = kilter.experimental.Quantization(QUICK)
        quantizer.model, quantizer.calib_dataloader = path, Loader(study)
        quantizer.eval_dataloader, quantizer.metric = shifted, metric
        quantizer.postprocess = common.Postprocess(Shift, by=1)
        found = quantizer().result
        assert found.baseline.accuracy == (1.0,)
        expected = expected or found.best.accuracy
        assert found.best.accuracy == expected
    older = kilter.quantization.Quantization(QUICK)
    older.metric("right", Right, factor=0.5)
    older.postprocess("shift", Shift, by=1)
    older(path, q_dataloader=Loader(study), eval_dataloader=shifted)
    assert older.result.baseline.accuracy == (0.5,)


def test_the_yaml_may_change_labels_of_samples_that_are_given(study, path):
    shifted = [(images, labels + 1) for images, labels in pairs(study)]
    config = QUICK | {
        "evaluation": {"accuracy": {"metric": {"topk": 1}, "postprocess": {"transform": {"LabelShift": 1}}}}
    }
    by_name = kilter.quantization.Quantization(config)
    by_name(path, q_dataloader=Loader(study), eval_dataloader=shifted)
    of_ones_own = kilter.quantization.Quantization(config)
    of_ones_own.metric("right", Right)
    of_ones_own(path, q_dataloader=Loader(study), eval_dataloader=shifted)
    assert by_name.result.baseline.accuracy == of_ones_own.result.baseline.accuracy == (1.0,)


def test_a_metric_of_ones_own_over_samples_of_the_yaml(study, path):
    loader = {
        "batch_size": 20,
        "dataset": {
            "NumPy": {"root": str(study.folder / "images.npy"), "labels": str(study.folder / "labels.npy")}
        },
    }
    quantizer = kilter.experimental.Quantization(QUICK | {"evaluation": {"accuracy": {"dataloader": loader}}})
    quantizer.model, quantizer.metric = path, Right()
    assert quantizer().result.baseline.accuracy == (1.0,)


def test_which_way_a_figure_counts_is_said_in_the_yaml(study, path):
    config = {
        "tuning": {
            "accuracy_criterion": {"absolute": 0.5, "higher_is_better": False},
            "objective": "modelsize",
            "exit_policy": {"max_trials": 2},
        }
    }
    quantizer = kilter.quantization.Quantization(config)
    quantizer(path, q_dataloader=Loader(study), eval_func=lambda model: 1 - accuracy_on(study)(model))
    assert quantizer.result.baseline.accuracy == (0.0,)
    assert quantizer.met == (quantizer.result.best.accuracy[0] <= 0.5)


def test_a_calibration_function_feeds_the_model(study, path):
    def q_func(model):
        for images, _ in pairs(study):
            model(images)

    fed = kilter.quantization.Quantization(QUICK)
    given = kilter.quantization.Quantization(QUICK)
    assert (
        fed(path, q_func=q_func, eval_func=accuracy_on(study)).plan
        == given(path, q_dataloader=Loader(study), eval_func=accuracy_on(study)).plan
    )
    with pytest.raises(kilter.Error, match="q_func ran the model on nothing"):
        fed(path, q_func=lambda model: None, eval_func=accuracy_on(study))


def test_any_trial_can_be_recovered(study, path):
    quantizer = kilter.experimental.Quantization(TWO)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_func = path, Loader(study), accuracy_on(study)
    q_model = quantizer()
    workspace = Path(quantizer.result.workspace)
    for number, trial in enumerate(quantizer.result.trials):
        for snapshot in (workspace, workspace / "study.journal", str(workspace / "history.snapshot")):
            again = recover(path, snapshot, number)
            assert accuracy_on(study)(again.model) == trial.accuracy[0]
    best = recover(kilter.load(path), workspace, quantizer.result.best.number - 1)
    assert best.q_config == q_model.q_config and best.met is None
    with pytest.raises(kilter.Error, match="no trial 78"):
        recover(path, workspace, 77)
    with pytest.raises(kilter.Error, match="from 0"):
        recover(path, workspace, -1)


def test_a_script_can_run_twice_and_loses_nothing(study, path):
    config = {"tuning": TWO["tuning"] | {"workspace": {"path": "ws"}}}
    results = []
    for _ in range(3):
        quantizer = kilter.quantization.Quantization(config)
        quantizer(path, q_dataloader=Loader(study), eval_func=accuracy_on(study))
        results.append(quantizer.result)
    with pytest.raises(kilter.Error, match="no samples to calibrate with"):
        kilter.quantization.Quantization(config)(path, eval_func=accuracy_on(study))
    assert sorted(entry.name for entry in Path("ws").iterdir() if entry.is_dir()) == [
        "earlier-1",
        "earlier-2",
    ]
    for folder in ("ws", "ws/earlier-1", "ws/earlier-2"):
        assert recover(path, folder, 0).q_config["plan"]
    more = {
        "tuning": {
            "objective": "modelsize",
            "workspace": {"resume": "ws/history.snapshot"},
            "exit_policy": {"max_trials": 4},
        }
    }
    quantizer = kilter.quantization.Quantization(more)
    quantizer(path, q_dataloader=Loader(study), eval_func=accuracy_on(study))
    assert quantizer.result.trials[0].accuracy == results[-1].trials[0].accuracy


def test_every_quantizer_has_a_workspace_of_its_own(study, path):
    folders = set()
    for _ in range(2):
        quantizer = kilter.quantization.Quantization(QUICK)
        quantizer(path, q_dataloader=Loader(study), eval_func=accuracy_on(study))
        folders.add(quantizer.result.workspace)
    assert len(folders) == 2 and all(Path(folder).parent == Path("kilter_workspace") for folder in folders)


def test_the_log_says_what_the_old_tools_say(study, path, caplog):
    quantizer = kilter.quantization.Quantization(TWO)
    with caplog.at_level(logging.INFO, "kilter"):
        quantizer(path, q_dataloader=Loader(study), eval_func=accuracy_on(study))
    text = [record.message for record in caplog.records]
    assert text[0] == "Get FP32 model baseline."
    assert text[1].startswith("FP32 baseline is: [Accuracy: 1.0000, Duration (seconds): ")
    first = quantizer.result.trials[0]
    assert text[2].startswith(f"Tune 1 result is: [Accuracy (int8|fp32): {first.accuracy[0]:.4f}|1.0000, ")
    assert len([line for line in text if line.startswith("Tune ")]) == len(quantizer.result.trials)


def test_configurations_are_told(study, path):
    quantizer = kilter.experimental.Quantization(QUICK)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_func = path, Loader(study), accuracy_on(study)
    q_model = quantizer()
    q_config = quantizer.strategy.best_qmodel.q_config
    in_float = [entry["name"] for entry in q_config["plan"]["operators"] if entry["precision"] != "int8"]
    assert q_config["quant_cfg"]["excluded_symbols"] == in_float
    assert q_config["quant_cfg"]["quantize_granularity"] == "channel-wise"
    assert quantizer.strategy.baseline[0] == 1.0
    assert quantizer.strategy.best_tune_result[0] == q_model.result.best.accuracy[0]
    assert len(quantizer.strategy.tuning_history) == len(q_model.result.trials)


def test_datasets_and_loaders(tmp_path):
    quantizer = kilter.quantization.Quantization()
    dataset = quantizer.dataset("dummy", (7, 3, 4, 4), 0, 1)
    assert len(dataset) == 7 and dataset[0][0].shape == (3, 4, 4) and dataset[6][1] == 0
    assert np.array_equal(dataset[-1][0], dataset[6][0])
    with pytest.raises(IndexError):
        dataset[7]
    with pytest.raises(kilter.Error, match="twice"):
        quantizer.dataset("dummy", (7, 3), shape=(7, 3))
    with pytest.raises(kilter.Error, match="did you mean 'dummy'"):
        quantizer.dataset("dumy", (7, 3))

    loader = quantizer.dataloader(dataset, batch_size=3)
    assert len(loader) == 3 and loader.batch_size == 3
    assert [images.shape for images, _ in loader] == [(3, 3, 4, 4), (3, 3, 4, 4), (1, 3, 4, 4)]
    dropped = quantizer.dataloader(dataset, batch_size=3, last_batch="discard")
    assert len(list(dropped)) == len(dropped) == 2
    chosen = quantizer.dataloader(dataset, batch_size=2, sampler=[6, 0, 3])
    assert np.array_equal(next(iter(chosen))[0][0], dataset[6][0])
    batches = quantizer.dataloader(dataset, batch_sampler=[[0, 1], [2]], collate_fn=len)
    assert list(batches) == [2, 1]
    assert list(quantizer.dataloader(iter("abc"), collate_fn=lambda batch: batch)) == [["a"], ["b"], ["c"]]
    with pytest.raises(kilter.Error, match="rollover or discard"):
        quantizer.dataloader(dataset, last_batch="keep")
    with pytest.raises(TypeError, match="indexed or iterated"):
        quantizer.dataloader(3)
    with pytest.raises(TypeError, match="by index"):
        quantizer.dataloader(iter([1]), sampler=[0])

    np.save(tmp_path / "images.npy", np.zeros((2, 2, 2, 3), np.uint8))
    doubled = quantizer.dataset(
        "NumPy", str(tmp_path / "images.npy"), transform=lambda pair: (pair[0] * 2, "seen")
    )
    assert doubled[0][1] == "seen"


def test_an_objective_may_be_set(study, path):
    quantizer = kilter.experimental.Quantization({"tuning": {"exit_policy": {"max_trials": 1}}})
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_func = path, Loader(study), accuracy_on(study)
    quantizer.objective = "modelsize"
    best = quantizer().result.best
    assert best.objective == pytest.approx(best.bytes / quantizer.result.baseline.bytes)


def test_only_so_many_batches_are_evaluated(study, path):
    seen = []

    def counted():
        for pair in pairs(study):
            seen.append(len(pair[1]))
            yield pair

    class Counted:
        def __iter__(self):
            return counted()

    quantizer = kilter.experimental.Quantization(
        QUICK | {"evaluation": {"accuracy": {"metric": {"topk": 1}, "iteration": 2}}}
    )
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_dataloader = path, Loader(study), Counted()
    assert quantizer.fit().result.baseline.samples == 40


def test_files_of_the_user_stay_in_his_workspace(study, path, tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "mine.onnx").write_bytes(b"mine")
    conf = {"tuning": QUICK["tuning"] | {"workspace": {"path": str(workspace)}}}
    for _ in range(2):
        quantizer = kilter.experimental.Quantization(conf)
        quantizer.model, quantizer.calib_dataloader = path, Loader(study)
        quantizer.eval_func = accuracy_on(study)
        quantizer.fit()
    assert (workspace / "mine.onnx").read_bytes() == b"mine"
    assert (workspace / "earlier-1" / "study.journal").exists()


def test_loaders_shuffle_alike_every_time():
    loader = common.DataLoader(list(range(20)), batch_size=20, shuffle=True)
    first, second = (next(iter(loader)).tolist() for _ in range(2))
    assert first == second != sorted(first) == list(range(20))
    with pytest.raises(kilter.InputTypeError, match="can be shuffled"):
        common.DataLoader(iter([1, 2]), shuffle=True)
