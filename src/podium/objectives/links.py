"""Links: the cost of a pair i ▷ j as a function of the lead o = s_i − s_j.

Each class defines the cost, the gradient λ = −dC/do and the hessian w = d²C/do². The pair kernel cannot call methods of
classes, so it calls the functions at the end of this file, which branch on the link's code. `link_number` computes one
pair in double precision, `link_lanes` 16 pairs on SIMD lanes. Both take x = σo and omit the factors σ and σ², which the
kernel applies at the end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from podium.core.array_types import Floats, Int, Lanes, Number
from podium.core.compiling import helper
from podium.core.intrinsics import inlined
from podium.core.simd import all_lanes, choose_lanes, square_roots
from podium.core.validation import require_number
from podium.objectives.base import register

f32 = np.float32

CROSS_ENTROPY, LOCAL, HINGE, SQUARED_HINGE, FIDELITY, EXPONENTIAL = range(6)  # codes for the kernel


class Link(ABC):
    """The cost C(o) of a pair, its gradient λ = −dC/do and its hessian w = d²C/do².

    Attributes:
        code: the link's number in the kernel.
        sigma: the steepness, 1 for links without one.
        parameter: the centre or margin, if the link has one.
        has_hessian: whether w > 0 wherever λ ≠ 0, as Newton's step needs.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import Hinge
        >>> Hinge().cost(np.array([0.0, 2.0])).tolist(), Hinge().gradient(np.array([0.0, 2.0])).tolist()
        ([1.0, 0.0], [1.0, 0.0])

    """

    code: ClassVar[int]
    has_hessian: ClassVar[bool] = False
    sigma: float = 1.0

    @property
    def parameter(self) -> float:
        """The link's centre or margin."""
        return 0.0

    @abstractmethod
    def cost(self, o: Floats) -> Floats:
        """Return C(o)."""

    @abstractmethod
    def gradient(self, o: Floats) -> Floats:
        """Return the gradient λ = −dC/do."""

    @abstractmethod
    def hessian(self, o: Floats) -> Floats:
        """Return the hessian w = d²C/do²."""


def _wrong(x: Floats) -> Floats:
    """Return 1 / (1 + e^x) without overflow, the probability that a pair with the lead x is in the wrong order."""
    small = np.exp(-np.abs(x))
    return np.where(x > 0, small / (1 + small), 1 / (1 + small))


@helper
def wrong_chance(x: Number) -> Any:
    """Return 1 / (1 + e^x), as `_wrong` does, for one number in a kernel."""
    return 1.0 / (1.0 + math.exp(min(x, 700.0)))  # e^x of larger x might overflow


@dataclass(frozen=True)
class _Steep(Link):
    sigma: float = 1.0

    def __post_init__(self) -> None:
        require_number("sigma", self.sigma, above=0)


@dataclass(frozen=True)
class _WithMargin(Link):
    margin: float = 1.0

    def __post_init__(self) -> None:
        require_number("margin", self.margin, above=0)

    @property
    def parameter(self) -> float:
        return self.margin


# --- RankNet


@register
@dataclass(frozen=True)
class CrossEntropy(_Steep):
    """C = log(1 + e^{−σo}): RankNet ([B] §2; Burges et al. 2005).

    Args:
        sigma: σ, the steepness.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import CrossEntropy
        >>> CrossEntropy().gradient(np.array([0.0])).tolist()
        [0.5]

    """

    code: ClassVar[int] = CROSS_ENTROPY
    has_hessian: ClassVar[bool] = True

    def cost(self, o: Floats) -> Floats:
        return np.logaddexp(0.0, -self.sigma * o)

    def gradient(self, o: Floats) -> Floats:
        return self.sigma * _wrong(self.sigma * o)

    def hessian(self, o: Floats) -> Floats:
        return self.sigma**2 * _wrong(self.sigma * o) * _wrong(-self.sigma * o)


@helper
def cross_entropy_number(x: Number) -> tuple[Any, Any]:
    """Return ρ = 1 / (1 + e^x), and ρ (1 − ρ)."""
    wrong, right = wrong_chance(x), wrong_chance(-x)
    return wrong, right * wrong


@helper
def cross_entropy_lanes(weight: Lanes, gap: Lanes, ahead: Lanes, behind: Lanes) -> tuple[Any, Any]:
    """Return λ = weight ρ / gap and w = λ (1 − ρ), where ρ = behind / (ahead + behind), with one division."""
    inverse = all_lanes(f32(1.0)) / ((ahead + behind) * gap)
    gradient = weight * inverse * behind
    return gradient, gradient * ahead * (inverse * gap)


