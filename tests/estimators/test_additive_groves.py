"""Additive Groves: comparison with scikit-learn's trees and with a slow reference, and tests as an estimator."""

import math

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

import podium
from podium import MART, AdditiveGroves, DataError, PodiumWarning, RankingData
from podium.boosting import Boosting, GrovesTraining, groves
from podium.boosting.binned_data import BinnedData
from podium.boosting.groves import Backfitting, Bootstrap, shares_down_to, sizes_up_to
from podium.core.sums import total
from podium.core.team import Team
from podium.models import Ensemble
from podium.objectives import Regression

FEW = {"n_groves": 3, "n_trees_in_grove": 2, "alpha": 0.1, "n_threads": 1}


def regression_data(n=60, width=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.permuted(np.arange(float(n))[:, None].repeat(width, 1), axis=0).astype(np.float32)
    y = np.sin(x[:, 0] / 9) + (x[:, 1] > 25) + 0.1 * rng.normal(size=n)
    return RankingData(x, y, qid=np.zeros(n))


@pytest.fixture(scope="module")
def small():
    return regression_data()


def fitting_on(data, alpha):
    return Backfitting(BinnedData.of(data, {}, Boosting(objective=Regression())), alpha, 1, Team(1))


# --- a slow reference: every split of every node, by definition


def slow_tree(x, y, weights, rows, fewest, in_leaf):
    """Return a tree as a function of documents; of equal splits, it has that of the first feature and lowest value."""
    mean = (weights[rows] * y[rows]).sum() / weights[rows].sum()
    best, split = 1e-9, None
    if len(rows) >= fewest:
        for feature in range(x.shape[1]):
            for value in np.unique(x[rows, feature])[:-1]:
                left = x[rows, feature] <= value
                if min(left.sum(), (~left).sum()) < in_leaf:
                    continue
                gain = sum(
                    (weights[s] * (y[s] - mean)).sum() ** 2 / weights[s].sum() for s in (rows[left], rows[~left])
                )
                if gain > best * (1 + 1e-9):
                    best, split = gain, (feature, value, left)
    if split is None:
        return lambda document: mean
    feature, value, left = split
    sides = [slow_tree(x, y, weights, side, fewest, in_leaf) for side in (rows[~left], rows[left])]
    return lambda document: sides[int(document[feature] <= value)](document)


def slow_error(y, scores, weights):
    return math.sqrt((weights * (y - scores) ** 2).sum() / weights.sum()) if weights.sum() else 0.0


def slow_converge(x, y, predictions, alpha, times, in_leaf):
    """Return the predictions of all documents by algorithm 1, the last tree first; a row for each tree."""
    rows = np.flatnonzero(times)
    fewest, predictions = max(2, math.ceil(alpha * len(rows))), [p.copy() for p in predictions]
    error = slow_error(y, sum(predictions), times)
    while True:
        for k in (len(predictions) - 1, *range(len(predictions) - 1)):
            residuals = y - sum(p for j, p in enumerate(predictions) if j != k)
            tree = slow_tree(x, residuals, times, rows, fewest, in_leaf)
            predictions[k] = np.array([tree(document) for document in x])
        last, error = error, slow_error(y, sum(predictions), times)
        if error >= 0.998 * last:
            return predictions


def slow_groves(data, settings):
    """Return the out-of-bag errors by α and size (algorithms 2 and 3), with the samples of the fast implementation."""
    x, y, n = data.features, data.relevance.astype(float), len(data)
    bootstrap, sizes = Bootstrap(data, np.arange(n)), sizes_up_to(settings.n_trees_in_grove)
    sums, counts, directions = {}, {}, {}
    for number in range(settings.n_groves):
        grown = {}
        for alpha in shares_down_to(settings.alpha):
            for k, size in enumerate(sizes):
                times = bootstrap.times(f"{settings.seed}/{number}/{alpha}/{size}/grove")
                left = grown.get(size, [np.zeros(n)] * size)
                below = None if k == 0 else [*grown[sizes[k - 1]], *[np.zeros(n)] * (size - sizes[k - 1])]
                starts = [below] if k > 0 and size not in grown else [left] if k == 0 else [left, below]
                if settings.training == "layered":
                    starts = [left]
                if settings.training == "fast" and number > 0:
                    starts = starts if len(starts) == 1 else [starts[directions[alpha, size]]]
                attempts = [
                    slow_converge(x, y, start, alpha, times, settings.min_documents_in_leaf) for start in starts
                ]
                errors = [slow_error(y, sum(attempt), times == 0) for attempt in attempts]
                if number == 0:
                    directions[alpha, size] = int(np.argmin(errors))
                grown[size] = attempts[int(np.argmin(errors))]
                sums[alpha, size] = sums.get((alpha, size), 0) + (times == 0) * sum(grown[size])
                counts[alpha, size] = counts.get((alpha, size), 0) + (times == 0)
    return [slow_error(y, sums[cell] / np.maximum(counts[cell], 1), counts[cell] > 0) for cell in sums]


@pytest.mark.parametrize("training", ["fast", "slow", "layered"])
def test_the_whole_algorithm_equals_the_slow_one(training):
    data = regression_data(24, 2, seed=3)
    settings = GrovesTraining(
        n_groves=2, n_trees_in_grove=3, alpha=0.3, training=training, min_documents_in_leaf=3, n_threads=1
    )
    result = settings.fit(data)
    assert result.grid == tuple((alpha, size) for alpha in (0.5, 0.3) for size in (1, 2, 3))
    assert np.allclose(result.history["oob/rmse"], slow_groves(data, settings), rtol=1e-6)
    assert result.best_iteration == int(np.argmin(result.history["oob/rmse"]))


def test_backfitting_equals_scikit_learns_trees(small):
    x, y, alpha = small.features, small.relevance.astype(float), 0.2
    for times in (np.ones(60, np.int64), Bootstrap(small, np.arange(60)).times("any")):
        grove = fitting_on(small, alpha).converge(np.zeros((2, 60)), alpha, times)
        rows, scores, error = np.flatnonzero(times), [np.zeros(60), np.zeros(60)], np.inf
        while True:
            for k in (1, 0):
                tree = DecisionTreeRegressor(min_samples_split=math.ceil(alpha * len(rows)), random_state=0)
                tree.fit(x[rows], (y - scores[1 - k])[rows], times[rows])
                scores[k] = tree.predict(x)
            last, error = error, slow_error(y, sum(scores), times)
            if error >= 0.998 * last:
                break
        assert np.allclose(grove.scores[rows], sum(scores)[rows], atol=1e-6)
        assert grove.trees[0][0].tree.n_leaves == tree.get_n_leaves()
        assert grove.error_out_of_bag == pytest.approx(slow_error(y, grove.scores, times == 0), abs=1e-9)


def test_bootstrap(small):
    rows = np.arange(5, 60)
    times = Bootstrap(small, rows).times("a")
    assert times.sum() == 55
    assert not times[:5].any()
    turn = np.random.default_rng(0).permutation(60)
    turned = small.take(turn)
    assert np.array_equal(Bootstrap(turned, np.flatnonzero(turn >= 5)).times("a"), times[turn])
    samples = [Bootstrap(small, np.arange(60)).times(str(k)) for k in range(300)]
    assert np.mean([(sample > 0).mean() for sample in samples]) == pytest.approx(1 - (1 - 1 / 60) ** 60, abs=0.01)
    assert np.allclose(np.mean(samples, axis=0), 1, atol=0.35)


def test_sums_in_any_order():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-8, 9, 1000)
    assert total(values) == total(values[::-1]) == pytest.approx(math.fsum(values), rel=1e-12)
    assert total(np.zeros(3)) == total(np.empty(0)) == 0.0


