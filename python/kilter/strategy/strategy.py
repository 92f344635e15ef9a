"""Strategies in the shape of the old tools: a class with a generator `next_tune_cfg`, which yields what to try next.

>>> @strategy_registry
... class ExampleTuneStrategy(TuneStrategy):
...     def next_tune_cfg(self):
...         first = {node: options[0] for node, options in self.opwise_tune_cfgs.items()}
...         yield {"op": first}
...         accuracy, _ = self.last_tune_result  # of what was yielded
>>> kilter.tune("model.onnx", metric="topk", data=batches, strategy="example", max_trials=1).trials[0].reason
'next_tune_cfg 1'
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from .._quantize import QuantizedModel, Stats, calibrate, quantize
from ..errors import InputTypeError, InputValueError
from ..search import Candidate, Operator, Search, register_strategy

__all__ = ["TuneStrategy", "strategy_registry"]

Class = TypeVar("Class", bound=type)
#: An operator: its name and its type.
Key = tuple[str, str]

_SUFFIX = "TuneStrategy"
_search: ContextVar[Search] = ContextVar("kilter.strategy")


def strategy_registry(cls: Class) -> Class:
    """Makes a class known under its name in small letters, without TuneStrategy: MyCustomTuneStrategy is mycustom."""
    if not cls.__name__.endswith(_SUFFIX) or cls.__name__ == _SUFFIX:
        raise InputValueError(f"the name of a strategy ends in {_SUFFIX}, found {cls.__name__}")

    class Adapted:
        """What `kilter.register_strategy` takes."""

        def __init__(self, **settings: Any):
            self._settings = settings

        def run(self, search: Search) -> None:
            token = _search.set(search)
            try:
                configuration = SimpleNamespace(
                    tuning=SimpleNamespace(random_seed=search.random.getrandbits(31), strategy=self._settings)
                )
                samples = _first(search.samples(), max(search.space.samples))
                strategy = cls(search.model, configuration, list(samples))
            finally:
                _search.reset(token)
            strategy.traverse()

    register_strategy(cls.__name__.removesuffix(_SUFFIX).lower())(Adapted)
    return cls


class TuneStrategy:
    """Base of strategies; `next_tune_cfg` is what they write themselves.

    A configuration is {"op": {(name, type): {"activation": {...}, "weight": {...}}}}, with dtype, algorithm, scheme and
    granularity as in YAML files; operators it leaves out get their first option. "calib_sampling_size" may choose one of several.
    """

    def __init__(
        self,
        model: Any,
        conf: Any,
        q_dataloader: Any = None,
        q_func: Any = None,
        eval_dataloader: Any = None,
        eval_func: Any = None,
        dicts: Any = None,
        q_hooks: Any = None,
    ):
        search = _search.get(None)
        if search is None:
            raise InputValueError(
                "strategies are made by a search: register the class and name it as the strategy"
            )
        self._search = search
        self.model, self.cfg = model, conf
        #: Inputs of the calibration samples, by name.
        self.calib_dataloader = q_dataloader
        self.q_func, self.eval_dataloader, self.eval_func = q_func, eval_dataloader, eval_func
        self.adaptor = Adaptor(search)
        space = search.space
        self.calib_sampling_size = list(space.samples[: space.asked_variants])
        batch = _rows(q_dataloader[0]) if q_dataloader else 1
        #: Batches that hold so many samples.
        self.calib_iter = [-(-size // batch) for size in self.calib_sampling_size]
        self._operators = {
            (entry.name, entry.op): index
            for index, entry in enumerate(space.operators)
            if entry.role in ("must", "eligible") and len(entry.options) > 1
        }
        #: All options of each operator; `opwise_quant_cfgs` are those on integers.
        self.opwise_tune_cfgs: dict[Key, list[dict[str, Any]]] = OrderedDict(
            (key, [_old_form(option) for option in space.operators[index].options])
            for key, index in self._operators.items()
        )
        self.opwise_quant_cfgs = OrderedDict(
            (key, [option for option in options if option["activation"]["dtype"] not in ("fp32", "bf16")])
            for key, options in self.opwise_tune_cfgs.items()
        )
        #: The values that the options of each operator have.
        self.opwise_tune_space = OrderedDict(
            (key, _values(options)) for key, options in self.opwise_tune_cfgs.items()
        )
        self.baseline = search.baseline.pair
        self.last_tune_result: Any = None
        self.best_tune_result: Any = None

    def next_tune_cfg(self) -> Iterator[Mapping[str, Any]]:
        """Yields configurations; after each, `last_tune_result` is (accuracy, [seconds])."""
        raise NotImplementedError(f"{type(self).__name__} has no next_tune_cfg")

    def traverse(self) -> None:
        """Evaluates what `next_tune_cfg` yields until it ends, or the search does."""
        for number, configuration in enumerate(self.next_tune_cfg(), 1):
            trial = self._search.evaluate(
                self.adaptor.candidate(configuration), f"next_tune_cfg {number}", complete=True
            )
            self.last_tune_result = trial.pair
            if (best := self._search.best) is not None:
                self.best_tune_result = best.pair


class Adaptor:
    """Builds models from configurations and looks into them, for strategies that want more than an accuracy."""

    def __init__(self, search: Search):
        self._search = search
        self._stats: dict[int, Stats] = {}

    def candidate(self, configuration: Mapping[str, Any]) -> Candidate:
        """The same choice in kilter's terms."""
        space = self._search.space
        entries = configuration.get("op")
        if not isinstance(entries, Mapping):
            raise InputTypeError("a configuration of a strategy maps 'op' to what becomes of each operator")
        candidate = space.first()
        known = {(entry.name, entry.op): index for index, entry in enumerate(space.operators)}
        for key, entry in entries.items():
            if key not in known:
                raise InputValueError(f"the space has no operator {key}")
            candidate = candidate.replaced(known[key], _option(space.operators[known[key]], entry))
        wanted = configuration.get("calib_sampling_size")
        asked = list(space.samples[: space.asked_variants])
        return Candidate(candidate.options, asked.index(wanted) if wanted in asked else 0)

    def quantize(
        self, tune_cfg: Mapping[str, Any], model: Any = None, dataloader: Any = None, q_func: Any = None
    ) -> QuantizedModel:
        """The model that a configuration means. The calibration is done once."""
        search, candidate = self._search, self.candidate(tune_cfg)
        size = search.space.samples[candidate.variant]
        if size not in self._stats:
            self._stats[size] = calibrate(search.model, _first(search.samples(), size))
        return quantize(search.model, stats=self._stats[size], plan=search.plan(candidate))

    def inspect_tensor(
        self,
        model: Any,
        dataloader: Any = None,
        op_list: Any = (),
        iteration_list: Any = (1,),
        inspect_type: str = "activation",
        save_to_disk: bool = False,
    ) -> dict[str, list[dict[str, dict[str, np.ndarray]]]]:
        """What operators compute on batches of the calibration samples, which count from 1: {operator: {operator: array}}."""
        if inspect_type != "activation" or save_to_disk:
            raise InputValueError("activations can be inspected, and are not written to the disk")
        engine = model if isinstance(model, QuantizedModel) else self._search.model
        found = []
        for number in iteration_list:
            batch = next(islice(self._search.samples(), number - 1, None), None)
            if batch is None:
                raise InputValueError(f"there is no batch {number} of calibration samples")
            seen = [engine.inspect(sample) for sample in islice(_one_by_one(batch), _INSPECTED)]
            names = [name for name in seen[0] if not op_list or name in op_list]
            found.append(
                {name: {name: np.concatenate([part[name].ravel() for part in seen])} for name in names}
            )
        return {"activation": found}


