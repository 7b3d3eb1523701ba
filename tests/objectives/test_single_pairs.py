"""λ of single pairs: those of the slow reference, and together those of the pair kernel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError
from podium.diagnostics.lambdas import pairs_of_document, parts_of, sums_by_class
from podium.measures import Measure
from podium.objectives import Debiased, Lambda, ListNet, PairFilter, Preferences, Regression, Tiers, parse
from tests.references.objectives import slow_single_pairs

OBJECTIVES = [
    "pairwise", "pairwise(fidelity)", "lambda(ndcg, normalize=false)", "lambda(ndcg, sigma=2, normalize=false)",
    "lambda(ndcg, truncation=3, normalize=false)",
    "lambda(err, normalize=false)", "lambda(err, truncation=2, normalize=false)", "lambda(ap, normalize=false)",
    "lambda(q, normalize=false)", "lambda(rr, normalize=false)", "lambda(accuracy, normalize=false)",
    "lambda(ndcg, normalize=true)", "lambda(err, normalize=true)", "lambdaloss(normalize=false)",
    "local(ndcg@3, normalize=false)", "lambda(success@3, normalize=false)", "lambda(pfound, normalize=false)",
    "lambda(ap(norm=reachable)@2, normalize=false)", "lambda(r_precision, normalize=false)",
    "lambda(ndcg, normalize=false, pair_truncation=2)", "lambda(err, normalize=true, pair_truncation=3)",
    "lambda(accuracy, normalize=true, pair_truncation=2)",
]  # fmt: skip


def make_data(seed, weights, sizes=(6, 1, 9, 4)):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    labels = rng.integers(0, 5, n).astype(float)
    labels[rng.random(n) < 0.1] = np.nan
    labels[-1] = 2.0
    extras = {"document_weights": rng.random(n) + 0.5, "query_weights": rng.random(len(sizes)) + 0.5} if weights else {}
    qid = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = rng.permutation(n)
    clicks = rng.integers(0, 3, n) / 2
    data = podium.RankingData(
        rng.normal(size=(n, 2)), labels[shuffled], qid=qid[shuffled], labels={"clicks": clicks}, **extras
    )
    return data, np.round(rng.normal(size=n) * 2, 1)  # some are tied


def matrix_of(bound, data, scores, objective, iteration=0):
    """λ_jk of all pairs of rows."""
    parts, lambdas = parts_of(bound, iteration, objective), np.zeros((len(data), len(data)))
    for q in range(data.n_queries):
        canonical = data.canonical_order[data.offsets[q] : data.offsets[q + 1]]
        for row in canonical:
            lambdas[row, canonical] = pairs_of_document(parts, scores, q, row)
    return lambdas


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), text=st.sampled_from(OBJECTIVES), weights=st.booleans())
def test_pairs_are_those_of_the_reference(seed, text, weights):
    objective = parse(text)
    data, scores = make_data(seed, weights and not objective.normalize)
    lambdas = matrix_of(objective.bind(data), data, scores, objective)
    assert lambdas == pytest.approx(slow_single_pairs(data, scores, objective)[0], abs=1e-6)
    assert lambdas == pytest.approx(-lambdas.T)


@pytest.mark.parametrize("text", [*OBJECTIVES, "anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.1))"])
def test_the_pairs_of_a_document_add_up_to_its_gradient(text):
    objective = parse(text)
    data, scores = make_data(5, True)
    bound = objective.bind(data)
    lambdas = matrix_of(bound, data, scores, objective, iteration=3)
    assert lambdas.sum(axis=1) == pytest.approx(bound.gradients(scores, 3)[0], abs=1e-5)


def test_tiers_and_trusts_restrict_and_weight_pairs():
    data, scores = make_data(2, False)
    tiers = Tiers(Lambda("ndcg", normalize=False), Lambda("cndcg", normalize=False), weights=(0.7, 0.3))
    groups = data.relevance[data.canonical_order]
    slow = [
        slow_single_pairs(data, scores, tier, among)[0]
        for tier, among in zip(tiers.tiers, (None, PairFilter(groups, nonzero=True)), strict=True)
    ]
    assert np.abs(slow[1]).max() > 0
    expected = 0.7 * slow[0] + 0.3 * slow[1]
    assert matrix_of(tiers.bind(data), data, scores, tiers) == pytest.approx(expected, abs=1e-6)
    shown = data.replace(positions=np.arange(len(data)) % 3 + 1)
    debiased = Debiased(Lambda("ndcg", normalize=False), propensities=(1.0, 0.5, 0.25))
    trusts = (2.0 ** (np.arange(len(data)) % 3))[shown.canonical_order].astype(np.float32)
    expected = slow_single_pairs(shown, scores, Lambda("ndcg", normalize=False), PairFilter(trusts=trusts))[0]
    assert matrix_of(debiased.bind(shown), shown, scores, debiased) == pytest.approx(expected, abs=1e-6)


def test_pairs_of_preferences():
    data, scores = make_data(3, True, sizes=(5, 4))
    rows = [data.rows(q) for q in range(2)]
    i, j = (
        np.array([rows[0][0], rows[0][1], rows[1][3], rows[0][1]]),
        np.array([rows[0][2], rows[0][0], rows[1][0], rows[0][0]]),
    )
    data = data.replace(preferences=(i, j, [1.0, 0.7, 0.2, 0.1]))
    bound = Preferences().bind(data)
    lambdas = matrix_of(bound, data, scores, Preferences())
    assert lambdas.sum(axis=1) == pytest.approx(bound.gradients(scores)[0])
    assert lambdas == pytest.approx(-lambdas.T)
    assert np.count_nonzero(lambdas) == 6  # two of the four pairs are of the same documents
    check_sums(bound, data, scores, Preferences(), lambdas)


def check_sums(bound, data, scores, objective, lambdas, iteration=0):
    """Sums by class of some documents against the matrix."""
    rng = np.random.default_rng(0)
    selected, classes = rng.random(len(data)) < 0.4, rng.integers(-1, 3, len(data))
    slots = np.where(selected, np.cumsum(selected) - 1, -1)
    sums = sums_by_class(parts_of(bound, iteration, objective), scores, slots, classes, 3)
    for place, row in enumerate(data.canonical_order):
        if slots[place] < 0:
            continue
        for kind in range(3):
            pairs = lambdas[row, data.canonical_order[classes == kind]]
            assert sums[slots[place], kind] == pytest.approx([pairs.sum(), np.abs(pairs).sum()], abs=1e-6)


@pytest.mark.parametrize("text", [text for text in OBJECTIVES if "normalize" not in text])
def test_sums_by_class(text):
    objective = parse(text)
    data, scores = make_data(8, True, sizes=(12, 3, 20))
    check_sums(objective.bind(data), data, scores, objective, slow_single_pairs(data, scores, objective)[0])


def test_a_custom_measure_has_pairs():
    class First(Measure):
        def value(self, labels):
            return float(labels[0])

    data, scores = make_data(4, False)
    objective = Lambda(First(), normalize=False)
    expected = slow_single_pairs(data, scores, objective)[0]
    assert np.abs(expected).max() > 0
    assert matrix_of(objective.bind(data), data, scores, objective) == pytest.approx(expected)
    check_sums(objective.bind(data), data, scores, objective, expected)


@pytest.mark.parametrize("objective", [ListNet(), Regression(), Tiers(Lambda("ndcg", normalize=False))])
def test_other_objectives_have_no_pairs(objective):
    data = podium.artificial(3, features=2)
    if isinstance(objective, Tiers):
        assert len(parts_of(objective.bind(data), 0, objective)) == 1
    else:
        with pytest.raises(DataError, match="not a sum over pairs of documents"):
            parts_of(objective.bind(data), 0, objective)
