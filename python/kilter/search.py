"""Search: what a strategy of your own works with.

>>> @kilter.register_strategy("worst_first")
... class WorstFirst:
...     def run(self, search):
...         candidate = search.space.first()
...         search.evaluate(candidate, "all on integers")
...         scores = search.scores("restored", candidate)
...         for index in sorted(range(len(scores)), key=scores.__getitem__, reverse=True):
...             candidate = search.space.with_float(candidate, index)
...             search.evaluate(candidate, f"{search.space.operators[index].name} falls back")
>>> result = kilter.tune("model.onnx", metric="topk", data=batches, strategy="worst_first", max_trials=3)
>>> result.trials[0].reason
'all on integers'
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _kilter
from .errors import InputTypeError, InputValueError
from .model import Model

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Outcome:
    """What one evaluation found out. `milliseconds` is the median time of one run, `bytes` the size of the weights.

    `accuracy` has one figure for each metric. An outcome that was `rejected_early` knows only part of the samples.
    """

    accuracy: tuple[float, ...]
    samples: int
    rejected_early: bool
    milliseconds: float
    bytes: int
    memory: int
    seconds: float

    @property
    def pair(self) -> tuple[float | list[float], list[float]]:
        """(accuracy, [seconds]): how the old tools write a result."""
        accuracy = list(self.accuracy)
        return accuracy[0] if len(accuracy) == 1 else accuracy, [self.seconds]


@dataclass(frozen=True)
class Candidate:
    """One choice for every operator of a space: an index into its options. `variant` chooses samples and recipes."""

    options: tuple[int, ...]
    variant: int = 0

    def replaced(self, index: int, option: int) -> "Candidate":
        """The same but for one operator."""
        options = list(self.options)
        options[index] = option
        return Candidate(tuple(options), self.variant)


@dataclass(frozen=True)
class Trial(Outcome):
    """A candidate that was evaluated. Lower `objective` is better; `excess` is not positive when the promise is kept."""

    number: int
    candidate: Candidate
    reason: str
    operators: str
    met: bool
    excess: float
    objective: float


@dataclass(frozen=True)
class Operator:
    """What an operator may be, most wanted first: integers, then floating point.

    An option has "precision" (int8, bf16, f32) and, on integers, "algorithm", "scheme", "weights" and "bits". `role` is must
    (products), eligible (additions, averages), attached or transparent (they follow their neighbours), table (embeddings: only their weights are integers).
    """

    name: str
    op: str
    role: str
    options: tuple[Mapping[str, Any], ...]

    def first(self, precision: str) -> int | None:
        """The first option with this precision."""
        return next((i for i, option in enumerate(self.options) if option["precision"] == precision), None)


@dataclass(frozen=True)
class Space:
    """Everything a search may choose. The first `asked_variants` are what the user asked for."""

    operators: tuple[Operator, ...]
    variants: tuple[str, ...]
    asked_variants: int
    #: How many calibration samples each variant takes.
    samples: tuple[int, ...]

    def index(self, name: str) -> int:
        """Where an operator is, by its name."""
        names = [operator.name for operator in self.operators]
        if name not in names:
            raise InputValueError(f"the space has no operator '{name}', it has {', '.join(names)}")
        return names.index(name)

    def first(self) -> Candidate:
        """Everything at its first option: on integers, where that is possible."""
        return Candidate((0,) * len(self.operators))

    def with_float(self, candidate: Candidate, *which: int | str) -> Candidate:
        """The candidate with these operators, by index or by name, in floating point (those that can)."""
        for entry in which:
            index = self.index(entry) if isinstance(entry, str) else entry
            operator = self.operators[index]
            option = operator.first("f32")
            option = operator.first("bf16") if option is None else option
            if option is not None:
                candidate = candidate.replaced(index, option)
        return candidate

    def quantized(self, candidate: Candidate) -> list[int]:
        """The operators that are on integers and could be in floating point."""
        return [
            index
            for index, (operator, option) in enumerate(zip(self.operators, candidate.options, strict=True))
            if operator.options[option]["precision"] == "int8"
            and any(entry["precision"] != "int8" for entry in operator.options)
        ]


@dataclass(frozen=True)
class StudyOf:
    """What a search is about."""

    model: Model
    samples: Callable[[], Iterator[dict[str, Any]]]


_study: ContextVar[StudyOf] = ContextVar("kilter.search")


@contextmanager
def about(study: StudyOf) -> Iterator[None]:
    """Tells searches that start meanwhile what they are about."""
    token = _study.set(study)
    try:
        yield
    finally:
        _study.reset(token)


class Search:
    """Given to the `run` method of a strategy, for as long as that lasts.

    When the search is to end (a success, no trials or no time left), its methods raise `kilter.SearchOver`: let it pass.
    """

    def __init__(self, native: _kilter.SearchSession):
        self._native = native
        space = native.space
        self.space = Space(
            tuple(Operator(name, op, role, tuple(options)) for name, op, role, options in space["operators"]),
            tuple(space["variants"]),
            space["asked_variants"],
            tuple(space["samples"]),
        )
        self._study = _study.get(None)
        #: All randomness of a strategy comes from here: it depends on the seed only, so that a study can be resumed.
        self.random = random.Random(native.draw())

    def evaluate(self, candidate: Candidate, reason: str, *, complete: bool = False) -> Trial:
        """Evaluates a candidate. One that was evaluated before gives the same trial again and counts once.

        With `complete`, it is never rejected early: its accuracy is that on all samples.
        """
        return make_trial(self._native.evaluate(list(candidate.options), candidate.variant, reason, complete))

    @property
    def model(self) -> Model:
        """The FP32 model."""
        return self._of_study().model

    def samples(self) -> Iterator[dict[str, Any]]:
        """The inputs of the calibration samples, by name, from the beginning."""
        return self._of_study().samples()

    def plan(self, candidate: Candidate) -> dict[str, Any]:
        """What a candidate means, as `kilter.quantize(..., plan=...)` takes it."""
        return json.loads(self._native.plan(list(candidate.options), candidate.variant))

    def _of_study(self) -> "StudyOf":
        if self._study is None:
            raise InputValueError("this search was not started by kilter.tune")
        return self._study

    @property
    def baseline(self) -> Outcome:
        """FP32."""
        return make_outcome(self._native.baseline)

    @property
    def trials(self) -> list[Trial]:
        """All trials so far."""
        return [make_trial(entry) for entry in self._native.trials]

    @property
    def best(self) -> Trial | None:
        """The best trial that keeps the promise."""
        entry = self._native.best
        return None if entry is None else make_trial(entry)

    @property
    def trials_left(self) -> int:
        """How many more may be made."""
        return self._native.trials_left

    @property
    def elapsed(self) -> float:
        """Seconds this study has taken, earlier sessions included."""
        return self._native.elapsed

    def scores(self, scoring: str, base: Candidate) -> list[float]:
        """What the error of each operator does, in the order of the space.

        "restored": how much of the outputs' error goes away when it alone returns to floating point; "own": the
        error of its own result, as a share of its signal.
        """
        return self._native.scores(scoring, list(base.options), base.variant)

    def gains(self) -> list[float]:
        """What each operator gains on integers, as a share of FP32's cost by the objective."""
        return self._native.gains()

    def output_error(self, candidate: Candidate) -> float:
        """Error of the outputs against FP32 on calibration samples: cheap, and enough to compare candidates."""
        return self._native.output_error(list(candidate.options), candidate.variant)


