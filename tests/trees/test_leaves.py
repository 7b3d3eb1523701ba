"""Values of leaves, added to the scores of binned documents."""

import numpy as np
import pytest

from podium.core.team import Team
from podium.trees import Grower, GrowthParameters, bin_features, find_bins
from podium.trees.quantization import BoundedGradients, quantize


@pytest.mark.parametrize(
    ("n_leaves", "categorical"), [(1, ()), (2, ()), (15, ()), (15, (0, 3)), (256, (3,)), (300, ())]
)
def test_scores_by_columns_are_those_of_a_walk(n_leaves, categorical):
    """With missing values, categories, more leaves than a byte can tell apart, and rows that end within a block."""
    rng = np.random.default_rng(n_leaves)
    x = rng.normal(size=(5000, 4)).astype(np.float32)
    x[:, 3], x[:, 0] = rng.integers(0, 40, len(x)), x[:, 0].round(1)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.where(np.isnan(x[:, 1]), 1.0, np.sin(3 * x[:, 1])) + np.nan_to_num(x[:, 3]) % 3 + np.nan_to_num(x[:, 0])
    with Team(1) as one, Team(2) as two:
        binned = bin_features(x, find_bins(x, categorical=categorical))
        gradients = BoundedGradients.of(y if n_leaves > 1 else np.zeros(len(x)), np.ones(len(x)), one)
        grown = Grower(binned, GrowthParameters(n_leaves=max(n_leaves, 2)), one).grow(quantize(gradients))
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
