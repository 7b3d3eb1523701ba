"""Validation data during training: the best round, and the measures after each round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError
from podium.boosting.evaluation import BestRound
from podium.measures import Ranking, as_selection
from podium.measures.losses import RMSE

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


def test_an_interrupted_round_is_removed_from_the_history():
    best, history = BestRound(as_selection("ndcg"), ["a"]), {"a": [0.1, 0.3, 0.2, 0.4]}
    assert best.of(history, None) == 3
    del history["a"][3:]
    assert best.of(history, None) == 1
    history["a"].append(0.5)
    assert best.of(history, None) == 3


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