def register_strategy(name: str) -> Callable[[Class], Class]:
    """Makes a class known as a strategy, for `kilter.tune(strategy=name)` and for configurations.

    The class has a method `run(search)`, see `kilter.search`; it is made with the settings of the strategy as keyword
    arguments. With `ends_by_itself = True` it goes on after the first success until run() returns.
    """

    def register(strategy: Class) -> Class:
        if not callable(getattr(strategy, "run", None)):
            raise InputTypeError(f"the strategy '{name}' needs a method run(search)")
        _kilter.register_strategy(name, lambda settings: _Runner(strategy(**settings)))
        return strategy

    return register


def strategy_names() -> list[str]:
    """The strategies there are."""
    return _kilter.strategy_names()


class _Runner:
    def __init__(self, strategy: Any):
        self._strategy = strategy
        self.ends_by_itself = bool(getattr(strategy, "ends_by_itself", False))

    def run(self, native: _kilter.SearchSession) -> None:
        self._strategy.run(Search(native))


def make_outcome(entry: dict[str, Any]) -> Outcome:
    return Outcome(**(entry | {"accuracy": tuple(entry["accuracy"])}))


def make_trial(entry: dict[str, Any]) -> Trial:
    entry = dict(entry)
    candidate = Candidate(tuple(entry.pop("options")), entry.pop("variant"))
    return Trial(**(entry | {"accuracy": tuple(entry["accuracy"]), "candidate": candidate}))
