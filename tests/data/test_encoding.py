"""Named categories, and values between which float32 has too few steps."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, LambdaMART, RankingData
from podium.data.encoding import Encoding, codes_of_categories, names_of_categories, shifted
from podium.data.schema import Schema

COLOURS = ["red", "blue", None, "green", "blue", "red"]
QID = [1, 1, 1, 2, 2, 2]


def frames(colours):
    text = pd.DataFrame({"qid": QID, "x": [1.0, 2, 3, 4, 5, 6], "colour": colours})
    yield text.astype({"colour": "category"})
    columns = {"qid": QID, "x": text["x"].tolist(), "colour": colours}
    yield pl.DataFrame(columns, schema_overrides={"colour": pl.Categorical})
    yield pl.DataFrame(columns, schema_overrides={"colour": pl.Enum(["red", "green", "blue"])})
    yield pa.table({
        "qid": QID, "x": text["x"].to_numpy(), "colour": pa.array(colours).dictionary_encode(),
    })  # fmt: skip


def test_categorical_columns_of_any_frame_are_numbered_by_their_names():
    for frame in frames(COLOURS):
        data = RankingData(frame)
        assert data.encoding.categories == {1: ("blue", "green", "red")}
        np.testing.assert_array_equal(data.features[:, 1], np.float32([2, 0, np.nan, 1, 0, 2]))


def test_text_becomes_categories_if_it_is_named_as_categorical():
    frame = pd.DataFrame({"qid": QID, "x": range(6), "colour": COLOURS})
    with pytest.raises(DataError, match=r"column 'colour' must be numeric, but is String: name it in categorical"):
        RankingData(frame)
    for categorical in (["colour"], [1]):
        assert RankingData(frame, categorical=categorical).encoding.categories == {1: ("blue", "green", "red")}
    array = np.array([[k, c] for k, c in enumerate(COLOURS)], object)
    data = RankingData(array, qid=QID, categorical=[1])
    assert data.encoding.categories == {1: ("blue", "green", "red")}
    assert data.features[:, 0].tolist() == list(range(6))
    with pytest.raises(DataError, match="categorical: there is no column 'shape'"):
        RankingData(frame, categorical=["colour", "shape"])
    with pytest.raises(DataError, match="categorical: there is no feature 7"):
        RankingData(array, qid=QID, categorical=[7])
    with pytest.raises(DataError, match=r"row 0, column 1 holds 'red'; name categorical columns in categorical"):
        RankingData(array, qid=QID)


def test_numbers_as_categories_are_sorted_as_numbers():
    data = RankingData(np.array([[10.0], [9.0], [2.5], [np.nan], [10.0], [9.0]]), qid=QID, categorical=[0])
    assert data.encoding.categories == {0: ("2.5", "9", "10")}
    np.testing.assert_array_equal(data.features[:, 0], np.float32([2, 1, 0, np.nan, 2, 1]))


@given(st.lists(st.one_of(st.text(max_size=2), st.integers(-3, 3), st.none(), st.floats()), max_size=30))
def test_codes_refer_to_the_names(values):
    names = names_of_categories(values)
    codes = codes_of_categories(values, names)
    assert names_of_categories(values[::-1]) == names
    for value, code in zip(values, codes, strict=True):
        if value is None or (isinstance(value, float) and np.isnan(value)):
            assert np.isnan(code)
        else:
            text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
            assert names[int(code)] == text


@pytest.fixture(scope="module")
def shop():
    """Labels that follow from a category and a little from a number."""
    rng = np.random.default_rng(0)
    n = 3000
    brand = rng.choice(list("abcdefgh"), n)
    good = {b: g for g, b in enumerate("dbhgaecf")}
    x = rng.random(n)
    label = np.clip(np.array([good[b] for b in brand]) // 2 + (x > 0.7), 0, 4)
    return pd.DataFrame({"qid": np.arange(n) // 15, "label": label, "x": x, "brand": brand})


def test_a_model_keeps_the_categories(shop, tmp_path):
    frame = shop.astype({"brand": "category"})
    model = LambdaMART(20, n_leaves=8, min_documents_in_leaf=5).fit(frame)
    assert model.score(frame) > 0.95
    model.save(tmp_path / "m.podium")
    loaded = podium.models.load_model(tmp_path / "m.podium")
    expected = model.predict(frame)
    # Another set of categories, another order of columns, another kind of frame: the names decide.
    few = shop[shop["brand"].isin(["d", "h"])]
    for part in (
        few, few[["brand", "x"]], few.astype({"brand": "category"}), RankingData(few.astype({"brand": "category"})),
        pl.DataFrame(few.to_dict("list")), few[["x", "brand"]].to_numpy(object),
    ):  # fmt: skip
        for predictor in (model, loaded):
            np.testing.assert_array_equal(predictor.predict(part), expected[few.index])
    # The same model where text is named in the estimator.
    named = LambdaMART(20, n_leaves=8, min_documents_in_leaf=5, categorical=["brand"]).fit(shop)
    assert named.digest() == model.digest()
    unseen, missing = shop.head(5).assign(brand="new"), shop.head(5).assign(brand=None)
    np.testing.assert_array_equal(loaded.predict(unseen), loaded.predict(missing))
    with pytest.raises(DataError, match="is categorical, but an array of numbers has no names of categories"):
        loaded.predict(np.zeros((2, 2)))
    with pytest.raises(DataError, match="'brand' is categorical in the model but numeric in the data"):
        loaded.predict(RankingData(shop.assign(brand=1.0)))


@pytest.mark.parametrize("brand", ["codes", "upper", "float text"])
def test_features_with_only_unknown_categories_are_reported(shop, brand):
    """They all count as missing, which would be easy to overlook."""
    model = LambdaMART(2, n_leaves=4).fit(shop.astype({"brand": "category"}))
    codes = shop["brand"].astype("category").cat.codes
    other = {"codes": codes, "upper": shop["brand"].str.upper(), "float text": codes.astype(float).astype(str)}[brand]
    frame = shop.assign(brand=other)
    for data in (frame, frame[["x", "brand"]].to_numpy(object), RankingData(frame, categorical=["brand"])):
        with pytest.warns(podium.PodiumWarning, match="all 8 categories of feature .* count as missing"):
            model.predict(data)
    model.predict(shop.assign(brand="new"))  # a single unknown category is not worth a warning
    model.predict(shop.assign(brand=np.where(shop["x"] > 0.99, shop["brand"], other)))


def test_the_error_for_time_stamps_has_a_remedy(shop):
    with pytest.raises(DataError, match=r"'when' must be numeric, but is Datetime.*convert it to a number"):
        RankingData(shop[["qid", "label", "x"]].assign(when=pd.Timestamp("2024-01-01")))


def test_validation_data_is_encoded_as_the_training_data(shop):
    frame = shop.astype({"brand": "category"})
    valid = shop[shop["brand"].isin(["d", "h", "a"])].astype({"brand": "category"})
    model = LambdaMART(20, n_leaves=8, min_documents_in_leaf=5).fit(frame, valid=RankingData(valid))
    assert model.history_["valid/ndcg@10"][-1] == pytest.approx(model.score(valid), abs=1e-12)


def test_models_that_weigh_features_refuse_categories(shop):
    data = RankingData(shop.astype({"brand": "category"}))
    for ranker in (podium.LinearRanker(), podium.LinearRanker(method="ascent"), podium.RankNet(epochs=1)):
        with pytest.raises(DataError, match="feature 'brand' is categorical, but"):
            ranker.fit(data)


def test_the_rarest_of_many_categories_share_a_bin():
    rng = np.random.default_rng(1)
    n = 6000
    number = np.minimum(rng.geometric(0.01, n), 600)  # about 400 different ones
    label = (number % 3 == 0).astype(float)
    frame = pd.DataFrame({"qid": np.arange(n) // 20, "label": label, "item": [f"i{k}" for k in number]})
    frame["item"] = frame["item"].astype("category")
    assert frame["item"].nunique() > 300
    model = LambdaMART(10, n_leaves=4, max_bins=64).fit(frame)
    assert model.score(frame) > 0.8
    counts = frame["item"].value_counts()
    rare = [name for name, count in counts.items() if count <= counts.iloc[70]]
    rows = pd.DataFrame({"item": rare})
    assert len(set(model.predict(rows).tolist())) == 1
    frequent = pd.DataFrame({"item": list(counts.index[:60])})
    assert len(set(model.predict(frequent).tolist())) > 1
    turned = LambdaMART(10, n_leaves=4, max_bins=64).fit(frame.sample(frac=1, random_state=0))
    assert turned.digest() == model.digest()


def test_parts_with_different_categories_are_concatenated(shop):
    frame = shop.astype({"brand": "category"})
    whole = RankingData(frame)
    parts = [RankingData(shop[shop["qid"] % 2 == k].astype({"brand": "category"})) for k in (0, 1)]
    assert RankingData.concatenate(parts).encoding == whole.encoding
    rows = np.concatenate([np.flatnonzero(shop["qid"] % 2 == k) for k in (0, 1)])
    np.testing.assert_array_equal(RankingData.concatenate(parts).features, whole.features[rows])
    again = pickle.loads(pickle.dumps(whole))
    assert again.encoding == whole.encoding
    assert whole.select([0, 1]).encoding == whole.encoding
    assert whole.normalized("zscore").encoding.categories == whole.encoding.categories
    np.testing.assert_array_equal(whole.normalized("zscore").features[:, 1], whole.features[:, 1])


def test_time_stamps_are_shifted_and_learnt_from():
    rng = np.random.default_rng(0)
    seconds = 1_700_000_000 + rng.integers(0, 100, 2000)
    label = (seconds % 100 > 70).astype(float) + (seconds % 100 > 30)
    qid = np.arange(2000) // 20
    assert len(np.unique(seconds.astype(np.float32))) < 5
    for X in (seconds[:, None], seconds[:, None].astype(np.float64), pd.DataFrame({"t": seconds})):
        data = RankingData(X, label, qid=qid)
        assert set(data.encoding.shifts) == {0}
        assert len(np.unique(data.features)) == 100
        np.testing.assert_array_equal(data.feature(0), seconds)
        model = LambdaMART(10, n_leaves=4).fit(data)
        assert model.score(data) > 0.99
        expected = model.predict(X)
        np.testing.assert_array_equal(model.predict(data), expected)
        # Three rows alone would not be shifted, but the model reads them exactly as well.
        few = RankingData(X[:3], label[:3], qid=qid[:3])
        np.testing.assert_array_equal(model.predict(few), expected[:3])
        np.testing.assert_array_equal(model.predict(data.select([0, 3])), expected[np.isin(qid, [0, 3])])
        again = RankingData.concatenate([data.select([0]), data.select([1])])
        np.testing.assert_array_equal(model.predict(again), expected[:40])


def test_a_loaded_model_shifts_too(tmp_path):
    rng = np.random.default_rng(0)
    nanoseconds = 1_700_000_000_000_000_000 + rng.integers(0, 5000, 400)
    frame = pd.DataFrame({"t": nanoseconds, "qid": np.arange(400) // 20, "label": (nanoseconds % 5000 > 2500) * 1.0})
    model = LambdaMART(5, n_leaves=3).fit(frame)
    model.save(tmp_path / "m.podium")
    np.testing.assert_array_equal(podium.load(tmp_path / "m.podium").predict(frame), model.predict(frame))
    assert podium.models.load_model(tmp_path / "m.podium").encoding == model.model_.encoding


def test_values_that_need_no_shift_are_not_shifted():
    rng = np.random.default_rng(0)
    n = 5000
    columns = [rng.random(n), rng.normal(size=n) * 1e6, np.full(n, 0.1), rng.lognormal(size=n) * (rng.random(n) > 0.7),
               rng.integers(0, 2**31, n), 1e6 + rng.random(n)]  # fmt: skip
    data = RankingData(np.column_stack(columns), qid=np.arange(n) // 10)
    assert set(data.encoding.shifts) == {5}
    assert not data.losses or "merged" not in data.losses[0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(-(2**61), 2**61))
def test_whole_numbers_are_shifted_exactly(values, shift):
    result = shifted(np.array(values, np.int64), shift)
    expected = [np.float32(float(value - shift)) for value in values]
    np.testing.assert_allclose(result, np.array(expected, np.float32), rtol=1.2e-7)
    near = np.array([shift + k for k in range(-50, 50)], np.int64)
    assert shifted(near, shift).tolist() == list(range(-50, 50))


def test_encodings_of_files_are_checked():
    encoding = Encoding({1: ("a", "b")}, {0: 5})
    assert Encoding.from_json(encoding.to_json(), 2) == encoding
    for wrong in (
        [], {"categories": []}, {"categories": {"7": ["a"]}}, {"categories": {"x": ["a"]}}, {"shifts": {"0": True}},
        {"categories": {"0": ["a", "a"]}}, {"categories": {"0": [1]}}, {"shifts": {"0": 10**400}},
        {"shifts": {"0": float("nan")}}, {"shifts": {"-1": 1}}, {"shifts": {"9" * 5000: 1}},
        {"categories": {"0": ["a"], "00": ["b"]}},
    ):  # fmt: skip
        with pytest.raises(DataError):
            Encoding.from_json(wrong, 2)
    with pytest.raises(DataError, match="must contain category numbers 0 to 1"):
        RankingData(np.array([[0.0, 2.0]]), qid=[1], encoding=encoding)


def test_a_schema_reads_rows_of_any_kind():
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    schema = Schema(2, ("a", "b"))
    turned = pd.DataFrame(X[:, ::-1], columns=["b", "a"]).assign(qid=1, c=0)
    for form in (X, X.astype(np.float64), turned, pl.DataFrame(turned.to_dict("list")), RankingData(turned)):
        np.testing.assert_array_equal(schema.rows(form), X)
    for form in (turned, RankingData(turned)):
        with pytest.raises(DataError, match=r"has no feature .*'c'"):
            schema.rows(form, "refuse")
        with pytest.raises(DataError, match="extra must be 'ignore' or 'refuse'"):
            schema.rows(form, "drop")
    for form in (turned.drop(columns="b"), RankingData(turned.drop(columns="b"))):
        with pytest.raises(DataError, match="the data lacks the feature 'b' of the model"):
            schema.rows(form)
    with pytest.raises(DataError, match="X has 3 features, but Podium is expecting 2"):
        schema.rows(np.zeros((1, 3)))
