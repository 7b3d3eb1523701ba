"""Large numbers: values that float32 would merge are shifted exactly or reported, and all routes to a model agree."""

import io
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import podium
from podium import DataError, LambdaMART, PodiumWarning, RankingData
from podium.data.encoding import names_of_categories
from podium.data.schema import Schema

N = 200
QID = np.repeat(np.arange(N // 10), 10)
NOON = 1_700_000_000


def columns(times):
    return np.column_stack([np.random.default_rng(3).normal(size=len(times)), times])


@pytest.fixture(scope="module")
def times():
    return NOON + np.random.default_rng(1).integers(0, 2000, N).astype(float)


@pytest.fixture(scope="module")
def model(times):
    labels = (times > NOON + 1000).astype(int)
    data = RankingData(columns(times), labels, qid=QID, feature_names=["1", "2"])
    return LambdaMART(n_trees=3, min_documents_in_leaf=5, verbose=0).fit(data)


def test_neighbours_that_float64_merges_are_distinguished():
    values = 2**60 + np.arange(50)
    data = RankingData(values[:, None], qid=np.zeros(50, int))
    assert np.array_equal(np.diff(data.features[:, 0]), np.ones(49))
    row = RankingData(values[7:8, None], qid=[1])
    assert Schema.of(data).rows(row)[0, 0] == data.features[7, 0]


@pytest.mark.parametrize("least", [2**62, 2**63 - 1000, 2**63 + 7, 2**64 - 3000, -(2**63), -(2**62) - 999])
def test_whole_numbers_of_any_size_are_distinguished(least):
    dtype = np.uint64 if least > 2**62 else np.int64
    values = np.array([least + int(k) for k in np.random.default_rng(2).integers(0, 2000, N)], dtype)
    data = RankingData(values[:, None], qid=QID)
    assert len(np.unique(data.features)) == len(np.unique(values))


def test_values_that_a_shift_cannot_separate_are_reported():
    rng = np.random.default_rng(4)
    near, far = NOON + rng.integers(0, 100, N), NOON + 10**9 + rng.integers(0, 3000, N)
    with pytest.warns(PodiumWarning, match="many different values became equal"):
        data = RankingData(np.where(np.arange(N) % 10 < 6, near, far)[:, None].astype(float), qid=QID)
    assert data.losses


def test_data_that_is_not_crowded_itself_is_scored_exactly(model, times):
    rng = np.random.default_rng(6)
    mostly_spread = np.where(rng.random(N) < 0.9, rng.uniform(-1, 1e6, N), times + rng.random(N))
    X = columns(mostly_spread)
    data = RankingData(X, qid=QID)
    assert not data.encoding.shifts
    assert np.array_equal(model.predict(data), model.predict(X))
    assert np.array_equal(model.predict(data.select([1, 3])), model.predict(X[np.isin(QID, [1, 3])]))


def test_shifted_validation_data_of_an_unshifted_model_is_unshifted():
    rng = np.random.default_rng(7)
    spread = rng.integers(0, 2**31, N).astype(float)
    train = RankingData(columns(spread), (spread > 2**30).astype(int), qid=QID)
    X = columns(2**30 + rng.integers(-50, 50, N) * 1.0)
    labels = (X[:, 1] > 2**30).astype(int)
    valid = RankingData(X, labels, qid=QID)
    assert valid.encoding.shifts
    assert not train.encoding.shifts
    history = LambdaMART(n_trees=3, verbose=0, patience=None).fit(train, valid=valid).history_
    plain = RankingData(X.astype(np.float32), labels, qid=QID)
    assert history == LambdaMART(n_trees=3, verbose=0, patience=None).fit(train, valid=plain).history_


def test_validation_data_with_categories_where_training_data_has_numbers_is_refused():
    names = np.array([["a"], ["b"]] * (N // 2), object)
    valid = RankingData(names, np.arange(N) % 2, qid=QID, categorical=[0])
    train = RankingData(np.arange(N)[:, None], np.arange(N) % 2, qid=QID)
    with pytest.raises(DataError, match="is categorical in the data"):
        LambdaMART(n_trees=2, verbose=0).fit(train, valid=valid)


def test_absent_features_are_shifted_too(model):
    text = podium.read(io.BytesIO(b"1 qid:1 1:0.5\n0 qid:1\n"), "letor")
    with pytest.warns(PodiumWarning, match="its text is sparse"):
        rows = model.model_.schema.rows(text)
    assert np.array_equal(rows, model.model_.schema.rows(np.array([[0.5, 0.0], [0.0, 0.0]])))


def test_sparse_features_and_shifts_do_not_mix(model, times):
    sparse = RankingData(csr_array(columns(np.arange(N) * 1.0)), qid=QID)
    with pytest.raises(DataError, match="dense"):
        model.predict(sparse)
    with pytest.raises(DataError, match="dense"):
        RankingData.concatenate([sparse, RankingData(columns(times), qid=QID + 100)])


def test_the_order_of_categories_does_not_depend_on_the_process():
    names = ["nan", "3", "1", "2", "10", "inf"]
    assert names_of_categories(names) == names_of_categories(names[::-1]) == tuple(sorted(names))
    assert names_of_categories([True, 1]) == names_of_categories([1, True])
    code = f"from podium.data.encoding import names_of_categories as n; print(n({names}))"
    shown = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, check=True).stdout
        for seed in ("1", "3")
    }  # fmt: skip
    assert len(shown) == 1


@pytest.mark.parametrize("categorical", ["ab", 5, [["a"]], b"a"])
def test_categorical_is_a_list(categorical):
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["x", "y"], "qid": [1, 1]})
    with pytest.raises(DataError, match="list of features"):
        RankingData(frame, categorical=categorical)
    with pytest.raises(DataError, match="list of features"):
        LambdaMART(n_trees=1, categorical=categorical).fit(frame.drop("qid"), [0, 1], qid=[1, 1])


