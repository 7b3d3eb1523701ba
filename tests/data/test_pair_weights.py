"""Weights of preference pairs survive every step, and count like repetitions."""

import numpy as np
import pytest
from catboost import CatBoost, Pool

import podium
from podium import DataError, LambdaMART, RankingData
from podium.data.canonical import digest_of
from podium.measures import PreferenceAccuracy, Ranking
from podium.objectives import Preferences


def judged(weight=None, seed=0):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(40, 3)).astype(np.float32), np.repeat(np.arange(5), 8)
    start = 8 * rng.integers(0, 5, 120)
    i, j = start + rng.integers(0, 8, 120), start + rng.integers(0, 8, 120)
    i, j = i[i != j], j[i != j]
    share = rng.choice([0.0, 0.25, 1.0], len(i))
    counts = rng.integers(0, 4, len(i))
    return X, qid, (i, j, share), counts


def test_weights_are_repetitions():
    X, qid, (i, j, share), counts = judged()
    weighted = RankingData(X, qid=qid, preferences=(i, j, share, counts))
    repeated = RankingData(X, qid=qid, preferences=tuple(np.repeat(column, counts) for column in (i, j, share)))
    plain = RankingData(X, qid=qid, preferences=(i, j, share))
    scores = np.random.default_rng(1).normal(size=len(X))
    for bound, other in [(Preferences().bind(weighted), Preferences().bind(repeated))]:
        for gradient, expected in zip(bound.gradients(scores), other.gradients(scores), strict=True):
            assert gradient == pytest.approx(expected)
        assert bound.loss(scores) == pytest.approx(other.loss(scores))
        assert bound.loss(scores) != pytest.approx(Preferences().bind(plain).loss(scores))
    values = [PreferenceAccuracy().values(Ranking(data, scores)) for data in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1])
    trees = LambdaMART(3, 4, objective=Preferences(), min_documents_in_leaf=2, split_fraction=1.0)
    assert trees.fit(weighted).predict(X) == pytest.approx(trees.fit(repeated).predict(X), rel=1e-5)
    ones = RankingData(X, qid=qid, preferences=(i, j, share, np.ones(len(i))))
    assert trees.fit(ones).digest() == trees.fit(plain).digest()


def test_weights_stay_with_their_pairs(tmp_path):
    X, qid, pairs, counts = judged()
    data = RankingData(X, qid=qid, preferences=(*pairs, counts))
    data.write(tmp_path / "a.parquet")
    again = podium.read(tmp_path / "a.parquet")
    assert np.array_equal(again.preferences.weight, counts)
    assert digest_of(again) == digest_of(data) != digest_of(data.replace(preferences=pairs))
    shuffled = data.take(np.random.default_rng(2).permutation(len(data)))
    assert digest_of(shuffled) == digest_of(data)
    part = data.select(range(2))
    assert len(part.preferences) == len(part.preferences.weight) < len(data.preferences)
    plain = data.replace(preferences=pairs)
    both = RankingData.concatenate([data, plain.replace(qid=qid + 10)])
    assert np.array_equal(both.preferences.weight, np.append(counts, np.ones(len(counts))))
    plain.replace(qid=qid + 10).write(tmp_path / "b.parquet")
    assert digest_of(podium.read([tmp_path / "a.parquet", tmp_path / "b.parquet"])) == digest_of(both)
    assert plain.preferences.weight is None
    with pytest.raises(DataError, match=r"weights must be finite and non-negative, but entry 1 is -1\.0"):
        RankingData(X, qid=qid, preferences=([0, 1], [1, 2], [1, 1], [1, -1]))


@pytest.mark.filterwarnings("ignore")
def test_the_mean_over_pairs_equals_catboosts():
    X, qid, (i, j, _), counts = judged()
    pool = Pool(X, np.zeros(len(X)), group_id=qid, pairs=np.column_stack([i, j]), pairs_weight=counts)
    model = CatBoost({
        "loss_function": "PairLogit", "iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False,
    }).fit(pool)  # fmt: skip
    data = RankingData(X, qid=qid, preferences=(i, j, np.ones(len(i)), counts))
    loss = Preferences().bind(data).loss(model.predict(pool)) * data.n_queries / counts.sum()
    assert model.get_evals_result()["learn"]["PairLogit"][-1] == pytest.approx(loss)
