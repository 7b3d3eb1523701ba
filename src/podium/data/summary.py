"""Summaries of ranking data, with warnings of likely mistakes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Float32s
from podium.core.pages import html_table
from podium.data.encoding import listed
from podium.data.sparse import dense_block, is_sparse

if TYPE_CHECKING:
    from podium.data.ranking_data import RankingData

MOST_DISTINCT = 12  # with more distinct labels, show a range
SHOWN_ROWS, SHOWN_FEATURES = 5, 8  # in a notebook


@dataclass(frozen=True)
class LabelSummary:
    """The labels of a source: how many documents are labelled, and how many have each value, or range of values."""

    labelled: int
    lowest: float
    mean: float
    highest: float
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.labelled:
            return "none labelled"
        if len(self.counts) and not any(" to " in name for name in self.counts):
            return ", ".join(f"{value}: {count / self.labelled:.1%}" for value, count in self.counts.items())
        return f"{self.lowest:g} to {self.highest:g}, mean {self.mean:g}"


@dataclass(frozen=True)
class Summary:
    """The result of `RankingData.summary()`: attributes to read, `str` to print, `to_dict` for JSON."""

    documents: int
    queries: int
    features: int
    fewest_documents: int
    mean_documents: float
    most_documents: int
    density: float
    missing: float
    labels: dict[str, LabelSummary]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as numbers, text, lists and dictionaries, with None for undefined values."""
        content = asdict(self)
        for label in content["labels"].values():
            for name in ("lowest", "mean", "highest"):
                label[name] = None if math.isnan(label[name]) else label[name]
        return content

    def __str__(self) -> str:
        lines = [
            f"documents  {self.documents:,}",
            f"queries    {self.queries:,}, with {self.fewest_documents:,} to {self.most_documents:,} "
            f"documents, {self.mean_documents:.1f} on average",
            f"features   {self.features:,}; {self.density:.1%} of the values are not zero, "
            f"{self.missing:.1%} are missing",
        ]
        for source, label in self.labels.items():
            share = "" if label.labelled == self.documents else f" ({label.labelled:,} documents labelled)"
            lines.append(f"labels     {source}{share}: {label}")
        lines += [f"warning    {warning}" for warning in self.warnings]
        return "\n".join(lines)


class ValueCounts(NamedTuple):
    """Counts of feature values."""

    constant: list[int]  # features with a single value
    nonzero: int  # values
    missing: int  # values
    copies: Mapping[str, list[int]]  # features that equal the labels of all labelled documents, by label source


class ValueCounter:
    """Counts the values of dense features, block by block."""

    def __init__(self) -> None:
        self.nonzero = self.missing = 0
        self._first: Float32s | None = None
        self._is_constant = np.ones(0, bool)
        self._is_copy: dict[str, Bools] = {}

    def add(self, rows: Float32s, labels: Mapping[str, Float32s] = MappingProxyType({})) -> None:
        """Add rows; with labels, also compare the features with them."""
        if self._first is None and len(rows):
            self._first, self._is_constant = rows[0].copy(), np.ones(rows.shape[1], bool)
        missing = int(np.isnan(rows).sum())
        self.missing += missing
        self.nonzero += int(np.count_nonzero(rows)) - missing
        if self._first is not None:
            candidates = np.flatnonzero(self._is_constant)  # only a few after the first rows
            columns, first = rows[:, candidates], self._first[candidates]
            self._is_constant[candidates] = ((columns == first) | (np.isnan(columns) & np.isnan(first))).all(axis=0)
        for source, values in labels.items():
            is_copy = self._is_copy.setdefault(source, np.ones(rows.shape[1], bool))
            candidates, labelled = np.flatnonzero(is_copy), ~np.isnan(values)
            is_copy[candidates] = (rows[:, candidates][labelled] == values[labelled, None]).all(axis=0)

    def counts(self, labels: Mapping[str, Float32s]) -> ValueCounts:
        """Return the counts of all rows; `labels` are the labels of all rows."""
        copies = {
            source: np.flatnonzero(is_copy).tolist() if _vary(labels[source]) else []
            for source, is_copy in self._is_copy.items()
        }
        return ValueCounts(np.flatnonzero(self._is_constant).tolist(), self.nonzero, self.missing, copies)


def _vary(labels: Float32s) -> bool:
    labelled = labels[~np.isnan(labels)]
    return len(labelled) > 0 and not (labelled == labelled[0]).all()


def summarize(data: RankingData, values: ValueCounts | None = None) -> Summary:
    """Return a summary of data, using counts of its values if they are passed."""
    sizes = data.query_sizes
    values = _count_values(data) if values is None else values
    cells = max(1, data.n_documents * data.n_features)
    return Summary(
        documents=data.n_documents,
        queries=data.n_queries,
        features=data.n_features,
        fewest_documents=int(sizes.min(initial=data.n_documents)),
        mean_documents=data.n_documents / max(1, data.n_queries),
        most_documents=int(sizes.max(initial=0)),
        density=values.nonzero / cells,
        missing=values.missing / cells,
        labels={source: _summarize_labels(values) for source, values in data.labels.items()},
        warnings=[*_warnings(data, values), *data.losses],
    )