# --- the local sigmoid


@register
@dataclass(frozen=True)
class LocalSigmoid(Link):
    """C = 1 / (1 + e^{o + τ}): pairs with very different scores, right or wrong, hardly count ([S] §5, eq. 13–16).

    Args:
        centre: τ.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import LocalSigmoid
        >>> LocalSigmoid().gradient(np.array([-50.0, 0.0, 50.0])).round(4).tolist()
        [0.0, 0.25, 0.0]

    """

    centre: float = 0.0
    code: ClassVar[int] = LOCAL

    def __post_init__(self) -> None:
        require_number("centre", self.centre)

    @property
    def parameter(self) -> float:
        return self.centre

    def cost(self, o: Floats) -> Floats:
        return _wrong(o + self.centre)

    def gradient(self, o: Floats) -> Floats:
        return _wrong(o + self.centre) * _wrong(-o - self.centre)

    def hessian(self, o: Floats) -> Floats:
        """Return [S]'s hessian over |ΔZ|: e^x (e^x − 1) / (1 + e^x)³, x = o + τ; it changes its sign at x = 0."""
        x = o + self.centre
        return _wrong(x) * _wrong(-x) * (_wrong(-x) - _wrong(x))


@helper
def _right_and_wrong_lanes(ahead: Lanes, behind: Lanes, shift: Lanes) -> tuple[Any, Any]:
    """Return 1 / (1 + e^{−x−τ}) and 1 / (1 + e^{x+τ}); `shift` is e^τ."""
    inlined()
    raised = shift * ahead
    inverse = all_lanes(f32(1.0)) / (raised + behind)
    return raised * inverse, behind * inverse


# --- hinges


@register
@dataclass(frozen=True)
class Hinge(_WithMargin):
    """C = max(0, m − o), m = 1: RankSVM (Herbrich, Graepel and Obermayer 2000; Joachims 2002).

    Args:
        margin: m.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import Hinge
        >>> Hinge(margin=0.5).cost(np.array([0.0, 1.0])).tolist()
        [0.5, 0.0]

    """

    code: ClassVar[int] = HINGE

    def cost(self, o: Floats) -> Floats:
        return np.maximum(0.0, self.margin - o)

    def gradient(self, o: Floats) -> Floats:
        return (o < self.margin).astype(np.float64)

    def hessian(self, o: Floats) -> Floats:
        return np.zeros_like(o)


@register
@dataclass(frozen=True)
class SquaredHinge(_WithMargin):
    """C = ½ max(0, m − o)²: GBRank (Zheng et al. 2007).

    Args:
        margin: m.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import SquaredHinge
        >>> SquaredHinge().gradient(np.array([-1.0, 0.5, 2.0])).tolist()
        [2.0, 0.5, 0.0]

    """

    code: ClassVar[int] = SQUARED_HINGE
    has_hessian: ClassVar[bool] = True

    def cost(self, o: Floats) -> Floats:
        return 0.5 * np.maximum(0.0, self.margin - o) ** 2

    def gradient(self, o: Floats) -> Floats:
        return np.maximum(0.0, self.margin - o)

    def hessian(self, o: Floats) -> Floats:
        return (o < self.margin).astype(np.float64)


# --- fidelity


@register
@dataclass(frozen=True)
class Fidelity(_Steep):
    """C = 1 − √P, P = 1 / (1 + e^{−σo}): FRank (Tsai et al. 2007).

    Args:
        sigma: σ, the steepness.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import Fidelity
        >>> Fidelity().cost(np.array([0.0])).round(4).tolist()
        [0.2929]

    """

    code: ClassVar[int] = FIDELITY

    def cost(self, o: Floats) -> Floats:
        return 1.0 - np.sqrt(_wrong(-self.sigma * o))

    def gradient(self, o: Floats) -> Floats:
        p = _wrong(-self.sigma * o)
        return 0.5 * self.sigma * np.sqrt(p) * _wrong(self.sigma * o)

    def hessian(self, o: Floats) -> Floats:
        p = _wrong(-self.sigma * o)
        return 0.25 * self.sigma**2 * np.sqrt(p) * _wrong(self.sigma * o) * (3 * p - 1)


# --- the exponential of RankBoost

LARGEST_EXPONENT = 30.0  # the limit of −σo


