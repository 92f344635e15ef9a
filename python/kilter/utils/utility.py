"""recover, under the name and with the arguments that Intel Neural Compressor has."""

import os
from typing import Any

from .._common import Model, TunedModel
from .._quantizer import study_folder
from ..errors import InputValueError
from ..tuning import recovered

__all__ = ["recover"]


def recover(fp32_model: Any, tuning_history_path: str | os.PathLike[str], num: int) -> TunedModel:
    """Builds a model of an earlier search again, without calibrating: number 0 is the first trial.

    `tuning_history_path` is the folder of the study, its journal, or the history.snapshot that the old tools had in its place.
    """
    if num < 0:
        raise InputValueError(f"trials count from 0 here, found {num}")
    given = fp32_model.model if isinstance(fp32_model, Model) else fp32_model
    return TunedModel(*recovered(study_folder(tuning_history_path), num + 1, given))