# --- the estimator


def test_ensemble_is_the_mean_of_groves(small, tmp_path):
    model = AdditiveGroves(**FEW).fit(small.features, small.relevance)
    assert isinstance(model.model_, Ensemble)
    assert model.n_trees_ == 3 * model.n_trees_in_grove_
    assert (model.alpha_, model.n_trees_in_grove_) == model.grid_[model.best_iteration_]
    assert model.model_.info["alpha"] == model.alpha_
    size = model.n_trees_in_grove_
    parts = [part.predict(small.features) for part in model.model_.cut(size, 2 * size)]
    assert np.allclose(sum(parts), model.predict(small.features))
    assert all(abs(3 * part.mean() - small.relevance.mean()) < 0.2 for part in parts)
    assert model.score(small.features, small.relevance) == r2_score(small.relevance, model.predict(small.features))
    model.export(tmp_path / "m.txt", format="lightgbm")
    assert np.allclose(podium.import_model(tmp_path / "m.txt").predict(small.features), model.predict(small.features))
    assert np.array_equal(model.scorer()(small.features), model.predict(small.features))


def test_validation_data_picks_by_the_measure():
    train, valid = (podium.artificial(40, documents=10, features=5, part=part) for part in ("train", "valid"))
    model = AdditiveGroves(**FEW, metrics=["ap"]).fit(train, valid={"first": valid, "second": train})
    values = model.history_["first/ndcg@10"]
    assert set(model.history_) == {"first/ndcg@10", "first/ap", "second/ndcg@10", "second/ap"}
    assert len(values) == len(model.grid_) == 6
    assert model.best_iteration_ == int(np.argmax(values))
    assert model.score(valid) == pytest.approx(values[model.best_iteration_], abs=1e-12)
    plain = AdditiveGroves(**FEW).fit(train.features, train.relevance, eval_set=(valid.features, valid.relevance))
    assert plain.best_iteration_ == int(np.argmin(plain.history_["eval/rmse"]))
    again = AdditiveGroves(**FEW).fit(train, valid=valid, eval_set=None)
    assert again.history_["valid/ndcg@10"] == values


