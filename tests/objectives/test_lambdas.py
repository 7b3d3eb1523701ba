"""λ: against the slow reference, finite differences, and what must hold for every measure."""

import numpy as np
import pytest

import podium
from podium import DataError, Measure, RankingData
from podium.measures import parse, registered
from podium.objectives import Lambda
from tests.references.objectives import slow_lambdas

# PairFilter are summed in single precision: an error of a few 2^-24 of what is summed.
SINGLE = {"rtol": 2e-6, "atol": 1e-6}
NAMES = [name for name in sorted(registered()) if registered()[name].has_swaps]


def random_data(seed, source="relevance", highest=4, weights=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 5)
    n = sizes.sum()
    labels = rng.integers(0, highest + 1, n).astype(np.float32)
    labels[rng.random(n) < 0.1] = np.nan
    extras = {"document_weights": rng.random(n) + 0.5, "query_weights": rng.random(5) + 0.5} if weights else {}
    data = RankingData(rng.normal(size=(n, 3)), qid=np.repeat(np.arange(5), sizes), labels={source: labels}, **extras)
    return data, np.round(rng.normal(size=n) * 2) / 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cutoff", [None, 2, 5])
def test_equals_the_slow_reference(name, cutoff):
    whole = parse(name)
    if whole.needs_cutoff if cutoff is None else not whole.has_cutoff:
        return
    measure = whole.replace(cutoff=cutoff)
    for seed in range(8):
        data, scores = random_data(seed, measure.labels, 1 if name == "cndcg" else 4, weights=seed % 2 == 1)
        objective = Lambda(measure, truncation=cutoff, sigma=1.5, normalize=False)
        computed = objective.bind(data).gradients(scores)
        expected = slow_lambdas(data, scores, measure, 1.5)
        assert np.allclose(computed[0], expected[0], **SINGLE)
        assert np.allclose(computed[1], expected[1], **SINGLE)
        for q in range(data.n_queries):
            of_query = computed[0][data.rows(q)]
            assert abs(of_query.sum()) <= 1e-6 * np.abs(of_query).sum()


def test_the_cutoff_of_an_objective_is_its_truncation():
    data, scores = random_data(1)
    whole = Lambda("ndcg", normalize=False).bind(data).gradients(scores)[0]
    cut = Lambda("ndcg@2", normalize=False).bind(data).gradients(scores)[0]
    assert np.array_equal(Lambda("ndcg", truncation=2, normalize=False).bind(data).gradients(scores)[0], cut)
    assert Lambda("precision@3", normalize=False).trained_measure().cutoff == 3
    assert not np.array_equal(cut, whole)


@pytest.mark.parametrize("name", ["ndcg", "ap", "err"])
def test_gradients_are_finite_differences_at_fixed_ranks(name):
    rng = np.random.default_rng(0)
    data, _ = random_data(3)
    scores = rng.permutation(len(data)).astype(float)  # far apart: a small step changes no rank
    bound = Lambda(name, normalize=False).bind(data)
    lambdas, hessians = bound.gradients(scores)
    step = 1e-3
    for row in range(len(data)):
        moved = np.zeros(len(data))
        moved[row] = step
        up, down = (slow_lambdas(data, scores + s * moved, parse(name))[2] for s in (1, -1))
        assert -(up - down) / (2 * step) == pytest.approx(lambdas[row], abs=1e-6)  # λ = −∂C/∂s
        change = (bound.gradients(scores + moved)[0] - bound.gradients(scores - moved)[0]) / (2 * step)
        assert -change[row] == pytest.approx(hessians[row], abs=2e-4)  # w = −∂λ/∂s


def test_cross_derivatives_are_symmetric():
    data, _ = random_data(4)
    scores = np.random.default_rng(1).permutation(len(data)).astype(float)
    bound = Lambda("ndcg", normalize=False).bind(data)
    jacobian = np.empty((len(data), len(data)))
    for row in range(len(data)):
        moved = np.zeros(len(data))
        moved[row] = 1e-3
        jacobian[row] = (bound.gradients(scores + moved)[0] - bound.gradients(scores - moved)[0]) / 2e-3
    assert np.abs(jacobian).max() > 0.02
    assert np.allclose(jacobian, jacobian.T, atol=2e-4)


def test_scores_far_apart_are_safe():
    data = RankingData([[1], [2], [3]], [0, 1, 2], qid=[1, 1, 1])
    for scores in ([1e4, 0, -1e4], [-1e4, 0, 1e4], [1e300, 0, -1e300]):
        lambdas, hessians = Lambda(normalize=False).bind(data).gradients(np.array(scores, float))
        assert np.isfinite(lambdas).all()
        assert np.isfinite(hessians).all()
        assert abs(lambdas.sum()) < 1e-6


