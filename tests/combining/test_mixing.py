"""Two rankers of any scales, against all crossings in exact rational arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, RankingData, combine
from podium.combining import Sweep, deviation
from podium.combining.mixing import best_mixture
from podium.models import Combined, Ensemble, LinearModel, refit_weights
from podium.models.rankers import scores_of

BOUNDS = [(0.0, 1.0), (0.0, 1e-6), (0.25, 0.75), (-1.0, 2.0), (0.5, 3.0), (-40.0, -0.1)]


def small(seed, pool):
    """A few documents; scores from a pool of few values, so that some are tied in one ranker, some in both."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 3)
    n = int(sizes.sum())
    labels = rng.integers(0, 3, n)
    labels[0] = 1
    data = RankingData(rng.normal(size=(n, 2)), labels, qid=np.repeat(np.arange(3), sizes))
    return data, rng.choice(rng.normal(size=pool), n), rng.choice(rng.normal(size=pool), n)


def exact_best(sweep, first, second, bounds):
    """The best mean at the midpoints between all crossings and at the bounds, without any rounding of scores.

    Also the best of those at which float64 can tell apart what differs.
    """
    first, second = ([Fraction(score) for score in column.tolist()] for column in (first, second))
    low, high = map(Fraction, bounds)
    queries = [np.arange(len(first))[sweep.data.rows(q)].tolist() for q in range(sweep.data.n_queries)]
    pairs = [(i, j) for rows in queries for i in rows for j in rows if i != j]
    crossings = set()
    for i, j in pairs:
        change = (second[j] - first[j]) - (second[i] - first[i])
        if change:
            crossings.add((first[i] - first[j]) / change)
    edges = sorted({low, high, *(alpha for alpha in crossings if low < alpha < high)})
    means, held = [], []
    for alpha in (*((left + right) / 2 for left, right in pairwise(edges)), low, high):
        terms = [((1 - alpha) * a, alpha * b) for a, b in zip(first, second, strict=True)]
        scores = [sum(pair) for pair in terms]
        ranks = {score: rank for rank, score in enumerate(sorted(set(scores)))}
        means.append(sweep.value(np.array([float(ranks[score]) for score in scores])))
        sizes = [max(map(abs, pair)) for pair in terms]
        gaps = ((abs(scores[i] - scores[j]), max(sizes[i], sizes[j])) for i, j in pairs)
        if all(gap == 0 or gap > size * Fraction(2) ** -49 for gap, size in gaps):
            held.append(means[-1])
    return max(means), max(held, default=0.0)


@example(852584, 30, 89, 74, "ap", (0.5, 3.0))  # the ends of the interval round to one number
@example(157, 30, -109, 200, "ndcg@3", (0.0, 1.0))  # α is below all normal numbers
@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 100_000),
    st.sampled_from([3, 30]),
    st.integers(-200, 200),
    st.integers(-200, 200),
    st.sampled_from(["ndcg@3", "err", "ap", "rr"]),
    st.sampled_from(BOUNDS),
)
def test_the_best_of_all_at_any_scales(seed, pool, first_power, second_power, name, bounds):
    data, first, second = small(seed, pool)
    first, second = first * 10.0**first_power, second * 10.0**second_power
    sweep = Sweep(data, name)
    mixture = best_mixture(sweep, first, second, *bounds)
    best, held = exact_best(sweep, first, second, bounds)
    assert mixture.value >= held - 1e-9
    if bounds == (0.0, 1.0):
        assert mixture.value >= best - 1e-9
        assert mixture.interval[0] == mixture.interval[1] or mixture.value <= best + 1e-9
    assert mixture.value == sweep.value(mixture.weights[0] * first + mixture.weights[1] * second)
    assert bounds[0] <= mixture.interval[0] <= mixture.alpha <= mixture.interval[1] <= bounds[1]
    assert (np.diff(mixture.path.alphas) >= 0).all()
    assert len(mixture.path.values) == len(mixture.path.alphas) - 1
    total = sum(map(Fraction, mixture.weights))
    assert float(Fraction(mixture.weights[1]) / total) == pytest.approx(mixture.alpha, rel=1e-12, abs=1e-300)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100_000), st.integers(0, 30), st.lists(st.integers(-12, 12), min_size=3, max_size=3),
       st.sampled_from(BOUNDS))  # fmt: skip
