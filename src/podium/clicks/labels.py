"""Labels from clicks: rates of clicks and last clicks, COEC, grades of dwell time, and preferences from skips."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.clicks.assembling import number_rows
from podium.clicks.log import ClickLog
from podium.core.array_types import Bools, Floats, Ints
from podium.core.files import write_text
from podium.core.validation import did_you_mean, numbers_of, require_number, require_whole
from podium.data.columns import PreferencePairs
from podium.errors import DataError
from podium.features.field import ragged

KINDS = ("ctr", "last_click", "coec", "dwell", "skip_above")


@dataclass(frozen=True, eq=False)
class ClickLabels:
    """A label for each (query, document) pair of a log, in the order of the log's `pairs`.

    Attributes:
        kind: the kind of label, for example `"ctr"`.
        value: the labels; NaN for pairs with too few impressions.
        impressions: how often the pair was shown; for `"skip_above"`, the number of its preferences; for `"dwell"`,
            without clicks of unknown duration. With similar queries, the impressions of all of them.
        low, high: Wilson's interval of the value without smoothing; NaN without impressions.

    Example:
        >>> log = ClickLog.from_arrays(
        ...     impression=[1, 1, 2, 2], query=["tea"] * 4, document=["a", "b"] * 2, position=[1, 2] * 2,
        ...     clicked=[True, False, True, True],
        ... )
        >>> labels = log.labels("ctr", min_impressions=2)
        >>> labels.document.tolist(), labels.value.tolist()
        (['a', 'b'], [1.0, 0.5])

    """

    kind: str
    value: Floats
    impressions: Ints
    low: Floats
    high: Floats
    log: ClickLog

    @cached_property
    def query(self) -> NDArray[Any]:
        """The query of each pair."""
        return np.array(self.log.queries, object)[self.log.pair_queries]

    @cached_property
    def document(self) -> NDArray[Any]:
        """The document of each pair."""
        return np.array(self.log.documents, object)[self.log.pair_documents]

    @property
    def of_rows(self) -> Floats:
        """The label of each row of the log."""
        return self.value[self.log.pairs]

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        n_known = int(np.isfinite(self.value).sum())
        return f"ClickLabels({self.kind!r}: {n_known:,} of {len(self):,} pairs of query and document have a value)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with columns query, document, value, impressions, low and high; NaN is an empty field."""
        write_text(path, self.as_csv())

    def as_csv(self) -> str:
        """Return the table as CSV."""
        from podium.evaluation.tables import Table  # slow to import, because the package imports all measures

        columns = {
            "query": self.query, "document": self.document, "value": self.value, "impressions": self.impressions,
            "low": self.low, "high": self.high,
        }  # fmt: skip
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return Table(list(columns), list(map(list, rows))).render("csv") + "\n"


def terms_of(query: str) -> tuple[str, ...]:
    """Return the sorted distinct words of a query in lower case, which similar queries share.

    >>> terms_of("Shoes, red shoes") == terms_of("red shoes")
    True
    """
    return tuple(sorted(set(re.findall(r"\w+", query.casefold()))))


def labels(
    log: ClickLog, kind: str, *, min_impressions: int, smoothing: float, confidence: float,
    queries: str | Callable[[str], Iterable[str]], dwell_grades: Sequence[float],
) -> ClickLabels:  # fmt: skip
    """Return labels; see `ClickLog.labels`."""
    if kind not in KINDS:
        raise DataError(f"labels must be one of {', '.join(KINDS)}, but got {kind!r}{did_you_mean(str(kind), KINDS)}")
    require_whole("min_impressions", min_impressions, 1)
    require_number("smoothing", smoothing, least=0)
    require_number("confidence", confidence, above=0, below=1)
    group = _groups(log, queries)
    n_groups = int(group.max(initial=-1)) + 1
    of_row = group[log.pairs]
    scale: Floats | float = 1.0
    if kind == "skip_above":
        pairs = preferences(log)
        total = np.bincount(of_row[pairs.i], minlength=n_groups)
        n = total + np.bincount(of_row[pairs.j], minlength=n_groups)
        overall = 0.5
    else:
        amount, is_known, scale = _amounts(log, kind, dwell_grades)
        n = np.bincount(of_row[is_known], minlength=n_groups)
        total = np.bincount(of_row[is_known], amount[is_known], n_groups).astype(np.int64)
        overall = float(total.sum() / max(1, n.sum()))
    if kind == "coec":
        expected = _expected_clicks(log, of_row, n_groups)
        value = _ratio(total + smoothing, expected + smoothing)
        scale = _ratio(n.astype(np.float64), expected)
    else:
        value = _ratio(total + smoothing * overall, n + smoothing)
    low, high = wilson(_ratio(total.astype(np.float64), n * (scale if kind == "dwell" else 1.0)), n, confidence)
    value = np.where(n >= min_impressions, value, np.nan)
    return ClickLabels(kind, value[group], n[group], (low * scale)[group], (high * scale)[group], log)