_INSPECTED = 8  # samples of a batch: enough for means, and seconds instead of minutes for large batches


def _first(samples: Iterator[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    left = count
    for sample in samples:
        if left <= 0:
            return
        left -= _rows(sample)
        yield sample


def _rows(sample: Mapping[str, Any]) -> int:
    shape = np.shape(next(iter(sample.values())))
    return shape[0] if shape else 1


def _one_by_one(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in range(_rows(batch)):
        yield {name: np.asarray(array)[row : row + 1] for name, array in batch.items()}


_TO_OLD = {"f32": "fp32", "bf16": "bf16", "int8": "uint8"}


def _old_form(option: Mapping[str, Any]) -> dict[str, Any]:
    """An option of a space, as YAML files write it."""
    dtype = _TO_OLD[option["precision"]]
    on_integers = option["precision"] == "int8"
    return {
        "activation": {
            "dtype": dtype,
            "algorithm": option.get("algorithm", "minmax"),
            "scheme": option.get("scheme", "asym"),
            "granularity": "per_tensor",
        },
        "weight": {
            "dtype": "int8" if on_integers else dtype,
            "algorithm": "minmax",
            "scheme": "sym",
            "granularity": option.get("weights", "per-channel").replace("-", "_"),
            "bit": float(option.get("bits", 8) - 1),
        },
    }


def _option(operator: Operator, wanted: Mapping[str, Any]) -> int:
    """The option that is meant: its precision counts first, then how much of the rest agrees."""
    activation = wanted.get("activation", {})
    dtype = activation.get("dtype", "uint8")
    precision = next((ours for ours, old in _TO_OLD.items() if old == dtype), "int8")
    weight = wanted.get("weight", {})

    def agreement(index: int) -> int:
        old = _old_form(operator.options[index])
        return sum(
            part[key] == given.get(key)
            for part, given in ((old["activation"], activation), (old["weight"], weight))
            for key in ("algorithm", "scheme", "granularity", "bit")
            if key in part
        )

    possible = [i for i, option in enumerate(operator.options) if option["precision"] == precision]
    if not possible:
        raise InputValueError(f"the operator '{operator.name}' cannot be {dtype}")
    return max(possible, key=agreement)


def _values(options: list[dict[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    values: dict[str, dict[str, list[Any]]] = {"activation": {}, "weight": {}}
    for option in options:
        for part, entries in option.items():
            for key, value in entries.items():
                column = values[part].setdefault(key, [])
                if value not in column:
                    column.append(value)
    return values
