"""Validation data during training: the best round, and scores by bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError
from podium.boosting.evaluation import BestRound
from podium.core.threads import Team
from podium.measures import Ranking, as_selection
from podium.measures.losses import RMSE
from podium.trees import Grower, GrowthParameters, bin_features, find_bins
from podium.trees.leaves import bin_matrix
from podium.trees.quantization import BoundedGradients, quantize

MEANS = st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, np.nan])] * 3), min_size=1, max_size=25)
SELECTIONS = [as_selection(text) for text in ("ndcg", "ndcg>ap~0.1", "ndcg>ap>rr~0.1/0.05", "ndcg>ap~0")]


@pytest.mark.parametrize("selection", [*SELECTIONS, RMSE()], ids=str)
@given(means=MEANS, with_base=st.booleans())
def test_the_best_round_is_that_of_the_whole_history(selection, means, with_base):
    """Round by round, as a look at all rounds picks it, errors included."""
    n = len(selection.measures)
    names = [str(k) for k in range(n)]
    table = np.array(means)[:, :n]
    base = dict(zip(names, table[0].tolist(), strict=True)) if with_base else None
    rounds = table[1:] if with_base else table
    best = BestRound(selection, names)
    history = {name: [] for name in names}
    for k, row in enumerate(rounds, 1 + with_base):
        for name, value in zip(names, row.tolist(), strict=True):
            history[name].append(value)
        try:
            expected = selection.pick(table[:k]) - with_base
        except DataError:
            with pytest.raises(DataError):
                best.of(history, base)
            return
        assert best.of(history, base) == expected
        assert best.of(history, base) == expected


def test_a_round_that_was_broken_off_is_taken_back():
    best, history = BestRound(as_selection("ndcg"), ["a"]), {"a": [0.1, 0.3, 0.2, 0.4]}
    assert best.of(history, None) == 3
    del history["a"][3:]
    assert best.of(history, None) == 1
    history["a"].append(0.5)
    assert best.of(history, None) == 3


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
            bins, scores = bin_matrix(binned, team), start.copy()
            team.shares = lambda n, work, team=team: team.each(  # however few rows there are
                team.n_threads, lambda k: work(n * k // team.n_threads, n * (k + 1) // team.n_threads)
            )
            grown.add_by_bins(values, bins, scores, team)
            assert np.array_equal(scores, expected)


@pytest.mark.parametrize("query_fraction", [1.0, 0.6])
def test_the_history_is_what_the_models_score(query_fraction):
    """Each round's means are those of the trees so far, scored as any model is; with several sets and measures."""
    train, first, second = (podium.artificial(40, features=5, seed=seed) for seed in range(3))
    metrics = ["ap", "err", "accuracy"]
    model = podium.LambdaMART(12, metrics=metrics, patience=None, query_fraction=query_fraction).fit(
        train, valid={"first": first, "second": second}
    )
    history = model.history_
    for name, data in (("first", first), ("second", second)):
        for measure in map(podium.measures.parse, ["ndcg@10", *metrics]):
            fixed = measure.fixed(train, first, second)
            for n_trees in (1, model.model_.n_trees):
                scores = model.model_.truncate(n_trees).predict(data)
                mean = fixed.mean(Ranking(data, scores, base=data.canonical_order))
                assert history[f"{name}/{measure}"][n_trees - 1] == mean
