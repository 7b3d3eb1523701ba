"""Links: what the gap o = s_i − s_j of a pair i ▷ j costs, and how hard it pushes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import require_number

Floats = NDArray[np.float64]


class Link(ABC):
    """The cost C(o) of a pair, λ = −dC/do and w = d²C/do².

    Attributes:
        code: its number in the kernel.
        sigma: the steepness of links that have one, else 1.
        parameter: a centre or margin, where there is one.
        curved: whether w > 0 wherever λ ≠ 0.

    """

    code: ClassVar[int]
    curved: ClassVar[bool] = False
    sigma: float = 1.0

    @property
    def parameter(self) -> float:
        """The link's centre or margin."""
        return 0.0

    @abstractmethod
    def cost(self, o: Floats) -> Floats:
        """C(o)."""

    @abstractmethod
    def push(self, o: Floats) -> Floats:
        """λ = −dC/do."""

    @abstractmethod
    def bend(self, o: Floats) -> Floats:
        """W = d²C/do²."""


def _rho(x: Floats) -> Floats:
    """1 / (1 + e^x), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x > 0, small / (1 + small), 1 / (1 + small))


@dataclass(frozen=True)
class CrossEntropy(Link):
    """C = log(1 + e^{−σo}): RankNet ([B] §2; Burges et al. 2005)."""

    sigma: float = 1.0
    code: ClassVar[int] = 0
    curved: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)

    def cost(self, o: Floats) -> Floats:  # noqa: D102
        return np.logaddexp(0.0, -self.sigma * o)

    def push(self, o: Floats) -> Floats:  # noqa: D102
        return self.sigma * _rho(self.sigma * o)

    def bend(self, o: Floats) -> Floats:  # noqa: D102
        return self.sigma**2 * _rho(self.sigma * o) * _rho(-self.sigma * o)


@dataclass(frozen=True)
class LocalSigmoid(Link):
    """C = 1 / (1 + e^{o + τ}): pairs far apart, right or wrong, are let go ([S] §5, eq. 13–16)."""

    centre: float = 0.0
    code: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_number("centre", self.centre)

    @property
    def parameter(self) -> float:  # noqa: D102
        return self.centre

    def cost(self, o: Floats) -> Floats:  # noqa: D102
        return _rho(o + self.centre)

    def push(self, o: Floats) -> Floats:  # noqa: D102
        return _rho(o + self.centre) * _rho(-o - self.centre)

    def bend(self, o: Floats) -> Floats:
        """|ΔZ|⁻¹ of [S]'s: e^x (e^x − 1) / (1 + e^x)³, x = o + τ; it changes its sign at x = 0."""
        x = o + self.centre
        return _rho(x) * _rho(-x) * (_rho(-x) - _rho(x))


@dataclass(frozen=True)
class Hinge(Link):
    """C = max(0, m − o), m = 1: RankSVM (Herbrich, Graepel and Obermayer 2000; Joachims 2002)."""

    margin: float = 1.0
    code: ClassVar[int] = 2

    def __post_init__(self) -> None:
        require_number("margin", self.margin, above=0)

    @property
    def parameter(self) -> float:  # noqa: D102
        return self.margin

    def cost(self, o: Floats) -> Floats:  # noqa: D102
        return np.maximum(0.0, self.margin - o)

    def push(self, o: Floats) -> Floats:  # noqa: D102
        return (o < self.margin).astype(np.float64)

    def bend(self, o: Floats) -> Floats:  # noqa: D102
        return np.zeros_like(o)


@dataclass(frozen=True)
class SquaredHinge(Link):
    """C = ½ max(0, τ − o)²: GBRank (Zheng et al. 2007)."""

    margin: float = 1.0
    code: ClassVar[int] = 3
    curved: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number("margin", self.margin, above=0)

    @property
    def parameter(self) -> float:  # noqa: D102
        return self.margin

    def cost(self, o: Floats) -> Floats:  # noqa: D102
        return 0.5 * np.maximum(0.0, self.margin - o) ** 2

    def push(self, o: Floats) -> Floats:  # noqa: D102
        return np.maximum(0.0, self.margin - o)

    def bend(self, o: Floats) -> Floats:  # noqa: D102
        return (o < self.margin).astype(np.float64)


@dataclass(frozen=True)
class Fidelity(Link):
    """C = 1 − √P, P = 1 / (1 + e^{−σo}): FRank (Tsai et al. 2007)."""

    sigma: float = 1.0
    code: ClassVar[int] = 4

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)

    def cost(self, o: Floats) -> Floats:  # noqa: D102
        return 1.0 - np.sqrt(_rho(-self.sigma * o))

    def push(self, o: Floats) -> Floats:  # noqa: D102
        p = _rho(-self.sigma * o)
        return 0.5 * self.sigma * np.sqrt(p) * _rho(self.sigma * o)

    def bend(self, o: Floats) -> Floats:  # noqa: D102
        p = _rho(-self.sigma * o)
        return 0.25 * self.sigma**2 * np.sqrt(p) * _rho(self.sigma * o) * (3 * p - 1)
