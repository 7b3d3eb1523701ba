"""Training from a submodel's scores: their scale, and the choice of no trees at all."""

import math
import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import podium
from podium import DataError, LambdaMART, LinearRanker, PodiumWarning, RankingData
from podium.boosting import Checkpoint
from podium.boosting.base_scores import SMALLEST, TOLERANCE, fitted_scale
from podium.core.team import Team
from podium.measures import Graded
from podium.models import Combined, TreesOnBaseScores
from podium.objectives import BoundObjective, Debiased, Lambda, Objective, Preferences, Regression


@pytest.fixture(scope="module")
def parts():
    return tuple(podium.artificial(60, documents=20, features=10, seed=5, part=p) for p in ("train", "valid"))


@pytest.fixture(scope="module")
def linear(parts):
    return LinearRanker(normalize=False).fit(parts[0])


def scale_of(data, scores, objective=None, threads=1):
    with Team(threads) as team:
        return fitted_scale(data, np.asarray(scores, float), objective or Lambda("ndcg"), team)


def cross_entropy(c, data, scores):
    """RankNet's cost, pair by pair."""
    total = 0.0
    for i, j in combinations(range(len(data)), 2):
        if data.qid[i] == data.qid[j] and data.relevance[i] != data.relevance[j]:
            better, worse = (i, j) if data.relevance[i] > data.relevance[j] else (j, i)
            total += np.logaddexp(0.0, -c * (scores[better] - scores[worse]))
    return total


