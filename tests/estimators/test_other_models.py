"""RankNetTrees, MART, McRank and the linear ranker, compared with formulas, scikit-learn and each other."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

import podium
from podium import (
    MART,
    AdditiveGroves,
    DataError,
    LambdaMART,
    LinearRanker,
    MARTClassifier,
    McRank,
    OrdinalMART,
    PRank,
    RankingData,
    RankNetTrees,
)  # fmt: skip
from podium.boosting import Checkpoint, Gradient, Newton
from podium.core.parameters import parameters
from podium.estimators import AdaRank, RankBoost
from podium.measures import NDCG, Ranking
from podium.models import ClassEnsemble, Ensemble, LinearModel
from podium.objectives import (
    Anneal,
    BoundObjective,
    Debiased,
    ExponentialShare,
    Lambda,
    LambdaLoss,
    Local,
    Multiclass,
    Objective,
    Pairwise,
)  # fmt: skip

ALL = [
    LambdaMART(n_trees=3), LambdaMART(n_trees=3, objective="local(ndcg@3)", step="gradient"), RankNetTrees(n_trees=3),
    MART(n_trees=3), McRank(n_trees=3), OrdinalMART(n_trees=3), LinearRanker(n_iterations=3), PRank(epochs=3),
    AdditiveGroves(n_groves=2, n_trees_in_grove=2, alpha=0.2), AdaRank(n_iterations=3), RankBoost(n_trees=3),
    LinearRanker(n_iterations=3, objective="pairwise(hinge)", l2=0.1),
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return podium.artificial(60, documents=20, features=8, seed=1)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(40, documents=20, features=8, seed=1, part="valid")


@pytest.mark.filterwarnings("ignore:after . steps the cost may still be")
@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
class TestEveryRanker:
    def test_conventions(self, model, data, valid, tmp_path):
        fitted = clone(model).fit(data, valid=valid)
        assert clone(fitted).get_params() == model.get_params()
        scores = fitted.predict(valid)
        assert scores.shape == (len(valid),)
        ranking = Ranking(valid, scores, base=valid.canonical_order)
        assert fitted.score(valid) == pytest.approx(podium.NDCG(10).values(ranking).mean())
        assert "valid/ndcg@10" in fitted.history_
        fitted.save(tmp_path / "model.podium")
        loaded = podium.load(tmp_path / "model.podium")
        assert np.array_equal(loaded.predict(valid.features), scores)
        assert loaded.digest() == fitted.digest()
        assert fitted.feature_importances_.sum() == pytest.approx(1)
        again = clone(model).fit(data.features, data.relevance, qid=data.qid)
        assert again.predict(valid.features).shape == scores.shape
        with pytest.raises(DataError, match="is expecting 8 features"):
            fitted.predict(np.ones((2, 3)))

    def test_neither_threads_nor_row_order_change_a_bit(self, model, data, valid):
        shuffle = np.random.default_rng(3).permutation(len(data))
        first = clone(model).set_params(n_threads=1).fit(data, valid=valid)
        for n_threads, documents in ((2, data), (3, data.take(shuffle))):
            other = clone(model).set_params(n_threads=n_threads).fit(documents, valid=valid)
            assert other.digest() == first.digest()
            assert other.history_ == first.history_

    def test_grid_search(self, model, data):
        names = {LinearRanker: "n_iterations", PRank: "epochs", AdditiveGroves: "n_groves", AdaRank: "n_iterations"}
        name = names.get(type(model), "n_trees")
        import sklearn

        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(clone(model), {name: [1, 2]}, cv=podium.QueryKFold(2))
            search.fit(data.features, data.relevance, qid=data.qid, groups=data.qid)
        assert search.best_params_[name] in (1, 2)


class TestMART:
    def test_one_tree_is_a_mean_of_residuals(self, data):
        model = MART(n_trees=1, learning_rate=1.0, n_leaves=4).fit(data)
        leaves = model.apply(data)[:, 0]
        for leaf in range(4):
            assert model.predict(data)[leaves == leaf] == pytest.approx(data.relevance[leaves == leaf].mean())

    def test_against_scikit_learn(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 100, (1500, 4)).astype(np.float32)  # no more values than bins: the same candidate splits
        y = X[:, 0] * (X[:, 1] > 50) + 5 * rng.normal(size=1500)
        model = MART(50, 8, 0.1, min_documents_in_leaf=1).fit(X[:1000], y[:1000])
        other = GradientBoostingRegressor(n_estimators=50, max_leaf_nodes=8, learning_rate=0.1, max_depth=None).fit(
            X[:1000], y[:1000]
        )
        assert np.corrcoef(model.predict(X[1000:]), other.predict(X[1000:]))[0, 1] > 0.999
        assert model.score(X[1000:], y[1000:]) == pytest.approx(r2_score(y[1000:], model.predict(X[1000:])))
        assert model.score(X[1000:], y[1000:]) == pytest.approx(other.score(X[1000:], y[1000:]), abs=0.01)

    def test_classifier_against_scikit_learn(self):
        rng = np.random.default_rng(1)
        X = rng.integers(0, 100, (1500, 4)).astype(np.float32)
        y = np.where(X[:, 0] + 20 * rng.normal(size=1500) > 60, 7.0, 3.0)
        model = MARTClassifier(40, 8, min_documents_in_leaf=1).fit(X[:1000], y[:1000])
        other = GradientBoostingClassifier(n_estimators=40, max_leaf_nodes=8, max_depth=None).fit(X[:1000], y[:1000])
        assert model.classes_.tolist() == [3, 7]
        differences = np.abs(model.predict_proba(X[1000:]) - other.predict_proba(X[1000:]))
        assert np.median(differences) < 1e-9  # the same trees, except if two splits are equally good
        assert differences.mean() < 0.01
        assert model.score(X[1000:], y[1000:]) == pytest.approx(other.score(X[1000:], y[1000:]), abs=0.01)
        assert (model.predict(X) == np.where(model.decision_function(X) > 0, 7, 3)).all()

    def test_sigma_changes_only_the_scale(self):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(400, 3))
        y = (X[:, 0] + rng.normal(size=400) > 0.5).astype(float)
        model, other = (MARTClassifier(20, 6, sigma=sigma).fit(X, y) for sigma in (1.0, 0.25))
        assert np.allclose(model.decision_function(X), 0.25 * other.decision_function(X))
        assert np.allclose(model.predict_proba(X), other.predict_proba(X))

    def test_balanced_error(self):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(4000, 3))
        y = (X[:, 0] + rng.normal(size=4000) > 2.2).astype(float)  # 6% positive
        train, test = slice(0, 2000), slice(2000, None)

        def error(model):  # FP/2n₋ + FN/2n₊
            predicted = model.fit(X[train], y[train]).predict(X[test])
            return (
                0.5 * ((predicted == 1) & (y[test] == 0)).sum() / (y[test] == 0).sum()
                + 0.5 * ((predicted == 0) & (y[test] == 1)).sum() / (y[test] == 1).sum()
            )

        assert error(MARTClassifier(30, 4, balanced=True)) < error(MARTClassifier(30, 4)) - 0.1

    def test_three_classes_are_refused(self):
        with pytest.raises(DataError, match="separates two classes, but the labels have 3 classes"):
            MARTClassifier().fit(np.eye(3), [0, 1, 2])


class TestMcRank:
    def test_only_boundaries_can_be_monotone(self, data):
        with pytest.raises(DataError, match="not the expected relevance that ranks: use form='ordinal'"):
            McRank(2, monotone={0: 1}).fit(data)
        McRank(1, 4, monotone={0: 0}).fit(data)
        model = McRank(5, 8, monotone={0: 1}, form="ordinal", learning_rate=0.5, min_documents_in_leaf=1).fit(data)
        grid = np.tile(data.features[:50], (9, 1))
        grid[:, 0] = np.repeat(np.linspace(data.feature(0).min(), data.feature(0).max(), 9), 50)
        scores = model.predict(grid).reshape(9, 50)
        assert np.ptp(scores, axis=0).max() > 0
        assert np.diff(scores, axis=0).min() >= -1e-12

    def test_probabilities_and_expectations(self, data):
        for expects, value in (("relevance", lambda k: k), ("gain", lambda k: 2**k - 1)):
            model = McRank(5, expects=expects).fit(data)
            shares = model.predict_proba(data)
            assert np.allclose(shares.sum(axis=1), 1)
            classes = np.unique(data.relevance)
            assert np.allclose(model.predict(data), shares @ value(classes.astype(float)))
        assert isinstance(model.model_, ClassEnsemble)
        assert model.model_.trees.n_trees == 5 * len(classes)
        assert np.allclose(model.predict(data, n_trees=2), model.model_.truncate(2).predict(data.features))

    def test_the_first_round_is_that_of_the_paper(self, data):
        model = McRank(1, 4, 1.0).fit(data)
        n_classes = len(np.unique(data.relevance))
        for k, part in enumerate(model.model_._ensembles):
            leaves = part.leaves(data.features)[:, 0]
            y = (data.relevance == k) - 1 / n_classes
            for leaf in np.unique(leaves):
                residuals = y[leaves == leaf]
                sizes = np.abs(residuals)
                expected = (n_classes - 1) / n_classes * residuals.sum() / (sizes * (1 - sizes)).sum()
                assert part.predict(data.features)[leaves == leaf] == pytest.approx(expected)

    def test_stages_and_leaves(self, data):
        model = McRank(3, 4).fit(data)
        stages = list(model.staged_predict(data))
        assert np.array_equal(stages[0], McRank(1, 4).fit(data).predict(data))
        assert len(stages) == 3
        assert np.array_equal(stages[2], model.predict(data))
        leaves = model.apply(data)
        assert leaves.shape == (len(data), 3 * len(model.classes_))
        assert np.array_equal(leaves, model.trees_.leaves(data))

    def test_resumes_from_a_checkpoint(self, data, valid, tmp_path):
        whole = McRank(6).fit(data, valid=valid)
        McRank(4).fit(data, valid=valid, checkpoint=Checkpoint(tmp_path / "c", 2))
        resumed = McRank(6).fit(data, valid=valid, checkpoint=Checkpoint(tmp_path / "c", 2))
        assert resumed.digest() == whole.digest()


class TestObjectivesInTrees:
    def test_text_and_value_are_the_same(self, data):
        a = LambdaMART(3, objective="pairwise()").fit(data)
        b = LambdaMART(3, objective=Pairwise()).fit(data)
        c = RankNetTrees(3, normalize=False, split_fraction=0.5).fit(data)
        assert a.digest() == b.digest() == c.digest()

    def test_gradient_step_is_the_mean_of_normalized_lambdas(self, data):
        with pytest.warns(podium.PodiumWarning, match="l2=7.0 has no effect"):
            model = LambdaMART(1, 4, 1.0, objective=Local(), step="gradient", l2=7.0).fit(data)
        lambdas = Local().bind(data).gradients(np.zeros(len(data)))[0]
        for q in range(data.n_queries):
            rows = data.rows(q)
            lambdas[rows] /= lambdas[rows].std()
        leaves = model.apply(data)[:, 0]
        for leaf in range(4):
            assert model.predict(data)[leaves == leaf] == pytest.approx(lambdas[leaves == leaf].mean(), rel=1e-6)

    def test_gradient_without_normalization(self, data):
        model = LambdaMART(1, 4, 1.0, objective=Local(), step=Gradient(normalize=False)).fit(data)
        lambdas = Local().bind(data).gradients(np.zeros(len(data)))[0]
        leaves = model.apply(data)[:, 0]
        assert model.predict(data)[leaves == 2] == pytest.approx(lambdas[leaves == 2].mean(), rel=1e-6)

    def test_all_equal_labels_stay_at_zero(self):
        flat = RankingData(np.random.default_rng(0).normal(size=(8, 2)), [1] * 4 + [0, 1, 2, 3], qid=[1] * 4 + [2] * 4)
        model = LambdaMART(2, 2, objective=Local(), step="gradient", min_documents_in_leaf=1).fit(flat)
        assert np.isfinite(model.predict(flat)).all()

    def test_position_bias_is_kept_and_resumed(self, data, tmp_path):
        clicked = podium.data.datasets.simulate_clicks(data, users=20, seed=2)
        objective = Debiased(Lambda("cndcg"))
        whole = LambdaMART(6, objective=objective).fit(clicked)
        assert whole.position_bias_.shape == (10,)
        LambdaMART(4, objective=objective).fit(clicked, checkpoint=Checkpoint(tmp_path / "c", 2))
        resumed = LambdaMART(6, objective=objective).fit(clicked, checkpoint=Checkpoint(tmp_path / "c", 2))
        assert resumed.digest() == whole.digest()
        assert np.array_equal(resumed.position_bias_, whole.position_bias_)
        assert not hasattr(LambdaMART(2).fit(clicked).fit(data), "position_bias_")

    def test_invalid_arguments(self, data):
        with pytest.raises(DataError, match="step must be 'newton' or 'gradient'"):
            LambdaMART(step="leap").fit(data)
        with pytest.raises(DataError, match="objective must be an Objective"):
            LambdaMART(objective=3).fit(data)
        with pytest.raises(DataError, match="use the step 'gradient'"):
            LambdaMART(objective="local()").fit(data)
        with pytest.raises(DataError, match="one score for each document"):
            LinearRanker(objective=Multiclass()).fit(data)
        with pytest.raises(DataError, match="takes Newton steps, but"):
            LinearRanker(objective="local()").fit(data)


class TestGradient:
    def test_equal_lambdas_are_not_divided_by_rounding(self):
        rng = np.random.default_rng(0)
        y = (rng.random(400) < 0.1).astype(float)
        sparse_labels = RankingData(rng.normal(size=(400, 3)), y, qid=np.arange(400) // 4)
        model = LambdaMART(10, objective="logistic", step="gradient").fit(sparse_labels)
        assert np.abs(model.predict(sparse_labels)).max() < 10
        alone = RankingData(rng.normal(size=(400, 3)), y, qid=np.arange(400))
        assert LambdaMART(5, objective="regression", step="gradient", split_fraction=1).fit(alone).model_.n_trees == 5

    def test_query_weights_count(self, data):
        weighted = data.replace(query_weights=np.random.default_rng(0).random(data.n_queries) * 10)
        a, b = (LambdaMART(3, objective=Local(), step="gradient").fit(d).predict(data) for d in (data, weighted))
        assert np.abs(a - b).max() > 0.01


class TestRounds:
    def test_an_empty_tree_does_not_end_a_changing_objective(self, data):
        silent = data.replace(labels={"relevance": data.relevance, "clicks": np.zeros(len(data))})
        objective = Anneal(Pairwise(labels="clicks"), Lambda(), ExponentialShare(1.0))
        model = LambdaMART(5, objective=objective).fit(silent)
        assert model.model_.n_trees == 5
        assert model.model_.tree(4).n_leaves > 1

    def test_the_bias_is_that_of_the_model_that_is_kept(self, data, valid):
        log, judge = (podium.data.datasets.simulate_clicks(d, users=20, seed=2) for d in (data, valid))
        objective = Debiased(Lambda("cndcg"))
        cut = LambdaMART(30, objective=objective, measure="cndcg@10").fit(log, valid=judge)
        assert cut.n_trees_ < 30
        whole = LambdaMART(cut.n_trees_, objective=objective).fit(log)
        assert whole.digest() == cut.digest()
        assert np.array_equal(whole.position_bias_, cut.position_bias_)

    def test_checkpoints_know_positions_and_preferences(self, data, tmp_path):
        log = podium.data.datasets.simulate_clicks(data, users=20, seed=2)
        settings = {"objective": Debiased(Lambda("cndcg"))}
        LambdaMART(2, **settings).fit(log, checkpoint=Checkpoint(tmp_path / "c", 1))
        other = log.replace(positions=np.roll(log.positions, 1))
        with pytest.raises(DataError, match="other data or other settings"):
            LambdaMART(4, **settings).fit(other, checkpoint=Checkpoint(tmp_path / "c", 1))
        pairs = [data.replace(preferences=([0, 1], [2, 3])), data.replace(preferences=([2, 3], [0, 1]))]
        LambdaMART(2, objective="preferences").fit(pairs[0], checkpoint=Checkpoint(tmp_path / "p", 1))
        with pytest.raises(DataError, match="other data or other settings"):
            LambdaMART(4, objective="preferences").fit(pairs[1], checkpoint=Checkpoint(tmp_path / "p", 1))

    def test_observers_may_keep_what_they_see(self, data):
        rounds = []
        LambdaMART(3).fit(data, observers=[rounds.append])
        assert not np.array_equal(rounds[0].scores, rounds[2].scores)


class TestArguments:
    def test_settings_of_the_default_objective_are_refused_with_another(self, data):
        for setting in ({"truncation": 3}, {"sigma": 2.0}, {"normalize": False}):
            with pytest.raises(DataError, match=f"{next(iter(setting))} is for the default objective"):
                LambdaMART(2, objective="lambda(ndcg)", **setting).fit(data)
        assert (
            LambdaMART(2, objective="lambda(ndcg, normalize=true)").fit(data).digest()
            == LambdaMART(2).fit(data).digest()
        )

    def test_classes_need_mcrank(self, data):
        with pytest.raises(DataError, match="use McRank"):
            LambdaMART(objective="multiclass").fit(data)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"valid": (1, 2, 3)}, "pass arrays as eval_set"), ({"valid": {"a": 3}}, "valid takes RankingData"),
            ({"eval_set": "x"}, "pass any other data as valid"), ({"eval_set": [3]}, "eval_set takes"),
        ],
    )  # fmt: skip
    def test_validation_of_the_wrong_kind(self, data, arguments, words):
        with pytest.raises(DataError, match=words):
            LambdaMART(2).fit(data, **arguments)

    def test_numbers_of_numpy(self, data):
        assert LambdaMART(2, learning_rate=np.float32(0.5), l2=np.int64(1)).fit(data)
        with pytest.raises(DataError, match="learning_rate must be a number, but is True"):
            LambdaMART(learning_rate=True).fit(data)

    def test_objectives_that_return_nonsense(self, data):
        class Mine(Objective):
            def __init__(self, found):
                self.found = found

            def bind(self, data):
                if self.found is None:
                    return None
                bound = type("Bound", (BoundObjective,), {"gradients": lambda *_: self.found})
                return bound()

        for found, words in ((None, "must return a BoundObjective"), ((np.ones(3), np.ones(3)), "of the shape"),
                             (np.ones(len(data)), "of the shape")):  # fmt: skip
            with pytest.raises(DataError, match=words):
                LambdaMART(2, objective=Mine(found)).fit(data)

    def test_reprs_show_what_was_set(self):
        assert repr(MART(n_trees=3, l2=2.0)) == "MART(l2=2.0, n_trees=3)"
        assert repr(McRank()) == "McRank()"
        assert set(LambdaMART().get_params()) > set(MART().get_params())


class TestClassesOfAnyKind:
    def test_words(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 3))
        y = np.where(X[:, 0] > 0, "good", "bad")
        model = MARTClassifier(10).fit(X, y)
        assert model.classes_.tolist() == ["bad", "good"]
        assert model.score(X, y) > 0.9
        assert set(model.predict(X)) == {"bad", "good"}
        assert clone(model).fit(X, X[:, 0] > 0).predict(X).dtype == bool
        assert model.set_params(sigma=5).predict_proba(X)[0, 0] == pytest.approx(
            MARTClassifier(10).fit(X, y).predict_proba(X)[0, 0]
        )

    def test_validation_labels_are_mapped_as_well(self, data, valid):
        y, yv = (d.relevance > 1 for d in (data, valid))
        histories = [
            MARTClassifier(5).fit(
                data.features, y * s + o, qid=data.qid, eval_set=(valid.features, yv * s + o, valid.qid)
            ).history_["eval/ap"]
            for s, o in ((1, 0), (1.0, 1.0), (-1, 0))
        ]  # fmt: skip
        assert histories[0] == histories[1]
        assert histories[2] != histories[0]
        judge = (valid.features, valid.relevance, valid.qid)
        with pytest.raises(DataError, match="does not occur in the training data"):
            MARTClassifier(5).fit(data.features, y, qid=data.qid, eval_set=judge)

    def test_frames_without_queries(self, data):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(data.features, columns=[f"f{k}" for k in range(8)])
        assert MART(3).fit(frame, data.relevance).score(frame, data.relevance) > 0
        model = MARTClassifier(3).fit(frame, data.relevance > 1, sample_weight=pandas.Series(np.ones(len(data))))
        assert model.predict(frame).shape == (len(data),)
        with pytest.raises(DataError, match="query_weight has no effect"):
            MART(3).fit(frame, data.relevance, query_weight=[1.0])
        with pytest.raises(DataError, match="X must be features"):
            MART().fit(3, data.relevance)


class TestLinear:
    def test_regression_reaches_least_squares(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4)) * [1, 10, 0.1, 1] + [0, 5, -3, 0]
        y = X @ [1.0, -0.2, 3.0, 0.0] + 0.1 * rng.normal(size=300)
        model = LinearRanker(objective="regression()", n_iterations=60, l2=0.0).fit(X, y, qid=np.arange(300) // 10)
        assert np.allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=1e-6)
        assert isinstance(model.model_, LinearModel)

    def test_finds_the_order_of_a_linear_truth(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(2000, 5)).astype(np.float32)
        truth = X @ [2.0, -1.0, 0.5, 0.0, 0.0]
        y = np.digitize(truth, np.quantile(truth, [0.5, 0.8, 0.95]))
        model = LinearRanker(n_iterations=60).fit(X[:1000], y[:1000], qid=np.arange(1000) // 20)
        test = RankingData(X[1000:], y[1000:], qid=np.arange(1000) // 20)
        assert model.score(test) > 0.98
        assert np.corrcoef(model.coef_, [2.0, -1.0, 0.5, 0.0, 0.0])[0, 1] > 0.99

    def test_missing_values_are_means(self, data):
        features = data.features.copy()
        features[::7, 2] = np.nan
        holed = data.replace(features=features)
        model = LinearRanker(n_iterations=5).fit(holed)
        filled = features.copy()
        filled[::7, 2] = np.nanmean(features[:, 2].astype(np.float64))
        assert np.allclose(model.predict(features), model.predict(filled), atol=1e-6)

    def test_infinite_values_are_means_too(self, data):
        features = data.features.copy()
        features[3, 1], features[5, 1] = np.inf, -np.inf
        model = LinearRanker(n_iterations=5).fit(data.replace(features=features))
        assert np.isfinite(model.predict(features)).all()
        assert (model.coef_ != 0).all()

    def test_validation_is_matched_by_name(self, data, valid):
        names = [f"f{k}" for k in range(8)]
        train, judge = (d.replace(feature_names=names) for d in (data, valid))
        turned = valid.replace(features=valid.features[:, ::-1].copy(), feature_names=names[::-1])
        a, b = (LinearRanker(n_iterations=4).fit(train, valid={"mine": d}).history_ for d in (judge, turned))
        assert a == b
        assert list(a) == ["mine/ndcg@10"]

    def test_the_weights_kept_are_those_of_the_best_step(self, data, valid):
        for seed in range(12):
            part = data.select(np.random.default_rng(seed).permutation(data.n_queries)[:15])
            settings = {"measure": "ndcg@3>ap~0.05", "learning_rate": 0.1}
            model = LinearRanker(n_iterations=40, **settings).fit(part, valid=valid)
            same = LinearRanker(n_iterations=model.best_iteration_ + 1, **settings).fit(part)
            assert np.array_equal(model.coef_, same.coef_)

    def test_regression_keeps_its_mean(self, data):
        model = LinearRanker(objective="regression()", n_iterations=20).fit(data)
        assert model.predict(data).mean() == pytest.approx(data.relevance.mean(), rel=1e-3)

    def test_sparse(self, data):
        from scipy import sparse

        thin = RankingData(sparse.csr_array(data.features), data.relevance, qid=data.qid)
        dense = LinearRanker(n_iterations=4).fit(data)
        assert np.allclose(LinearRanker(n_iterations=4).fit(thin).predict(thin), dense.predict(data), atol=1e-9)


def test_a_custom_objective(data):
    class Huber(Objective):
        def bind(self, data):
            from podium.objectives import BoundObjective

            class Bound(BoundObjective):
                def gradients(self, scores, iteration=0):
                    rest = data.relevance - scores
                    return np.clip(rest, -1, 1), np.ones(len(scores))

            return Bound()

    model = LambdaMART(20, objective=Huber()).fit(data)
    assert isinstance(model.model_, Ensemble)
    assert np.corrcoef(model.predict(data), data.relevance)[0, 1] > 0.5


def test_one_rule_says_whether_lambdas_are_normalized():
    data = podium.artificial(20, documents=(3, 30), features=4)
    for ranker in (podium.LambdaMART(3, 4), podium.LinearRanker(n_iterations=3)):
        usual = ranker.fit(data).digest()
        for objective in ("lambda(ndcg)", Lambda("ndcg"), Lambda("ndcg", normalize=True)):
            assert clone(ranker).set_params(objective=objective).fit(data).digest() == usual
        published = clone(ranker).set_params(normalize=False).fit(data).digest()
        assert published != usual
        assert clone(ranker).set_params(objective="lambda(ndcg, normalize=false)").fit(data).digest() == published
    for name in ("LambdaMART", "LambdaRank", "LinearRanker"):
        assert parameters(getattr(podium, name))["normalize"].default is True
    assert all(term.normalize for term in (Lambda(), Local(), LambdaLoss()))
    assert not Pairwise().normalize
    assert not podium.RankNetTrees().normalize
    assert not podium.LambdaMART.as_published()._objective(data).normalize


def test_an_objective_obeys_its_cutoff_and_an_estimator_trains_on_the_whole_list():
    data = podium.artificial(20, documents=(3, 30), features=4)

    def digest(**settings):
        return podium.LambdaMART(3, 4, **settings).fit(data).digest()

    cut = digest(objective="lambda(ndcg@3)")
    assert cut == digest(objective="lambda(ndcg, truncation=3)") == digest(measure="ndcg@10", truncation=3)
    assert cut != digest(objective="lambda(ndcg)") == digest(measure="ndcg@3") == digest(measure="ndcg@10")
    assert Lambda("ndcg@3", truncation=3).trained_measure() == NDCG(3) == Local("ndcg@3").trained_measure()
    with pytest.raises(DataError, match="pass one cutoff, not both ndcg@3 and truncation=5"):
        Lambda("ndcg@3", truncation=5)
    with pytest.raises(DataError, match="whole list: omit the cutoff of ndcg@10"):
        LambdaLoss("ndcg@10")


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (podium.LinearRanker(method="ascent", n_iterations=1, l2=1.0), "l2=1.0 has no effect: method='ascent'"),
        (podium.LambdaMART(2, 4, step="gradient", l2=3.0, max_delta_step=1.0), "max_delta_step=1.0, l2=3.0 have no"),
        (podium.LambdaMART(2, 4, step=Newton(), max_delta_step=1.0), "pass it to the step: Newton"),
        (podium.LambdaRank(net=lambda n: torch.nn.Linear(n, 1), hidden=5, epochs=1), "hidden=5 has no effect"),
        (podium.Committee(cycles=0, shrinkage=0.5, n_trees=2, n_folds=2), "shrinkage=0.5 has no effect"),
    ],
)
def test_a_value_without_an_effect_is_warned_of(ranker, words):
    with pytest.warns(podium.PodiumWarning, match=words):
        ranker.fit(podium.artificial(20, features=4))


def test_every_pair_weighs_one_in_ranknet_trees():
    data = podium.artificial(20, documents=(3, 30), features=4)
    few = {"n_trees": 3, "n_leaves": 4}
    fitted = podium.RankNetTrees(**few).fit(data)
    assert fitted.digest() == podium.LambdaMART(**few, objective="pairwise", split_fraction=1.0).fit(data).digest()
    assert fitted.digest() != podium.RankNetTrees(**few, normalize=True).fit(data).digest()