def test_smaller_grids_are_parts_of_larger_ones(small):
    errors = {}
    for size, alpha in ((1, 0.5), (3, 0.2)):
        result = GrovesTraining(n_groves=2, n_trees_in_grove=size, alpha=alpha, training="slow", n_threads=1).fit(small)
        errors |= {(cell, (size, alpha)): e for cell, e in zip(result.grid, result.history["oob/rmse"], strict=True)}
    assert errors[(0.5, 1), (1, 0.5)] == errors[(0.5, 1), (3, 0.2)]


def test_better_than_boosting_where_labels_are_a_sum():
    """The paper's claim, on a function with additive and non-linear parts."""
    rng = np.random.default_rng(0)
    x = rng.random((700, 4)).astype(np.float32)
    y = np.sin(6 * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3]
    model = AdditiveGroves(10, 4, 0.02, n_threads=1).fit(x[:400], y[:400])
    other = MART(500, patience=30).fit(x[:300], y[:300], eval_set=(x[300:400], y[300:400]))
    assert model.score(x[400:], y[400:]) > other.score(x[400:], y[400:])
    assert model.n_trees_in_grove_ > 1


def test_weights_missing_labels_and_values(small):
    x, y = small.features, small.relevance.astype(float)
    times = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    zero = AdditiveGroves(**FEW).fit(x, y, sample_weight=times)
    without = AdditiveGroves(**FEW).fit(x[times > 0], y[times > 0], sample_weight=times[times > 0])
    assert zero.digest() == without.digest()
    holes = RankingData(np.where(x % 7 == 0, np.nan, x), np.where(times > 0, y, np.nan), qid=np.zeros(60))
    model = AdditiveGroves(**FEW).fit(holes)
    assert np.isfinite(model.predict(holes)).all()
    assert model.model_.features_with_missing == {0, 1, 2}
    categories = AdditiveGroves(**FEW, categorical=[0]).fit((x // 10).astype(int), y)
    assert np.isfinite(categories.predict((x // 10).astype(int))).all()


def test_invalid_arguments(small):
    for wrong, words in (
        ({"alpha": 0.0}, "alpha must be"), ({"training": "quick"}, "training must be one of 'fast', 'slow', 'layered'"),
        ({"n_groves": 0}, "n_groves must be a whole number from 1"), ({"categorical": [9]}, "no feature 9"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            AdditiveGroves(**FEW | wrong).fit(small)
    with pytest.raises(DataError, match="needs the labels"):
        AdditiveGroves(**FEW).fit(RankingData(small.features, qid=np.zeros(60)))
    with pytest.warns(PodiumWarning, match="all labels 'relevance' are equal"):
        AdditiveGroves(**FEW).fit(small.features, np.ones(60))


def test_ctrl_c_keeps_whole_groves(small, monkeypatch):
    class Interrupting(Bootstrap):
        def times(self, purpose):
            if purpose.startswith("0/2/0.2/"):
                raise KeyboardInterrupt
            return super().times(purpose)

    monkeypatch.setattr(groves, "Bootstrap", Interrupting)
    with pytest.warns(PodiumWarning, match="interrupted: the 2 groves so far are kept"):
        model = AdditiveGroves(5, 1, 0.2, n_threads=1).fit(small)
    assert model.n_trees_ in (2, 3)
    monkeypatch.setattr(Interrupting, "times", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        AdditiveGroves(5, 1, 0.2, n_threads=1).fit(small)