class TestScale:
    def test_the_lowest_cross_entropy(self):
        for seed in range(4):
            rng = np.random.default_rng(seed)
            labels = rng.integers(0, 3, 40)
            data = RankingData(np.zeros((40, 1)), labels, qid=np.repeat([1, 2, 3], [20, 5, 15]))
            scores = labels + 2 * rng.standard_normal(40) + 100 * data.qid
            best = minimize_scalar(lambda x: cross_entropy(math.exp(x), data, scores), (-3, 0), tol=1e-10)  # noqa: B023
            assert scale_of(data, scores) == pytest.approx(math.exp(best.x), rel=1e-3)
            assert scale_of(data, scores, Lambda("ndcg", sigma=4.0)) == pytest.approx(math.exp(best.x) / 4, rel=1e-3)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 2**32), st.integers(-100, 100), st.sampled_from([1, 2]))
    def test_neither_scale_nor_rows_nor_threads_matter(self, seed, exponent, threads):
        rng = np.random.default_rng(seed)
        n = 30
        labels, X = rng.integers(0, 3, n), rng.random((n, 2)).astype(np.float32)
        scores = labels + rng.standard_normal(n) + rng.choice([0.0, 1e3])
        data = RankingData(X, labels, qid=np.repeat([1, 2, 3], 10))
        c = scale_of(data, scores)
        assert c > 0
        shuffle = rng.permutation(n)
        assert scale_of(data.take(shuffle), scores[shuffle], threads=threads) == c
        assert scale_of(data, np.ldexp(scores, exponent)) == pytest.approx(math.ldexp(c, -exponent), rel=1e-12)
        assert scale_of(data, 1e30 * scores) == pytest.approx(c / 1e30, rel=1e-6)

    def test_no_pairs_nothing_to_order_and_least_squares(self):
        X, y = np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2]
        data = RankingData(X, y, qid=[1, 1, 1, 2, 2, 2])
        assert scale_of(data, np.full(6, 1e30)) == 1
        assert scale_of(data, X[:, 0], Regression()) == 1
        assert scale_of(data.replace(labels={"relevance": np.ones(6, np.float32)}), X[:, 0]) == 1

    def test_a_submodel_in_reverse_order_hardly_counts(self):
        data = RankingData(np.zeros((4, 1)), [0, 1, 2, 3], qid=[1] * 4)
        with pytest.warns(PodiumWarning, match="no better than at random"):
            c = scale_of(data, [3e9, 2e9, 1e9, 0.0])
        assert 0 < c <= 2 * SMALLEST / 3e9
        with pytest.warns(PodiumWarning, match="no better than at random"):
            model = LambdaMART(3, min_documents_in_leaf=1, submodel={0: -1.0}).fit(
                [[0], [1], [2]], [0, 1, 2], qid=[1] * 3
            )
        assert (
            model.predict([[0], [1], [2]], n_trees=0).tolist()
            == sorted(model.predict([[0], [1], [2]], n_trees=0))[::-1]
        )
        assert np.argsort(model.predict([[0], [1], [2]])).tolist() == [0, 1, 2]

    def test_pairs_that_are_all_in_order_do_not_raise_the_scale_forever(self):
        data = RankingData(np.zeros((4, 1)), [0, 1, 2, 3], qid=[1] * 4)
        c = scale_of(data, [0.0, 1e-5, 2e-5, 3e-5])
        assert 5 < c * 1e-5 < 30
        assert cross_entropy(c, data, [0.0, 1e-5, 2e-5, 3e-5]) < TOLERANCE * cross_entropy(0, data, np.zeros(4))

    def test_preferences_without_labels(self):
        rng = np.random.default_rng(0)
        X = rng.random((40, 3)).astype(np.float32)
        i, j = rng.integers(0, 20, (2, 300))
        i, j = i[i != j], j[i != j]
        preferred = (X[i, 0] + 0.3 * rng.standard_normal(len(i)) > X[j, 0]).astype(float)
        data = RankingData(X, qid=np.repeat([1, 2], 20), preferences=(i, j, preferred))
        scales = [scale_of(data, by * X[:, 0], Preferences()) for by in (1.0, 1e6)]
        assert 1 < scales[0] < 30
        assert scales[1] == pytest.approx(scales[0] / 1e6)
        model = LambdaMART(5, objective=Preferences(), min_documents_in_leaf=2, submodel={0: 1e6}).fit(data)
        assert model.submodel_scale_ == pytest.approx(scales[1])

    @pytest.mark.parametrize("by", [1e-30, 100, 1000, 1e30])
    def test_training_does_not_depend_on_the_scale(self, parts, linear, by):
        train, valid = parts
        as_it_is, scaled = (
            LambdaMART(25, submodel=lambda data, k=k: k * linear.predict(data)).fit(train, valid=valid)
            for k in (1.0, by)
        )
        assert max(scaled.history_["valid/ndcg@10"]) == pytest.approx(max(as_it_is.history_["valid/ndcg@10"]), abs=1e-3)
        assert max(scaled.history_["valid/ndcg@10"]) > linear.score(valid) + 0.05
        assert scaled.submodel_scale_ == pytest.approx(as_it_is.submodel_scale_ / by)

    def test_steps_have_a_limit_where_the_hessian_vanishes(self, parts, linear):
        """With the papers' F_0 on a large scale, leaf values were 1e21 and more."""
        train, _ = parts

        def large(data):
            return 1000 * linear.predict(data)

        papers = {"submodel": large, "submodel_scale": 1.0, "l2": 0.0}
        for step, at_most in (("newton", 100), ("line-search", 500)):  # 0.1 · 1000, and α up to 5
            model = LambdaMART(5, step=step, **papers).fit(train)
            values = [model.trees_.tree(k).leaf_value for k in range(model.n_trees_)]
            assert 1 < max(np.abs(v).max() for v in values) <= at_most
        held = LambdaMART(5, max_delta_step=2.0, **papers).fit(train)
        assert max(np.abs(held.trees_.tree(k).leaf_value).max() for k in range(5)) <= 0.2