def test_the_best_of_all_with_one_far_larger_score_or_query(seed, outlier, powers, bounds):
    data, first, second = small(seed, 3)
    second[seed % len(second)] *= 10.0**outlier
    first *= 10.0 ** np.repeat(np.array(powers, float), data.query_sizes)
    sweep = Sweep(data, "ap")
    mixture = best_mixture(sweep, first, second, *bounds)
    assert mixture.value >= exact_best(sweep, first, second, bounds)[1] - 1e-9
    assert mixture.value == sweep.value(mixture.weights[0] * first + mixture.weights[1] * second)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000), st.integers(-990, 990), st.integers(-990, 990))
@example(166, 0, 54)
def test_powers_of_two_change_nothing(seed, first_power, second_power):
    data, first, second = small(seed, 30)
    sweep = Sweep(data, "ndcg")
    on_one_scale = best_mixture(sweep, first, second, 0.0, 1.0)
    other = best_mixture(sweep, np.ldexp(first, first_power), np.ldexp(second, second_power), 0.0, 1.0)
    assert np.array_equal(other.path.values, on_one_scale.path.values)
    # Of the sums of scores some may be equal at one scale only; then the expectation over ties rounds differently.
    assert other.value == pytest.approx(on_one_scale.value, rel=1e-15)


@pytest.fixture(scope="module")
def data():
    return podium.artificial(40, documents=15, features=4, seed=3)


@pytest.fixture(scope="module")
def columns(data):
    """Return the scores of two rankers that complement each other; neither is best alone."""
    rng = np.random.default_rng(0)
    return [data.relevance + 2.0 * rng.normal(size=len(data)) for _ in range(2)]


@pytest.mark.parametrize("scale", [1e11, 1e-11, 1e17, 1e-17, 1e200, 1e-200, 1e300, 1e-300])
def test_a_scale_does_not_cost_the_optimum(data, columns, scale):
    a, b = columns
    plain, scaled = combine(a, b, data), combine(a, b * scale, data)
    assert plain.value > max(plain.values) + 0.01
    assert scaled.value == pytest.approx(plain.value, abs=1e-9)
    assert scaled.values == plain.values
    mixed = scaled.weights[0] * a + scaled.weights[1] * (b * scale)
    assert Sweep(data, "ndcg@10").value(mixed) == scaled.value
    assert scaled.path.values.max() == pytest.approx(plain.path.values.max(), abs=1e-9)
    far = combine(a / scale, b * scale, data)
    assert far.value == pytest.approx(plain.value, abs=1e-9)
    assert np.isfinite(far.weights).all()


def test_ordinary_weights_are_those_of_alpha(data, columns):
    mixture = combine(*columns, data)
    assert mixture.weights == (1.0 - mixture.alpha, mixture.alpha)
    assert "weights" not in str(mixture)
    far = combine(columns[0] * 1e20, columns[1], data)
    assert far.alpha == 1.0
    assert far.weights[1] == 1.0
    assert 0 < far.weights[0] < 1e-18
    assert f"α = 1 (weights {far.weights[0]:.4g} and 1)" in str(far)


def test_one_document_far_away_does_not_hide_the_others(data, columns):
    a, b = (column.copy() for column in columns)
    plain = combine(a, b, data, "ndcg")
    last = np.flatnonzero(data.relevance == 0)[:3]
    b[last] = -1e30  # as if they were filtered out
    mixture = combine(a, b, data, "ndcg")
    assert mixture.value >= plain.value - 0.02
    assert mixture.value > max(mixture.values) + 0.01
    edges = np.array([0.1, 0.3, 0.5, 0.7])
    sweep = Sweep(data, "ndcg")
    assert np.allclose(mixture.path.at(edges), [sweep.value((1 - x) * a + x * b) for x in edges])


def test_the_scorer_gives_the_value(data, columns):
    named = data.replace(features=np.column_stack(columns).astype(np.float32), feature_names=None)
    models = [LinearModel(weights, np.zeros(2)) for weights in (np.array([1.0, 0.0]), np.array([0.0, 1e25]))]
    mixture = combine(*models, named)
    assert isinstance(mixture.model, Combined)
    assert mixture.model.weights == mixture.weights
    sweep = Sweep(named, "ndcg@10")
    first, second = (column.astype(np.float32).astype(float) for column in columns)
    assert mixture.value == pytest.approx(combine(first, second, named).value, abs=1e-9)
    assert mixture.value == sweep.value(scores_of(mixture.model, named))


