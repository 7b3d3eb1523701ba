"""Early exit: which documents continue, where the others rank, the file, and the choice of the threshold."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import podium
from experiments.early_exit import EarlyExit, learn_exit, partial_scores, put_behind, with_added
from podium import NDCG, DataError
from podium.measures import Ranking
from podium.models import Ensemble


@pytest.fixture(scope="module")
def data():
    made = podium.artificial_web(80, documents=(2, 40), features=8)
    features = made.features.copy()
    features[::9, 2] = np.nan
    features[:, 1] = np.round(np.abs(features[:, 1])) % 4
    return made.replace(features=features, feature_names=list("abcdefgh"))


@pytest.fixture(scope="module")
def trees(data):
    return podium.LambdaMART(n_trees=40, n_leaves=6, categorical=["b"]).fit(data).model_


@pytest.fixture(scope="module")
def model(data, trees):
    return learn_exit(trees, data, sentinel=10, k=5, threshold=0.6)


def slow_scores(model, data):
    """Score document by document: the inputs of the classifier, its answer, and the rank of the document."""
    head, full = model.trees.truncate(model.sentinel).predict(data), model.trees.predict(data)
    scores, continues = np.empty(len(data)), np.empty(len(data), bool)
    for query in range(data.n_queries):
        rows = data.rows(query)
        low, high = head[rows].min(), head[rows].max()
        for row in rows:
            rank = 1 + sum(head[other] > head[row] for other in rows)
            share = (head[row] - low) / (high - low) if high > low else 0.0
            x = np.array([[*data.features[row], head[row], rank, share]], np.float32)
            probability = 1 / (1 + math.exp(-2 * model.classifier.predict(x)[0]))
            continues[row] = probability >= model.threshold
        floor = min(full[rows[continues[rows]]], default=math.inf)
        highest = max(head[rows[~continues[rows]]], default=-math.inf)
        lowered = max(0.0, highest - floor)
        for row in rows:
            scores[row] = full[row] if continues[row] else min(head[row] - lowered, np.nextafter(floor, -math.inf))
    return scores, continues


def test_scores_are_those_of_the_definition(model, data):
    scores, continues = slow_scores(model, data)
    assert 0.02 < continues.mean() < 0.7
    assert np.array_equal(model.continues(data), continues)
    assert np.allclose(model.predict(data), scores, rtol=0, atol=1e-12)


def require_order(scores, continues, partial, ends, rows):
    """Those that continue by their ends, then those that exit by their partial scores; ties where those tie."""
    for i in rows:
        for j in rows:
            key_i, key_j = ((c, e if c else p) for c, e, p in ((continues[r], ends[r], partial[r]) for r in (i, j)))
            assert (scores[i] < scores[j]) == (key_i < key_j)


def test_documents_that_exit_stand_behind_in_the_order_of_their_partial_scores(model, data, trees):
    scores, continues = model.predict(data), model.continues(data)
    partial, ends = trees.predict(data, n_trees=10), trees.predict(data)
    assert scores[continues].tobytes() == ends[continues].tobytes()
    for query in range(data.n_queries):
        require_order(scores, continues, partial, ends, data.rows(query))


VALUES = st.sampled_from([0.0, 1.0, 1 + 2**-52, 1e-17, 2e-17, 5e-324, -3.0, 1e290, -1e290, 1e16, 1e16 + 2])


@given(st.lists(st.tuples(st.booleans(), VALUES), max_size=12), st.lists(st.tuples(st.booleans(), VALUES), max_size=5))
def test_rounding_makes_no_ties_of_documents_that_exit(first, second):
    entries = [*first, *second]
    continues = np.array([c for c, _ in entries], bool)
    values = np.array([v for _, v in entries], np.float64)
    offsets = np.array([0, len(first), len(entries)])
    order = [np.argsort(-values[a:b], kind="stable") + a for a, b in ((0, len(first)), (len(first), len(entries)))]
    scores = values.copy()
    put_behind(scores, continues, np.concatenate(order).astype(np.int64), offsets)
    assert np.isfinite(scores).all()
    assert scores[continues].tobytes() == values[continues].tobytes()
    for a, b in ((0, len(first)), (len(first), len(entries))):
        require_order(scores, continues, values, values, range(a, b))


def test_the_ends_of_the_threshold_are_all_trees_and_the_first_ones(model, data, trees):
    everyone, nobody = replace(model, threshold=0.0), replace(model, threshold=1.0)
    assert everyone.predict(data).tobytes() == trees.predict(data).tobytes()
    assert nobody.predict(data).tobytes() == trees.predict(data, n_trees=10).tobytes()
    shares = [replace(model, threshold=t).continues(data).mean() for t in (0.0, 0.2, 0.5, 0.8, 1.0)]
    assert shares[0] == 1 > shares[1] > shares[2] > shares[3] > shares[4] == 0


def test_neither_threads_nor_the_order_of_rows_nor_zeros_matter(model, data):
    scores = model.predict(data, n_threads=1)
    order = np.random.default_rng(0).permutation(len(data))
    assert np.array_equal(model.predict(data.take(order), n_threads=2), scores[order])
    dense = data.replace(features=np.nan_to_num(data.features))
    sparse = dense.replace(features=csr_array(dense.features))
    assert np.array_equal(model.predict(sparse), model.predict(dense))
    assert np.array_equal(podium.models.Combined((model,), (1.0,)).predict(data), scores)


def test_equal_documents_fare_alike(model, data):
    twice = data.take(np.repeat(np.arange(len(data)), 2))
    scores = model.predict(twice)
    assert np.array_equal(scores[::2], scores[1::2])


def test_features_alone_are_refused(model, data):
    with pytest.raises(DataError, match="which features alone do not tell: predict RankingData"):
        model.predict(data.features)


def test_the_training_does_not_depend_on_the_order_of_rows(model, data, trees):
    order = np.random.default_rng(1).permutation(len(data))
    again = learn_exit(trees, data.take(order), sentinel=10, k=5, threshold=0.6, n_threads=2)
    assert again.digest() == model.digest()
    assert replace(model, threshold=0.61).digest() != model.digest() != replace(model, sentinel=9).digest()


def test_the_classifier_is_told_who_is_relevant_and_among_the_top(data, trees, monkeypatch):
    seen = []

    class Watched(podium.MARTClassifier):
        def fit(self, documents):
            seen.append(documents)
            return super().fit(documents)

    monkeypatch.setattr("experiments.early_exit.MARTClassifier", Watched)
    learn_exit(trees, data, sentinel=10, k=5, threshold=0.6)
    (documents,) = seen
    order, scores = data.canonical_order, trees.predict(data)
    top = Ranking(data, scores, base=order).order
    expected = {int(row) for q in range(data.n_queries) for row in top[data.offsets[q] : data.offsets[q + 1]][:5]}
    expected = [int(row) in expected and data.relevance[row] > 0 for row in order]
    assert documents.relevance.tolist() == expected
    assert np.array_equal(documents.features[:, :8], data.features[order], equal_nan=True)


def test_the_threshold_is_the_highest_within_the_tolerance(data, trees):
    train, valid = data.split(0.5, 0.5)
    found = {t: learn_exit(trees, train, valid=valid, sentinel=10, k=5, tolerance=t) for t in (0, 0.01, 0.05)}

    def value(model):
        return NDCG(5).mean(Ranking(valid, model.predict(valid), base=valid.canonical_order))

    best = value(trees)
    for tolerance, model in found.items():
        told = model.info["early_exit"]
        assert value(model) == told["ndcg"] >= best - tolerance == told["ndcg_of_all_trees"] - tolerance
        assert told["share_that_continues"] == model.continues(valid).mean()
        seen = model.at_sentinel(valid.features[valid.order], valid.offsets)
        higher = 1 / (1 + np.exp(-2 * np.quantile(seen.confidence, np.linspace(0, 1, 101))))
        higher = [*higher[higher > model.threshold + 1e-12].tolist()[::10], 1.0] if model.threshold < 1 else []
        assert all(value(replace(model, threshold=t)) < best - tolerance for t in higher)
    thresholds = [model.threshold for model in found.values()]
    assert thresholds == sorted(thresholds)
    assert thresholds[0] < thresholds[-1]


def test_without_validation_queries_some_of_the_training_queries_serve(data, trees):
    model = learn_exit(trees, data, sentinel=10, k=5, tolerance=0.02)
    assert model.info["early_exit"]["tolerance"] == 0.02
    assert 0 < model.threshold <= 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sentinel": 40}, "sentinel must be at most 39"),
        ({"sentinel": 0}, "sentinel must be a whole number from 1"),
        ({"k": 0}, "k must be"),
        ({"threshold": 1.5}, "threshold must be"),
        ({"threshold": None, "tolerance": -1}, "tolerance must be"),
        ({"sigma": 2.0}, "takes no sigma"),
        ({"n_leafs": 2}, "n_leaves"),
        ({"valid": "data"}, "a threshold, or valid, not both"),
    ],
)
def test_what_cannot_be_is_refused(data, trees, change, words):
    change = change | ({"valid": data} if "valid" in change else {})
    with pytest.raises((DataError, podium.errors.ParameterError), match=words):
        learn_exit(trees, data, **{"sentinel": 10, "k": 5, "threshold": 0.5} | change)


def test_models_and_data_without_exits_are_refused(data, trees):
    with pytest.raises(DataError, match="exit early from an Ensemble"):
        learn_exit(podium.models.Combined((trees,), (1.0,)), data)
    with pytest.raises(DataError, match="two trees or more"):
        learn_exit(trees.truncate(1), data)
    with pytest.raises(DataError, match=r"none of the .* documents are relevant"):
        learn_exit(trees, data.replace(relevance=np.zeros(len(data))), sentinel=10, threshold=0.5)
    with pytest.raises(DataError, match=r"all of the .* documents are relevant"):
        learn_exit(trees, data.replace(relevance=np.ones(len(data))), sentinel=10, k=100, threshold=0.5)
    with pytest.raises(DataError, match="no relevance labels"):
        learn_exit(trees, data.replace(relevance=None), sentinel=10, threshold=0.5)
    with pytest.raises(DataError, match="sees the 8 features and 3 more, but this one has 8"):
        EarlyExit(trees, trees, 10, 0.5)


def test_scores_too_large_for_float32_do_no_harm(data, trees):
    huge = Ensemble(8, trees.arrays | {"leaf_value": trees.arrays["leaf_value"] * 1e280})
    model = learn_exit(huge, data, sentinel=10, k=5, threshold=0.5)
    assert np.isfinite(model.predict(data)).all()
    seen = partial_scores(huge.truncate(10), data.features[data.order], data.offsets)
    assert np.isinf(with_added(data.features[data.order], seen)[:, -3]).any()


def test_models_cannot_be_saved(model, tmp_path):
    with pytest.raises(DataError, match="EarlyExit cannot be saved"):
        model.save(tmp_path / "m.podium")


def test_explanations_are_refused(model, data):
    with pytest.raises(DataError, match=r"Explain all trees: model.trees.explain"):
        model.explain(data)


def test_bins_are_refused(model, data, tmp_path):
    data.write(tmp_path / "train.parquet")
    binned = podium.bin_files(tmp_path / "train.parquet", tmp_path / "bins")
    with pytest.raises(DataError, match="contains only bins, but this needs the values"):
        model.predict(binned)


def test_threshold_and_sentinel_count_in_the_digest(model):
    assert len({model.digest(), replace(model, threshold=0.7).digest(), replace(model, sentinel=11).digest()}) == 3


def test_other_systems_get_no_exits(model, tmp_path):
    with pytest.raises(DataError):
        model.export(tmp_path / "m.txt", "lightgbm")


@pytest.mark.parametrize(("n_trees", "sentinel"), [(40, 20), (3, 1), (2, 1)])
def test_the_default_sentinel_fits_small_models(n_trees, sentinel, trees, data):
    model = learn_exit(trees.truncate(n_trees), data, k=5, threshold=0.6)
    assert model.sentinel == model.info["early_exit"]["sentinel"] == sentinel