class TestModel:
    def test_the_scale_is_kept_in_the_model(self, parts, linear, tmp_path):
        train, valid = parts
        for scale in ("fit", 0.25, 1.0):
            model = LambdaMART(4, submodel=linear, submodel_scale=scale).fit(train)
            assert isinstance(model.model_, Combined)
            assert model.model_.weights == (model.submodel_scale_, 1.0)
            assert model.model_.info["submodel_scale"] == model.submodel_scale_
            assert model.submodel_scale_ == (scale if scale != "fit" else pytest.approx(0.74, abs=0.05))
            model.save(tmp_path / "m.podium")
            loaded = podium.load(tmp_path / "m.podium")
            assert np.array_equal(loaded.predict(valid.features), model.predict(valid.features))
            assert loaded.digest() == model.digest()

    def test_a_file_without_its_submodel_needs_base_scores(self, parts, linear, tmp_path):
        train, valid = parts
        model = LambdaMART(4, submodel=lambda data: 50 * linear.predict(data)).fit(train)
        model.save(tmp_path / "m.podium")
        loaded = podium.models.load_model(tmp_path / "m.podium")
        assert isinstance(loaded, TreesOnBaseScores)
        assert loaded.scale == model.submodel_scale_
        start = 50 * linear.predict(valid)
        assert np.array_equal(loaded.predict(valid.features, base_scores=start), model.predict(valid))
        assert loaded.digest() == model.digest()

    def test_invalid_scales(self, parts):
        for scale, said in (("auto", "'fit' or a number"), (0, "must be positive"), (-1.0, "must be positive")):
            with pytest.raises(DataError, match=said):
                LambdaMART(2, submodel={0: 1.0}, submodel_scale=scale).fit(parts[0])

    def test_a_fit_without_a_submodel_forgets(self, parts, linear):
        model = LambdaMART(2, submodel=linear).fit(parts[0], valid=parts[1])
        assert set(model.submodel_means_) == {"valid/ndcg@10"}
        model.set_params(submodel=None).fit(parts[0])
        assert not hasattr(model, "submodel_scale_")
        assert not hasattr(model, "submodel_means_")


class TestNoTrees:
    """Iteration 0, the submodel alone, is a candidate for the best."""

    @pytest.fixture
    def misled(self, parts):
        """A submodel that is perfect on the validation data, and training data that knows nothing."""
        train, valid = parts
        rng = np.random.default_rng(1)
        noise = train.replace(labels={"relevance": rng.permutation(train.relevance)})
        perfect = valid.replace(features=np.column_stack([valid.relevance, valid.features]), feature_names=None)
        noise = noise.replace(
            features=np.column_stack([noise.relevance + rng.standard_normal(len(noise)), noise.features]),
            feature_names=None,
        )
        return noise, perfect

    @pytest.mark.parametrize("measure", ["ndcg@10", Graded(["ndcg@10", "ap"], [0.0])])
    def test_the_submodel_alone_is_the_best(self, misled, tmp_path, measure):
        train, valid = misled
        model = LambdaMART(30, measure=measure, patience=4, submodel={0: 1.0}).fit(train, valid=valid)
        assert (model.n_trees_, model.best_iteration_) == (0, -1)
        assert len(model.history_["valid/ndcg@10"]) == 4  # patience counts from the submodel on
        assert model.submodel_means_["valid/ndcg@10"] == 1
        assert model.score(valid) == 1
        assert np.array_equal(model.predict(valid), model.submodel_scale_ * valid.features[:, 0].astype(float))
        assert list(model.staged_predict(valid.features)) == []
        assert model.apply(valid.features).shape == (len(valid), 0)
        assert model.feature_importances_.shape == (11,)
        model.save(tmp_path / "m.podium")
        loaded = podium.load(tmp_path / "m.podium")
        assert np.array_equal(loaded.predict(valid.features), model.predict(valid.features))
        assert LambdaMART(3, submodel=loaded).fit(train).n_trees_ == 3

    def test_the_same_after_an_interruption(self, misled, tmp_path):
        train, valid = misled
        ranker = LambdaMART(9, submodel={0: 1.0}, patience=8)
        whole = ranker.fit(train, valid=valid)

        class StopError(Exception):
            pass

        def stop(seen):
            if seen.iteration == 5:
                raise StopError

        checkpoint = Checkpoint(tmp_path / "c.podium", every=2)
        again = LambdaMART(9, submodel={0: 1.0}, patience=8)
        with pytest.raises(StopError):
            again.fit(train, valid=valid, observers=[stop], checkpoint=checkpoint)
        again.fit(train, valid=valid, checkpoint=checkpoint)
        assert (again.n_trees_, again.best_iteration_, again.history_) == (0, -1, whole.history_)
        assert again.digest() == whole.digest()

    def test_without_validation_data_all_trees_stay(self, misled):
        assert LambdaMART(3, submodel={0: 1.0}).fit(misled[0]).n_trees_ == 3

    def test_an_objective_that_learns_goes_back_to_its_beginning(self, misled):
        train, valid = misled
        clicks = train.replace(positions=1 + np.arange(len(train)) % 20)
        objective = Debiased(Lambda("ndcg"))
        model = LambdaMART(4, objective=objective, submodel={0: 1.0}).fit(clicks, valid=valid)
        assert model.n_trees_ == 0
        assert (model.position_bias_ == 0).all()


