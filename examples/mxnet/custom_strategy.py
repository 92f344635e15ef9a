"""A strategy of one's own: `mycustom` in YAML files, once this module is imported.

First everything on integers, with the extremes as ranges. Then, in the order of the graph, operators whose results are far
from FP32 are tried in floating point, and stay there if that brings the results of all operators closer. Last, a Gaussian
process mixes extremes and entropy for those that are left.
"""

import copy

import numpy as np

from kilter.strategy.bayesian import BayesianOptimization
from kilter.strategy.strategy import TuneStrategy, strategy_registry

# An operator is suspect above this relative error of its result.
SUSPICIOUS = 0.06
# What a return to floating point must save of all errors together, per operator.
WORTHWHILE = 0.007
ALGORITHMS = ("minmax", "kl")


def relative_error(expected, found):
    return float(np.abs(found - expected).mean() / max(np.abs(expected).mean(), 1e-9))


@strategy_registry
class MyCustomTuneStrategy(TuneStrategy):
    def next_tune_cfg(self):
        config = {
            "calib_iteration": int(self.calib_iter[0]),
            "calib_sampling_size": int(self.calib_sampling_size[0]),
            "op": {key: self._option(key, "minmax") for key in self.opwise_tune_cfgs},
        }
        yield copy.deepcopy(config)
        self._return_to_float(config)
        yield copy.deepcopy(config)
        yield from self._mixes(config)

    def _option(self, key, algorithm):
        """An operator on integers with this algorithm; its first option where it has no such."""
        options = self.opwise_quant_cfgs[key] or self.opwise_tune_cfgs[key]
        wanted = [option for option in options if option["activation"].get("algorithm") == algorithm]
        return copy.deepcopy((wanted or options)[0])

    def _errors(self, config, expected):
        model = self.adaptor.quantize(copy.deepcopy(config), self.model, self.calib_dataloader)
        found = self._results(model, list(expected))
        return {name: relative_error(expected[name], found[name]) for name in expected if name in found}

    def _results(self, model, names):
        """What operators compute on the first batch; those that a fusion swallowed have no result."""
        found = self.adaptor.inspect_tensor(model, self.calib_dataloader, names, [1])["activation"][0]
        return {name: np.asarray(found[name][name], np.float64) for name in names if name in found}

    def _return_to_float(self, config):
        expected = self._results(self.model, [name for name, _ in config["op"]])
        errors = self._errors(config, expected)
        for key, options in self.opwise_tune_cfgs.items():
            in_float = [option for option in options if option["activation"]["dtype"] == "fp32"]
            if not in_float or errors.get(key[0], 0) <= SUSPICIOUS:
                continue
            changed = config | {"op": config["op"] | {key: copy.deepcopy(in_float[0])}}
            after = self._errors(changed, expected)
            if sum(errors.values()) - sum(after.values()) >= WORTHWHILE * len(config["op"]):
                config["op"][key], errors = changed["op"][key], after

    def _mixes(self, config):
        free = {
            key: options
            for key in self.opwise_tune_cfgs
            if config["op"][key]["activation"]["dtype"] != "fp32"
            and len(options := [self._option(key, algorithm) for algorithm in ALGORITHMS]) > 1
        }
        bounds = {name: (0, len(options)) for (name, _), options in free.items()}
        search = BayesianOptimization(pbounds=bounds, random_seed=self.cfg.tuning.random_seed)
        params = dict.fromkeys(bounds, 0.0)  # what was tried last
        while True:
            try:
                search._space.register(params, self.last_tune_result[0])
            except KeyError:  # known already
                pass
            params = search.gen_next_params()
            for key, options in free.items():
                chosen = min(int(params[key[0]]), len(options) - 1)
                config["op"][key] = copy.deepcopy(options[chosen])
            yield copy.deepcopy(config)
