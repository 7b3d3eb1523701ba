"""Losses in the history, rates that change from round to round, and min_delta."""

import json

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import podium
from podium import MART, DataError, LambdaMART, PodiumWarning, Ranker
from podium.boosting import Boosting, Checkpoint, rounds_by_folds
from podium.boosting.evaluation import BestRound
from podium.estimators import AdaRank, RankBoost
from podium.measures import as_selection
from podium.measures.losses import RMSE
from podium.objectives import Average, Lambda, QueryRegression, Regression
from tests.commands import run

TRAIN, VALID = (podium.artificial(30, documents=12, features=4, part=part) for part in ("train", "valid"))
SMALL = {"n_trees": 6, "n_leaves": 5, "min_documents_in_leaf": 3}


# --- losses


@pytest.mark.parametrize(
    "objective",
    ["lambda(ndcg)", "xendcg", "regression", "ordinal", "sum(lambda(ndcg), queryregression)", "logistic(above=1)"],
)
def test_the_history_has_the_loss_of_the_trees_so_far(objective):
    ranker = LambdaMART(**SMALL, objective=objective, metrics=["ap", "loss"])
    model = ranker.fit(TRAIN, valid={"a": VALID, "b": TRAIN})
    plain = LambdaMART(**SMALL, objective=objective).fit(TRAIN, valid={"a": VALID, "b": TRAIN})
    assert model.digest() == plain.digest()  # watching changes nothing
    history = model.history_
    assert list(history) == ["a/ndcg@10", "a/ap", "b/ndcg@10", "b/ap", "train/loss", "a/loss", "b/loss"]
    assert history["train/loss"] == pytest.approx(history["b/loss"], rel=1e-12)
    assert history["train/loss"][-1] < history["train/loss"][0]
    bound = Boosting(objective=podium.objectives.parse(objective)).objective.bind(TRAIN)
    for k in range(min(3, model.n_trees_)):
        scores = model.predict(TRAIN, n_trees=k + 1)
        if objective == "ordinal":  # the thresholds were found at the scores before the round
            bound.gradients(model.predict(TRAIN, n_trees=k) if k else np.zeros(len(TRAIN)), k)
        assert history["train/loss"][k] == pytest.approx(bound.loss(scores, k), rel=1e-9)


def test_the_loss_of_an_average_is_the_mean_of_its_losses():
    model = Ranker(**SMALL, metrics="loss", patience=None, feature_fraction=1.0).fit(TRAIN, valid=VALID)
    assert list(model.history_) == ["valid/ndcg@10", "train/loss", "valid/loss"]
    seen = []
    Boosting(objective=Average(QueryRegression(), Lambda("ndcg")), n_trees=2, watches_loss=True).fit(
        TRAIN, observers=[lambda r: seen.append((r.scores, r.means["train/loss"]))]
    )
    for scores, loss in seen:
        parts = [QueryRegression().bind(TRAIN).loss(scores[0]), Lambda("ndcg").bind(TRAIN).loss(scores[1])]
        assert loss == pytest.approx(np.mean(parts))


def test_the_training_loss_needs_no_validation_data():
    model = MART(4, 5, metrics=["loss"]).fit(TRAIN)
    assert list(model.history_) == ["train/loss"]
    assert model.best_iteration_ is None
    half = 0.5 * np.mean((TRAIN.relevance - model.predict(TRAIN)) ** 2)
    assert model.history_["train/loss"][-1] == pytest.approx(half)
    assert "train/loss" in model.plot_history().to_dict()["title"]
    with pytest.raises(DataError, match="'loss' needs an objective, which this method does not have"):
        AdaRank(metrics=["loss"]).fit(TRAIN, valid=VALID)


@pytest.mark.filterwarnings("ignore:after 3 steps the cost may still be")
@pytest.mark.parametrize("objective", ["listnet", "pairwise(hinge)", "ordinal", "regression"])
def test_a_linear_ranker_watches_its_loss(objective):
    model = podium.LinearRanker(objective=objective, n_iterations=3, metrics=["loss"]).fit(TRAIN, valid=VALID)
    assert list(model.history_) == ["valid/ndcg@10", "train/loss", "valid/loss"]
    last = podium.LinearRanker(objective=objective, n_iterations=3, metrics=["loss"]).fit(TRAIN)
    assert last.history_["train/loss"] == model.history_["train/loss"]
    if objective != "ordinal":  # whose thresholds are learnt
        bound = podium.objectives.parse(objective).bind(TRAIN)
        assert model.history_["train/loss"][-1] == pytest.approx(bound.loss(last.predict(TRAIN)), rel=1e-6)
        bound = podium.objectives.parse(objective).bind(VALID)
        assert model.history_["valid/loss"][-1] == pytest.approx(bound.loss(last.predict(VALID)), rel=1e-6)


