"""Properties that every measure must satisfy, checked against slow, obvious code.

Check your own measure with `check_measure(MyMeasure(3))`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.measures import Measure, Ranking, parse


def slow_value(measure: Measure, labels: Floats) -> float:
    """Return the value of a ranked list by definition, also if the list has no relevant documents."""
    labels = measure.prepared(labels)
    if measure.is_empty(labels):
        return {"zero": 0.0, "one": 1.0, "skip": np.nan}[measure.empty]
    return measure.value(labels)


def ranked(labels: Floats, scores: Floats) -> Floats:
    """Return labels by descending score; equal scores stay in the order of the list."""
    return labels[sorted(range(len(scores)), key=lambda k: -scores[k])]


def tied_orders(labels: Floats, scores: Floats) -> Iterator[Floats]:
    """Yield every order of the labels in which scores do not ascend."""
    order = sorted(range(len(scores)), key=lambda k: -scores[k])
    groups = [list(group) for _, group in groupby(order, key=lambda k: scores[k])]
    for choice in product(*(permutations(group) for group in groups)):
        yield labels[[k for group in choice for k in group]]


def brute_force_swaps(measure: Measure, labels: Floats) -> Floats:
    """Return Z(after) − Z(before) for every pair, by swapping and measuring."""
    return Measure.swaps(measure, labels)


def check_measure(measure: Measure, cases: int = 60, highest: int = 4, seed: int = 0) -> None:
    """Check a measure on random short lists with many ties; raise AssertionError if a property fails.

    Example:
        >>> from podium.measures import NDCG
        >>> from podium.testing.measures import check_measure
        >>> check_measure(NDCG(3), cases=5)

    """
    rng = np.random.default_rng(seed)
    assert parse(str(measure)) == measure, f"{measure} does not parse back"
    for _ in range(cases):
        sizes = rng.integers(1, 7, 4)
        qid = np.repeat(np.arange(4), sizes)
        labels = rng.integers(0, highest + 1, len(qid)).astype(np.float32)
        scores = rng.integers(0, 4, len(qid)).astype(np.float64)
        _check_values(measure, labels, qid, scores)
        if measure.has_swaps:
            _check_swaps(measure, labels[qid == 0])
    _check_dependence(measure, highest)


def _check_values(measure: Measure, labels: NDArray[Any], qid: NDArray[Any], scores: Floats) -> None:
    shuffle = np.random.default_rng(len(qid)).permutation(len(qid))
    data = RankingData(np.empty((len(qid), 0)), qid=qid, labels={measure.labels: labels})
    fixed = measure.fixed(data)
    values = measure.values(Ranking(data, scores, base=data.order))
    for query in range(data.n_queries):
        list_labels, list_scores = labels[qid == query].astype(np.float64), scores[qid == query]
        if measure.ties == "expected":
            expected = float(np.mean([slow_value(fixed, order) for order in tied_orders(list_labels, list_scores)]))
        elif measure.has_swaps:
            expected = slow_value(fixed, ranked(list_labels, list_scores))
        else:
            continue
        assert np.isclose(values[query], expected, rtol=1e-12, atol=1e-12, equal_nan=True), (
            f"{measure}: {values[query]} instead of {expected} for labels {list_labels} with scores {list_scores}"
        )
    mapped = measure.values(Ranking(data, np.exp(scores) * 3 - 7, base=data.order))
    assert np.array_equal(mapped, values, equal_nan=True), f"{measure} depends on more than the order of scores"
    if measure.ties == "expected":
        rows = RankingData(np.empty((len(qid), 0)), qid=qid[shuffle], labels={measure.labels: labels[shuffle]})
        shuffled = measure.values(Ranking(rows, scores[shuffle]))
        number_of = {query: k for k, query in enumerate(rows.query_ids.tolist())}
        in_order = shuffled[[number_of[query] for query in data.query_ids.tolist()]]
        assert np.allclose(in_order, values, rtol=1e-12, equal_nan=True), f"{measure} depends on the order of rows"


def _check_swaps(measure: Measure, labels: NDArray[Any]) -> None:
    expected = brute_force_swaps(measure, labels.astype(np.float64))
    swaps = measure.swaps(labels)
    assert np.allclose(swaps, expected, rtol=1e-10, atol=1e-12), f"{measure}: swaps of {labels} are wrong"
    rows = [measure.swaps(labels, k, k + 1) for k in range(len(labels))]
    assert np.array_equal(np.concatenate(rows), swaps), f"{measure}: swaps depend on the blocks"


def _check_dependence(measure: Measure, highest: int) -> None:
    if measure.needs_cutoff and measure.cutoff is None:
        return  # a set measure of the whole list does not depend on the order
    labels = np.zeros((measure.cutoff or 0) + 6, np.float32)
    labels[:2] = highest
    data = RankingData(np.empty((len(labels), 0)), qid=np.zeros(len(labels), int), labels={measure.labels: labels})
    good, bad = (measure.values(Ranking(data, sign * labels))[0] for sign in (1, -1))
    assert good > bad, f"{measure} does not depend on the scores"
