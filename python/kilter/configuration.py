"""Configuration: what a YAML file of LPOT or Intel Neural Compressor says, for programs. docs/config.md lists its keys."""

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from . import _kilter
from .data import Loader
from .errors import InputTypeError
from .model import Model

#: A file, the same as a dict, or nothing: then everything is at its default.
Given = str | os.PathLike[str] | Mapping[str, Any] | None


class Configuration:
    """Sections `model`, `calibration`, `accuracy`, `performance` and `tuning` with what the file says or the defaults.

    >>> conf = Configuration({"tuning": {"accuracy_criterion": {"relative": "1%"}, "exit_policy": {"max_trials": 5}}})
    >>> conf.tuning.max_trials, conf.tuning.strategy, conf.calibration.sampling_sizes
    (5, 'auto', [100])
    """

    def __init__(self, given: Given = None):
        if isinstance(given, Configuration):
            given = given.given
        if given is not None and not isinstance(given, str | os.PathLike | Mapping):
            raise InputTypeError(f"a configuration is a YAML file or a dict, found a {type(given).__name__}")
        #: As `kilter.tune(config=...)` takes it.
        self.given = (
            dict(given) if isinstance(given, Mapping) else os.fspath(given) if given is not None else None
        )
        if isinstance(self.given, str) and not os.path.exists(self.given):
            raise FileNotFoundError(f"there is no file '{self.given}'")
        facts = _kilter.read_config(self.given)
        self.model = SimpleNamespace(**facts["model"])
        self.calibration = SimpleNamespace(**facts["calibration"])
        self.accuracy = SimpleNamespace(**facts["accuracy"])
        self.performance = SimpleNamespace(**facts["performance"])
        self.tuning = SimpleNamespace(**facts["tuning"])
        #: What was accepted but changes nothing, and why.
        self.notes: list[str] = facts["notes"]

    @property
    def higher_is_better(self) -> list[bool]:
        """Which way the figures of an evaluation function count: one for each metric that is named, or one."""
        default = self.tuning.higher_is_better
        said = [entry["higher_is_better"] for entry in self.accuracy.metrics] or [None]
        return [next((way for way in (entry, default) if way is not None), True) for entry in said]

    def loader(self, section: SimpleNamespace, model: Model | None = None) -> Loader | None:
        """The samples that a section names; None when it names none. Labels are as its metric is to see them."""
        given = section.dataloader
        if given is None or given["dataset"] is None:
            return None
        return Loader(
            given["dataset"],
            [*given["transforms"], *getattr(section, "postprocess", ())],
            model=model,
            framework=self.model.framework,
            batch_size=given["batch_size"] or default_batch(model),
            drop_last=given["drop_last"],
        )


def default_batch(model: Model | None) -> int:
    """Samples of a run when nobody says: what the model fixes, otherwise a few, so that threads have something to share."""
    shape = model.inputs[0].shape if model is not None and model.inputs else ("batch",)
    first = shape[0] if shape else 1
    return first if isinstance(first, int) else 8
