"""Base scores: the scores of a submodel, on the scale that training needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podium.combining import deviation
from podium.core.array_types import Floats
from podium.core.team import Team
from podium.core.validation import require_number
from podium.data import RankingData
from podium.errors import DataError, warn
from podium.objectives import BoundObjective, CrossEntropy, Objective, Pairwise, Preferences
from podium.objectives.base import label_source

TOLERANCE = 1e-4  # stop raising c when e times its value would lower the cost by less than this share
SMALLEST = 2.0**-20  # the lower limit of c times the widest spread of a query's scores


@dataclass(frozen=True)
class BaseScores:
    """The start of training with a submodel: F_0 = scale · scores.

    Attributes:
        scores: the submodel's scores of the training documents.
        scale: c, as set or fitted.
        means: the mean of each measure on each validation set before the first tree, keyed by `set/measure`.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting
        >>> train = podium.artificial(20, features=4)
        >>> first_feature = lambda data: data.features[:, 0].astype(float)
        >>> Boosting(n_trees=2, submodel=first_feature, submodel_scale=0.5).fit(train).base_scores.scale
        0.5

    """

    scores: Floats
    scale: float
    means: dict[str, float]


def require_scale(scale: object) -> None:
    """Raise unless `scale` is a positive number or "fit"."""
    if isinstance(scale, str):
        if scale != "fit":
            raise DataError(f"submodel_scale must be 'fit' or a number above 0, not {scale!r}")
    else:
        require_number("submodel_scale", scale, above=0)


def fitted_scale(data: RankingData, scores: Floats, objective: Objective, team: Team) -> float:
    """Return the c > 0 for which c · scores have the lowest cross-entropy of RankNet's pairs on the data.

    Scores on a large scale would saturate the sigmoid: λ and w vanish, and Newton's step explodes. The cost is convex
    in c, and its sums are exactly rounded, so c does not depend on the order of rows. c is positive, so documents keep
    the order of the scores.

    If the pairs require the reverse order, c is 2^-20 over the widest spread within a query. If all pairs are in the
    right order, the cost falls forever, so c stops rising when that makes no difference. If there is nothing to fit (no
    pairs, equal scores, or an objective whose w does not depend on scores), c is 1.
    """
    spread, exponent = _spread(data, scores)
    pairs = _pairs(data, objective)
    if pairs is None or not spread.any() or math.isinf(objective.score_unit):
        return 1.0
    pairs.team = team
    total = 2 * math.fsum(pairs.gradients(np.zeros(len(data)))[1])  # w of a tied pair is ¼ for each of the two
    if total <= 0:
        return 1.0

    def slope(c: float) -> float:
        return math.fsum(pairs.gradients(c * spread)[0] * spread)  # −∂C/∂c = Σ λ_i s_i

    c = _root(slope, 1.0 / deviation(data, spread), TOLERANCE * total)
    if c == SMALLEST:
        warn(
            "the submodel ranks the training documents no better than at random, so its scores hardly count "
            f"(submodel_scale {math.ldexp(c, -exponent):.3g}). Are higher scores better?"
        )
    return math.ldexp(c, -exponent) * objective.score_unit


def _root(slope: Callable[[float], float], guess: float, tolerance: float) -> float:
    """Return the root of a descending function, at least `SMALLEST`, or an x at which x · slope(x) ≤ `tolerance`."""
    from scipy.optimize import brentq

    if slope(0.0) <= 0:
        return SMALLEST
    low, high = 0.0, max(guess, SMALLEST)
    while (height := slope(high)) > 0:
        if high * height <= tolerance:
            return high
        low, high = high, 4 * high
    while low == 0:
        if high / 4 <= SMALLEST:
            return SMALLEST
        if slope(high / 4) > 0:
            low = high / 4
        else:
            high /= 4
    return math.exp(brentq(lambda x: slope(math.exp(x)), math.log(low), math.log(high), xtol=1e-9))


def _spread(data: RankingData, scores: Floats) -> tuple[Floats, int]:
    """Return scores minus the lowest of their query, scaled by a power of two to at most 1, and its exponent.

    Sums of λ s over a query do not depend on the lowest score, and are more exact if it is 0.
    """
    exponent = max(math.frexp(float(np.abs(scores).max(initial=0.0)))[1], -1000)
    order, sizes = data.canonical_order, data.query_sizes[data.query_sizes > 0]
    scaled = np.ldexp(scores[order], -exponent)
    scaled -= np.repeat(np.minimum.reduceat(scaled, data.offsets[:-1][data.query_sizes > 0]), sizes)
    second_exponent = max(math.frexp(float(scaled.max(initial=0.0)))[1], -1000 - exponent)
    spread = np.empty(len(scores))
    spread[order] = np.ldexp(scaled, -second_exponent)
    return spread, exponent + second_exponent


def _pairs(data: RankingData, objective: Objective) -> BoundObjective | None:
    """Bind RankNet's pairs: those with different labels, or the data's preferences; return None without either."""
    source = label_source(objective) or "relevance"
    if source in data.labels and not isinstance(objective, Preferences):
        return Pairwise(CrossEntropy(), source).fixed(data).bind(data)
    return None if data.preferences is None else Preferences(CrossEntropy()).fixed(data).bind(data)