def test_odd_types_are_refused_or_read(model):
    for kind in ("S3", "M8[D]", "c16", [("a", "i4")]):
        with pytest.raises(DataError, match="numbers or text"):
            RankingData(np.zeros((2, 2), kind), qid=[1, 1], categorical=[0])
    with pytest.raises(DataError, match="4300 digits"):
        RankingData(np.array([[10**5000], [1]], object), qid=[1, 1], categorical=[0])
    wide = pl.DataFrame({"1": [0.5, 0.5], "2": pl.Series([2**100, NOON], dtype=pl.Int128)})
    assert np.array_equal(model.predict(wide), model.predict([[0.5, 2.0**100], [0.5, NOON]]))
    with pytest.raises(DataError, match="X has 1 features"):
        model.predict([[0.5]])
    for n_trees in ("2", 1.0, True, -1, 4):
        with pytest.raises(DataError, match="n_trees must be"):
            model.predict(np.zeros((1, 2)), n_trees=n_trees)


def test_missing_values_among_whole_numbers_that_float64_merges_are_reported():
    numbers = pd.array([2**60, 2**60 + 1, None, 2**60 + 3], "Int64")
    with pytest.warns(podium.PodiumWarning, match="different numbers in column 'id' became equal in float64"):
        RankingData(pd.DataFrame({"id": numbers, "qid": 1}))


NEAR = [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3]


@pytest.mark.parametrize(
    "values",
    [
        np.array([[k] for k in NEAR], object),
        [[k] for k in NEAR],
        np.ma.masked_array([[k] for k in NEAR], False),
        pl.DataFrame({"id": pl.Series(NEAR, dtype=pl.Int128)}),
        pd.DataFrame({"id": pd.array(NEAR, "Int64")}),
    ],
    ids=["objects", "lists", "masked", "Int128", "Int64"],
)
def test_whole_numbers_near_2_60_are_shifted_exactly(values):
    data = RankingData(values, [0, 1, 0, 1], qid=[1, 1, 2, 2])
    assert data.encoding.shifts
    assert len(np.unique(data.features)) == 4


@pytest.mark.parametrize(
    "values",
    [
        np.array([[k] for k in [*NEAR, None]], object),
        np.ma.masked_array([[k] for k in [*NEAR, 5]], [[False]] * 4 + [[True]]),
        pl.DataFrame({"id": pl.Series([*NEAR, None], dtype=pl.Int128)}),
        pl.DataFrame({"id": pl.Series([*NEAR, 5], dtype=pl.Decimal(38, 0))}),
        np.array([[k + 2**70] for k in [*NEAR, 0]], object),
    ],
    ids=["objects", "masked", "Int128", "Decimal", "beyond 2^64"],
)
def test_whole_numbers_that_float64_merges_are_reported(values):
    with pytest.warns(PodiumWarning, match=r"became equal in float64, which represents integers up to 2\^53"):
        RankingData(values, qid=[1, 1, 2, 2, 2])