def test_a_plot_of_scales_far_apart(data, columns):
    chart = combine(columns[0], columns[1] * 1e300, data).plot().to_dict()
    assert chart["layer"][1]["encoding"]["x"]["title"].startswith("α")


def test_invalid_arguments(data, columns):
    with pytest.raises(DataError, match="must be finite and ascending"):
        combine(*columns, data, bounds=(1.0, 1.0))


@pytest.mark.parametrize("scales", [(1e200, 1.0, 1e-200), (1e-300, 1e300, 1.0)])
def test_several_rankers_of_any_scales(data, columns, scales):
    three = [*columns, data.feature(0).astype(float)]
    plain = combine(*three, data)
    scaled = combine(*(scale * column for scale, column in zip(scales, three, strict=True)), data)
    assert scaled.value == pytest.approx(plain.value, abs=2e-3)  # scales other than powers of two round differently
    assert scaled.value > max(scaled.values) + 0.01
    mixed = sum(w * (s * c) for w, s, c in zip(scaled.weights, scales, three, strict=True))
    assert Sweep(data, "ndcg@10").value(mixed) == scaled.value


def test_the_deviation_of_any_scale(data, columns):
    size = deviation(data, columns[0])
    for power in (-1000, -600, 600, 1000):
        assert deviation(data, np.ldexp(columns[0], power)) == np.ldexp(size, power)
    assert deviation(data, np.zeros(len(data))) == 1.0


def test_scores_and_slopes_of_any_scale(data, columns):
    sweep = Sweep(data, "ndcg@10")
    plain = sweep.best(*columns, 0.0, 2.0)
    for power in (-1040, -600, 600, 1020):
        mixture = sweep.best(*(np.ldexp(column, power) for column in columns), 0.0, 2.0)
        if power > -1000:  # below, numbers lose places
            assert (mixture.alpha, mixture.value, mixture.interval) == (plain.alpha, plain.value, plain.interval)
        assert mixture.value == pytest.approx(plain.value, abs=0.01)
    tiny = sweep.best(np.ldexp(columns[0], -60), columns[1], 0.0, 2.0, near=0.0)
    assert tiny.value >= plain.value - 1e-9
    assert 0.0 < tiny.alpha < 1e-15


def test_a_far_larger_tree_gets_a_small_weight():
    data = podium.artificial(60, documents=20, features=8, seed=4)
    model = podium.LambdaMART(6, 8).fit(data)
    trees = [model.model_.tree(k) for k in range(6)]
    others = Ensemble.of_trees(trees[1:], 8)
    large = replace(trees[0], leaf_value=trees[0].leaf_value * 1e25)
    whole = Ensemble.of_trees([large, *trees[1:]], 8)
    sweep = Sweep(data, "ndcg@10")
    refitted = refit_weights(whole, data, "ndcg@10")
    assert sweep.value(scores_of(refitted, data)) >= sweep.value(scores_of(others, data))


@pytest.mark.parametrize("powers", [(200, -200), (-200, 200), (0, 0)])
@pytest.mark.parametrize("bounds", [(0.2, 0.7), (-1.0, 2.0), (-0.7, -0.2), (1.2, 3.0), (0.5, np.nextafter(0.5, 1))])
def test_the_path_has_a_value_everywhere(powers, bounds):
    """Compared with much larger scores, the bounds may be closer to each other than any two numbers."""
    data = RankingData(np.ones((3, 1)), [0, 1, 2], qid=[0, 0, 0])
    first, second = np.array([1.0, 0.0, 0.0]) * 10.0 ** powers[0], np.array([0.0, 1.0, 2.0]) * 10.0 ** powers[1]
    path = best_mixture(Sweep(data, "ndcg"), first, second, *bounds).path
    assert (path.alphas[0], path.alphas[-1]) == bounds
    assert len(path.values) == len(path.alphas) - 1 > 0
    alpha = Fraction(bounds[0]) + (Fraction(bounds[1]) - Fraction(bounds[0])) / 7
    exact = [(1 - alpha) * Fraction(a) + alpha * Fraction(b) for a, b in zip(first, second, strict=True)]
    scores = np.array([float(sorted(exact).index(score)) for score in exact])
    assert path.at(bounds[0]) == pytest.approx(Sweep(data, "ndcg").value(scores), abs=1e-9)
