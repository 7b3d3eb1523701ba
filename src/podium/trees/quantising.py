"""Gradients and weights as integers, of all documents or of a part that stands for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import Team
from podium.errors import DataError
from podium.trees.parameters import SplitMode

Floats = NDArray[np.float64]
NEGATIVE = "a curvature is negative: this objective needs another step than Newton's"
MOST_REPEATED = 2**24  # whole weights in all: more would leave too few bits for gradients
TINY = 1e-290  # a sum below this counts as none; its inverse would overflow


@dataclass(frozen=True)
class Quantised:
    """Gradients and weights as packed integers, what one unit of each is worth, and the largest weight.

    The weight is the curvature for Newton's splits and 1 for those of least squares. With them the gradients and
    curvatures themselves, and upper bounds of the sums of their absolute values.

    Attributes:
        counts_documents: whether weights are 1, and so their sums numbers of documents.
        seen, unseen: the rows on which splits are sought, rising, and the others; None where all are seen.

    """

    words: NDArray[np.int64]
    gradient_unit: float
    weight_unit: float
    largest_weight: int
    counts_documents: bool
    gradients: Floats
    curvatures: Floats
    bounds: tuple[float, float]
    seen: NDArray[np.int32] | None = None
    unseen: NDArray[np.int32] | None = None


def fine_scale(highest: float, n: int) -> int:
    """The exponent of a power of two that n numbers up to this may be multiplied by for a sum below 2^62."""
    return min(62 - math.frexp(highest * n)[1], 1000)


def sum_bounds(gradients: Floats, curvatures: Floats, team: Team) -> tuple[tuple[float, float], tuple[float, float]]:
    """The largest |gradient| and |curvature|, and tight upper bounds of their sums that do not depend on their order.

    A floating-point sum would, in its last bits, and with it the scale of all integers. So the values are summed as
    multiples of a power of two near 2^-62 · n · max|v|, which cannot overflow, and half a unit for each rounding is
    added. Where a number is not finite, neither is what is returned.
    """
    from podium.trees import kernels

    n = len(gradients)
    bits = team.shares(n, lambda a, b: kernels.largest_bits(gradients[a:b], curvatures[a:b]))
    largest = [float(np.int64(max(of)).view(np.float64)) for of in zip(*bits, strict=True)]
    if not all(map(math.isfinite, largest)):
        raise DataError("a gradient or curvature is not finite: the scores or labels are too large for the objective")
    scales = [fine_scale(highest, n) if highest >= TINY else 0 for highest in largest]
    by = [math.ldexp(1.0, scale) for scale in scales]
    sums = team.shares(n, lambda a, b: kernels.whole_sums(gradients[a:b], by[0], curvatures[a:b], by[1]))
    g, h = (math.ldexp(sum(of) + n, -scale) for of, scale in zip(zip(*sums, strict=True), scales, strict=True))
    return (largest[0], largest[1]), (g if largest[0] >= TINY else 0.0, h if largest[1] >= TINY else 0.0)


def quantised(
    gradients: Floats, curvatures: Floats, split: SplitMode = "newton", team: Team | None = None,
    words: NDArray[np.int64] | None = None, weights: Floats | None = None,
) -> Quantised:  # fmt: skip
    """Gradients and weights of all documents as integers; `words` is where to write them.

    Where documents count more or less than once in least squares, `weights` says how often.
    """
    from podium.trees import kernels

    team = team or Team(1)
    if weights is not None and split == "least-squares":
        packed = _as_repeated(gradients, weights, team, words) or quantised(gradients, weights, "newton", team, words)
        return replace(packed, curvatures=curvatures, bounds=sum_bounds(gradients, curvatures, team)[1])
    _require_room(gradients)
    _, bounds = sum_bounds(gradients, curvatures, team)
    counting = split == "least-squares"
    n, (by_gradient, by_weight) = len(gradients), _scales(len(gradients), bounds)
    by_weight = 0.0 if counting else by_weight
    integers = np.empty(n, np.int64) if words is None else words
    most = team.shares(
        n, lambda a, b: int(kernels.pack(gradients[a:b], curvatures[a:b], by_gradient, by_weight, integers[a:b]))
    )
    if min(most) < 0:
        raise DataError(NEGATIVE)
    unit = 1.0 / by_weight if by_weight else 1.0
    return Quantised(integers, 1.0 / by_gradient, unit, max(most), counting, gradients, curvatures, bounds)


def _as_repeated(gradients: Floats, weights: Floats, team: Team, words: NDArray[np.int64] | None) -> Quantised | None:
    """Documents of whole weights, each as that many equal integers: splits tie where those of repeated documents do."""
    from podium.trees import kernels

    total = math.fsum(weights)
    if not 0 < total <= MOST_REPEATED or (weights != np.rint(weights)).any():
        return None
    n, bounds = len(gradients), sum_bounds(gradients, weights, team)[1]
    by_gradient, _ = _scales(int(total), bounds)  # each repetition is rounded
    single = np.divide(gradients, weights, out=np.zeros(n), where=weights > 0)
    repeated = weights * np.rint(single * by_gradient)
    integers = np.empty(n, np.int64) if words is None else words
    most = team.shares(n, lambda a, b: int(kernels.pack(repeated[a:b], weights[a:b], 1.0, 1.0, integers[a:b])))
    return Quantised(integers, 1.0 / by_gradient, 1.0, max(most), False, gradients, weights, bounds)


def _require_room(gradients: Floats) -> None:
    if len(gradients) >= 2**30:
        raise DataError(f"{len(gradients)} documents are more than one machine's histograms hold (2^30)")


def _scales(n: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """What n gradients and weights are multiplied by, so that their sums fit 31 and 32 bits, whatever rows are summed.

    Rounding moves each by half a unit at the most, so with the scale (2^31 − 1 − n) / Σ|g| the sum of |integers| is at
    most (2^31 − 1 − n) + n/2 < 2^31. A weight is rounded, and raised to 1 where it is less: the scale
    (2^32 − 1 − 2n) / Σ h keeps their sum below 2^32.
    """
    g, h = bounds
    return ((2**31 - 1 - n) / g if g > TINY else 1.0), ((2**32 - 1 - 2 * n) / h if h > TINY else 0.0)


class Thinning:
    """Chooses for each tree the documents on which its splits are sought, so that their sums are right in the mean.

    A document counts in a split by its gradient and its weight. Its importance is u = √((g/ḡ)² + (h/h̄)²), ḡ and h̄ the
    means of |g| and h. It is seen with the chance p = min(1, u/μ), and with 1/p of its gradient and weight: heavy
    documents always, of light ones some that stand for all. μ is such that the `fraction` asked for is seen. For a
    given share this keeps the variance of a split's gain low (minimal variance sampling: Ibragimov and Gusev, NeurIPS
    2019). Leaf values are computed from all documents.

    Args:
        fraction: the share of the documents that is seen.
        keys: what chance knows of each document (`podium.data.content_random.ContentRandom`).
        split: which weights splits are scored by.
        team: threads.

    """

    def __init__(self, fraction: float, keys: NDArray[np.uint64], split: SplitMode, team: Team) -> None:
        n = len(keys)
        self.fraction, self.keys, self.split, self.team = fraction, keys, split, team
        self.importances = np.empty(n, np.float32)
        self.rows, self.listed = np.empty(n, np.int32), np.empty(n, np.int32)

    def quantised(
        self,
        gradients: Floats,
        curvatures: Floats,
        seed: np.uint64,
        words: NDArray[np.int64] | None = None,
        weights: Floats | None = None,
    ) -> Quantised:
        """The documents that chance, with this seed, lets be seen, as integers; `weights` as in `quantised`."""
        if self.split != "least-squares":
            return self._quantised(gradients, curvatures, seed, words, counting=False)
        if weights is None:
            return self._quantised(gradients, curvatures, seed, words, counting=True)
        thinned = self._quantised(gradients, weights, seed, words, counting=False)
        return replace(thinned, curvatures=curvatures, bounds=sum_bounds(gradients, curvatures, self.team)[1])

    def _quantised(
        self, gradients: Floats, curvatures: Floats, seed: np.uint64, words: NDArray[np.int64] | None, counting: bool
    ) -> Quantised:
        from podium.trees import kernels

        n, team, importances = len(gradients), self.team, self.importances
        _require_room(gradients)
        largest, bounds = sum_bounds(gradients, curvatures, team)
        g, h = bounds[0], (float(n) if counting else bounds[1])
        if min(g, h) <= TINY:  # nothing to weigh documents by
            return quantised(gradients, curvatures, "least-squares" if counting else "newton", team, words)

        def weigh(a: int, b: int) -> NDArray[np.int64]:
            counts = np.zeros(1 << kernels.LEADING_BITS, np.int64)
            lowest = kernels.importances(
                gradients[a:b], curvatures[a:b], counting, n / g, n / h, importances[a:b], counts
            )
            if lowest < 0:
                raise DataError(NEGATIVE)
            return counts

        heavy = always_seen_from(np.sum(team.shares(n, weigh), 0), self.fraction * n)
        # Divided by p = u/μ, a gradient is at most μ ḡ, for u ≥ g/ḡ; a weight at most μ h̄. (Twice, for roundings.)
        tops = max(largest[0], 2 * heavy * g / n), max(1.0 if counting else largest[1], 2 * heavy * h / n)
        scales = [fine_scale(top, n) for top in tops]
        by = [math.ldexp(1.0, scale) for scale in scales]

        def thin(a: int, b: int) -> tuple[int, int, int, int, int]:
            seen, total, weight = kernels.thin(
                gradients, curvatures, counting, importances, heavy, self.keys, seed, a, b, by[0], by[1], self.listed
            )
            return a, b, seen, total, weight

        parts = team.shares(n, thin)
        starts, ends, many, totals, sizes = zip(*parts, strict=True)
        before = [sum(many[:k]) for k in range(len(many) + 1)]

        def put(k: int) -> None:
            at_unseen = before[-1] + starts[k] - before[k]
            kernels.put(self.listed, starts[k], ends[k], many[k], self.rows, before[k], at_unseen)

        team.each(len(parts), put)
        seen, unseen = self.rows[: before[-1]], self.rows[before[-1] :]
        sums = math.ldexp(sum(totals) + n, -scales[0]), math.ldexp(sum(sizes) + n, -scales[1])
        by_gradient, by_weight = _scales(n, sums)
        packed = np.empty(n, np.int64) if words is None else words
        most = team.shares(
            len(seen),
            lambda a, b: int(
                kernels.pack_seen(
                    gradients, curvatures, counting, importances, heavy, seen[a:b], by_gradient, by_weight, packed
                )
            ),
        )
        unit = 1.0 / by_weight if by_weight else 1.0
        return Quantised(packed, 1.0 / by_gradient, unit, max(most), False, gradients, curvatures, bounds, seen, unseen)


def always_seen_from(counts: NDArray[np.int64], wanted: float) -> float:
    """The importance μ with Σ min(1, u/μ) = wanted, from how many documents have each leading bits.

    For a μ from u_k on, k the places in rising order, the sum is that of the light ones below k over μ, and all others.
    """
    from podium.trees import kernels

    places = np.flatnonzero(counts)
    shift = 31 - kernels.LEADING_BITS
    u = ((places << shift) + (1 << (shift - 1))).astype(np.int32).view(np.float32).astype(np.float64)
    many = counts[places]
    light = np.concatenate([[0.0], np.cumsum(many * u)])  # below k
    heavy = many.sum() - np.concatenate([[0], np.cumsum(many)])  # from k on
    k = int(np.argmax(np.append(light[:-1] / u + heavy[:-1], 0.0) <= wanted))
    most = u[k] if k < len(u) else np.inf  # what μ is, but for roundings, at the most
    return float(most if wanted - heavy[k] <= light[k] / most else light[k] / (wanted - heavy[k]))