def test_a_better_tree_is_kept(parts, linear):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LambdaMART(20, submodel=linear).fit(parts[0], valid=parts[1])
    assert model.best_iteration_ == int(np.argmax(model.history_["valid/ndcg@10"]))
    assert model.n_trees_ == model.best_iteration_ + 1


def test_base_scores_distinguish_equal_documents_in_any_order_of_rows():
    rng = np.random.default_rng(3)
    features = rng.integers(0, 2, (300, 2)).astype(np.float32)
    labels, qid = rng.integers(0, 3, 300), np.repeat(np.arange(10), 30)
    scores = rng.normal(size=300)
    digests = set()
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(300)
        data = RankingData(features[rows], labels[rows], qid=qid[rows])
        few = {"n_trees": 5, "n_leaves": 4, "min_documents_in_leaf": 2, "document_fraction": 0.6}
        digests.add(LambdaMART(**few, submodel=scores[rows], submodel_scale=1.0).fit(data).digest())
    assert len(digests) == 1


def test_a_checkpoint_is_refused_if_base_scores_are_swapped(parts, tmp_path):
    train, valid = parts
    checkpoint = Checkpoint(tmp_path / "c", every=1)
    scores = train.features[:, 0].astype(float)
    LambdaMART(3, submodel=scores, submodel_scale=1.0).fit(train, checkpoint=checkpoint)
    with pytest.raises(DataError, match="checkpoint of other data"):
        LambdaMART(5, submodel=scores[::-1].copy(), submodel_scale=1.0).fit(train, checkpoint=checkpoint)
    LambdaMART(5, submodel=scores, submodel_scale=1.0).fit(train, checkpoint=checkpoint)

    checkpoint = Checkpoint(tmp_path / "valid", every=1)
    first = {id(train.features): 0, id(valid.features): 1}
    LambdaMART(3, submodel_scale=1.0, submodel=lambda data: data.features[:, 0].astype(float)).fit(
        train, valid=valid, checkpoint=checkpoint
    )
    with pytest.raises(DataError, match="checkpoint of other data"):
        LambdaMART(
            5, submodel_scale=1.0, submodel=lambda data: data.features[:, first[id(data.features)]].astype(float)
        ).fit(train, valid=valid, checkpoint=checkpoint)


def test_a_checkpoint_is_refused_for_an_objective_with_another_array(parts, tmp_path):
    train, _ = parts
    checkpoint = Checkpoint(tmp_path / "c", every=1)
    table = np.linspace(0, 1, len(train))
    other = table.copy()
    other[600] += 1
    LambdaMART(2, objective=TowardsTargets(table)).fit(train, checkpoint=checkpoint)
    with pytest.raises(DataError, match="checkpoint of other data"):
        LambdaMART(3, objective=TowardsTargets(other)).fit(train, checkpoint=checkpoint)
    LambdaMART(3, objective=TowardsTargets(table.copy())).fit(train, checkpoint=checkpoint)


@dataclass(frozen=True)
class TowardsTargets(Objective):
    """Least squares with its own targets."""

    targets: np.ndarray

    def bind(self, data):
        targets = self.targets

        class Bound(BoundObjective):
            def gradients(self, scores, iteration=0):
                return targets - scores, np.ones(len(scores))

        return Bound()
