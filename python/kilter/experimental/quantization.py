"""Quantization as in Intel Neural Compressor 1.x: attributes say what there is, a call starts the search."""

from collections.abc import Callable, Iterable
from typing import Any

from .._common import Model, TunedModel
from .._quantizer import Job, Study, Told
from ..configuration import Configuration, Given
from ..data import Dataset
from ..tuning import Result

__all__ = ["Quantization"]


class Quantization:
    """Made from a YAML file, the same as a dict, or nothing. Set the attributes, then call it or `fit()`.

    Attributes: `model` (an ONNX file, a kilter.Model, a model of a framework, or `common.Model` of these),
    `calib_dataloader`, `eval_dataloader`, `metric` and `postprocess` (`common.Metric` and `common.Postprocess`), `eval_func`,
    `q_func`, `objective`. What is not set, the configuration names.
    """

    def __init__(self, conf_fname_or_obj: Given = None):
        self.conf = Configuration(conf_fname_or_obj)
        #: Yields (input, label), of which the inputs are read.
        self.calib_dataloader: Iterable[Any] | None = None
        #: Yields (input, label).
        self.eval_dataloader: Iterable[Any] | None = None
        #: `common.Metric`, an object with reset, update and result, or the name of a metric of kilter's.
        self.metric: Any = None
        #: `common.Postprocess`, or a function of (predictions, labels) that returns both.
        self.postprocess: Any = None
        #: Takes a model, returns how good it is.
        self.eval_func: Callable[[Any], Any] | None = None
        #: Runs a model on what it is to be calibrated with, when there is no data loader.
        self.q_func: Callable[[Any], Any] | None = None
        #: performance, modelsize, footprint or accuracy, instead of the configuration's.
        self.objective: str | None = None
        #: What can be asked about the search when it has ended.
        self.strategy: Study | None = None
        self.result: Result | None = None
        self._model: Model | None = None

    @property
    def model(self) -> Model | None:
        """The model to tune."""
        return self._model

    @model.setter
    def model(self, given: Any) -> None:
        self._model = None if given is None else given if isinstance(given, Model) else Model(given)

    def __call__(self) -> TunedModel:
        """The best quantized model; `met` says whether it meets the accuracy goal."""
        job = Job(
            self.conf,
            Told(
                model=self._model,
                calibration=self.calib_dataloader,
                evaluation=self.eval_dataloader,
                eval_func=self.eval_func,
                q_func=self.q_func,
                metric=self.metric,
                postprocess=self.postprocess,
                objective=self.objective,
            ),
        )
        best, self.result = job.run()
        self.strategy = Study(best, self.result)
        return best

    def fit(self) -> TunedModel:
        """The same as a call."""
        return self()

    def dataset(self, dataset_type: str, *args: Any, **kwargs: Any) -> Dataset:
        """A dataset by its name in configurations (docs/data.md) and its settings."""
        return Dataset(dataset_type, *args, framework=self.conf.model.framework, **kwargs)
