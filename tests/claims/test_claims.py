"""What the papers claim for their objectives, on data where it must show."""

import csv
import gzip
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import podium
from podium import LambdaMART, RankingData
from podium.boosting import Gradient
from podium.objectives import CrossEntropy, Debiased, Lambda, Pairwise, Preferences

DATA = Path(os.environ.get("PODIUM_DATA", "../shared/data"))


@pytest.mark.slow
def test_the_bias_of_simulated_users_is_found_again():
    data = podium.artificial(1500, documents=20, features=12, seed=7)
    poor = (data.features[:, 3] + data.features[:, 4]).astype(float)
    log = podium.data.datasets.simulate_clicks(data, shown_by=poor, users=1, depth=20, disorder=0.5, noise=0.0, seed=3)
    model = LambdaMART(60, objective=Debiased(Lambda("cndcg", normalize=False))).fit(log)
    found = model.position_bias_ - model.position_bias_[0]
    assert np.corrcoef(found[:10], np.log(1 / np.arange(1, 11)))[0, 1] > 0.95
    assert found[1] == pytest.approx(np.log(1 / 2), abs=0.35)


@pytest.mark.skipif(not (DATA / "yandex_sessions").exists(), reason=f"no data in {DATA}/yandex_sessions")
def test_the_bias_of_real_users_beside_their_grades():
    with gzip.open(DATA / "yandex_sessions" / "train.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    grade = np.array([float(row["human_grade"]) for row in rows])
    clicked, position = (np.array([int(row[name]) for row in rows]) for name in ("clicked", "position"))
    data = RankingData(
        np.where(grade < 0, np.nan, grade)[:, None], clicked, qid=[row["session"] for row in rows], positions=position
    )
    model = LambdaMART(50, 7, objective=Debiased(Lambda("ndcg", normalize=False))).fit(data)
    found = model.position_bias_ - model.position_bias_[0]
    direct = np.zeros(10)  # log odds of a click at a position among documents of the same grade
    for k in range(10):
        for level in range(5):
            mine = clicked[(position == k + 1) & (grade == level)]
            direct[k] += (grade == level).sum() * np.log((mine.sum() + 0.5) / (len(mine) - mine.sum() + 0.5))
    assert np.corrcoef(found[:10], direct)[0, 1] > 0.97
    by_grade = model.predict(np.arange(5.0)[:, None])
    assert (np.diff(by_grade) > 0).all()  # what users like is what the graders like


def test_contradictory_preferences_give_the_order():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 4))
    truth = X[:, 0] + 0.5 * X[:, 1]
    start = 30 * rng.integers(0, 20, 6000)
    i, j = start + rng.integers(0, 30, 6000), start + rng.integers(0, 30, 6000)
    i, j = i[i != j], j[i != j]
    said = rng.random(len(i)) < 1 / (1 + np.exp(-2 * (truth[i] - truth[j])))
    contradicted = {(a, b) for a, b, s in zip(i, j, said, strict=True) if s}
    assert any((b, a) in contradicted for a, b in contradicted)
    data = RankingData(X, qid=np.arange(600) // 30, preferences=(i, j, said.astype(float)))
    model = LambdaMART(60, objective=Preferences(CrossEntropy(2.0)), min_documents_in_leaf=10).fit(data)
    fresh = rng.normal(size=(1000, 4))
    assert np.corrcoef(model.predict(fresh), fresh[:, 0] + 0.5 * fresh[:, 1])[0, 1] > 0.93


@pytest.mark.parametrize(
    "objective", [partial(Lambda, normalize=False), lambda sigma, **_: Pairwise(CrossEntropy(sigma))]
)
def test_what_sigma_changes(objective):
    data = podium.artificial(40, documents=15, features=6)

    def orders(**settings):
        models = [LambdaMART(10, 6, objective=objective(sigma=s), **settings).fit(data) for s in (1.0, 0.5)]
        return models[0].predict(data), models[1].predict(data)

    one, half = orders(l2=0.0)
    assert np.allclose(one, 0.5 * half, atol=1e-4)  # Newton: γ scales as 1/σ
    one, half = orders(l2=1.0)
    assert not np.allclose(one, 0.5 * half, atol=1e-3)
    one, half = orders(step="gradient")
    assert not np.allclose(one, 0.5 * half, atol=1e-3)
    first, quarter = (LambdaMART(10, 6, r, objective=objective(sigma=s), step=Gradient(normalize=False))
                      .fit(data).predict(data) for r, s in ((0.1, 1.0), (0.4, 0.5)))  # fmt: skip
    assert np.allclose(first, 0.5 * quarter, atol=1e-4)  # v σ² is what counts
