"""BayesianOptimization: what to try next when every try is dear. A Gaussian process and an upper confidence bound.

>>> search = BayesianOptimization({"x": (0, 4)}, random_seed=1)
>>> for _ in range(12):
...     params = search.gen_next_params()
...     search.register(params, -((params["x"] - 3) ** 2))
>>> abs(search.best["x"] - 3) < 0.5
True
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

__all__ = ["BayesianOptimization"]

_KAPPA = 2.576  # of the bound: 99 % of a normal distribution lie below
_NOISE = 1e-6
_PROBES = 2000
_LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6)  # of the Matérn kernel, in units of the cube; the likeliest is taken


class BayesianOptimization:
    """Maximizes a function of named numbers, each within its bounds."""

    def __init__(self, pbounds: Mapping[Hashable, tuple[float, float]], random_seed: int = 9527):
        self._keys = list(pbounds)
        bounds = np.array([pbounds[key] for key in self._keys], float).reshape(-1, 2)
        self._low, self._span = bounds[:, 0], np.maximum(bounds[:, 1] - bounds[:, 0], 1e-12)
        self._random = np.random.default_rng(random_seed)
        self._points: list[np.ndarray] = []
        self._targets: list[float] = []
        # Under this name programs of the old tools register what they found.
        self._space = self

    def register(self, params: Mapping[Hashable, float], target: float) -> None:
        """What the function is there. Parameters without bounds are left out; a point that is known is a KeyError."""
        point = (np.array([float(params[key]) for key in self._keys]) - self._low) / self._span
        if any(np.array_equal(point, known) for known in self._points):
            raise KeyError("this point is registered already")
        self._points.append(point)
        self._targets.append(float(target))

    @property
    def best(self) -> dict[Any, float]:
        """The best point so far."""
        return self._named(self._points[int(np.argmax(self._targets))])

    def gen_next_params(self) -> dict[Any, float]:
        """Where to look next: anywhere until two different values are known."""
        cube = self._random.random((_PROBES, len(self._keys)))
        if len(set(self._targets)) < 2:
            return self._named(cube[0])
        near = self._points[int(np.argmax(self._targets))] + self._random.normal(0, 0.05, cube.shape)
        probes = np.vstack([cube, np.clip(near, 0, 1)])
        mean, deviation = self._posterior(probes)
        return self._named(probes[int(np.argmax(mean + _KAPPA * deviation))])

    def _named(self, point: np.ndarray) -> dict[Any, float]:
        return dict(zip(self._keys, (self._low + point * self._span).tolist(), strict=True))

    def _posterior(self, probes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        known, targets = np.array(self._points), np.array(self._targets)
        values = (targets - targets.mean()) / targets.std()
        fits = [self._fit(known, values, length) for length in _LENGTHS]
        _, length, factor, weights = max(fits, key=lambda fit: fit[0])
        cross = _matern(probes, known, length)
        half = np.linalg.solve(factor, cross.T)
        return cross @ weights, np.sqrt(np.maximum(1 - (half**2).sum(0), 0))

    @staticmethod
    def _fit(
        known: np.ndarray, values: np.ndarray, length: float
    ) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The logarithm of the likelihood, and what predicting needs."""
        factor = np.linalg.cholesky(_matern(known, known, length) + _NOISE * np.eye(len(known)))
        weights = np.linalg.solve(factor.T, np.linalg.solve(factor, values))
        likelihood = -0.5 * values @ weights - np.log(np.diag(factor)).sum()
        return float(likelihood), length, factor, weights


def _matern(a: np.ndarray, b: np.ndarray, length: float) -> np.ndarray:
    """The Matérn kernel of smoothness 5/2. Lengths grow with the dimension, as distances do."""
    scale = length * np.sqrt(a.shape[1])
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    distance = np.sqrt(5 * np.maximum(squares, 0)) / scale
    return (1 + distance + distance**2 / 3) * np.exp(-distance)
