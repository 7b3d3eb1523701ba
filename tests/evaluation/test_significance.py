"""Intervals and tests, against scipy, enumeration and their own definitions."""

import itertools
import math
from inspect import signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from podium import DataError
from podium.core.sums import mean
from podium.evaluation.significance import (
    bootstrap_interval,
    equivalence,
    holm,
    paired_t,
    randomization,
    t_interval,
)  # fmt: skip

RNG = np.random.default_rng(0)
VALUES = RNG.beta(2, 3, 300)


def test_mean_does_not_depend_on_the_order():
    values = np.concatenate([VALUES, [1e16, -1e16]])
    assert mean(values) == mean(values[::-1]) == mean(RNG.permutation(values))
    assert math.isnan(mean(np.empty(0)))


def test_t_interval_agrees_with_scipy():
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.95)
    assert t_interval(VALUES) == pytest.approx((expected.low, expected.high))
    assert np.isnan(t_interval(VALUES[:1])).all()


def test_paired_t_agrees_with_scipy():
    other = np.clip(VALUES + RNG.normal(0.01, 0.1, 300), 0, 1)
    assert paired_t(other - VALUES) == pytest.approx(stats.ttest_rel(other, VALUES).pvalue)
    assert paired_t(np.zeros(5)) == 1
    assert paired_t(np.full(5, 0.1)) == 0
    assert math.isnan(paired_t(np.array([1.0])))


def test_equivalence_is_two_one_sided_tests():
    differences = RNG.normal(0.002, 0.05, 400)
    above = stats.ttest_1samp(differences, -0.01, alternative="greater").pvalue
    below = stats.ttest_1samp(differences, 0.01, alternative="less").pvalue
    assert equivalence(differences, 0.01) == pytest.approx(max(above, below))
    assert equivalence(np.zeros(5), 0.01) == 0
    assert equivalence(np.ones(5), 0.01) == 1
    with pytest.raises(DataError, match="margin"):
        equivalence(differences, 0)


def test_bootstrap_agrees_with_scipy_and_does_not_depend_on_order():
    low, high = bootstrap_interval(VALUES)
    seed = "rng" if "rng" in signature(stats.bootstrap).parameters else "random_state"  # before SciPy 1.15
    theirs = stats.bootstrap((VALUES,), np.mean, method="percentile", n_resamples=10_000, **{seed: 1})
    expected = theirs.confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.002)
    assert bootstrap_interval(VALUES[::-1]) == (low, high)
    assert bootstrap_interval(VALUES, seed=1) != (low, high)
    assert bootstrap_interval(VALUES, confidence=0.5)[0] > low


@given(st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.25, 0.75]), min_size=1, max_size=8))
def test_randomization_agrees_with_enumeration(differences):
    differences = np.array(differences)
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((1, -1), repeat=len(differences))]
    exact = np.mean([total >= abs(differences.sum()) for total in sums])
    p = randomization(differences, range(len(differences)), resamples=20_000)
    assert p == pytest.approx(exact, abs=0.02)


def test_randomization_does_not_depend_on_the_order_of_queries():
    differences = RNG.normal(0.01, 0.1, 100)
    queries = [f"q{k}" for k in range(100)]
    shuffle = RNG.permutation(100)
    p = randomization(differences, queries)
    assert randomization(differences[shuffle], [queries[k] for k in shuffle]) == p
    assert abs(p - paired_t(differences)) < 0.03
    assert randomization(np.full(200, 0.1), range(200)) == 1 / (1 + 64 * math.ceil(100_000 / 64))


def test_randomization_is_calibrated():
    rng = np.random.default_rng(5)
    p = [randomization(rng.normal(0, 1, 40), range(40), resamples=2_000, seed=k) for k in range(300)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_holm_corrects_as_published():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    assert np.array_equal(holm([0.001, math.nan, 0.002]), [0.002, math.nan, 0.002], equal_nan=True)
    with pytest.raises(DataError, match="confidence must be between 0 and 1, but is 95"):
        bootstrap_interval(VALUES, confidence=95)
    with pytest.raises(DataError, match="resamples must be a whole number from 1, but is 0"):
        bootstrap_interval(VALUES, resamples=0)
    with pytest.raises(DataError, match="resamples"):
        randomization(VALUES, range(300), 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p):
    corrected = holm(p)
    for raw, adjusted in zip(p, corrected, strict=True):
        assert raw <= adjusted <= min(1.0, raw * len(p)) + 1e-12 or adjusted >= raw
        assert adjusted <= 1
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()
