"""Sparse matrices with a broken structure are rejected before compiled code follows their indices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import podium
from podium import DataError, RankingData

DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0], [0, 5, 0, 6]], np.float32)
QID = [1, 1, 2, 2]
FAR = 2**62


def broken(make, **arrays):
    matrix = make(DENSE)
    for name, values in arrays.items():
        setattr(matrix, name, values)
    return matrix


STARTS = [
    [0, FAR, -FAR, 6, 6], [0, 2, 1, 4, 6], [1, 2, 2, 4, 6], [-1, 2, 2, 4, 6], [0, 2, 2, 4, 7],
    [0, -(2**63), 2**63 - 1, 4, 6], [0, 2, 2, 6], [0, 2, 2, 4, 6, 6], [], [0.0, 2.0, 2.0, 4.0, 6.0],
]  # fmt: skip
COLUMNS = [[1, 3, 0, 2, 1, 4], [1, 3, 0, 2, 1, -1], [1, 3, 0, 2, 1, FAR], [1, 3, 0], [[1, 3, 0, 2, 1, 3]]]
MATRICES = [broken(sparse.csr_array, indptr=np.array(starts)) for starts in STARTS]
MATRICES += [broken(sparse.csr_array, indices=np.array(columns)) for columns in COLUMNS]
MATRICES += [broken(sparse.csc_matrix, indptr=np.array(starts)) for starts in STARTS]
MATRICES += [broken(sparse.csc_array, indices=np.array(columns)) for columns in COLUMNS]
MATRICES += [
    broken(sparse.csr_array, data=np.ones(3, np.float32)),
    broken(sparse.bsr_array, indptr=np.array([0, FAR, 1, 2, 3])),
    broken(sparse.bsr_array, indices=np.full(6, 77)),
    broken(sparse.bsr_array, data=np.ones((6, 3, 1), np.float32)),
    broken(sparse.coo_matrix, row=np.array([0, 0, 2, 2, 3, 99])),
    broken(sparse.coo_array, coords=(np.array([0, 0, 2, 2, 3, -7]), np.zeros(6, int))),
    broken(sparse.coo_array, coords=(np.zeros(2, int), np.zeros(6, int))),
    broken(sparse.dia_array, offsets=np.array([0])),
    broken(sparse.lil_array, rows=np.array([[99], [], [0, 2], [1, 3]], object)),
]


@pytest.mark.parametrize("k", range(len(MATRICES)))
def test_a_broken_matrix_is_refused(k):
    with pytest.raises(DataError, match="sparse matrix is invalid"):
        RankingData(MATRICES[k], [1, 0, 1, 0], qid=QID)


def test_estimators_and_models_refuse_a_broken_matrix():
    data = podium.artificial(8, features=4)
    ranker = podium.LambdaMART(n_trees=1, n_leaves=2).fit(data)
    with pytest.raises(DataError, match="sparse matrix is invalid"):
        podium.LambdaMART(n_trees=1).fit(MATRICES[0], [1, 0, 1, 0], qid=QID)
    with pytest.raises(DataError, match="sparse matrix is invalid"):
        ranker.predict(MATRICES[0])


def test_column_numbers_beyond_int32_are_refused():
    wide = sparse.coo_array(([1.0, 2.0], ([0, 1], [0, 2**32 + 1])), shape=(2, 2**33))
    with pytest.raises(DataError, match=r"at most 2_147_483_646 columns"):
        RankingData(wide, qid=[1, 1])
    for option in ("n_features", "largest_index"):
        with pytest.raises(DataError, match=f"{option} must be at most 2_147_483_646"):
            podium.read("none.txt", **{option: 2**32})


def test_flags_of_a_matrix_are_not_trusted():
    matrix = sparse.csr_array((np.array([1, 2, 4], np.float32), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    assert RankingData(matrix, qid=[1]).features.toarray().tolist() == [[6, 0, 1]]
    assert matrix.indices.tolist() == [2, 0, 0]
    longer = broken(
        sparse.csr_array, data=np.arange(1, 9, dtype=np.float32), indices=np.array([1, 3, 0, 2, 1, 3, 9, 9])
    )
    assert RankingData(longer, qid=QID).features.toarray().tolist() == DENSE.tolist()


@given(
    st.sampled_from(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]),
    st.sampled_from([np.float32, np.float64, np.int8, np.uint16, np.int64, bool]),
)
def test_every_format_is_read(kind, dtype):
    values = DENSE.astype(dtype)
    data = RankingData(sparse.csr_matrix(values).asformat(kind), qid=QID)
    assert data.features.toarray().tolist() == values.astype(np.float32).tolist()
