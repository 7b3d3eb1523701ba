"""Artificial data is the same everywhere, and is what the papers describe."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, RankingData
from podium.core import threads
from podium.core.random import seed_of
from podium.data.datasets import artificial, random_values
from podium.data.datasets.artificial import SHARES, growth, standardized_cubic


def digest(data):
    digest = hashlib.sha256(np.ascontiguousarray(data.features).tobytes())
    for source in data.labels:
        digest.update(data.labels[source].tobytes())
    digest.update(np.asarray(data.qid).tobytes())
    return digest.hexdigest()[:16]


def test_the_same_seed_gives_these_bits_on_every_machine():
    assert digest(podium.artificial(20, seed=1)) == "738b26088fb5e107"
    noisy = podium.artificial(5, label_noise=0.5, feature_noise=0.1, shift=0.3, clicks=True)
    assert digest(noisy) == "13fab2585148094b"
    assert digest(podium.artificial_web(5, seed=2)) == "6e744606efdaebf8"


@pytest.mark.parametrize("other", [{"seed": 1}, {"features": 7}, {"shift": 0.5}, {"shift": 0}, {"part": "test"}])
def test_earlier_data_does_not_change_later_data(other):
    """Calibrations are cached, and each must belong to its data."""
    settings = {"queries": 4, "features": 6}
    artificial._calibrated_cubic.cache_clear()
    expected = digest(podium.artificial(**settings | other))
    artificial._calibrated_cubic.cache_clear()
    podium.artificial(**settings)
    assert digest(podium.artificial(**settings | other)) == expected


def test_neither_threads_nor_the_number_of_queries_change_a_query(monkeypatch):
    whole = podium.artificial(300, documents=(1, 9), features=7)
    monkeypatch.setattr(threads, "ranges", lambda n, *_: [(k, min(k + 100, n)) for k in range(0, n, 100)])
    assert digest(podium.artificial(300, documents=(1, 9), features=7)) == digest(whole)
    part = podium.artificial(100, documents=(1, 9), features=7)
    assert digest(part) == digest(whole.select(range(100)))


def test_shapes_and_ranges():
    data = podium.artificial(1000)
    assert (data.n_documents, data.n_queries, data.n_features) == (50_000, 1000, 50)
    assert data.features.min() >= -1
    assert data.features.max() < 1
    assert abs(data.features.mean()) < 0.002
    assert abs(data.features.var() - 1 / 3) < 0.002
    shares = np.bincount(data.relevance.astype(int)) / len(data)
    assert np.allclose(shares, SHARES, atol=0.01)
    sizes = podium.artificial(500, documents=(3, 6), features=2).query_sizes
    assert set(sizes.tolist()) == {3, 4, 5, 6}


def test_labels_come_from_the_cubic_polynomial():
    data = podium.artificial(200, features=10, seed=3)
    u = random_values.normal_values(10, seed_of("cubic", 10, 3, "u"))
    q = random_values.random_permutation(10, seed_of("cubic", 10, 3, "Q"))
    r = random_values.random_permutation(10, seed_of("cubic", 10, 3, "R"))
    assert sorted(q) == sorted(r) == list(range(10))
    x = data.features.astype(np.float64)
    terms = [x @ u, (x * x[:, q]).sum(1), (x * x[:, q] * x[:, r]).sum(1)]
    score = sum((t - t.mean()) / t.std() for t in terms)  # scales of this sample, not of the calibration
    order = np.argsort(score)
    agreement = np.corrcoef(np.sort(data.relevance), data.relevance[order])[0, 1]
    assert agreement > 0.99


def test_parts_share_the_polynomial_but_not_the_documents():
    train, valid, test = (podium.artificial(50, part=part) for part in ("train", "valid", "test"))
    assert not np.isin(train.features[:, 0], test.features[:, 0]).mean() > 0.1
    joined = RankingData.concatenate([train, valid, test])
    assert joined.n_queries == 150
    linear = np.linalg.lstsq(train.features, train.relevance, rcond=None)[0]
    assert np.corrcoef(test.features @ linear, test.relevance)[0, 1] > 0.4


def test_a_shift_moves_the_labels_gradually():
    def agreement(shift):
        near = standardized_cubic(50, 0, 0.0)
        far = standardized_cubic(50, 0, shift)
        x = random_values.uniform_matrix(20_000, 50, seed_of("x"))
        return np.corrcoef(near(x), far(x))[0, 1]

    values = [agreement(shift) for shift in (0.0, 0.1, 0.3, 1.0)]
    assert values[0] == pytest.approx(1)
    assert values[0] > values[1] > values[2] > values[3]
    assert abs(values[3]) < 0.3
    assert digest(podium.artificial(5, shift=0.1)) != digest(podium.artificial(5))


def test_noise_has_the_requested_size():
    plain = podium.artificial(400)
    noisy = podium.artificial(400, feature_noise=0.5)
    difference = noisy.features - plain.features
    assert np.array_equal(noisy.relevance, plain.relevance)
    assert abs(difference.std() - 0.5) < 0.01
    assert abs(difference.mean()) < 0.01
    changed = podium.artificial(400, label_noise=1.0)
    assert np.array_equal(changed.features, plain.features)
    assert 0.2 < (changed.relevance != plain.relevance).mean() < 0.7


def test_random_numbers_have_the_right_moments():
    values = np.empty(400_000)
    random_values.fill_normal(np.uint64(5), 0, values)
    for power, expected in ((1, 0), (2, 1), (3, 0), (4, 3 - 1.2 / 8)):  # Irwin-Hall of 8: kurtosis -1.2/8
        assert np.mean(values**power) == pytest.approx(expected, abs=0.03)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.01


@given(st.floats(-20, 16))
def test_growth_is_about_exponential(x):
    assert math.log(growth(x)) == pytest.approx(x, abs=0.01 + x * x / 64)


def test_web_like_data_has_the_shape_of_web_data():
    data = podium.artificial_web(300)
    assert data.n_features == 136
    assert data.query_sizes.min() >= 40
    assert data.query_sizes.max() <= 200
    shares = np.bincount(data.relevance.astype(int)) / len(data)
    assert np.allclose(shares, SHARES, atol=0.02)
    counts, heavy, plain = (data.features[:, k::3] for k in range(3))
    assert (counts == np.floor(counts)).all()
    assert 0.4 < (counts == 0).mean() < 0.8
    assert heavy.max() > 1000 * np.median(heavy)
    assert abs(np.median(plain)) < 0.2
    linear = np.linalg.lstsq(data.features[:, 2::3], data.relevance, rcond=None)[0]
    assert 0.1 < np.corrcoef(data.features[:, 2::3] @ linear, data.relevance)[0, 1] < 0.6


@pytest.mark.parametrize(
    "wrong",
    [{"queries": 0}, {"documents": 0}, {"documents": (5, 3)}, {"features": 0}, {"part": "dev"}, {"shift": 2},
     {"label_noise": -1}, {"feature_noise": float("nan")}],
)  # fmt: skip
def test_invalid_parameters(wrong):
    with pytest.raises(DataError):
        podium.artificial(**({"queries": 2} | wrong))


# --- clicks


@pytest.fixture(scope="module")
def clicked():
    return podium.data.datasets.simulate_clicks(podium.artificial(300), users=300)


def test_clicks_are_rates_of_last_clicks(clicked):
    rates = clicked.labels["clicks"]
    assert rates.min() >= 0
    totals = np.add.reduceat(rates[clicked.order], clicked.offsets[:-1])
    assert totals.max() <= 1 + 1e-6  # a user has one last click
    assert np.allclose(rates * 300, np.rint(rates * 300), atol=1e-3)


def test_documents_that_were_not_shown_have_no_clicks(clicked):
    hidden = clicked.positions == -1
    assert (clicked.labels["clicks"][hidden] == 0).all()
    shown = clicked.positions[~hidden]
    assert sorted(shown.tolist()) == sorted(list(range(1, 11)) * 300)


def test_clicks_follow_relevance_and_position(clicked):
    rates, labels, positions = clicked.labels["clicks"], clicked.relevance, clicked.positions
    shown = positions > 0
    by_label = [rates[shown & (labels == k)].mean() for k in range(5)]
    assert by_label == sorted(by_label)
    relevant = labels >= 2
    top, low = rates[relevant & (positions == 1)].mean(), rates[relevant & (positions == 9)].mean()
    assert top > 1.5 * low
    unbiased = podium.data.datasets.simulate_clicks(podium.artificial(300), users=300, position_bias=0.0, disorder=9.0)
    rates, positions = unbiased.labels["clicks"], unbiased.positions
    assert rates[positions == 9].mean() > 0.5 * rates[positions == 1].mean()


def test_clicks_do_not_depend_on_the_order_of_rows(clicked):
    plain = podium.artificial(300)
    shuffle = np.random.default_rng(0).permutation(plain.n_documents)
    shuffled = RankingData(plain.features[shuffle], plain.relevance[shuffle], qid=plain.qid[shuffle])
    again = podium.data.datasets.simulate_clicks(shuffled, users=300)
    assert np.array_equal(again.labels["clicks"], clicked.labels["clicks"][shuffle])
    assert np.array_equal(again.positions, clicked.positions[shuffle])


def test_similar_queries_reach_more_documents():
    data = podium.artificial(200, clicks=True)
    equal, similar = data.labels["clicks"], data.labels["similar_clicks"]
    assert (similar > 0).mean() > 1.3 * (equal > 0).mean()
    assert 0.3 < np.corrcoef(equal, similar)[0, 1] < 0.99


def test_clicks_of_artificial_data_depend_on_more_than_the_label():
    data = podium.artificial(600, clicks=True)
    label_two = (data.relevance == 2) & (data.positions > 0)
    score = standardized_cubic(50, 0, 0.0)(data.features)
    assert np.corrcoef(score[label_two], data.labels["clicks"][label_two])[0, 1] > 0.1


@pytest.mark.parametrize(
    "wrong",
    [{"users": 0}, {"depth": 0}, {"noise": 2}, {"label": "relevance"}, {"similar_queries": -1}, {"position_bias": -2},
     {"disorder": float("nan")}, {"attraction": [2.0]}],
)  # fmt: skip
def test_invalid_click_parameters(wrong):
    with pytest.raises(DataError):
        podium.data.datasets.simulate_clicks(podium.artificial(2, features=2), **wrong)


def test_clicks_need_sensible_labels():
    with pytest.raises(DataError, match="between 0 and 50"):
        podium.data.datasets.simulate_clicks(RankingData([[1]], [-1], qid=[1]))
