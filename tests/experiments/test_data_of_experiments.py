"""How experiments spoil labels."""

import numpy as np

from podium import artificial
from podium.reproduce.experiments.label_noise import wrong_labels
from podium.reproduce.experiments.real_data import best_feature, with_clicks
from podium.reproduce.experiments.unlabelled import clicked, hide_labels, labelled_only


def test_wrong_labels_keep_their_numbers():
    data = artificial(60, documents=20, features=5)
    noisy = wrong_labels(data, 0.5, seed=1)
    assert np.array_equal(np.sort(noisy.relevance), np.sort(data.relevance))
    same = (noisy.relevance == data.relevance).mean()
    by_chance = sum((data.relevance == label).mean() ** 2 for label in range(5))
    assert abs(same - (0.5 + 0.5 * by_chance)) < 0.03
    assert np.array_equal(wrong_labels(data, 0.0, seed=1).relevance, data.relevance)
    assert not np.array_equal(wrong_labels(data, 0.5, seed=2).relevance, noisy.relevance)


def test_hidden_labels_leave_clicks():
    data = clicked("train", 30, 10, seed=0)
    some = hide_labels(data, 0.8, seed=0)
    hidden = np.isnan(some.relevance)
    assert abs(hidden.mean() - 0.8) < 0.08
    assert np.array_equal(some.labels["clicks"], data.labels["clicks"])
    assert np.array_equal(some.relevance[~hidden], data.relevance[~hidden])
    few = labelled_only(some)
    assert len(few) == (~hidden).sum()
    assert not np.isnan(few.relevance).any()
    assert np.array_equal(few.features, data.features[~hidden])
    # clicks follow the labels, and a taste among equal ones
    clicks, label = data.labels["clicks"], data.relevance
    assert clicks[label >= 3].mean() > clicks[label == 0].mean()


def test_simulated_users_of_an_engine_that_ranks_by_a_feature():
    data = artificial(40, documents=20, features=5)
    data = data.replace(features=np.column_stack([data.features, data.relevance + data.features[:, 0]]))
    assert best_feature(data) == 5
    shown = with_clicks(data, 5)
    first = shown.positions == 1
    assert first.sum() == 40
    assert data.features[first, 5].mean() > np.quantile(data.features[:, 5], 0.9)
