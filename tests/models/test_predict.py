"""Every model predicts the same scores for the same documents, in any form."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

import podium
from podium import DataError, LambdaMART, RankingData
from podium.models import Combined

NAMES = tuple(f"f{k}" for k in range(6))
MEASURE = "ndcg@10"


@pytest.fixture(scope="module")
def train():
    return podium.artificial(40, documents=15, features=6, seed=1).replace(feature_names=NAMES)


@pytest.fixture(scope="module")
def frame(train):
    return pd.DataFrame(train.features, columns=NAMES).assign(qid=train.qid, label=train.relevance)


@pytest.fixture(scope="module")
def estimators(train):
    linear = podium.LinearRanker(n_iterations=5).fit(train)
    return {
        "lambdamart": LambdaMART(5, n_leaves=4).fit(train),
        "mart": podium.MART(5, n_leaves=4).fit(train),
        "mcrank": podium.McRank(3, n_leaves=4).fit(train),
        "linear": linear,
        "net": podium.RankNet(hidden=3, epochs=2).fit(train),
        "on top": LambdaMART(5, n_leaves=4, submodel=linear).fit(train),
    }


KINDS = ("lambdamart", "mart", "mcrank", "linear", "net", "on top", "combined")


def both(estimators, kind, tmp_path):
    """Return a fitted model, and the same model loaded from a file."""
    if kind == "combined":
        model = Combined((estimators["lambdamart"].model_, estimators["linear"].model_), (1.0, 0.5))
        model.save(tmp_path / "m.podium")
        return model, podium.models.load_model(tmp_path / "m.podium")
    estimators[kind].save(tmp_path / "m.podium")
    return estimators[kind], podium.models.load_model(tmp_path / "m.podium")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_matched_by_name(estimators, kind, train, frame, tmp_path):
    fitted, loaded = both(estimators, kind, tmp_path)
    expected = fitted.predict(train)
    reordered = frame[frame.columns[::-1]]
    inputs = {
        "array": train.features, "float64": train.features.astype(np.float64), "list": train.features.tolist(),
        "column-major": np.asfortranarray(train.features), "data": train, "pandas": frame, "reordered": reordered,
        "polars": pl.DataFrame(reordered.to_dict("list")), "arrow": pa.Table.from_pandas(reordered),
        "reordered data": RankingData(reordered), "extra": frame.assign(more=1.0)[["more", *frame.columns[::-1]]],
        "csr": sparse.csr_array(train.features), "csc": sparse.csc_matrix(train.features),
    }  # fmt: skip
    for name, X in inputs.items():
        for model in (fitted, loaded):
            np.testing.assert_array_equal(model.predict(X), expected, err_msg=name)
    assert podium.evaluate(reordered, loaded, MEASURE).means == podium.evaluate(train, expected, MEASURE).means
    for X in (frame.drop(columns="f2"), RankingData(frame.drop(columns="f2"))):
        for model in (fitted, loaded):
            with pytest.raises(DataError, match="the data lacks the feature 'f2' of the model"):
                model.predict(X)
    for X in (frame.assign(more=1.0), RankingData(frame.assign(more=1.0))):
        with pytest.raises(DataError, match=r"has no feature .*'more'"):
            loaded.predict(X, extra="refuse")
    for X in (train.features[:, :4], sparse.csr_array(train.features[:, :4]), np.zeros((3, 9))):
        for model in (fitted, loaded):
            with pytest.raises(DataError, match=r"X has \d features, but Podium is expecting 6 features"):
                model.predict(X)


@pytest.mark.parametrize("kind", KINDS)
def test_no_public_name_begins_with_score(estimators, kind, tmp_path):
    loaded = both(estimators, kind, tmp_path)[1]
    public = {name for name in dir(loaded) if not name.startswith("_")}
    assert "predict" in public
    assert not any(name.startswith("score") for name in public - {"scorer"})  # a scorer is called


def test_parts_may_order_their_features_differently(train, frame):
    reordered = RankingData(frame[frame.columns[::-1]])
    a = LambdaMART(5, n_leaves=4).fit(train)
    b = podium.LinearRanker(n_iterations=5).fit(reordered)
    few = podium.LinearRanker(n_iterations=5).fit(RankingData(frame.drop(columns=["f0", "f3"])))
    for second in (b, few):
        combined = Combined((a.model_, second.model_), (0.5, 2.0))
        expected = 0.5 * a.predict(train) + 2.0 * second.predict(train)
        for X in (train, reordered, frame):
            np.testing.assert_array_equal(combined.predict(X), expected)
        with pytest.raises(DataError, match="pass X with names"):
            combined.predict(train.features)
        assert combined.feature_names == NAMES
        assert combined.importance().sum() == pytest.approx(2.5)
        on_top = LambdaMART(3, submodel=second).fit(train)
        np.testing.assert_allclose(
            on_top.predict(frame), on_top.submodel_scale_ * second.predict(frame) + on_top.trees_.predict(frame)
        )
        assert podium.combine(a, second, train).model.predict(frame).shape == (len(train),)


def test_a_narrower_file_is_refused_unless_its_text_is_sparse(tmp_path):
    full = "".join(f"{k % 2} qid:{k // 4} 1:{k}.5 2:{k % 3} 3:{k % 5}\n" for k in range(40))
    (tmp_path / "full.txt").write_text(full)
    (tmp_path / "narrow.txt").write_text("1 qid:1 1:2 2:1\n0 qid:1 1:1 2:1\n")
    (tmp_path / "sparse.txt").write_text("1 qid:1 1:2 2:1\n0 qid:1 2:1\n")
    train = podium.read(tmp_path / "full.txt")
    assert train.feature_names == ("1", "2", "3")
    model = LambdaMART(5, n_leaves=3, min_documents_in_leaf=1).fit(train)
    with pytest.raises(DataError, match="the data lacks the feature '3' of the model"):
        model.predict(podium.read(tmp_path / "narrow.txt"))
    for absent, value in (("zero", 0.0), ("missing", np.nan)):
        data = podium.read(tmp_path / "sparse.txt", absent=absent)
        with pytest.warns(podium.PodiumWarning, match="has 2 of the model's 3 features: its text is sparse") as warned:
            scores = model.predict(data)
        assert len(warned) == 1
        rows = np.array([[2, 1, value], [value, 1, value]], np.float32)
        np.testing.assert_array_equal(scores, model.predict(rows))
        with pytest.warns(podium.PodiumWarning, match="its text is sparse"):
            LambdaMART(2, n_leaves=3, min_documents_in_leaf=1).fit(train, valid=data)
    wider = podium.read(tmp_path / "full.txt", n_features=5)
    np.testing.assert_array_equal(model.predict(wider), model.predict(train))


def test_data_on_another_scale_is_refused(train):
    scaled = train.normalized("zscore")
    model = LambdaMART(3, n_leaves=4).fit(scaled)
    assert model.predict(scaled.select([0, 1])).shape == (30,)
    with pytest.raises(DataError, match=r"trained on features normalized by 'zscore'.*data\.normalized\('zscore'\)"):
        model.predict(train)
    with pytest.raises(DataError, match="these are normalized by 'minmax'"):
        model.predict(train.normalized("minmax"))
    with pytest.raises(DataError, match="trained on features not normalized"):
        LambdaMART(3, n_leaves=4).fit(train).predict(scaled)
    both = podium.combine(model, podium.LinearRanker().fit(scaled), scaled).model
    for combination in (both, Combined((both, model.model_), (1.0, 1.0))):
        with pytest.raises(DataError, match="trained on features normalized by 'zscore'"):
            combination.predict(train)
    for ranker in (LambdaMART(3, n_leaves=4), podium.LinearRanker(), podium.Committee(n_trees=2)):
        with pytest.raises(DataError, match=r"evaluation set 'valid' does not fit.*not normalized.*'zscore'"):
            ranker.fit(train, valid=scaled)


def test_sparse_text_that_was_read_differently_is_refused(tmp_path):
    podium.artificial(20, documents=10, features=4).write(tmp_path / "dense.txt")
    text = (tmp_path / "dense.txt").read_text()
    (tmp_path / "sparse.txt").write_text(re.sub(r" 2:-\S+", "", text))
    zero, missing = (podium.read(tmp_path / "sparse.txt", absent=absent) for absent in ("zero", "missing"))
    model = LambdaMART(3, n_leaves=4).fit(missing)
    model.save(tmp_path / "m.podium")
    for predictor in (model, podium.models.load_model(tmp_path / "m.podium")):
        with pytest.raises(DataError, match=r"trained on sparse text read with absent='missing'.*absent='zero'"):
            predictor.predict(zero)
    with pytest.raises(DataError, match="the evaluation set 'valid' does not fit"):
        model.fit(missing, valid=zero)
    model.predict(podium.read(tmp_path / "dense.txt"))  # nothing is absent there


def test_models_of_other_libraries_receive_features(train, frame, tmp_path):
    """scikit-learn and LightGBM: as submodel, and in combine, adapt, evaluate and compare."""
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"objective": "regression", "num_leaves": 4, "verbose": -1, "num_threads": 1}
    foreign = {
        "forest": RandomForestRegressor(3, max_depth=3, random_state=0).fit(train.features, train.relevance),
        "named": LinearRegression().fit(frame[list(NAMES[::-1])], train.relevance),
        "booster": lightgbm.train(settings, lightgbm.Dataset(train.features, train.relevance), 5),
    }
    rows = {"named": frame[list(NAMES[::-1])]}
    for name, other in foreign.items():
        expected = np.asarray(other.predict(rows.get(name, train.features)))
        by_scores = podium.evaluate(train, expected, MEASURE).means[MEASURE]
        assert podium.evaluate(train, other, MEASURE).means[MEASURE] == pytest.approx(by_scores, abs=1e-3)
        model = LambdaMART(3, n_leaves=4, submodel=other).fit(train, valid=frame)
        model.save(tmp_path / "m.podium")
        loaded = podium.models.load_model(tmp_path / "m.podium")
        np.testing.assert_allclose(
            loaded.predict(train, base_scores=expected), model.predict(train), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(model.predict(frame[[*NAMES]]), model.predict(train), rtol=1e-5, atol=1e-6)
        assert podium.combine(other, model, train).value >= podium.evaluate(train, model, MEASURE).means[MEASURE]
    comparison = podium.compare(frame, {**foreign, "function": lambda data: data.feature("f1")}, MEASURE)
    assert set(comparison.evaluations) == {*foreign, "function"}
    adapted = podium.adapt(foreign["booster"], frame, n_trees=3, patience=None, measure=MEASURE)
    assert "background" in adapted.comparison.evaluations


def test_only_a_classifier_predicts_classes(train, tmp_path):
    labels = np.where(train.relevance > 1, "good", "bad")
    model = podium.MARTClassifier(5, n_leaves=4).fit(train.features, labels)
    assert set(model.predict(train.features)) <= {"good", "bad"}
    model.save(tmp_path / "m.podium")
    loaded = podium.models.load_model(tmp_path / "m.podium")
    np.testing.assert_array_equal(loaded.predict(train), model.decision_function(train))
    assert podium.evaluate(train, model, MEASURE).means == podium.evaluate(train, loaded, MEASURE).means


def test_frames_work_in_place_of_data(train, frame, tmp_path):
    model = podium.LinearRanker(n_iterations=3).fit(frame)
    shares = [
        podium.diagnostics.local_optimality(model, data, directions=3, curves=0).rising_share for data in (train, frame)
    ]
    np.testing.assert_array_equal(*shares)
    for data, name in ((train, "data"), (frame, "frame")):
        podium.write(data, tmp_path / f"{name}.parquet")
        podium.write_qrels(data, tmp_path / f"{name}.qrels")
        podium.write_run(data, model.predict(data), tmp_path / f"{name}.run")
    for suffix in ("qrels", "run"):
        assert (tmp_path / f"data.{suffix}").read_bytes() == (tmp_path / f"frame.{suffix}").read_bytes()
    assert np.array_equal(podium.read(tmp_path / "frame.parquet").features, train.features)
    assert np.array_equal(
        podium.data.datasets.simulate_clicks(frame).labels["clicks"],
        podium.data.datasets.simulate_clicks(train).labels["clicks"],
    )
    trees = podium.LambdaMART(3, n_leaves=4).fit(frame)
    assert podium.models.refit_weights(trees, frame).digest() == podium.models.refit_weights(trees, train).digest()
    assert podium.explain.permutation_importance(trees, frame, repeats=1).rows == (
        podium.explain.permutation_importance(trees, train, repeats=1).rows
    )
    rankers = [model, trees, trees]
    assert podium.combine(*rankers, frame).weights == podium.combine(*rankers, train).weights