@register
@dataclass(frozen=True)
class Exponential(_Steep):
    """C = e^{−σo}: RankBoost (Freund, Iyer, Schapire and Singer 2003).

    Gradient and hessian stay at e^30 (times σ and σ²) for pairs with −σo > 30, and the cost continues as a straight
    line. Otherwise one very wrong pair could outweigh all others, or overflow single precision.

    Args:
        sigma: σ, the steepness.

    Example:
        >>> import numpy as np
        >>> from podium.objectives import Exponential
        >>> Exponential().gradient(np.array([0.0, 1.0])).round(4).tolist()
        [1.0, 0.3679]

    """

    code: ClassVar[int] = EXPONENTIAL
    has_hessian: ClassVar[bool] = True

    def cost(self, o: Floats) -> Floats:
        exponent = -self.sigma * o
        beyond = np.maximum(exponent - LARGEST_EXPONENT, 0.0)
        return np.exp(np.minimum(exponent, LARGEST_EXPONENT)) * (1.0 + beyond)

    def gradient(self, o: Floats) -> Floats:
        return self.sigma * np.exp(np.minimum(-self.sigma * o, LARGEST_EXPONENT))

    def hessian(self, o: Floats) -> Floats:
        return self.sigma * self.gradient(o)


# --- by code


@helper
def link_number(link: Int, parameter: Number, x: Number) -> tuple[Any, Any]:
    """Return λ and w of one pair with the lead x = σo, without σ and σ²."""
    if link == HINGE:
        return np.float64(x < parameter), 0.0
    if link == SQUARED_HINGE:
        return max(parameter - x, 0.0), np.float64(x < parameter)
    if link == LOCAL:
        wrong, right = wrong_chance(x + parameter), wrong_chance(-(x + parameter))
        return right * wrong, right * wrong * (right - wrong)
    if link == FIDELITY:
        wrong, right = wrong_chance(x), wrong_chance(-x)
        return 0.5 * math.sqrt(right) * wrong, 0.25 * math.sqrt(right) * wrong * (3.0 * right - 1.0)
    if link == EXPONENTIAL:
        power = math.exp(min(-x, LARGEST_EXPONENT))
        return power, power
    return cross_entropy_number(x)


@helper
def link_cost(link: Int, parameter: Number, x: Number) -> Any:
    """Return C of one pair with the lead x = σo."""
    if link == HINGE:
        return max(parameter - x, 0.0)
    if link == SQUARED_HINGE:
        return 0.5 * max(parameter - x, 0.0) ** 2
    if link == LOCAL:
        return wrong_chance(x + parameter)
    if link == FIDELITY:
        return 1.0 - math.sqrt(wrong_chance(-x))
    if link == EXPONENTIAL:
        return math.exp(min(-x, LARGEST_EXPONENT)) * (1.0 + max(-x - LARGEST_EXPONENT, 0.0))
    return max(-x, 0.0) + math.log1p(math.exp(-abs(x)))


@helper
def link_constant(link: Int, parameter: Number) -> Any:
    """Return the argument `constant` of `link_lanes`, computed from the parameter once for all pairs of a row."""
    if link == HINGE or link == SQUARED_HINGE:
        return all_lanes(f32(parameter))
    return all_lanes(f32(math.exp(parameter)))


@helper
def link_lanes(
    link: Int, constant: Lanes, weight: Lanes, gap: Lanes, ahead: Lanes, behind: Lanes, lead: Lanes
) -> tuple[Any, Any]:
    """Return λ and w of 16 pairs, without σ and σ².

    Args:
        link: the code.
        constant: see `link_constant`.
        weight, gap: each pair counts weight/gap times; gap is 1 unless pairs are normalized.
        ahead, behind: e^{σs} of the better and of the worse document.
        lead: o; only links without σ use it.

    """
    inlined()
    zero, one = all_lanes(f32(0.0)), all_lanes(f32(1.0))
    if link == CROSS_ENTROPY:
        return cross_entropy_lanes(weight, gap, ahead, behind)
    if link == LOCAL:
        right, wrong = _right_and_wrong_lanes(ahead, behind, constant)
        gradient = weight / gap * right * wrong
        return gradient, gradient * (right - wrong)
    if link == FIDELITY:
        right, wrong = _right_and_wrong_lanes(ahead, behind, constant)
        half = all_lanes(f32(0.5))
        gradient = half * (weight / gap) * square_roots(right) * wrong
        return gradient, half * gradient * (all_lanes(f32(3.0)) * right - one)
    if link == EXPONENTIAL:
        largest, ratio = all_lanes(f32(math.exp(LARGEST_EXPONENT))), behind / ahead
        gradient = weight / gap * choose_lanes(ratio < largest, ratio, largest)
        return gradient, gradient
    short = constant - lead
    hessian = choose_lanes(short > zero, weight / gap, zero)
    return (hessian, zero) if link == HINGE else (hessian * short, hessian)