def _amounts(log: ClickLog, kind: str, dwell_grades: Sequence[float]) -> tuple[Ints, Bools, float]:
    """Return the contribution of each row to its pair's label, which rows count, and the largest contribution."""
    all_rows = np.ones(len(log), np.bool_)
    if kind == "last_click":
        last = np.zeros(log.n_impressions, np.int32)
        np.maximum.at(last, log.impression, log.click_order)
        return (log.clicked & (log.click_order == last[log.impression])).astype(np.int64), all_rows, 1.0
    if kind != "dwell":
        return log.clicked.astype(np.int64), all_rows, 1.0
    bounds = numbers_of("dwell_grades", dwell_grades)
    if not bounds or list(bounds) != sorted(set(bounds)) or bounds[0] <= 0:
        raise DataError(f"dwell_grades must be ascending seconds, for example (10, 30), but got {dwell_grades!r}")
    grade = np.where(log.clicked, 1 + np.searchsorted(bounds, log.dwell, side="right"), 0)
    is_known = ~log.clicked | ~np.isnan(log.dwell)
    if log.clicked.any() and np.isnan(log.dwell[log.clicked]).all():
        raise DataError("the log has no dwell times: pass dwell=… when you read it")
    return grade, is_known, float(len(bounds) + 1)


def _groups(log: ClickLog, queries: str | Callable[[str], Iterable[str]]) -> Ints:
    """Return the number of each pair's group, whose pairs are counted together."""
    n_pairs = len(log.pair_queries)
    if queries == "equal":
        return np.arange(n_pairs)
    analyze = terms_of if queries == "similar" else queries
    if not callable(analyze):
        raise DataError(f"queries must be 'equal', 'similar' or a function that returns terms, but got {queries!r}")
    numbers: dict[tuple[str, ...], int] = {}
    group_of_query = [numbers.setdefault(tuple(analyze(query)), len(numbers)) for query in log.queries]
    keys = np.asarray(group_of_query, np.int64)[log.pair_queries] * len(log.documents) + log.pair_documents
    return number_rows(keys)


def _expected_clicks(log: ClickLog, group: Ints, n_groups: int) -> Floats:
    """Return the number of clicks of each group at the average click rates of the positions where it was shown.

    The average is over all rows at a position, clicked or not.
    """
    shown, clicks = np.bincount(log.position), np.bincount(log.position, log.clicked)
    rate = clicks / np.maximum(shown, 1)
    stride = len(shown)
    cells, counts = np.unique(group * stride + log.position, return_counts=True)  # sorted, to sum in a fixed order
    return np.asarray(np.bincount(cells // stride, counts * rate[cells % stride], n_groups), np.float64)


def _ratio(numerator: Any, denominator: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def wilson(rate: Floats, n: Ints, confidence: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a rate in n trials; NaN without trials."""
    z2 = NormalDist().inv_cdf(0.5 + confidence / 2) ** 2
    n = np.where(n > 0, n, np.nan)
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def preferences(log: ClickLog) -> PreferencePairs:
    """Return the preferences of clicked documents over skipped documents above them (Joachims 2002)."""
    skipped = np.append(0, np.cumsum(~log.clicked))  # before each row
    i = np.flatnonzero(log.clicked)
    first, last = skipped[log.starts[:-1]][log.impression[i]], skipped[i]
    places = ragged(np.stack((first, last), axis=1).ravel(), 2 * np.arange(len(i)))
    j = np.flatnonzero(~log.clicked)[places]
    return PreferencePairs(np.repeat(i, last - first), j, np.ones(len(j), np.float32))
