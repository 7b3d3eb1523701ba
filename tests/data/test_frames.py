"""Data frames of all libraries."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import podium
from podium import DataError, PodiumWarning, RankingData

COLUMNS = {
    "f1": [0.5, None, 2.5],
    "qid": ["x", "y", "x"],
    "label": [1, 0, 2],
    "label.clicks": [0.1, 0.2, 0.3],
    "f2": [1, 2, 3],
    "document_id": ["a", "b", "c"],
    "document_weight": [1.0, 2.0, 3.0],
    "query_weight": [1.0, 2.0, 1.0],
    "position": [1, 1, 2],
    "flag": [True, False, True],
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("kind", FRAMES)
def test_names_of_columns_determine_their_roles(kind):
    data = RankingData(FRAMES[kind](COLUMNS))
    assert data.feature_names == ("f1", "f2", "flag")
    assert np.array_equal(
        data.features, np.array([[0.5, 1, 1], [np.nan, 2, 0], [2.5, 3, 1]], np.float32), equal_nan=True
    )
    assert data.qid.tolist() == ["x", "y", "x"]
    assert data.relevance.tolist() == [1, 0, 2]
    assert np.allclose(data.labels["clicks"], [0.1, 0.2, 0.3])
    assert data.document_ids.tolist() == ["a", "b", "c"]
    assert data.document_weights.tolist() == [1, 2, 3]
    assert data.query_weights.tolist() == [1, 2]
    assert data.positions.tolist() == [1, 1, 2]


@pytest.mark.parametrize("kind", FRAMES)
def test_the_caller_may_name_columns_or_pass_values(kind):
    frame = FRAMES[kind](COLUMNS)
    data = RankingData(frame, "f2", qid=[5, 6, 5], labels={"other": "f1"}, feature_names=["position", "f2"])
    assert data.relevance.tolist() == [1, 2, 3]
    assert data.qid.tolist() == [5, 6, 5]
    assert data.feature_names == ("position", "f2")
    assert data.positions is None
    assert np.isnan(data.labels["other"][1])


def test_a_frame_with_group_sizes():
    frame = pd.DataFrame({"f": [1.0, 2.0, 3.0]})
    assert RankingData(frame, [0, 1, 0], group_sizes=[1, 2]).query_sizes.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"qid": "nope"}, "qid: there is no column 'nope'; the columns are 'f1'"),
        ({"feature_names": ["f1", "nope"]}, "feature_names: there is no column 'nope'"),
        ({"labels": {"a": "nope"}}, r"labels\['a'\]: there is no column 'nope'"),
        ({"feature_names": ["f1", "document_id"]}, "column 'document_id' must be numeric, but is String"),
    ],
)
def test_missing_and_non_numeric_columns_are_refused_by_name(arguments, message):
    with pytest.raises(DataError, match=message):
        RankingData(pl.DataFrame(COLUMNS), **arguments)


def test_values_that_float32_merges_are_named():
    frame = pd.DataFrame({"id": [10**9, 10**9 + 1, 5, 4 * 10**9], "x": [1, 2, 3, 4], "qid": 1})
    with pytest.warns(podium.PodiumWarning, match="many different values became equal in float32 in feature 'id'"):
        data = RankingData(frame)
    assert data.losses == ("different values became equal in float32 in feature 'id'",)


def test_a_frame_without_a_query_column_is_refused():
    with pytest.raises(DataError, match=r"there is no column 'qid': name .* with qid=…, one of 'f'"):
        RankingData(pd.DataFrame({"f": [1.0]}))


def test_rows_of_pandas_are_matched_by_their_index():
    frame = pd.DataFrame({"qid": [1] * 4, "label": [3, 2, 1, 0], "bm25": [4.0, 3, 2, 1]})
    shuffled = frame.iloc[[3, 2, 1, 0]]
    data = RankingData(shuffled)
    assert podium.evaluate(data, shuffled["bm25"], "ndcg").means["ndcg"] == 1
    with pytest.raises(DataError, match="index differs from that of the data's rows"):
        podium.evaluate(data, frame["bm25"], "ndcg")
    with pytest.raises(DataError, match="relevance is a Series whose index differs from that of the features"):
        RankingData(shuffled[["bm25"]], frame["label"], qid=shuffled["qid"])
    with pytest.raises(DataError, match="qid is a Series whose index"):
        RankingData(shuffled[["bm25"]], shuffled["label"], qid=frame["qid"])
    part = data.select([0])
    assert part.row_index.tolist() == [3, 2, 1, 0]
    assert RankingData(frame).row_index is None


def test_columns_with_a_reserved_name_never_become_features_by_accident():
    frame = pd.DataFrame({"qid": [1, 1], "label": [1, 0], "relevance": [1, 0], "f": [5.0, 6.0]})
    with pytest.warns(PodiumWarning, match="the labels come from column 'label', and column 'relevance' is ignored"):
        assert RankingData(frame).feature_names == ("f",)
    assert RankingData(frame, [0, 1]).feature_names == ("f",)
    assert RankingData(frame, "relevance").feature_names == ("f",)
    assert RankingData(frame, "label", qid=[1, 2]).feature_names == ("f",)
    assert RankingData(frame, "label", group_sizes=[2]).feature_names == ("f",)
    assert RankingData(frame, feature_names=["relevance", "f"]).feature_names == ("relevance", "f")
    with pytest.raises(DataError, match="column 1 has no name"):
        RankingData(pd.DataFrame({"": [0, 1], "qid": [1, 1]}))


def test_columns_named_by_numbers_and_odd_types():
    plain = RankingData(pd.DataFrame(np.ones((2, 2))), [1, 0], qid=[1, 1])
    assert plain.feature_names == ("0", "1")
    table = pa.table(
        {"qid": [1, 1], "flag": pa.array([True, None]), "price": pa.array([Decimal("1.5"), None], pa.decimal128(5, 2))}
    )
    data = RankingData(table)
    assert np.array_equal(data.features, [[1, 1.5], [np.nan, np.nan]], equal_nan=True)
    nullable = pd.DataFrame({"qid": [1, 1], "b": pd.array([True, None], "boolean"), "i": pd.array([1, None], "Int64")})
    assert np.array_equal(RankingData(nullable).features, [[1, 1], [np.nan, np.nan]], equal_nan=True)


def test_query_weights_as_groupby_gives_them_and_ids_that_are_null():
    weights = pd.Series({3: 30.0, 5: 50.0})
    data = RankingData(
        np.ones((4, 1)), qid=[5, 5, 3, 3], query_weights=weights, document_ids=["a", None, np.nan, pd.NA]
    )
    assert data.query_weights.tolist() == [50, 30]
    assert data.document_ids.tolist() == ["a", "", "", ""]


@pytest.mark.parametrize("fill", [0.0, np.nan])
@pytest.mark.parametrize("columns", [["a", "b"], [0, 1]])
def test_sparse_columns_of_pandas_are_read(columns, fill):
    values = np.array([[fill, 1.0], [2.0, fill], [fill, 3.0]])
    frame = pd.DataFrame({name: pd.arrays.SparseArray(values[:, k], fill_value=fill) for k, name in enumerate(columns)})
    flags = pd.arrays.SparseArray([True, False, True])
    data = RankingData(frame.assign(flag=flags), [0, 1, 2], qid=[1, 1, 1])
    assert np.array_equal(data.features, np.column_stack([values, [1, 0, 1]]), equal_nan=True)
    model = podium.MART(n_trees=1, min_documents_in_leaf=1).fit(frame, [0, 1, 2])
    assert np.array_equal(model.predict(frame), model.predict(values))