@pytest.mark.parametrize("name", ["ndcg", "ap", "err"])
def test_normalized_lambdas_equal_the_slow_reference(name):
    for seed in range(6):
        data, scores = random_data(seed)  # without query weights: those come after the scaling
        for start in (scores, np.zeros(len(data))):
            computed = Lambda(name, normalize=True, sigma=1.5).bind(data).gradients(start)
            expected = slow_lambdas(data, start, parse(name), 1.5, normalize=True)
            assert np.allclose(computed[0], expected[0], **SINGLE)
            assert np.allclose(computed[1], expected[1], **SINGLE)


def test_a_custom_measure_gives_lambdas():
    class Top(Measure):
        def value(self, labels):
            return float(labels[0])

    data, scores = random_data(2)
    computed = Lambda(Top(), normalize=False).bind(data).gradients(scores)
    expected = slow_lambdas(data, scores, Top())
    assert np.allclose(computed[0], expected[0], **SINGLE)
    computed = Lambda(Top(), normalize=True).bind(data).gradients(scores)
    expected = slow_lambdas(data, scores, Top(), normalize=True)
    assert np.allclose(computed[0], expected[0], **SINGLE)
    assert np.allclose(computed[1], expected[1], **SINGLE)


def test_invalid_arguments():
    data = podium.artificial(3, features=2)
    with pytest.raises(DataError, match="tau cannot be trained on"):
        Lambda("tau", normalize=False)
    with pytest.raises(DataError, match="the same for every order"):
        Lambda("precision", normalize=False)
    with pytest.raises(DataError, match="sigma must be positive"):
        Lambda(sigma=0, normalize=False)
    with pytest.raises(DataError, match="needs the labels 'clicks'"):
        Lambda("cndcg", normalize=False).bind(data)


def test_20000_documents_in_one_query():
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(20_000, 1)), rng.integers(0, 5, 20_000), qid=np.zeros(20_000, int))
    lambdas, _ = Lambda(truncation=30, normalize=False).bind(data).gradients(rng.normal(size=20_000))
    assert abs(lambdas.sum()) < 1e-6 * np.abs(lambdas).sum()
    assert (lambdas != 0).any()


@pytest.mark.parametrize("name", ["ndcg", "ap", "err"])
@pytest.mark.parametrize("spread", [1.0, 100.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_lists_of_several_tiles_and_scores_far_apart(name, spread, normalize):
    """More documents than a tile holds, more rows than are summed in single precision, powers that overflow."""
    rng = np.random.default_rng(5)
    n = 1_100
    labels = rng.integers(0, 3, n).astype(np.float32)
    labels[rng.random(n) < 0.05] = np.nan
    data = RankingData(rng.normal(size=(n, 2)), labels, qid=np.zeros(n, int), document_weights=rng.random(n) + 0.5)
    scores = np.round(rng.normal(size=n), 2) * spread
    computed = Lambda(name, normalize=normalize).bind(data).gradients(scores)
    rows = np.array(sorted(data.canonical_order, key=lambda row: -scores[row]))
    y, s, root = labels[rows].astype(float), scores[rows], np.sqrt(data.document_weights[rows].astype(float))
    deltas = np.abs(parse(name).fixed(data).swaps(y))
    deltas = np.triu(deltas, 1) * np.outer(root, root)
    sign = np.nan_to_num(np.sign(y[:, None] - y[None, :]))
    gap = s[:, None] - s[None, :]
    if normalize:
        deltas /= 0.01 + np.abs(gap)
    with np.errstate(over="ignore"):
        rho = 1 / (1 + np.exp(sign * gap))
    push, bend = deltas * np.abs(sign) * rho, deltas * np.abs(sign) * rho * (1 - rho)
    scale = np.log2(1 + 2 * push.sum()) / (2 * push.sum()) if normalize else 1.0
    expected = np.zeros(n), np.zeros(n)
    expected[0][rows] = scale * ((sign * push).sum(1) - (sign * push).sum(0))
    expected[1][rows] = scale * (bend.sum(1) + bend.sum(0))
    for fast, slow in zip(computed, expected, strict=True):
        assert np.allclose(fast, slow, rtol=1e-4, atol=1e-5 * np.abs(slow).max())


def test_ranks_kept_from_round_to_round_change_nothing():
    data, _ = random_data(7)
    bound = Lambda(normalize=False).bind(data)
    rng = np.random.default_rng(2)
    for _ in range(20):
        scores = np.round(rng.normal(size=len(data)), 1)
        fresh = Lambda(normalize=False).bind(data).gradients(scores)
        repeated = bound.gradients(scores)
        assert np.array_equal(repeated[0], fresh[0])
        assert np.array_equal(repeated[1], fresh[1])
