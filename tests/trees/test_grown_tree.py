"""Values of leaves, added to the scores of binned documents."""

from dataclasses import replace

import numpy as np
import pytest

from podium.core.team import Team
from podium.trees import Grower, GrowthParameters, bin_features, find_bins
from podium.trees.growth_types import LeafRule
from podium.trees.quantization import BoundedGradients, quantize


@pytest.mark.parametrize(
    ("n_leaves", "categorical"), [(1, ()), (2, ()), (15, ()), (15, (0, 3)), (256, (3,)), (300, ())]
)
def test_scores_by_columns_are_those_of_a_walk(n_leaves, categorical):
    """With missing values, categories, more leaves than a byte can number, and rows that end within a block."""
    rng = np.random.default_rng(n_leaves)
    x = rng.normal(size=(5000, 4)).astype(np.float32)
    x[:, 3], x[:, 0] = rng.integers(0, 40, len(x)), x[:, 0].round(1)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.where(np.isnan(x[:, 1]), 1.0, np.sin(3 * x[:, 1])) + np.nan_to_num(x[:, 3]) % 3 + np.nan_to_num(x[:, 0])
    with Team(1) as one, Team(2) as two:
        binned = bin_features(x, find_bins(x, categorical=categorical))
        gradients = BoundedGradients.of(y if n_leaves > 1 else np.zeros(len(x)), np.ones(len(x)), one)
        grown = Grower(binned, GrowthParameters(n_leaves=max(n_leaves, 2), min_documents_in_leaf=1, l2=0.0), one).grow(
            quantize(gradients)
        )
        assert grown.tree.n_leaves == n_leaves
        assert (grown.tree.category >= 0).any() == bool(categorical)
        values, start = rng.normal(size=n_leaves), rng.normal(size=len(x))
        expected = start + values[grown.leaf_of_rows(binned, one)]
        for team in (one, two):
            scores = start.copy()
            team.shares = lambda n, work, team=team: team.each(  # however few rows there are
                team.n_threads, lambda k: work(n * k // team.n_threads, n * (k + 1) // team.n_threads)
            )
            grown.add_by_bins(values, binned, scores, team)
            assert np.array_equal(scores, expected)
            scores = start.copy()
            grown.add_to_rows(values, scores, team)
            assert np.array_equal(scores, expected)


@pytest.mark.parametrize(("n_leaves", "fraction"), [(2, 1.0), (15, 1.0), (256, 1.0), (257, 1.0), (15, 0.5)])
def test_sums_of_leaves_are_those_of_their_rows(n_leaves, fraction):
    """Growth on all rows with at most 256 leaves sums in the order of the rows; else sums are taken leaf by leaf."""
    rng = np.random.default_rng(n_leaves)
    x, n = rng.normal(size=(6000, 3)).astype(np.float32), 6000
    with Team(1) as one, Team(2) as two:
        binned = bin_features(x, find_bins(x))
        gradients = BoundedGradients.of(x.sum(1).astype(float) + rng.normal(size=n), rng.random(n) + 0.5, one)
        rows = None if fraction == 1 else np.flatnonzero(rng.random(n) < fraction).astype(np.int32)
        grown = Grower(binned, GrowthParameters(n_leaves=n_leaves, min_documents_in_leaf=1, l2=0.0), one).grow(
            quantize(gradients), rows
        )
        assert (grown.leaf_of_row is not None) == (n_leaves <= 256 and fraction == 1)
        if grown.leaf_of_row is not None:
            assert np.array_equal(grown.leaf_of_row, grown.leaf_of_rows(binned, one))
        two.shares = lambda n, work: two.each(2, lambda k: work(n * k // 2, n * (k + 1) // 2))
        copy = replace(gradients)  # growth has not summed this object
        for source, team in ((gradients, one), (copy, one), (copy, two)):
            sums_of_leaves = grown.sums(source, team)
            for values, sums in zip((gradients.gradients, gradients.hessians), sums_of_leaves, strict=True):
                expected = [values[leaf_rows].sum() for leaf_rows in grown.leaf_rows]
                np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize(("n_leaves", "fraction"), [(2, 1.0), (15, 1.0), (256, 1.0), (257, 1.0), (15, 0.5)])
def test_growth_adds_values_to_scores_where_it_can(n_leaves, fraction, n_threads):
    """Σ gradients / (Σ hessians + l2), within a limit, times a rate."""
    rng = np.random.default_rng(n_leaves)
    x, n, rule = rng.normal(size=(6000, 3)).astype(np.float32), 6000, LeafRule(3.0, 1.5, 0.1)
    with Team(n_threads) as team:
        binned = bin_features(x, find_bins(x))
        gradients = BoundedGradients.of(x.sum(1).astype(float) + rng.normal(size=n), rng.random(n) + 0.5, team)
        rows = None if fraction == 1 else np.flatnonzero(rng.random(n) < fraction).astype(np.int32)
        start = rng.normal(size=n)
        scores, grower = (
            start.copy(),
            Grower(binned, GrowthParameters(n_leaves=n_leaves, min_documents_in_leaf=1, l2=0.0), team),
        )
        grown = grower.grow(quantize(gradients), rows, None, scores, rule)
        if n_leaves > 256 or fraction < 1:
            assert grown.added_values is None
            assert np.array_equal(scores, start)
            return
        gradient, hessian = grown.sums(replace(gradients), team)
        values = 0.1 * np.clip(gradient / (hessian + 3.0), -1.5, 1.5)
        assert np.array_equal(grown.added_values, values)
        assert np.array_equal(grown.tree.leaf_value, values)
        assert np.array_equal(scores, start + values[grown.leaf_of_rows(binned, team)])
        assert (np.abs(values).max() == 0.1 * 1.5) == (n_leaves > 2)  # some leaves are beyond the limit