def _summarize_labels(values: Float32s) -> LabelSummary:
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return LabelSummary(0, float("nan"), float("nan"), float("nan"))
    distinct, counts = np.unique(present, return_counts=True)
    names = [str(int(value)) if value == int(value) else str(value) for value in distinct]
    if len(distinct) > MOST_DISTINCT:
        counts, borders = np.histogram(present.astype(np.float64), 10)
        names = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(borders)]
    return LabelSummary(
        len(present), float(distinct[0]), float(present.mean(dtype=np.float64)), float(distinct[-1]),
        dict(zip(names, counts.tolist(), strict=True)),
    )  # fmt: skip


def _count_values(data: RankingData) -> ValueCounts:
    X = data.features
    if is_sparse(X) and X.shape[0] > 0:
        missing = int(np.isnan(X.data).sum())
        spread = X.max(axis=0).toarray().ravel() != X.min(axis=0).toarray().ravel()
        copies = {source: _copies_of(labels, data) for source, labels in data.labels.items()}
        return ValueCounts(np.flatnonzero(~spread).tolist(), int(np.count_nonzero(X.data)) - missing, missing, copies)
    counter = ValueCounter()
    for start in range(0, X.shape[0], 1 << 14):
        rows = slice(start, start + (1 << 14))
        counter.add(X[rows], {source: labels[rows] for source, labels in data.labels.items()})
    return counter.counts(data.labels)


def _warnings(data: RankingData, counts: ValueCounts) -> list[str]:
    def named(features: list[int]) -> str:
        if data.feature_names is None:
            return listed("feature", features) + " (counted from 0)"
        return listed("feature", [repr(data.feature_names[k]) for k in features])

    problems = []
    if data.n_documents > 1 and counts.constant:
        problems.append(f"{named(counts.constant)} {'has' if len(counts.constant) == 1 else 'have'} a single value")
    for source in data.labels:
        copies = counts.copies.get(source)
        if copies:
            problems.append(f"{named(copies)} equal{'s' * (len(copies) == 1)} the labels {source!r}: is it a leak?")
    hashes, query = data.row_hashes[data.canonical_order], data.query_in_order
    duplicates = int(((hashes[1:] == hashes[:-1]) & (query[1:] == query[:-1])).sum())
    if duplicates:
        problems.append(f"{duplicates:,} documents have the same features as another document of their query")
    if "relevance" in data.labels and data.n_queries:
        problems += _queries_without_order(data)
    return problems


def _copies_of(labels: Float32s, data: RankingData) -> list[int]:
    """Return the sparse features that equal the labels of all labelled documents, unless the labels are constant."""
    if not _vary(labels):
        return []
    labelled = np.flatnonzero(~np.isnan(labels))
    probe = labelled[np.linspace(0, len(labelled) - 1, min(64, len(labelled))).astype(np.int64)]
    rows = dense_block(data.features, probe)
    candidates = np.flatnonzero((rows == labels[probe, None]).all(axis=0))
    return [int(k) for k in candidates if np.array_equal(data.feature(int(k))[labelled], labels[labelled])]


def _queries_without_order(data: RankingData) -> list[str]:
    labels = data.relevance[data.order]
    highest = np.fmax.reduceat(labels, data.offsets[:-1])
    lowest = np.fmin.reduceat(labels, data.offsets[:-1])
    irrelevant = int((~(highest > 0)).sum())
    equal = int((highest == lowest).sum())
    problems = []
    if irrelevant:
        problems.append(
            f"{irrelevant:,} of {data.n_queries:,} queries have no relevant document: choose how measures count them "
            "with empty=…"
        )
    if equal:
        problems.append(f"{equal:,} of {data.n_queries:,} queries have equal labels, so models learn nothing from them")
    return problems


def first_rows_as_html(data: RankingData) -> str:
    """Return the first documents with their query ids, labels and first features as HTML, for notebooks."""
    first = data.take(np.arange(min(SHOWN_ROWS, data.n_documents)))
    features = range(min(SHOWN_FEATURES, data.n_features))
    names = data.feature_names or tuple(map(str, range(data.n_features)))
    more = ["…"] if data.n_features > SHOWN_FEATURES else []
    columns = ["qid", *data.labels, *(names[k] for k in features), *more]
    values = [_shown_column(first, k) for k in features]
    texts = [
        [str(first.qid[row]), *(f"{labels[row]:g}" for labels in first.labels.values()),
         *(column[row] for column in values), *more]
        for row in range(first.n_documents)
    ]  # fmt: skip
    return html_table(columns, texts, [False, *[True] * (len(columns) - 1)], repr(data))


def _shown_column(data: RankingData, feature: int) -> list[str]:
    """Return the values of a feature as text: names of categories, or numbers; empty for missing values."""
    names = data.encoding.categories.get(feature)
    values = data.feature(feature).tolist()
    return ["" if value != value else f"{value:g}" if names is None else names[int(value)] for value in values]