@pytest.mark.parametrize("batch", [None, 7])
def test_a_net_watches_its_loss(batch):
    pytest.importorskip("torch")
    shape = {"epochs": 2, "hidden": 3, "n_threads": 1, "metrics": ["loss"], "batch_queries": batch}
    model = podium.RankNet(**shape).fit(TRAIN, valid=VALID)
    assert list(model.history_) == ["valid/ndcg@10", "train/loss", "valid/loss"]
    for part, data in (("train", TRAIN), ("valid", VALID)):
        loss = podium.objectives.parse("pairwise").bind(data).loss(model.predict(data))
        assert model.history_[f"{part}/loss"][model.best_iteration_] == pytest.approx(loss, rel=1e-6)


def test_rankboost_watches_its_loss():
    model = RankBoost(3, metrics=["loss"]).fit(TRAIN, valid=VALID)
    costs = model.history_["train/loss"]
    assert costs[0] > costs[1] > costs[2]


def test_a_regressors_loss_is_half_of_lightgbms():
    evaluations = {}
    data = lightgbm.Dataset(TRAIN.features, TRAIN.relevance)
    settings = {"objective": "l2", "verbose": -1, "num_leaves": 4, "min_data_in_leaf": 1}
    booster = lightgbm.train(settings, data, 3, [data], callbacks=[lightgbm.record_evaluation(evaluations)])
    loss = Regression().bind(TRAIN).loss(booster.predict(TRAIN.features))
    assert evaluations["training"]["l2"][-1] == pytest.approx(2 * loss)


def test_losses_survive_a_checkpoint(tmp_path):
    ranker, checkpoint = LambdaMART(**SMALL, metrics=["loss"]), Checkpoint(tmp_path / "run", every=1)

    def stop(round_):
        if round_.iteration == 2:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        ranker.fit(TRAIN, valid=VALID, checkpoint=checkpoint, observers=[stop])
    resumed = ranker.fit(TRAIN, valid=VALID, checkpoint=checkpoint)
    whole = clone(ranker).fit(TRAIN, valid=VALID)
    assert resumed.history_ == whole.history_
    assert resumed.digest() == whole.digest()


# --- rates


RATES = [0.4, 0.3, 0.05]


@pytest.mark.parametrize("ranker", [MART(6, 5), LambdaMART(6, 5), LambdaMART(6, 5, step="gradient")], ids=str)
def test_a_rate_for_each_round(ranker, tmp_path):
    by_list = clone(ranker).set_params(learning_rate=RATES).fit(TRAIN)
    by_function = clone(ranker).set_params(learning_rate=lambda k: RATES[min(k, 2)]).fit(TRAIN)
    assert by_list.digest() == by_function.digest()
    first, constant = clone(ranker).set_params(learning_rate=0.4, n_trees=1).fit(TRAIN), clone(ranker).fit(TRAIN)
    assert np.array_equal(first.predict(TRAIN), by_list.predict(TRAIN, n_trees=1))
    assert constant.digest() == clone(ranker).set_params(learning_rate=[0.1]).fit(TRAIN).digest()
    by_list.save(tmp_path / "model.podium")
    again = podium.load(tmp_path / "model.podium")
    assert again.learning_rate == RATES
    assert clone(again).fit(TRAIN).digest() == by_list.digest()
    by_function.save(tmp_path / "code.podium")
    with pytest.warns(PodiumWarning, match="loaded the model instead of its estimator"):
        assert podium.load(tmp_path / "code.podium").digest() == by_list.digest()


def test_rates_are_those_of_lightgbm():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 2)).astype(np.float32)
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=200)
    booster = lightgbm.train(
        {"objective": "l2", "num_leaves": 4, "min_data_in_leaf": 1, "verbose": -1, "min_data_in_bin": 1},
        lightgbm.Dataset(X, y), 3, callbacks=[lightgbm.reset_parameter(learning_rate=RATES)],
    )  # fmt: skip
    model = MART(3, 4, learning_rate=RATES, min_documents_in_leaf=1, split_fraction=1.0).fit(X, y)
    assert model.predict(X) == pytest.approx(booster.predict(X), abs=1e-5)


