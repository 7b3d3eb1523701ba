"""The pair kernel to the bit: what it passes over, how long lists are shared, and what one query leaves behind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import RankingData
from podium.core.simd import LANES
from podium.core.team import Team
from podium.measures import NDCG
from podium.objectives import Fidelity, Hinge, Lambda, LambdaLoss, Local, Pairwise, SquaredHinge, describe
from podium.objectives.pair_kernel import ThreadShares
from podium.objectives.pair_layout import FLUSH, TILE
from podium.objectives.pair_terms import PairFilter
from tests.references.objectives import slow_pairs

f32 = np.float32


def in_runs(rng, n, missing=0.0):
    """Labels in long runs of equal ones, mostly 0, some of them missing; they differ."""
    labels = np.repeat(rng.choice(4, n, p=[0.6, 0.2, 0.1, 0.1]), rng.integers(1, 3 * LANES, n))[:n].astype(f32)
    labels[rng.random(n) < missing] = np.nan
    labels[:2] = rng.permutation([0, 3])
    return labels


def one_query(labels, **extras):
    n = len(labels)
    return RankingData(np.arange(n, dtype=f32)[:, None], labels, qid=np.zeros(n, int), **extras)


# --- against all vectors


def in_halves(lanes):
    """Return the sum of lanes in the order of `sum_lanes`."""
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def all_vectors(labels, scores, delta):
    """λ and w of one query by rank, with RankNet's link: the kernel's order, but all pairs; delta(i, j) is |ΔZ|."""
    n, padded = len(labels), -(-len(labels) // LANES) * LANES
    power = np.ones(padded, f32)
    power[:n] = np.exp(scores - (scores[0] + scores[-1]) / 2)
    label = np.pad(labels, (0, padded - n), constant_values=np.nan)
    sums = np.zeros((2, padded))
    for block in range(0, n, FLUSH):
        single = np.zeros((2, padded), f32)
        for i in range(block, min(block + FLUSH, n)):
            for first in range((i + 1) // TILE * TILE, n, TILE):
                j = np.arange(max(first, (i + 1) // LANES * LANES), min(first + TILE, padded))
                better = label[i] > label[j]
                weight = np.where((better | (label[i] < label[j])) & (j > i), delta(i, j), f32(0))
                inverse = f32(1) / (power[i] + power[j])
                gradient = weight * inverse * np.where(better, power[j], power[i])
                hessian = gradient * np.where(better, power[i], power[j]) * inverse
                signed = np.where(better, gradient, -gradient)
                single[0, j] -= signed
                single[1, j] += hessian
                for k, of_pairs in enumerate((signed, hessian)):
                    lanes = np.zeros(LANES, f32)
                    for vector in of_pairs.reshape(-1, LANES):
                        lanes = lanes + vector
                    single[k, i] += in_halves(lanes)
        sums += single
    return sums[:, :n]


@pytest.mark.parametrize("n", [2, 5, 16, 17, 60, 300, 1_100])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_skipped_vectors_change_no_bit(n, missing):
    rng = np.random.default_rng(n)
    labels = in_runs(rng, n, missing)
    data, scores = one_query(labels), rng.choice([0.0, 1e-3], n) - np.arange(n) / n  # runs of labels stay runs
    rows = np.array(sorted(data.canonical_order, key=lambda row: -scores[row]))
    gains = NDCG().gains(labels)
    gain, discount = np.zeros(n + LANES, f32), np.zeros(n + LANES, f32)
    gain[:n] = (gains * (1 / NDCG().norms(gains, np.array([0, n]), np.array([n]))[0]))[rows]
    discount[:n] = NDCG().discounts(n)
    for objective, delta in (
        (Pairwise(), lambda _, j: np.ones(len(j), f32)),
        (Lambda("ndcg", normalize=False), lambda i, j: np.abs((gain[i] - gain[j]) * (discount[i] - discount[j]))),
    ):
        expected = all_vectors(labels[rows], scores[rows], delta)
        for fast, slow in zip(objective.bind(data).gradients(scores), expected, strict=True):
            assert np.array_equal(fast[rows].view(np.int64), slow.view(np.int64))


TERMS = st.sampled_from([
    Lambda("ndcg", normalize=False), Lambda("ndcg", truncation=3, normalize=True),
    Lambda("ndcg", truncation=20, normalize=False), Lambda("err", normalize=False),
    Lambda("ap", normalize=True), Lambda("ap", truncation=18, normalize=False), Pairwise(normalize=True),
    Lambda("ndcg", pair_truncation=5), Lambda("ap", pair_truncation=18), Lambda("err@9", pair_truncation=4),
    Lambda("accuracy", pair_truncation=7), Pairwise(Hinge()),
    Pairwise(SquaredHinge(0.4)), Pairwise(Fidelity()), Local("ndcg", normalize=False), LambdaLoss(normalize=False),
])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(TERMS, st.integers(0, 10_000), st.integers(2, 3 * LANES), st.booleans(), st.booleans(), st.booleans())
def test_runs_of_equal_labels_equal_the_slow_reference(term, seed, n, weighted, grouped, trusted):
    rng = np.random.default_rng(seed)
    labels = in_runs(rng, n, rng.choice([0.0, 0.1, 0.5]))
    data = one_query(labels, **({"document_weights": rng.random(n) + 0.5} if weighted else {}))
    steps = np.arange(n) / (n + 0.1234567)  # so that no lead is at the corner of a hinge
    scores = np.round(rng.normal(size=n), 1) * rng.choice([0.05, 1.0]) - steps
    groups = rng.choice([0, 1, np.nan], n, p=[0.6, 0.3, 0.1]).astype(f32) if grouped else None
    trusts = (rng.random(n) + 0.5).astype(f32) if trusted else None
    among = PairFilter(groups, nonzero=bool(rng.integers(2)), trusts=trusts)
    computed = term.bind_among(data, among).gradients(scores)
    expected = slow_pairs(data, scores, term, among)
    for fast, slow in zip(computed, expected[:2], strict=True):
        assert np.allclose(fast, slow, rtol=5e-6, atol=4e-6 * max(1.0, np.abs(slow).max()))


def test_a_query_without_pairs_has_no_gradients():
    for labels in ([1, 1, 1], [np.nan, 2, 2], [0, 0, np.nan], [np.nan, np.nan, 1]):
        data = RankingData(np.arange(5)[:, None], [*labels, 0, 1], qid=[0, 0, 0, 1, 1])
        for objective in (
            Lambda("ndcg", normalize=False),
            Lambda("err", normalize=False),
            Pairwise(),
            Lambda("accuracy", normalize=False),
        ):
            lambdas, hessians = objective.bind(data).gradients(np.array([0.3, 0.1, 0.2, 0.0, 0.0]))
            assert not np.concatenate([lambdas[:3], hessians[:3]]).any(), objective
            assert lambdas[3:].all(), objective


# --- threads


LONG = [
    Lambda("ndcg", normalize=False), Lambda("ndcg", normalize=True), Lambda("ndcg", truncation=400, normalize=True),
    Lambda("err", normalize=False),
    Lambda("ap", normalize=True), Pairwise(SquaredHinge(0.4)), LambdaLoss(normalize=True),
    Lambda("ndcg", pair_truncation=600),
]  # fmt: skip


@pytest.mark.parametrize("objective", LONG, ids=describe)
@pytest.mark.parametrize("sizes", [[1_500], [3, 1_300, 40, 2, 700, 9], [60] * 50 + [600]])
def test_threads_share_long_lists_and_change_no_bit(objective, sizes):
    rng = np.random.default_rng(3)
    n = sum(sizes)
    data = RankingData(rng.normal(size=(n, 2)), in_runs(rng, n, 0.05), qid=np.repeat(np.arange(len(sizes)), sizes))
    rounds = [np.round(rng.normal(size=n), 2) * spread for spread in (1.0, 1.0, 100.0, 0.5)]
    results = []
    for n_threads in (1, 2, 3):
        bound = objective.bind(data)
        with Team(n_threads) as team:
            bound.team = team
            results.append(np.array([bound.gradients(scores) for scores in rounds]))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_which_lists_are_shared():
    def shared(sizes, depth, n_threads):
        work = ThreadShares(np.array(sizes), depth, np.empty(0)).of(n_threads)
        alone = sorted(q for tasks in work for task, *_ in tasks if task.n_threads == 1
                       for q in range(task.first, task.last) if sizes[q] <= task.longest)  # fmt: skip
        shared_queries = [[task.first for task, *_ in tasks if task.n_threads > 1] for tasks in work]
        assert all(tasks == shared_queries[0] for tasks in shared_queries)
        assert sorted(alone + shared_queries[0]) == list(range(len(sizes)))
        return shared_queries[0]

    assert shared([20_000], 20_000, 2) == [0]
    assert shared([20_000], 20_000, 1) == []
    assert shared([20_000], 30, 2) == []  # all rows are one block
    assert shared([120] * 1000 + [5_000], 5_000, 2) == [1000]
    assert shared([600] * 100, 600, 2) == []
    assert shared([], 1, 2) == []


# --- from query to query


def test_no_state_leaks_between_queries_or_rounds():
    """Padding, lists of vectors and sums of one query do not show in the next, nor scores far apart in later rounds."""
    rng = np.random.default_rng(4)
    sizes = np.array([40, 3, 17, 2, 33, 5, 16])
    n = int(sizes.sum())
    labels, weights = in_runs(rng, n, 0.1), rng.random(n) + 0.5
    data = RankingData(
        rng.normal(size=(n, 2)), labels, qid=np.repeat(np.arange(len(sizes)), sizes), document_weights=weights
    )
    for objective in (
        Lambda("ndcg", normalize=True),
        Lambda("err", normalize=False),
        Pairwise(Fidelity(), normalize=True),
    ):
        bound = objective.bind(data)
        for spread in (1.0, 1e300, 1.0, 1e3, 0.0, 0.1):
            scores = spread * np.round(rng.normal(size=n), 1)
            repeated, fresh = bound.gradients(scores), objective.bind(data).gradients(scores)
            assert np.array_equal(repeated, fresh)
            for q in range(len(sizes)):
                rows = data.rows(q)
                alone = data.take(rows)
                if np.isfinite(labels[rows]).any():
                    expected = objective.bind(alone).gradients(scores[rows])
                    assert np.array_equal(np.array(repeated)[:, rows], expected)


# --- arrays of other types than the kernel is compiled for


class Steep(NDCG):
    """A measure without a family, whose swap deltas are of another type and order than the kernel's."""

    def lookup_tables(self, labels, offsets):
        return None

    def swaps(self, labels, first=0, last=None):
        return np.asfortranarray(super().swaps(labels, first, last).astype(f32))


@pytest.mark.parametrize("measure", [NDCG(), Steep()])
def test_output_arrays_of_any_type_are_filled(measure):
    rng = np.random.default_rng(0)
    bound = Lambda(measure, normalize=False).bind(one_query(in_runs(rng, 40)))
    single = rng.normal(size=40).astype(f32)
    expected = bound.gradients(single.astype(float))
    usual = Lambda(NDCG(), normalize=False).bind(bound.data).gradients(single.astype(float))
    np.testing.assert_allclose(expected, usual, rtol=1e-5, atol=1e-7)
    for scores in (single, np.repeat(single.astype(float), 2)[::2]):
        assert np.array_equal(bound.gradients(scores), expected)
    for dtype, step in ((np.float64, 2), (f32, 1)):
        into = np.zeros((2, 40 * step), dtype)[:, ::step]
        bound.fill(single.astype(float), 0, *into)
        assert np.array_equal(into, np.array(expected, dtype))
