"""Refits with other data, compared with a simple loop, with LightGBM, and with the old values on the training data."""

import lightgbm
import numpy as np
import pytest

import podium
from podium import MART, DataError, LambdaMART, MARTClassifier, McRank, OrdinalMART, Ranker, RankNetTrees
from podium.boosting import Boosting, Newton
from podium.objectives import Lambda, Regression, parse
from tests.commands import run

TRAIN, OTHER = (podium.artificial(40, documents=10, features=4, seed=seed) for seed in (0, 1))
SMALL = {"n_trees": 6, "n_leaves": 5, "min_documents_in_leaf": 3}
RANKERS = {
    "lambda": LambdaMART(**SMALL),
    "pairs": RankNetTrees(**SMALL, learning_rate=[0.3, 0.1]),
    "gradient step": LambdaMART(**SMALL, objective="local(ndcg@5)", step="gradient"),
    "regression": MART(**SMALL),
    "random lists": LambdaMART(**SMALL, objective="xendcg(seed=2)"),
    "ordinal": OrdinalMART(**SMALL),
}


@pytest.mark.parametrize("name", RANKERS)
def test_refitting_on_the_training_data_returns_the_model(name):
    model = RANKERS[name].fit(TRAIN)
    assert model.refit(TRAIN, decay_rate=0.0).digest() == model.digest()
    assert model.refit(OTHER, decay_rate=1.0).digest() == model.digest()
    shuffled = np.random.default_rng(0).permutation(len(OTHER))
    new = model.refit(OTHER, decay_rate=0.3)
    assert new.digest() == model.refit(OTHER.take(shuffled), decay_rate=0.3).digest() != model.digest()
    new.n_threads = model.n_threads = 1
    assert new.digest() == model.refit(OTHER, decay_rate=0.3).digest()
    assert (model.history_, new.history_) == ({}, {})


@pytest.mark.parametrize("objective", ["lambda(ndcg)", "logistic(above=1)"])
@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_leaves_equal_those_of_a_simple_loop(objective, decay):
    model = LambdaMART(**SMALL, objective=objective, l2=0.5, learning_rate=0.2).fit(TRAIN)
    bound = parse(objective).bind(OTHER)
    scores, leaves = np.full(len(OTHER), bound.base_score), model.apply(OTHER)
    expected = []
    for t in range(model.n_trees_):
        gradients, hessians = bound.gradients(scores, t)
        old, new = model.model_.tree(t).leaf_value, []
        for leaf in range(len(old)):
            some = leaves[:, t] == leaf
            new.append(0.2 * gradients[some].sum() / (hessians[some].sum() + 0.5) + (bound.base_score if t == 0 else 0))
        values = decay * old + (1 - decay) * np.array(new)
        scores = (scores if t else 0) + values[leaves[:, t]]
        expected.append(values)
    refitted = model.refit(OTHER, decay_rate=decay)
    for t, values in enumerate(expected):
        assert refitted.model_.tree(t).leaf_value == pytest.approx(values, rel=1e-5, abs=1e-7)
    assert refitted.predict(OTHER) == pytest.approx(scores, rel=1e-5, abs=1e-6)


def refitted_by_both(settings, n_queries, decay, objective, l2):
    """What LightGBM's and Podium's refit of one model score, each from the same scores of a submodel, without ties."""
    sizes, few = np.full(TRAIN.n_queries, 10), OTHER.select(range(n_queries))
    settings = {"num_leaves": 12, "min_data_in_leaf": 1, "lambda_l2": l2, "verbose": -1, **settings}
    booster = lightgbm.train(settings, lightgbm.Dataset(TRAIN.features, TRAIN.relevance, group=sizes), 8)
    base = np.random.default_rng(0).normal(size=len(few))
    new = booster.refit(
        few.features, few.relevance, decay, group=sizes[:n_queries], init_score=base, **settings
    )  # fmt: skip
    run = Boosting(
        objective=objective, step=Newton(l2=l2), verbose=0, submodel=lambda data: base, submodel_scale=1.0
    )  # fmt: skip
    refitted = run.refit(podium.import_model(booster), few, decay).ensemble
    assert not np.allclose(refitted.predict(TRAIN), booster.predict(TRAIN.features, raw_score=True), atol=1e-2)
    return refitted.predict(TRAIN), new.predict(TRAIN.features, raw_score=True)