def test_rates_survive_a_checkpoint(tmp_path):
    ranker, checkpoint = LambdaMART(**SMALL, learning_rate=RATES), Checkpoint(tmp_path / "run", every=1)
    clone(ranker).set_params(n_trees=2).fit(TRAIN, checkpoint=checkpoint)
    assert ranker.fit(TRAIN, checkpoint=checkpoint).digest() == clone(ranker).fit(TRAIN).digest()
    with pytest.raises(DataError, match="checkpoint of other data or other settings"):
        clone(ranker).set_params(learning_rate=[0.4, 0.3]).fit(TRAIN, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ([], "learning_rate must have at least a value for the first round"),
        ([0.1, 0.0], r"learning_rate\[1\] must be positive, but is 0"),
        ("fast", "learning_rate must be a number, but is 'fast'"),
        (lambda k: -1.0, "learning_rate in round 0 must be positive, but is -1"),
        (lambda k: None, "learning_rate in round 0 must be a number, but is None"),
    ],
)
def test_invalid_rates_are_refused(rate, message):
    with pytest.raises(DataError, match=message):
        LambdaMART(**SMALL, learning_rate=rate).fit(TRAIN)


def test_the_command_line_takes_rates_and_losses(tmp_path):
    TRAIN.write(tmp_path / "train.txt")
    options = "--n-trees 4 --n-leaves 5 --learning-rate 0.4,0.3,0.05 --metrics loss --pair-truncation 3 --min-delta 0.1"
    run("train", "lambdamart", tmp_path / "train.txt", "-o", tmp_path / "run", *options.split())
    model = podium.load(tmp_path / "run" / "model.podium")
    assert (model.learning_rate, model.metrics, model.pair_truncation, model.min_delta) == (RATES, ["loss"], 3, 0.1)
    assert list(json.loads((tmp_path / "run" / "history.json").read_text())) == ["train/loss"]
    run("train", "--config", tmp_path / "run" / "config.toml", "-o", tmp_path / "again")
    assert podium.load(tmp_path / "again" / "model.podium").digest() == model.digest()


# --- the least improvement


@given(
    means=st.lists(st.sampled_from([0.0, 0.1, 0.15, 0.2, 0.3, np.nan]), max_size=20).map(lambda rest: [0.12, *rest]),
    min_delta=st.sampled_from([0.0, 0.04, 0.1]), is_loss=st.booleans(),
)  # fmt: skip
def test_a_better_round_is_better_by_more(means, min_delta, is_loss):
    """As a loop over all rounds finds it, and LightGBM's callback."""
    best, sign = 0, -1 if is_loss else 1
    for k, mean in enumerate(means):
        best = k if sign * mean > sign * means[best] + min_delta else best
    best_round = BestRound(RMSE() if is_loss else as_selection("ndcg"), ["a"], min_delta)
    for n in range(1, len(means) + 1):
        computed = best_round.of({"a": means[:n]}, None)
    assert computed == best
    assert BestRound(best_round.selection, ["a"], min_delta).of({"a": means}, {"a": np.nan}) == best


def test_training_stops_when_it_gains_too_little():
    patient = LambdaMART(60, 5, 0.01, patience=8).fit(TRAIN, valid=VALID)
    hasty = LambdaMART(60, 5, 0.01, patience=8, min_delta=0.02).fit(TRAIN, valid=VALID)
    curve = patient.history_["valid/ndcg@10"]
    assert hasty.history_["valid/ndcg@10"] == curve[: len(hasty.history_["valid/ndcg@10"])]
    best = 0
    for k, value in enumerate(curve):
        best = k if value > curve[best] + 0.02 else best
        if k - best >= 8:
            break
    assert hasty.best_iteration_ == best < patient.best_iteration_
    assert Ranker(8, 4, patience=4, min_delta=0.5, n_folds=2).fit(TRAIN).n_trees_ == 1
    with pytest.raises(DataError, match="min_delta is for a single measure"):
        LambdaMART(5, measure="ndcg@5>ap~0.01", min_delta=0.1).fit(TRAIN, valid=VALID)


# --- weights of queries in cross-validation


def test_folds_count_queries_by_their_weights():
    """Weights of 0 and 1 leave the number of rounds that the other queries alone would be given."""
    weights = (np.arange(TRAIN.n_queries) % 3 > 0).astype(float)
    run = Boosting(n_trees=20, patience=None, verbose=0, growth=podium.trees.GrowthParameters(min_documents_in_leaf=3))
    rounds = rounds_by_folds(run, TRAIN.replace(query_weights=weights), 3)
    fold = podium.data.subsets.folds_by_content(TRAIN.replace(query_weights=weights), 3, 0)
    total, count = np.zeros(20), 0.0
    for k in range(3):
        rest, held = (TRAIN.replace(query_weights=weights).select(part) for part in (fold != k, fold == k))
        curve = run.fit(rest, {"folds": held}).history["folds/ndcg@10"]
        total += held.query_weights.sum() * np.array(curve)
        count += held.query_weights.sum()
    assert rounds.history["folds/ndcg@10"] == pytest.approx(total / count)
