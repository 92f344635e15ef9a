"""Strategies as programs of LPOT and Intel Neural Compressor write them; `kilter.register_strategy` is the newer way."""

from .strategy import TuneStrategy, strategy_registry

__all__ = ["TuneStrategy", "strategy_registry"]
