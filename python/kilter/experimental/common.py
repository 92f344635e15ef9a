"""What programs wrap their models, data and metrics in; see `kilter.experimental`."""

from .._common import DataLoader, Metric, Model, Postprocess, TunedModel

__all__ = ["DataLoader", "Metric", "Model", "Postprocess", "TunedModel"]
