"""The exact best α for scores s + α t, of all α at once ([W] §4, [B] 7.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.data.chances import Chances
from podium.errors import DataError
from podium.exact import mean
from podium.measures import Measure, Ranking, as_measure
from podium.measures.discounted import Discounted
from podium.objectives.pairs import tables
from podium.threads import map_threads

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CLOSE = 1e-9  # two means nearer than this are the same
PAIRS_AT_ONCE = 1 << 21  # crossings that a thread has room for


@dataclass(frozen=True)
class Path:
    """The mean of a measure over the queries, along all α between two ends: a stair.

    Attributes:
        alphas: the ends and, between them, the crossings at which the mean changes, rising.
        values: the mean on each open interval between two neighbours of `alphas`.

    """

    alphas: Floats
    values: Floats

    def at(self, alpha: Floats | float) -> Floats:
        """The mean just above α."""
        place = np.searchsorted(self.alphas, alpha, side="right") - 1
        found: Floats = self.values[np.clip(place, 0, len(self.values) - 1)]
        return found


@dataclass(frozen=True)
class Swept:
    """What a sweep found.

    Attributes:
        alpha: the best α: the middle of the best interval, or an end.
        value: the mean of the measure there, evaluated once more.
        interval: the open interval on which that value holds; both ends are `alpha` where it is an end.
        path: the measure along all α.

    """

    alpha: float
    value: float
    interval: tuple[float, float]
    path: Path


class Sweep:
    """The sweep of a measure over data: the tables that do not depend on the scores are made once.

    Args:
        data: the queries whose mean counts.
        measure: any measure with swap deltas, by value or name.
        ties: how documents that are tied for every α stand: `"expected"`, the mean over their orders; `"stable"`, in
            the order of the rows; `"jitter"`, in an order by chance; or the name or number of a feature, the higher one
            first.
        n_threads: all cores by default.

    """

    def __init__(
        self, data: RankingData, measure: Measure | str, ties: str | int = "expected", n_threads: int | None = None
    ) -> None:
        from podium.combining import kernels
        from podium.objectives import kernels as pairs

        self.data, self.n_threads = data, n_threads
        fixed = as_measure(measure).fixed(data)
        if ties == "expected" and not fixed.knows_expected_ties:
            raise DataError(f"{fixed} has no expected value of ties: use ties='stable', 'jitter' or a feature")
        self.measure = fixed.replace(ties="expected" if ties == "expected" else "stable")
        self.measure._refuse_without_swaps()
        self.order = _tie_order(data, ties)
        labels = data.labels[self.measure.labels][self.order]
        family, self.values, self.norms, self.discounts = tables(self.measure, labels, data.offsets)
        known = {getattr(pairs, name): getattr(kernels, name) for name in ("DISCOUNTED", "PRECISION", "CASCADE")}
        self.expected = ties == "expected"
        is_discounted = isinstance(self.measure, Discounted)
        self.family = known.get(family)
        if self.family is not None:  # a query where nothing gains has one value, which `empty` says, in every order
            gaining = np.maximum.reduceat(self.values, data.offsets[:-1]) > 0
            self.norms = np.where(gaining, self.norms, 0.0)
        cutoff = self.measure.cutoff
        self.depth = len(self.discounts) if is_discounted else cutoff or max(1, int(data.query_sizes.max(initial=1)))
        counted = self._measured(np.zeros(len(data)))
        self.counts = ~np.isnan(counted)
        if not self.counts.any():
            raise DataError(f"{self.measure} is not defined for any query")

    def _measured(self, scores: Floats) -> Floats:
        return self.measure.values(Ranking(self.data, scores, base=self.order))

    def value(self, scores: Floats) -> float:
        """The mean of the measure for these scores."""
        values = self._measured(scores)
        return mean(values[self.counts])

    def best(self, scores: Floats, slopes: Floats, low: float, high: float, near: float = 1.0) -> Swept:
        """The best α of [low, high] for scores + α slopes.

        The measure is compared on every open interval between crossings and at the two ends; of equal intervals the
        nearest to `near` is taken, and its midpoint, or `near` itself where it lies within.
        """
        from podium.combining import kernels

        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise DataError(f"α must lie between two finite numbers, the lower one first; these are {low} and {high}")
        for name, given in (("scores", scores), ("slopes", slopes)):
            if given.shape != (len(self.data),) or not np.isfinite(given).all():
                raise DataError(f"{name} must be a finite number for each of the {len(self.data)} documents")
        alphas, changes, start, unit = self._crossings(scores, slopes, low, high)
        order = np.argsort(alphas)  # of equal ones the order does not matter: sums of integers
        alphas, changes = alphas[order], changes[order]
        ends = np.empty(2)
        top = int(kernels.best_interval(alphas, changes, start, low, high, near, ends))
        n = int(self.counts.sum())
        values = (start + np.concatenate([[0], np.cumsum(changes)])) * (unit / n)
        last = np.append(alphas[1:] != alphas[:-1], True) if len(alphas) else np.zeros(0, bool)
        path = Path(
            np.concatenate([[low], alphas[last], [high]]), values[np.concatenate([[True], last])],
        )  # fmt: skip
        left, right = ends.tolist()
        alpha, value = self._settled(scores, slopes, left, right, near, top * unit / n)
        found = Swept(alpha, value, (left, right), path)
        for end in (low, high):
            value = self.value(scores + end * slopes)
            if value > found.value + CLOSE:
                found = Swept(end, value, (end, end), path)
        return found

    def _settled(
        self, scores: Floats, slopes: Floats, left: float, right: float, near: float, expected: float
    ) -> tuple[float, float]:
        """An α within an interval, and the value there, evaluated once more.

        `near` where it lies within, else the midpoint; unless documents that pass each other without changing the mean
        meet in that very point and are tied there: then one beside it.
        """
        chosen = (left + 0.5 * (right - left), math.nan)
        for share in (None, 0.5, 0.382, 0.618, 0.25, 0.75, 0.1, 0.9):
            alpha = near if share is None else left + share * (right - left)
            if not left < alpha < right:
                continue
            value = self.value(scores + alpha * slopes)
            if abs(value - expected) <= CLOSE:
                return alpha, value
            if math.isnan(chosen[1]) or value > chosen[1]:
                chosen = alpha, value
        return chosen

    def _crossings(self, scores: Floats, slopes: Floats, low: float, high: float) -> tuple[Floats, Ints, int, float]:
        """α and change, as an integer, of each crossing that counts; the value just above `low`; what 1 is worth."""
        from podium.combining import kernels

        bound = max(1.0, float(np.abs(self._measured(scores)[self.counts]).max(initial=1.0)))
        unit = math.ldexp(1.0, math.frexp(bound)[1] - 42)  # 2^-42 of the largest value: sums of 2^20 queries fit
        if self.family is None:
            return (*self._by_brute_force(scores, slopes, low, high, unit), unit)
        data, n = self.data, self.data.n_queries
        norms = np.where(self.counts & np.isfinite(self.norms), self.norms, 0.0)
        candidates, starts = np.zeros(n, np.int64), np.zeros(n, np.int64)
        lines = (scores, slopes)

        def count(bounds: tuple[int, int]) -> None:
            kernels.count_candidates(self.order, data.offsets, *bounds, *lines, self.depth, low, high, candidates)

        step = max(1, n // 64)
        for _ in map_threads(count, [(k, min(k + step, n)) for k in range(0, n, step)], self.n_threads):
            pass

        def work(bounds: tuple[int, int]) -> tuple[Floats, Ints]:
            many = candidates[slice(*bounds)]
            most, pairs = int(many.max(initial=1)), max(1, int((many * (many - 1) // 2).sum()))
            alphas, changes = np.empty(pairs), np.empty(pairs, np.int64)
            found = kernels.sweep(
                self.family, self.order, data.offsets, *bounds, *lines, self.values, norms, self.discounts, self.depth,
                low, high, self.expected, unit, starts, alphas, changes,
                *kernels.room(int(data.query_sizes[slice(*bounds)].max(initial=1)), most),
            )  # fmt: skip
            return alphas[:found].copy(), changes[:found].copy()

        parts = list(map_threads(work, _pieces(candidates), self.n_threads))
        alphas = np.concatenate([np.empty(0), *(part[0] for part in parts)])
        changes = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
        same = self._measured(scores)[self.counts & (norms == 0)]  # the same in every order
        return alphas, changes, int(starts.sum()) + int(np.rint(same / unit).sum()), unit

    def _by_brute_force(
        self, scores: Floats, slopes: Floats, low: float, high: float, unit: float
    ) -> tuple[Floats, Ints, int]:
        """The same for any measure: each query is measured between all its crossings."""
        alphas, changes, start = [], [], 0
        for q in np.flatnonzero(self.counts):
            rows = self.order[self.data.offsets[q] : self.data.offsets[q + 1]]
            alone, s, t = self.data._take(rows), scores[rows], slopes[rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                crossings = (s[:, None] - s[None, :]) / (t[None, :] - t[:, None])
            inside = np.unique(crossings[np.isfinite(crossings) & (crossings > low) & (crossings < high)])
            edges = np.concatenate([[low], inside, [high]])
            values = [
                self.measure.values(Ranking(alone, s + (a + 0.5 * (b - a)) * t, base=np.arange(len(rows))))[0]
                for a, b in pairwise(edges)
            ]
            whole = np.rint(np.array(values) / unit).astype(np.int64)
            start += int(whole[0])
            changed = np.diff(whole)
            alphas.append(inside[changed != 0])
            changes.append(changed[changed != 0])
        return np.concatenate([np.empty(0), *alphas]), np.concatenate([np.empty(0, np.int64), *changes]), start


def _pieces(candidates: Ints) -> list[tuple[int, int]]:
    """Ranges of queries with about as many pairs as a thread has room for."""
    pairs = np.cumsum(candidates * (candidates - 1) // 2 + 1)
    edges = np.searchsorted(pairs, np.arange(PAIRS_AT_ONCE, int(pairs[-1]) + PAIRS_AT_ONCE, PAIRS_AT_ONCE))
    marks = np.unique(np.concatenate([[0], np.minimum(edges + 1, len(candidates)), [len(candidates)]]))
    return [(int(a), int(b)) for a, b in pairwise(marks)]


def _tie_order(data: RankingData, ties: str | int) -> Ints:
    """The rows of each query in the order in which tied documents stand."""
    if ties == "expected":
        return data.canonical_order
    if ties == "stable":
        return data.order
    rows = data.canonical_order
    key = -Chances(data).of_documents("ties")[rows] if ties == "jitter" else data.feature(ties)[rows]
    query = np.repeat(np.arange(data.n_queries), data.query_sizes)
    return rows[np.lexsort((-np.nan_to_num(key.astype(np.float64), nan=-np.inf), query))]
