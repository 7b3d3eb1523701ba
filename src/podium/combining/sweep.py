"""The exact best α for scores s + α t, over all α at once ([W] §4, [B] 7.1)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from podium.combining.crossings import Crossings, Lines, Range, count_candidates, sweep_memory, sweep_queries
from podium.combining.lines import (
    Exponents,
    Line,
    Stairs,
    SweepResult,
    Turns,
    best_on_line,
    concatenate_turns,
    exponents_of,
    require_interval,
    stairs_of,
    unit_of,
)
from podium.core.array_types import Floats, Ints
from podium.core.sums import ExactSum, mean
from podium.core.threads import map_threads
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.errors import DataError
from podium.measures import Measure, Ranking, as_measure

PAIRS_AT_ONCE = 1 << 21  # crossings that a thread keeps in memory


class Sweep:
    """The sweep of a measure over data, which computes everything that does not depend on scores once.

    Args:
        data: the queries to compute the mean over.
        measure: any measure with swap deltas, as a value or name.
        ties: how to order documents that are tied for every α: `"expected"` for the mean over their orders, `"stable"`
            for the order of the rows, `"jitter"` for a random order that only depends on content, or the name or number
            of a feature, the higher value first.
        n_threads: the number of threads; all cores by default.
        is_part: whether this is only a part of the data, so that the measure may be undefined for all of its queries.

    Example:
        >>> import podium
        >>> from podium.combining import Sweep
        >>> data = podium.artificial(20, features=4)
        >>> best = Sweep(data, "ndcg@10").best(data.feature(0), data.feature(1), -1.0, 1.0)
        >>> -1.0 <= best.alpha <= 1.0 and bool(best.value >= best.path.values.max() - 1e-9)
        True

    """

    def __init__(
        self,
        data: RankingData,
        measure: Measure | str,
        ties: str | int = "expected",
        n_threads: int | None = None,
        is_part: bool = False,
    ) -> None:
        self.data, self.n_threads = data, n_threads
        fixed = as_measure(measure).fixed(data)
        if ties == "expected" and not fixed.knows_expected_ties:
            raise DataError(f"{fixed} does not support ties='expected': use ties='stable', 'jitter' or a feature")
        self.measure = fixed.replace(ties="expected" if ties == "expected" else "stable")
        self.measure.refuse_without_swaps()
        self.order = _tie_order(data, ties)
        self.expected = ties == "expected"
        values = self._measured(np.zeros(len(data)))
        self.counts = ~np.isnan(values)
        self.n_counted = int(self.counts.sum())
        if not self.counts.any() and not is_part:
            raise DataError(f"{self.measure} is undefined for all queries")
        self.tables = self.measure.lookup_tables(self.measure.labels_in(data, self.order), data.offsets)
        # A query without gains has the same value, that of `empty`, in every order.
        self.constant = np.empty(0)
        if self.tables is not None:
            gaining = np.maximum.reduceat(self.tables.values, data.offsets[:-1]) > 0
            norms = np.where(self.counts & gaining & np.isfinite(self.tables.norms), self.tables.norms, 0.0)
            self.tables = self.tables._replace(norms=norms)
            self.constant = values[self.counts & (norms == 0)]

    def _measured(self, scores: Floats) -> Floats:
        return self.measure.values(Ranking(self.data, scores, base=self.order))

    def line(self, scores: Floats, slopes: Floats) -> Line:
        """Return the line scores + α slopes."""
        for name, column in (("scores", scores), ("slopes", slopes)):
            if column.shape != (len(self.data),) or not np.isfinite(column).all():
                raise DataError(f"{name} must be a finite number for each of the {len(self.data)} documents")
        return _LineInMemory(self, scores, slopes)

    def sum(self, scores: Floats) -> ExactSum:
        """Return the sum of the measure over the queries for these scores."""
        return ExactSum.of(self._measured(scores)[self.counts])

    def value(self, scores: Floats) -> float:
        """Return the mean of the measure for these scores."""
        values = self._measured(scores)
        return mean(values[self.counts])

    def best(self, scores: Floats, slopes: Floats, low: float, high: float, near: float = 1.0) -> SweepResult:
        """Return the best α in [low, high] for scores + α slopes.

        It compares the measure on every open interval between crossings, at the two ends and, with expected ties, at
        the crossings. Of equal intervals, the nearest to `near` wins; its midpoint is the result, or `near` if that is
        inside.
        """
        require_interval(low, high)
        return best_on_line(self.line(scores, slopes), low, high, near)

    def unit(self, scores: Floats) -> float:
        """Return the unit of integer sums: 2^-42 of the largest value, so that sums of 2^20 queries fit."""
        return unit_of(self.largest(scores))

    def largest(self, scores: Floats) -> float:
        """Return the largest |value| of a query, at least 1."""
        return float(np.abs(self._measured(scores)[self.counts]).max(initial=1.0))

    def stairs(self, scores: Floats, slopes: Floats, low: float, high: float, unit: float) -> Stairs:
        """Return the sum over the queries between the ends as a step function, in units."""
        return stairs_of(*self.crossings(scores, slopes, low, high, unit), low, high)

    def crossings(self, scores: Floats, slopes: Floats, low: float, high: float, unit: float) -> tuple[Turns, int]:
        """Return the changes at crossings, and the value just above `low`."""
        tables = self.tables
        if tables is None:
            return self._by_brute_force(scores, slopes, low, high, unit)
        data, n = self.data, self.data.n_queries
        counts, starts = np.zeros(n, np.int64), np.zeros(n, np.int64)
        lines = Lines(self.order, data.offsets, scores, slopes)

        def count(queries: tuple[int, int]) -> None:
            count_candidates(lines, tables.depth, Range(*queries, low, high), counts)

        step = max(1, n // 64)
        for _ in map_threads(count, [(k, min(k + step, n)) for k in range(0, n, step)], self.n_threads):
            pass

        def work(queries: tuple[int, int]) -> Turns:
            n_candidates = counts[slice(*queries)]
            n_pairs = max(1, int((n_candidates * (n_candidates - 1) // 2).sum()))
            n_peaks = n_pairs // 2 if self.expected else 0
            columns = (np.empty(n_pairs), np.empty(n_pairs, np.int64), np.empty(n_peaks), np.empty(n_peaks, np.int64))
            out = Crossings(starts, np.zeros(2, np.int64), *columns)
            largest = int(data.query_sizes[slice(*queries)].max(initial=1))
            scratch = sweep_memory(largest, int(n_candidates.max(initial=1)))
            sweep_queries(lines, tables, Range(*queries, low, high), self.expected, unit, out, scratch)
            n_changes, n_peaks = out.counts.tolist()
            alphas, changes, peaks, bends = columns
            return Turns(
                alphas[:n_changes].copy(), changes[:n_changes].copy(), peaks[:n_peaks].copy(), bends[:n_peaks].copy()
            )

        turns = concatenate_turns(map_threads(work, _pieces(counts), self.n_threads))
        return turns, int(starts.sum()) + int(np.rint(self.constant / unit).sum())

    def _by_brute_force(
        self, scores: Floats, slopes: Floats, low: float, high: float, unit: float
    ) -> tuple[Turns, int]:
        """Do the work of `crossings` for measures without tables: measure each query between and at its crossings."""
        parts, start = [], 0
        for q in np.flatnonzero(self.counts):
            rows = self.order[self.data.offsets[q] : self.data.offsets[q + 1]]
            alone, s, t = self.data.take(rows), scores[rows], slopes[rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                crossings = (s[:, None] - s[None, :]) / (t[None, :] - t[:, None])
            inside = np.unique(crossings[np.isfinite(crossings) & (crossings > low) & (crossings < high)])
            edges = np.concatenate([[low], inside, [high]])

            def units_at(points: Iterable[float]) -> Ints:
                rankings = [Ranking(alone, s + a * t, base=np.arange(len(rows))) for a in points]  # noqa: B023
                values = [self.measure.values(ranking)[0] for ranking in rankings]
                return np.rint(np.array(values) / unit).astype(np.int64)

            units = units_at(a + 0.5 * (b - a) for a, b in pairwise(edges))
            start += int(units[0])
            changed = np.diff(units) != 0
            peaks = inside if self.expected else inside[:0]
            bends = 2 * units_at(peaks) - units[:-1] - units[1:] if self.expected else units[:0]
            parts.append(Turns(inside[changed], np.diff(units)[changed], peaks, bends))
        return concatenate_turns(parts), start


class _LineInMemory(Line):
    def __init__(self, sweep: Sweep, scores: Floats, slopes: Floats) -> None:
        self.sweep, self.scores, self.slopes, self.n_counted = sweep, scores, slopes, sweep.n_counted

    def exponents(self) -> Exponents:
        return exponents_of(self.scores, self.slopes)

    def scale(self, exponent: int) -> None:
        self.scores, self.slopes = np.ldexp(self.scores, -exponent), np.ldexp(self.slopes, -exponent)

    def largest(self) -> float:
        return self.sweep.largest(self.scores)

    def stairs(self, low: float, high: float, unit: float) -> Stairs:
        return self.sweep.stairs(self.scores, self.slopes, low, high, unit)

    def value_at(self, alpha: float) -> float:
        return self.sweep.value(self.scores + alpha * self.slopes)


def _pieces(candidates: Ints) -> list[tuple[int, int]]:
    """Return ranges of queries, each with about `PAIRS_AT_ONCE` pairs."""
    pairs = np.cumsum(candidates * (candidates - 1) // 2 + 1)
    edges = np.searchsorted(pairs, np.arange(PAIRS_AT_ONCE, int(pairs[-1]) + PAIRS_AT_ONCE, PAIRS_AT_ONCE))
    marks = np.unique(np.concatenate([[0], np.minimum(edges + 1, len(candidates)), [len(candidates)]]))
    return [(int(a), int(b)) for a, b in pairwise(marks)]


def _tie_order(data: RankingData, ties: str | int) -> Ints:
    """Return the rows of each query in the order of tied documents."""
    if ties == "expected":
        return data.canonical_order
    if ties == "stable":
        return data.order
    rows = data.canonical_order
    key = -ContentRandom(data).of_documents("ties")[rows] if ties == "jitter" else data.feature(ties)[rows]
    return rows[np.lexsort((-np.nan_to_num(key.astype(np.float64), nan=-np.inf), data.query_in_order))]
