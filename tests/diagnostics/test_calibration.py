"""Calibration against a loop over pairs, and against scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

import podium
from podium import DataError
from podium.diagnostics import calibration


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300).astype(float)
    labels[:9] = np.nan
    return podium.RankingData(rng.normal(size=(300, 2)), labels, qid=rng.integers(0, 12, 300))


@pytest.fixture(scope="module")
def scores(data):
    return np.round(np.nan_to_num(data.relevance) + np.random.default_rng(1).normal(size=300), 1)


def labelled_pairs(data, scores, sigma):
    """Yield P of the higher score, and whether it is correct: 1, 0, or ½ for equal scores."""
    labels = data.relevance
    for q in range(data.n_queries):
        for i in data.rows(q):
            for j in data.rows(q):
                if labels[i] > labels[j]:
                    lead = sigma * (scores[i] - scores[j])
                    yield 1 / (1 + np.exp(-abs(lead))), (np.sign(lead) + 1) / 2


@pytest.mark.parametrize(("sigma", "bins"), [(1.0, 10), (0.5, 7), (3.0, 1)])
def test_bins_hold_the_pairs(data, scores, sigma, bins):
    result = calibration(scores, data, sigma, bins=bins)
    pairs = np.array(list(labelled_pairs(data, scores, sigma)))
    bin_of_pair = np.minimum(((2 * pairs[:, 0] - 1) * bins).astype(int), bins - 1)
    assert result.counts.tolist() == np.bincount(bin_of_pair, minlength=bins).tolist()
    assert result.n_pairs == len(pairs)
    gaps = []
    for k in range(bins):
        inside = pairs[bin_of_pair == k]
        if len(inside):
            assert [result.predicted[k], result.observed[k]] == pytest.approx(inside.mean(axis=0), abs=1e-8)
            gaps.append(abs(np.subtract(*inside.mean(axis=0))) * len(inside) / len(pairs))
        else:
            assert np.isnan([result.predicted[k], result.observed[k]]).all()
    assert result.error == pytest.approx(sum(gaps), abs=1e-8)
    assert result.largest_error >= result.error


def test_scikit_learn_agrees(data):
    untied = np.random.default_rng(2).normal(size=300) + np.nan_to_num(data.relevance)
    pairs = np.array(list(labelled_pairs(data, untied, 1.0)))
    observed, predicted = calibration_curve(pairs[:, 1], pairs[:, 0], n_bins=20)  # from 0 to 1
    result = calibration(untied, data)
    has_pairs = result.counts > 0
    assert result.observed[has_pairs] == pytest.approx(observed)
    assert result.predicted[has_pairs] == pytest.approx(predicted)


def test_row_order_and_threads_do_not_matter(data, scores):
    rows = np.random.default_rng(3).permutation(300)
    first, second = calibration(scores, data), calibration(scores[rows], data.take(rows))
    with podium_threads(1):
        third = calibration(scores, data)
    for other in (second, third):
        for name in ("counts", "predicted", "observed"):
            assert np.array_equal(getattr(first, name), getattr(other, name), equal_nan=True)


def podium_threads(n):
    from podium.core.threads import at_most_threads

    return at_most_threads(n)


def test_true_probabilities_have_no_error():
    """Preferences are drawn with the probabilities of the scores, or equal to them."""
    rng = np.random.default_rng(4)
    n = 20_000
    scores = rng.normal(size=2 * n)
    i, j = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    probability = 1 / (1 + np.exp(-(scores[i] - scores[j])))
    drawn = (rng.random(n) < probability).astype(float)
    for preferences, tolerance in ((drawn, 0.015), (probability, 1e-6)):
        data = podium.RankingData(np.zeros((2 * n, 1)), qid=np.repeat(np.arange(n), 2), preferences=(i, j, preferences))
        result = calibration(scores, data)
        assert result.error < tolerance
        assert result.n_pairs == n
    assert calibration(scores, data, sigma=3.0).error > 0.1  # too confident


def test_probabilities_get_better_with_training():
    train, test = podium.artificial(60, features=5), podium.artificial(30, features=5, part="test")
    model = podium.RankNetTrees(40, 8).fit(train)
    errors = [calibration(model, test, iteration=k).error for k in (9, 19, 39)]
    assert errors == sorted(errors, reverse=True)
    assert calibration(model, test).error == errors[-1]
    assert "expected calibration error" in str(calibration(model, test))


def test_invalid_arguments_are_refused(data, scores):
    for options, problem in (
        ({"sigma": 0}, "sigma must be positive"), ({"bins": 0}, "bins must be"), ({"bins": 1001}, "bins must be"),
        ({"labels": "clicks"}, "no labels 'clicks'"), ({"preferences": True}, "the data has no preferences"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=problem):
            calibration(scores, data, **options)
    with pytest.raises(DataError, match="no pairs to compare with"):
        calibration(scores, data.replace(relevance=np.ones(300)))
