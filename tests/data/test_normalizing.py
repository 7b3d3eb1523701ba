"""Per-query normalization."""

import io

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline

import podium
from podium import DataError, QueryNormalizer, RankingData

X = np.array([[1, 5, np.nan], [3, 5, 2], [-2, 5, 6], [7, 0, 1], [7, 0, 1]], np.float32)
QID = [1, 2, 1, 2, 1]


def slowly(method):
    result = np.zeros_like(X)
    for query in (1, 2):
        rows = np.array(QID) == query
        for k in range(3):
            x = X[rows, k].astype(np.float64)
            with np.errstate(invalid="ignore"):
                if method == "sum":
                    y = x / np.nansum(np.abs(x)) if np.nansum(np.abs(x)) else x * 0
                elif method == "zscore":
                    y = (x - np.nanmean(x)) / np.nanstd(x, ddof=1) if np.nanstd(x) else x * 0
                else:
                    spread = np.nanmax(x) - np.nanmin(x)
                    y = (x - np.nanmin(x)) / spread if spread else x * 0
            result[rows, k] = y
    return result


@pytest.mark.parametrize("method", ["sum", "zscore", "minmax"])
def test_all_methods_agree_with_a_loop(method):
    data = RankingData(X, qid=QID).normalized(method)
    assert np.allclose(data.features, slowly(method), rtol=1e-6, equal_nan=True)
    shuffle = np.random.default_rng(0).permutation(5)
    shuffled = RankingData(X[shuffle], qid=np.array(QID)[shuffle]).normalized(method)
    assert np.array_equal(shuffled.features, data.features[shuffle], equal_nan=True)
    assert np.array_equal(QueryNormalizer(method).fit_transform(X, qid=QID), data.features, equal_nan=True)


def test_the_result_does_not_depend_on_row_order_to_the_bit():
    data = podium.artificial_web(5, features=30)
    shuffle = np.random.default_rng(0).permutation(data.n_documents)
    shuffled = RankingData(data.features[shuffle], qid=data.qid[shuffle])
    assert np.array_equal(shuffled.normalized("zscore").features, data.normalized("zscore").features[shuffle])


def test_a_query_of_one_document_and_a_constant_feature_become_zero():
    constant = np.full((3, 1), 0.1, np.float32)
    for qid in ([1, 2, 3], [1, 1, 1]):
        assert not RankingData(constant, qid=qid).normalized("zscore").features.any()
        assert not RankingData(constant, qid=qid).normalized("minmax").features.any()


def test_reading_can_normalize():
    data = podium.read(io.BytesIO(b"0 qid:1 1:1\n0 qid:1 1:3\n"), "letor", normalize="minmax")
    assert data.features.tolist() == [[0], [1]]


def test_invalid_normalizations_are_refused():
    with pytest.raises(DataError, match="normalize must be one of"):
        RankingData(X, qid=QID).normalized("x")
    with pytest.raises(DataError, match="clip feature 0, which is infinite in row 1"):
        RankingData([[1], [np.inf]], qid=[1, 1]).normalized("minmax")
    with pytest.raises(DataError, match="method must be one of"):
        QueryNormalizer("x").fit(X)
    assert QueryNormalizer().fit(X).get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    with pytest.raises(DataError, match="sparse"):
        RankingData(sparse.csr_matrix(X), qid=QID).normalized("sum")
    with pytest.raises(DataError, match=r"set_transform_request\(qid=True\)"):
        QueryNormalizer().fit(X).transform(X)


def test_in_a_pipeline_the_query_ids_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        normalizer = QueryNormalizer("sum").set_fit_request(qid=True).set_transform_request(qid=True)
        pipeline = make_pipeline(normalizer, DummyRegressor())
        pipeline.fit(X, np.arange(5), qid=QID)
        assert pipeline.predict(X, qid=QID).shape == (5,)


@pytest.mark.parametrize("method", ["sum", "zscore", "minmax"])
def test_normalizing_again_changes_no_bit(method, tmp_path):
    data = podium.artificial(5, features=3).normalized(method)
    assert np.array_equal(data.normalized(method).features, data.features)
    data.write(tmp_path / "data.parquet")
    assert np.array_equal(podium.read(tmp_path / "data.parquet", normalize=method).features, data.features)