@pytest.mark.parametrize("decay", [0.0, 0.9])
@pytest.mark.parametrize("normalize", [False, True])
def test_leaves_are_those_of_lightgbm(normalize, decay):
    """Also those of leaves without documents, which decay. LightGBM looks its sigmoid up in a table."""
    settings = {"objective": "lambdarank", "lambdarank_truncation_level": 100, "lambdarank_norm": normalize}
    podiums, theirs = refitted_by_both(settings, 5, decay, Lambda("ndcg", normalize=normalize), 0.7)
    assert podiums == pytest.approx(theirs, abs=1e-4)
    podiums, theirs = refitted_by_both({"objective": "l2", "boost_from_average": False}, 5, decay, Regression(), 0.0)
    assert podiums == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_truncated_pairs_are_those_of_lightgbm(normalize):
    """Of one query: it divides λ and w by the best DCG of the first ranks, which Σλ / Σw does not see."""
    settings = {"objective": "lambdarank", "lambdarank_truncation_level": 3, "lambdarank_norm": normalize}
    cut = Lambda("ndcg", normalize=normalize, pair_truncation=3)
    podiums, theirs = refitted_by_both(settings, 1, 0.0, cut, 0.0)
    assert podiums == pytest.approx(theirs, abs=1e-4)
    podiums, _ = refitted_by_both(settings, 1, 0.0, Lambda("ndcg", normalize=normalize), 0.0)
    assert podiums != pytest.approx(theirs, abs=1e-2)


def test_an_average_keeps_the_weights_of_its_outputs():
    model = Ranker(8, 5, patience=None, document_fraction=1.0, feature_fraction=1.0, split_fraction=1.0).fit(TRAIN)
    assert model.refit(TRAIN, decay_rate=0.0).predict(OTHER) == pytest.approx(model.predict(OTHER), rel=1e-9)
    assert model.refit(OTHER, decay_rate=1.0).digest() == model.digest()
    before, after = (one.score(OTHER) for one in (model, model.refit(OTHER, decay_rate=0.2)))
    assert after > before
    model.model_.info.pop("output_weights")
    with pytest.raises(DataError, match="refit supports models with one score"):
        model.refit(OTHER)


def test_a_submodel_and_classes_are_kept(tmp_path):
    first = LambdaMART(**SMALL).fit(TRAIN)
    model = LambdaMART(**SMALL, submodel=first).fit(TRAIN)
    refitted = model.refit(OTHER, decay_rate=0.5)
    assert refitted.submodel_scale_ == model.submodel_scale_
    assert refitted.model_.parts[0].digest() == first.digest()
    assert model.refit(TRAIN, decay_rate=0.0).digest() == model.digest()
    refitted.save(tmp_path / "model.podium")
    assert podium.load(tmp_path / "model.podium").digest() == refitted.digest()
    words = np.where(TRAIN.relevance > 1, "yes", "no")
    classifier = MARTClassifier(4, 5, 0.5).fit(TRAIN.features, words)
    again = classifier.refit(TRAIN.features, words, decay_rate=0.0)
    assert again.digest() == classifier.digest()
    assert set(again.predict(TRAIN.features)) == {"yes", "no"}


def test_the_command(tmp_path):
    first, other = tmp_path / "model.podium", tmp_path / "other.txt"
    model = LambdaMART(**SMALL).fit(TRAIN)
    model.save(first)
    OTHER.write(other)
    done = run("refit", first, other, "--decay-rate", 0.4, "-o", tmp_path / "new.podium")
    assert done.stdout == f"{tmp_path / 'new.podium'}: 6 trees of {first}, refitted\n", done.stderr
    assert podium.load(tmp_path / "new.podium").digest() == model.refit(podium.read(other), decay_rate=0.4).digest()
    model.model_.save(first)
    assert "is not an estimator of boosted trees" in run("refit", first, other).stderr


def test_a_measure_keeps_what_it_took_from_the_training_data():
    model = LambdaMART(**SMALL, measure="err").fit(TRAIN)
    low = OTHER.replace(relevance=np.minimum(OTHER.relevance, 1.0))
    expected = LambdaMART(**SMALL, measure="err(max_label=4)").fit(TRAIN)
    assert model.refit(low).digest() == expected.refit(low).digest()


def test_what_cannot_be_refitted_is_refused():
    with pytest.raises(DataError, match="one score per document"):
        McRank(2, 4).fit(TRAIN).refit(OTHER)
    with pytest.raises(DataError, match="monotone"):
        LambdaMART(2, 4, monotone={0: 1}).fit(TRAIN).refit(OTHER)
    with pytest.raises(DataError, match="line search"):
        LambdaMART(2, 4, step="line-search").fit(TRAIN).refit(OTHER)
    with pytest.raises(DataError, match="refit needs the scale of the submodel in training: pass submodel_scale"):
        Boosting(submodel=lambda data: data.feature(0)).refit(LambdaMART(2, 4).fit(TRAIN).model_, OTHER)
    with pytest.raises(DataError, match=r"decay_rate must be from 0 and at most 1, but is 1\.5"):
        LambdaMART(2, 4).fit(TRAIN).refit(OTHER, decay_rate=1.5)
