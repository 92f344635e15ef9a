"""Quantization as in LPOT 1.1: the model, its data and how to judge it are given in one call.

>>> quantizer = Quantization({"tuning": {"accuracy_criterion": {"relative": 0.02}}})
>>> small = quantizer("model.onnx", q_dataloader=batches, eval_func=accuracy)
>>> quantizer.met, small.report.bytes_after < small.report.bytes_before
(True, True)
"""

from collections.abc import Callable, Iterable
from typing import Any

from ._common import DataLoader, Metric, Postprocess
from ._quantizer import Job, Study, Told
from .configuration import Configuration, Given
from .data import Dataset
from .tuning import Result

__all__ = ["Quantization"]


class Quantization:
    """Made from a YAML file, the same as a dict, or nothing; called with a model, it returns the best quantized one.

    `result` tells everything about the search, `met` whether the accuracy goal is met: when it is not, the most accurate
    model is returned all the same.
    """

    def __init__(self, conf_fname: Given = None):
        self.conf = Configuration(conf_fname)
        self.strategy: Study | None = None
        self.result: Result | None = None
        self._metric: Metric | None = None
        self._postprocess: Postprocess | None = None

    def __call__(
        self,
        model: Any,
        q_dataloader: Iterable[Any] | None = None,
        q_func: Callable[[Any], Any] | None = None,
        eval_func: Callable[[Any], Any] | None = None,
        eval_dataloader: Iterable[Any] | None = None,
    ) -> Any:
        """Tunes `model`: an ONNX file, a kilter.Model, or a model of a framework, which comes back as one of its own.

        `q_dataloader` yields (input, label), of which calibration reads the inputs; `q_func` may run the model on them
        instead. `eval_func` takes a model and returns how good it is; otherwise the metric of the configuration, or that
        given to `metric()`, judges over `eval_dataloader`. What is not given, the configuration names.
        """
        job = Job(
            self.conf,
            Told(
                model=model,
                calibration=q_dataloader,
                q_func=q_func,
                eval_func=eval_func,
                evaluation=eval_dataloader,
                metric=self._metric,
                postprocess=self._postprocess,
            ),
        )
        best, self.result = job.run()
        self.strategy = Study(best, self.result)
        return best.model

    @property
    def met(self) -> bool | None:
        """Does the last model meet the accuracy goal? None before there is one, or when nothing was there to judge by."""
        return None if self.strategy is None else self.strategy.best_qmodel.met

    def dataset(self, dataset_type: str, *args: Any, **kwargs: Any) -> Dataset:
        """A dataset by its name in configurations (docs/data.md) and its settings.

        >>> len(Quantization().dataset("dummy", shape=(10, 3, 8, 8)))
        10
        """
        return Dataset(dataset_type, *args, framework=self.conf.model.framework, **kwargs)

    def dataloader(
        self,
        dataset: Any,
        batch_size: int = 1,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        last_batch: str = "rollover",
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Iterable[int]] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
    ) -> DataLoader:
        """Batches of a dataset: anything that can be indexed or iterated."""
        return DataLoader(
            dataset, batch_size, collate_fn, last_batch, sampler, batch_sampler, num_workers, pin_memory
        )

    def metric(self, name: str, metric_cls: Any, **kwargs: Any) -> None:
        """Judges by a metric of yours: a class with reset(), update(predictions, labels) and result()."""
        self._metric = Metric(metric_cls, name, **kwargs)

    def postprocess(self, name: str, postprocess_cls: Any, **kwargs: Any) -> None:
        """Changes (predictions, labels) before the metric sees them: a class whose objects are called with the pair."""
        self._postprocess = Postprocess(postprocess_cls, name, **kwargs)
