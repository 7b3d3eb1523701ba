"""PRank: comparison with a slow perceptron, the paper's lemma and mistake bound, and tests as an estimator."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import podium
from podium import DataError, FileFormatError, LinearRanker, PodiumWarning, PRank, RankingData
from podium.linear.design import DesignMatrix
from podium.linear.prank import Perceptron, learn_in_turn
from podium.models import OrdinalModel
from podium.models.archive import write_archive


def prank_slowly(z, labels, k):
    """Return w and b after each document, and the sum of |rank − label| (figure 2); labels are 1 to k."""
    w, b, loss, steps = np.zeros(z.shape[1]), [0.0] * (k - 1) + [np.inf], 0, []
    for x, y in zip(z, labels, strict=True):
        score = sum(float(weight * value) for weight, value in zip(w, x, strict=True))
        predicted = min(r for r in range(1, k + 1) if score - b[r - 1] < 0)
        if predicted != y:
            loss += abs(predicted - y)
            sides = [-1 if y <= r else 1 for r in range(1, k)]
            taus = [side if (score - b[r]) * side <= 0 else 0 for r, side in enumerate(sides)]
            w = w + sum(taus) * x
            b = [threshold - tau for threshold, tau in zip(b[:-1], taus, strict=True)] + [np.inf]
        steps.append((w, b[:-1]))
    return steps, loss


def unscaled(k, width):
    return Perceptron(np.arange(float(k)), np.zeros(width), np.ones(width))


def learn(perceptron, x, ranks, times=None):
    times = np.ones(len(x), np.int64) if times is None else np.asarray(times, np.int64)
    p = perceptron
    loss, p.n_seen = learn_in_turn(
        np.asarray(x, np.float32), np.asarray(ranks, np.int64), times, p.means, p.scales, p.weights, p.thresholds,
        p.late_weights, p.late_thresholds, p.n_seen,
    )  # fmt: skip
    return loss


@pytest.fixture(scope="module")
def data():
    return podium.artificial(60, documents=20, features=8, seed=1)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(40, documents=20, features=8, seed=1, part="valid")


class TestPerceptron:
    @given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 4))
    def test_equals_the_slow_one(self, seed, k, width):
        rng = np.random.default_rng(seed)
        x, ranks = rng.integers(-3, 4, (60, width)).astype(np.float32), rng.integers(0, k, 60)
        perceptron = unscaled(k, width)
        loss = learn(perceptron, x, ranks)
        steps, slow_loss = prank_slowly(x.astype(float), ranks + 1, k)
        assert loss == slow_loss
        assert perceptron.weights.tolist() == steps[-1][0].tolist()
        assert perceptron.thresholds.tolist() == steps[-1][1]
        schema = podium.data.schema.Schema(width, None)
        mean = perceptron.model(schema, averaged=True)
        assert np.allclose(mean.weights, np.mean([w for w, _ in steps], axis=0))
        assert np.allclose(mean.thresholds, np.mean([b for _, b in steps], axis=0))
        assert perceptron.model(schema, averaged=False).weights.tolist() == steps[-1][0].tolist()

    @given(st.integers(0, 2**32), st.integers(2, 6))
    def test_thresholds_stay_in_order(self, seed, k):
        """Lemma 1, for any data."""
        rng = np.random.default_rng(seed)
        perceptron = unscaled(k, 3)
        for _ in range(80):
            learn(perceptron, rng.normal(size=(1, 3)) * 10.0 ** rng.integers(-2, 3), rng.integers(0, k, 1), [3])
            assert (np.diff(perceptron.thresholds) >= 0).all()
            assert (np.diff(perceptron.model(podium.data.schema.Schema(3, None), True).thresholds) >= 0).all()

    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_the_mistake_bound(self, seed, k):
        """Theorem 2: Σ|rank − label| ≤ (k − 1)(R² + 1)/γ² on separable data, for any number of passes."""
        rng = np.random.default_rng(seed)
        w, b = rng.normal(size=3), np.sort(rng.normal(size=k - 1))
        length = np.sqrt((w * w).sum() + (b * b).sum())
        w, b = w / length, b / length
        x = rng.normal(size=(200, 3)).astype(np.float32).astype(float)
        distance = np.abs((x @ w)[:, None] - b).min(axis=1)
        x = x[distance > 0.05]
        if not len(x):
            return
        ranks = np.searchsorted(b, x @ w)
        gamma = np.abs((x @ w)[:, None] - b).min()
        bound = (k - 1) * ((x * x).sum(axis=1).max() + 1) / gamma**2
        perceptron, losses = unscaled(k, 3), []
        for _ in range(300):
            losses.append(learn(perceptron, x, ranks))
            if losses[-1] == 0:
                break
        assert sum(losses) <= bound
        assert losses[-1] == 0 or len(losses) == 300

    def test_a_weight_is_how_often_a_document_is_shown(self):
        rng = np.random.default_rng(0)
        x, ranks, times = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.integers(0, 4, 40)
        once, often = unscaled(3, 2), unscaled(3, 2)
        learn(once, np.repeat(x, times, axis=0), np.repeat(ranks, times))
        learn(often, x, ranks, times)
        assert np.array_equal(once.weights, often.weights)
        assert np.array_equal(once.late_weights, often.late_weights)
        assert once.n_seen == often.n_seen == times.sum()


class TestEstimator:
    def test_learns_and_saves_labels(self, data, valid, tmp_path):
        model = PRank().fit(data)
        assert model.score(valid) > LinearRanker().fit(data).score(valid) - 0.03
        assert (model.predict_label(valid) == valid.relevance).mean() > 0.5
        labels = model.predict_label(valid)
        scores = model.predict(valid)
        for label, score in zip(labels[:50], scores[:50], strict=True):
            above = [c for c, b in zip(model.classes_, model.thresholds_, strict=False) if score < b]
            assert label == min(above, default=model.classes_[-1])
        model.save(tmp_path / "m.podium")
        loaded = podium.models.load_model(tmp_path / "m.podium")
        assert isinstance(loaded, OrdinalModel)
        assert np.array_equal(loaded.predict_label(valid), labels)
        assert np.array_equal(loaded.predict(valid), scores)
        assert loaded.digest() == model.digest()
        assert repr(loaded) == "OrdinalModel(8 of 8 features, 5 labels)"
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(valid), scores)

    def test_exports_as_a_linear_model(self, data, tmp_path):
        model = PRank(epochs=2).fit(data)
        model.export(tmp_path / "m.txt", format="ranklib")
        again = podium.import_model(tmp_path / "m.txt", format="ranklib").predict(data)
        assert np.corrcoef(again, model.predict(data))[0, 1] > 0.999

    def test_a_file_that_does_not_fit_is_refused(self, tmp_path):
        header = {"format": "podium ordinal", "version": 1, "n_features": 1, "feature_names": None, "info": {}}
        linear = {"weights": np.ones(1), "means": np.zeros(1), "intercept": np.zeros(1)}
        for classes, thresholds, words in (
            ([0.0, 1.0], [0.0, 1.0], "do not fit its labels"), ([], [], "do not fit"), ([0.0, 1.0], [np.nan], "finite"),
            ([0.0, 1.0, 2.0], [1.0, 0.0], "ascending"), ([1.0, 0.0], [0.0], "ascending"),
        ):  # fmt: skip
            arrays = linear | {"classes": np.array(classes), "thresholds": np.array(thresholds)}
            write_archive(tmp_path / "m.podium", header, arrays)
            with pytest.raises(FileFormatError, match=words):
                podium.load(tmp_path / "m.podium")

    def test_raw_scales_missing_and_sparse_values(self, data):
        factors = 10.0 ** np.arange(-4, 4)
        plain = PRank(epochs=3, averaged=False).fit(data)
        scaled = PRank(epochs=3, averaged=False).fit(data.replace(features=data.features * factors.astype(np.float32)))
        assert np.isfinite(scaled.predict(data)).all()
        assert scaled.history_["train/rank_loss"][-1] < 2 * plain.history_["train/rank_loss"][-1]
        x = np.where(np.random.default_rng(0).random(data.features.shape) < 0.5, 0, data.features)
        dense, other = (PRank(epochs=3).fit(f, data.relevance, qid=data.qid) for f in (x, sparse.csr_array(x)))
        assert dense.digest() == other.digest()
        holes = np.where(x == 0, np.nan, x)
        assert np.isfinite(PRank(epochs=3).fit(holes, data.relevance, qid=data.qid).predict(holes)).all()

    def test_validation_picks_the_pass(self, data, valid):
        model = PRank(epochs=30, averaged=False, patience=5, metrics=["ap"]).fit(data, valid=valid)
        values = model.history_["valid/ndcg@10"]
        assert model.best_iteration_ == int(np.argmax(values))
        assert len(values) == len(model.history_["train/rank_loss"]) == len(model.history_["valid/ap"])
        assert model.score(valid) == values[model.best_iteration_]
        assert len(values) == 30 or len(values) - 1 - model.best_iteration_ == 5

    def test_order_is_by_content_and_seed(self, data):
        first = PRank(epochs=2).fit(data)
        assert PRank(epochs=2).fit(data.take(np.arange(len(data))[::-1])).digest() == first.digest()
        assert PRank(epochs=2, random_state=1).fit(data).digest() != first.digest()

    def test_whole_weights(self, data):
        times = np.random.default_rng(0).integers(0, 3, len(data)).astype(float)
        arrays = (data.features, data.relevance)
        weighted = PRank(epochs=2).fit(*arrays, qid=data.qid, sample_weight=times)
        assert weighted._perceptron.n_seen == 2 * times.sum()
        with pytest.raises(DataError, match=r"must be whole numbers below 2\^31, but one is 0\.5"):
            PRank().fit(*arrays, qid=data.qid, sample_weight=times / 2)

    def test_labels(self, data):
        with pytest.raises(DataError, match="up to 1000 different labels"):
            PRank().fit(data.features, np.arange(len(data)) / 2, qid=data.qid)
        with pytest.raises(DataError, match="no document with a weight above 0 has one"):
            PRank().fit(data.features, np.full(len(data), np.nan), qid=data.qid)
        with pytest.warns(PodiumWarning, match="all labels 'relevance' are equal"):
            model = PRank(epochs=2).fit(data.features, np.ones(len(data)), qid=data.qid)
        assert set(model.predict_label(data)) == {1.0}
        order_alone = PRank(epochs=2).fit(data.replace(labels={"relevance": data.relevance**2 - 7}))
        assert np.array_equal(order_alone.coef_, PRank(epochs=2).fit(data).coef_)


class TestPartialFit:
    def test_parts_are_one_pass_in_the_order_of_rows(self, data):
        x, y = data.features, data.relevance
        whole, parts = PRank(averaged=False), PRank(averaged=False)
        whole.partial_fit(x[:200], y[:200], classes=range(5)).partial_fit(x[200:], y[200:])
        for start, end in ((0, 200), (200, 777), (777, len(x))):
            parts.partial_fit(RankingData(x[start:end], y[start:end], qid=np.zeros(end - start)), classes=range(5))
        assert whole.digest() == parts.digest()
        design = DesignMatrix(RankingData(x[:200], y[:200], qid=np.zeros(200)), 1)
        z = (x.astype(float) - design.means) * design.scales
        steps, loss = prank_slowly(z, y.astype(int) + 1, 5)
        assert np.allclose(whole.coef_, steps[-1][0] * design.scales)
        assert whole.thresholds_.tolist() == steps[-1][1]
        first, second = whole.history_["train/rank_loss"]
        assert first * 200 + second * (len(x) - 200) == pytest.approx(loss)
        turned = PRank().partial_fit(x[::-1], y[::-1], classes=range(5))
        assert turned.digest() != PRank().partial_fit(x, y, classes=range(5)).digest()

    def test_partial_fit_continues_after_fit(self, data, valid):
        model = PRank(epochs=3).fit(data)
        before, digest = model._perceptron.n_seen, model.digest()
        model.partial_fit(valid)
        assert model._perceptron.n_seen == before + len(valid)
        assert model.digest() != digest
        assert clone(model).fit(data).set_params(epochs=3).digest() == digest

    def test_columns_are_matched_by_name(self, data):
        names = [f"f{k}" for k in range(8)]
        named = RankingData(data.features, data.relevance, qid=data.qid, feature_names=names)
        turned = RankingData(data.features[:, ::-1], data.relevance, qid=data.qid, feature_names=names[::-1])
        same, other = (PRank().partial_fit(named, classes=range(5)).partial_fit(d) for d in (named, turned))
        assert same.digest() == other.digest()
        bare = PRank().partial_fit(named, classes=range(5)).partial_fit(data.features, data.relevance)
        assert bare.digest() == same.digest()
        assert bare.model_.feature_names == tuple(names)

    def test_invalid_arguments(self, data):
        x, y = data.features, data.relevance
        with pytest.raises(DataError, match=r"first call of partial_fit needs all labels .*classes=\[0, 1, 2"):
            PRank().partial_fit(x, y)
        with pytest.raises(DataError, match="the label 2 is not among the classes"):
            PRank().partial_fit(x, y, classes=[0, 1])
        with pytest.raises(DataError, match="classes must be the possible labels"):
            PRank().partial_fit(x, y, classes=["bad", "good"])
        begun = PRank().partial_fit(x, y, classes=range(5))
        with pytest.raises(DataError, match="classes differs from that of earlier calls"):
            begun.partial_fit(x, y, classes=range(6))
        with pytest.raises(DataError, match="is expecting 8 features"):
            begun.partial_fit(x[:, :3], y)
        with pytest.raises(DataError, match="epochs must be a whole number from 1"):
            PRank(epochs=0).partial_fit(x, y, classes=range(5))
