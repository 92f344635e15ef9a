"""Strategies in the shape of the old tools: classes with next_tune_cfg."""

import copy
import logging

import numpy as np
import pytest

import kilter
from kilter.experimental import Quantization
from kilter.strategy.bayesian import BayesianOptimization
from kilter.strategy.strategy import TuneStrategy, strategy_registry
from study import HARD, SIZE, Study, batches


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("old_strategies"))


@pytest.fixture(scope="module")
def path(study):
    return study.folder / "model.onnx"


def relative_error(expected, observed):
    return np.abs(observed - expected).mean() / max(np.abs(expected).mean(), 1e-9)


@strategy_registry
class WorstFirstTuneStrategy(TuneStrategy):
    """As the custom strategy of MXNet's documentation: all on integers; then what is far from FP32 falls back."""

    def __init__(
        self,
        model,
        conf,
        q_dataloader,
        q_func=None,
        eval_dataloader=None,
        eval_func=None,
        dicts=None,
        q_hooks=None,
    ):
        super().__init__(model, conf, q_dataloader, q_func, eval_dataloader, eval_func, dicts, q_hooks)

    def tensors(self, model, nodes):
        found = self.adaptor.inspect_tensor(model, self.calib_dataloader, nodes, [1])["activation"][0]
        return {name: found[name][name] for name in nodes}

    def next_tune_cfg(self):
        config = {
            "calib_iteration": int(self.calib_iter[0]),
            "calib_sampling_size": int(self.calib_sampling_size[0]),
            "op": {},
        }
        chosen = {}
        for key, options in self.opwise_tune_cfgs.items():
            chosen[key] = next(
                i for i, option in enumerate(options) if option["activation"]["algorithm"] == "minmax"
            )
            config["op"][key] = copy.deepcopy(options[chosen[key]])
        yield config
        accuracy, _ = self.last_tune_result
        assert accuracy < self.baseline[0]

        nodes = [name for name, _ in config["op"]]
        expected = self.tensors(self.model, nodes)
        errors = {}
        for key, entry in config["op"].items():
            before = self.tensors(self.adaptor.quantize(config, self.model, self.calib_dataloader), nodes)
            errors[key[0]] = relative_error(expected[key[0]], before[key[0]])
            can_fall_back = "fp32" in self.opwise_tune_space[key]["activation"]["dtype"]
            if can_fall_back and errors[key[0]] > 0.2:
                entry["activation"]["dtype"] = "fp32"
                chosen.pop(key)
        yield config
        for params in self.between(chosen):
            for key, value in params.items():
                options = self.opwise_quant_cfgs[key]
                config["op"][key] = copy.deepcopy(options[min(int(value), len(options) - 1)])
            yield config

    def between(self, chosen):
        bounds = {key: (0, len(self.opwise_quant_cfgs[key])) for key in chosen}
        search = BayesianOptimization(pbounds=bounds, random_seed=self.cfg.tuning.random_seed)
        search._space.register(chosen, self.last_tune_result[0])
        while True:
            params = search.gen_next_params()
            yield params
            search._space.register(params, self.last_tune_result[0])


def test_a_strategy_looks_into_models(study, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Loader:
        batch_size = 20

        def __iter__(self):
            return iter(batches(study))

    quantizer = Quantization(
        {
            "quantization": {"calibration": {"sampling_size": 40}},
            "tuning": {
                "strategy": {"name": "worstfirst"},
                "objective": "modelsize",
                "exit_policy": {"max_trials": 12},
            },
        }
    )
    quantizer.model, quantizer.calib_dataloader = path, Loader()
    quantizer.eval_func = lambda model: (model(study.images).argmax(1) == study.labels).mean()
    q_model = quantizer.fit()
    assert q_model.met
    excluded = quantizer.strategy.best_qmodel.q_config["quant_cfg"]["excluded_symbols"]
    assert {f"conv{layer}" for layer in HARD} <= set(excluded)
    assert quantizer.result.trials[0].reason == "next_tune_cfg 1" and len(quantizer.result.trials) >= 2


def test_it_runs_in_the_modern_interface_too(study, path):
    found = kilter.tune(
        path, metric="topk", data=batches(study), strategy="worstfirst", max_trials=12, **SIZE
    )
    assert found.met


def test_samples_of_a_configuration_will_do(study, path):
    loader = {
        "batch_size": 20,
        "dataset": {
            "NumPy": {"root": str(study.folder / "images.npy"), "labels": str(study.folder / "labels.npy")}
        },
    }
    config = {"evaluation": {"accuracy": {"metric": {"topk": 1}, "dataloader": loader}}}
    found = kilter.tune(path, config=config, strategy="worstfirst", max_trials=2, **SIZE)
    assert len(found.trials) == 2


def test_names_follow_the_rule():
    with pytest.raises(kilter.Error, match="ends in TuneStrategy"):

        @strategy_registry
        class Nameless(TuneStrategy):
            pass

    assert "worstfirst" in kilter.strategy_names()


def test_what_a_strategy_raises_comes_out(study, path):
    @strategy_registry
    class BrokenTuneStrategy(TuneStrategy):
        def next_tune_cfg(self):
            yield {"op": {}}
            raise ZeroDivisionError("in the strategy")

    @strategy_registry
    class WrongTuneStrategy(TuneStrategy):
        def next_tune_cfg(self):
            yield {"op": {("conv77", "Conv"): {}}}

    @strategy_registry
    class EmptyTuneStrategy(TuneStrategy):
        pass

    arguments = dict(metric="topk", data=batches(study), **SIZE)
    with pytest.raises(ZeroDivisionError, match="in the strategy"):
        kilter.tune(path, strategy="broken", **arguments)
    with pytest.raises(kilter.Error, match=r"no operator .'conv77'"):
        kilter.tune(path, strategy="wrong", **arguments)
    with pytest.raises(NotImplementedError, match="EmptyTuneStrategy has no next_tune_cfg"):
        kilter.tune(path, strategy="empty", **arguments)
    with pytest.raises(kilter.Error, match="made by a search"):
        EmptyTuneStrategy(None, None)


def test_options_go_back_and_forth(study, path):
    seen = []

    @strategy_registry
    class EveryTuneStrategy(TuneStrategy):
        def next_tune_cfg(self):
            for key, options in self.opwise_tune_cfgs.items():
                for number, option in enumerate(options):
                    found = self.adaptor.candidate({"op": {key: option}})
                    index = self._search.space.index(key[0])
                    seen.append(found.options[index] == number)
            yield {"op": {}}

    kilter.tune(path, metric="topk", data=batches(study), strategy="every", max_trials=1, **SIZE)
    assert len(seen) > 20 and all(seen)


def test_bayesian_optimization_climbs():
    def hill(params):
        return -sum((value - 3) ** 2 for value in params.values())

    best = []
    for seed in range(3):
        search = BayesianOptimization({key: (0, 5) for key in "abc"}, random_seed=seed)
        for _ in range(30):
            params = search.gen_next_params()
            search.register(params, hill(params))
        best.append(hill(search.best))
    random = np.random.default_rng(0).uniform(0, 5, (3, 30, 3))
    by_chance = [max(hill(dict(zip("abc", point, strict=True))) for point in points) for points in random]
    assert max(best) <= 0 and np.mean(best) > np.mean(by_chance) and min(best) > -1
    with pytest.raises(KeyError):
        search.register(search.best, 0)


def test_strategies_say_nothing_to_the_root_logger():
    assert logging.getLogger("kilter").handlers == []