EXTENDED = np.longdouble(1) + np.arange(N).astype(np.longdouble) * np.longdouble(2) ** -60
has_extended_precision = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="np.longdouble is float64 on this machine"
)


@has_extended_precision
@pytest.mark.parametrize(
    "values",
    [
        EXTENDED[:, None],
        np.array([[value] for value in EXTENDED], object),
        np.ma.masked_array(EXTENDED[:, None], [[k == 3] for k in range(N)]),
        csr_array(EXTENDED[:, None]),
        EXTENDED[:, None] * np.longdouble(10) ** 400,
        EXTENDED[:, None] * np.longdouble(10) ** -400,
    ],
    ids=["array", "objects", "masked", "sparse", "huge", "tiny"],
)
def test_numbers_of_extended_precision_that_merge_are_reported(values):
    with pytest.warns(PodiumWarning, match="became equal|made different numbers of a column equal or infinite"):
        RankingData(values, qid=QID)


@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_decimals_and_fractions_that_merge_are_reported(kind):
    values = np.array([[1 + kind(k) / 2**60] for k in range(N)], object)
    with pytest.warns(PodiumWarning, match="became equal in float64"):
        RankingData(values, qid=QID)


@has_extended_precision
def test_a_model_trained_on_extended_precision_is_saved(times, tmp_path):
    y = np.arange(N) % 3
    model = LambdaMART(n_trees=2).fit(columns(times).astype(np.longdouble), y, qid=QID)
    model.save(tmp_path / "model.podium")
    assert model.digest() == LambdaMART(n_trees=2).fit(columns(times), y, qid=QID).digest()


def test_labels_that_float32_blurs_are_reported():
    rng = np.random.default_rng(5)
    y = NOON + rng.normal(size=500) * 100
    x = (y - NOON)[:, None]
    with pytest.warns(PodiumWarning, match=r"labels 'relevance' are stored as float32, which changes them by up to 6"):
        podium.MART(n_trees=5).fit(x, y)
    with pytest.warns(PodiumWarning, match="labels 'clicks' are stored as float32"):
        RankingData(x, qid=np.zeros(500), labels={"clicks": (y * 1e6).astype(np.int64)})
    for plain in (rng.random(500), rng.integers(0, 5, 500), rng.integers(0, 5, 500) / 10, np.full(500, 0.1)):
        RankingData(x, plain, qid=np.zeros(500))  # warnings are errors


@pytest.mark.parametrize("name", ["relevance", "document_weights", "query_weights", "positions"])
def test_complex_numbers_are_refused(name):
    for values in (np.array([1 + 2j, 3]), np.ma.masked_array([1 + 2j, 3], [True, False]), [1j, 2]):
        with pytest.raises(DataError, match=r"must be numbers, but got (complex128|object)"):
            RankingData(np.ones((2, 1)), qid=[1, 2], **{name: values})


def test_columns_without_any_value_are_missing():
    for frame in (
        pl.DataFrame({"a": [None, None], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [None, None], "b": [1.0, 2.0]}),
    ):
        data = RankingData(frame, qid=[1, 1])
        assert np.isnan(data.features[:, 0]).all()


@pytest.mark.parametrize("kind", ["letor", "csv"])
def test_labels_of_text_that_float32_blurs_are_reported(kind):
    def read(labels):
        if kind == "csv":
            text = "qid,label,x\n" + "".join(f"1,{label},{k}\n" for k, label in enumerate(labels))
        else:
            text = "".join(f"{label} qid:1 1:{k}\n" for k, label in enumerate(labels))
        return podium.read(io.BytesIO(text.encode()), format=kind)

    labels = [NOON + k for k in range(50)]
    with pytest.warns(PodiumWarning, match=r"labels 'relevance' are stored as float32, which changes them by up to \d"):
        data = read(labels)
    assert data.relevance.tolist() == np.array(labels, np.float32).tolist()
    assert read([0.1, 1.5, "nan", 3e7]).relevance.tolist()[:2] == [np.float32(0.1), 1.5]  # warnings are errors
