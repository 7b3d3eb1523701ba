"""Feature weights by cutting planes: RankSVM and structured SVMs, trained to the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import settings
from podium.data import RankingData
from podium.errors import DataError, warn
from podium.linear.descent import Descent, Steps
from podium.linear.design import DesignMatrix
from podium.objectives import BoundObjective, Hinge, Objective, Pairwise
from podium.objectives.hinges import BoundHinge, bind_hinge, is_hinge

TOLERANCE = 1e-8  # training stops when the gap is below this share of the cost
LARGE_GAP = 1e-2  # of the cost: training warns if it ends with a larger gap
NOISE = 1e-6  # of the cost of equal scores: λ of pairs are in single precision
AHEAD = 0.1  # the next plane touches the cost after this share of the way to the bound's minimum (Franc, Sonnenburg)
HALVINGS = 20  # the number of halvings of the line search
RIDGE = 1e-13  # of the largest diagonal entry: planes that are nearly equal leave a singular matrix


@settings
class CuttingPlanes(Descent):
    """The settings of a linear training run on a hinge loss, which has no hessian.

    The cost is ½ l2 n |w|² + C(Zw), where Z holds the standardized features of n documents, and C is a maximum of
    planes, such as RankSVM's Σ max(0, m − (s_i − s_j)). The planes so far bound it from below, and minimizing this
    bound is a small quadratic program (Joachims 2006). Each step moves the best weights towards that minimum by a line
    search, and adds a plane that touches the cost a little further ahead (OCA: Franc and Sonnenburg 2009). Training
    ends when the gap between bound and cost is below 1e-8 of the cost. `learning_rate` has no effect.

    Args:
        objective: `Pairwise(Hinge())`, `Preferences(Hinge())` or `SVMMAP()`.
        selection, watched: see `LinearTraining`.

    Example:
        >>> import podium
        >>> from podium.linear import CuttingPlanes
        >>> result = CuttingPlanes(l2=0.1).fit(podium.artificial(20, features=4))
        >>> result.model.weights.shape
        (4,)

    """

    objective: Objective = field(default_factory=lambda: Pairwise(Hinge()))

    def __post_init__(self) -> None:
        if not is_hinge(self.objective):
            raise DataError(f"cutting planes are for hinge losses such as pairwise(hinge), not {self.objective}")
        if self.l2 <= 0:
            raise DataError("a hinge loss without regularization has no unique best weights: l2 must be above 0")

    def _bind(self, objective: Objective, train: RankingData) -> BoundObjective:
        return bind_hinge(objective, train)

    def _steps(self, design: DesignMatrix, bound: BoundHinge) -> Steps:
        strength = self.l2 * len(design.data)
        bound_below, order = _LowerBound(design.data.n_features, strength), design.order
        weights, scores = np.zeros(design.data.n_features), np.zeros(len(design.data))

        def add_plane(scores: Floats) -> float:
            """Add the plane that touches the cost at some scores; return the cost there."""
            gradients, offset = bound.plane(scores)
            bound_below.add(design.gradient(gradients), offset)
            return offset - float(gradients[order] @ scores[order])

        def slope(share: float) -> float:
            """Return the slope of the cost after a share of the way to the minimum of the bound."""
            gradients, _ = bound.gradients(scores + share * change)
            regularization = strength * float((weights + share * direction) @ direction)
            return regularization - float(gradients[order] @ change[order])

        noise = NOISE * add_plane(scores)
        for _ in range(self.n_iterations):
            target, lowest = bound_below.minimum()
            direction, change = target - weights, design.scores(target) - scores
            share = _line_search(slope)
            weights, scores = weights + share * direction, scores + share * change
            add_plane(scores + AHEAD * (1 - share) * change)
            cost = 0.5 * strength * float(weights @ weights) + add_plane(scores)
            yield weights, scores
            gap = cost - lowest
            if gap <= TOLERANCE * cost:
                return
        if gap > LARGE_GAP * cost + noise:
            warn(
                f"after {self.n_iterations} steps the cost may still be {gap / cost:.1%} above its minimum: raise "
                "n_iterations or l2",
                stacklevel=4,
            )


def _line_search(slope: Callable[[float], float]) -> float:
    """Return the minimum in [0, 1] of a convex function, from its slope; rounded down, where it does not rise yet."""
    if slope(1.0) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
    return low


class _LowerBound:
    """½ ρ |w|² + max_k (b_k − a_k·w), ρ = strength; the first plane is 0, a lower bound of every hinge loss."""

    def __init__(self, n_features: int, strength: float) -> None:
        self.strength = strength
        self.normals, self.offsets = np.zeros((1, n_features)), np.zeros(1)
        self.products, self.shares = np.zeros((1, 1)), np.ones(1)

    def add(self, normal: Floats, offset: float) -> None:
        """Add the plane offset − normal·w."""
        self.normals = np.vstack([self.normals, normal])
        products = self.normals @ normal
        self.products = np.block([[self.products, products[:-1, None]], [products[None, :]]])
        self.offsets, self.shares = np.append(self.offsets, offset), np.append(self.shares, 0.0)

    def minimum(self) -> tuple[Floats, float]:
        """Return the weights with the lowest value, and that value, which bounds the cost from below.

        In the dual each plane has a share, and w = Σ shares·a/ρ. Any shares that sum to 1 give a lower bound.
        """
        self.shares = best_shares(self.products / self.strength, self.offsets, self.shares)
        weights = self.shares @ self.normals / self.strength
        return weights, float(self.shares @ self.offsets) - 0.5 * self.strength * float(weights @ weights)


def best_shares(products: Floats, offsets: Floats, shares: Floats) -> Floats:
    """Return x ≥ 0 with Σx = 1 that maximizes offsets·x − ½ xᵀ products x, starting from such an x.

    An active-set method (Nocedal and Wright 2006, §16.5): it maximizes over the entries above 0 with Σx = 1. An entry
    that would fall below 0 is set to 0 and leaves the set. Otherwise the entry with the largest slope joins the set.

    >>> best_shares(np.eye(2), np.array([0.5, 0.0]), np.array([1.0, 0.0])).round(9).tolist()
    [0.75, 0.25]
    """
    shares, active = shares.copy(), np.flatnonzero(shares > 0)
    largest = float(np.abs(offsets).max())
    products = products + RIDGE * max(float(products.max()), largest) * np.eye(len(products))
    tolerance = 1e-10 * largest
    for _ in range(20 * len(shares)):
        n = len(active)
        system = np.ones((n + 1, n + 1))
        system[:n, :n], system[n, n] = products[np.ix_(active, active)], 0.0
        try:
            *inner, level = np.linalg.solve(system, np.append(offsets[active], 1.0))
        except np.linalg.LinAlgError:  # two planes are equal up to rounding; the current shares are a bound, too
            break
        target, current = np.array(inner), shares[active]
        falls = target <= 0
        if falls.any():
            steps = np.where(falls, current / np.where(falls & (current > 0), current - target, 1.0), np.inf)
            first = int(np.argmin(steps))
            shares[active] = np.maximum(current + steps[first] * (target - current), 0.0)
            shares[active[first]] = 0.0
            active = active[shares[active] > 0]
            continue
        shares[active] = target
        slopes = offsets - products @ shares - level
        slopes[active] = -np.inf
        best = int(np.argmax(slopes))
        if slopes[best] <= tolerance:
            break
        active = np.append(active, best)
    result: Floats = shares / shares.sum()
    return result
