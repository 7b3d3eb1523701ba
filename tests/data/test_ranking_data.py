"""RankingData: what it accepts and rejects, and that rows keep the caller's order."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import podium
from podium import DataError, RankingData

from .same import assert_same

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = [2, 0, 1, 0, 1, 0]
QID = [7, 3, 7, 9, 3, 7]


def test_text_that_ends_with_nul_is_unchanged():
    names = ["a", "a\0", "b", "b\0"]
    data = RankingData([[1, name] for name in names], [0, 1, 0, 1], qid=names, document_ids=names, categorical=[1])
    assert data.n_queries == 4
    assert data.query_ids.tolist() == data.document_ids.tolist() == names
    assert data.encoding.categories[1] == tuple(names)
    one_query = RankingData(np.ones((4, 1)), qid=[1, 1, 1, 1], document_ids=names)
    turned = one_query.take(np.array([1, 0, 3, 2]))
    assert one_query.document_ids[one_query.canonical_order].tolist() == names
    assert turned.document_ids[turned.canonical_order].tolist() == names


def test_weights_of_queries_follow_their_rows_to_other_queries():
    data = RankingData(np.ones((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2], query_weights=[3, 5])
    assert data.replace(qid=[7, 7, 6, 6]).query_weights.tolist() == [3, 5]
    assert data.replace(qid=[2, 1, 3, 4]).query_weights.tolist() == [3, 3, 5, 5]
    assert data.replace(group_sizes=[1, 1, 2]).query_weights.tolist() == [3, 3, 5]
    assert data.replace(qid=[1, 2, 1, 2], query_weights=[1, 2]).query_weights.tolist() == [1, 2]
    with pytest.raises(DataError, match="query_weights must be constant within a query"):
        data.replace(qid=[1, 2, 2, 1])


def test_rows_keep_the_callers_order_and_grouping_is_an_index(data):
    assert np.array_equal(data.features, X)
    assert data.relevance.tolist() == Y
    assert data.query_ids.tolist() == [7, 3, 9]
    assert [data.rows(k).tolist() for k in range(3)] == [[0, 2, 5], [1, 4], [3]]
    assert data.query_sizes.tolist() == [3, 2, 1]
    assert data.query_weights.tolist() == [1.5, 0.5, 2.0]
    assert data.positions.tolist() == [1, 1, 2, -1, -1, 3]
    assert data.feature("q").tolist() == X[:, 1].tolist()
    assert (len(data), data.n_documents, data.n_queries, data.n_features) == (6, 6, 3, 2)


def test_repr_shows_the_contents(data):
    assert repr(data) == (
        "RankingData(6 documents in 3 queries, 2 features, labels: relevance, clicks, document_weights, "
        "query_weights, positions, preferences, document_ids)"
    )


def test_it_is_frozen_and_does_not_freeze_the_callers_arrays(data):
    with pytest.raises(AttributeError, match="immutable"):
        data.qid = None
    for array in (data.features, data.qid, data.relevance, data.order, data.document_ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        data.labels["x"] = 1
    features = np.ones((2, 1), np.float32)
    RankingData(features, qid=[1, 1])
    features[0] = 2


def test_copies_and_pickles_are_equal(data):
    for twin in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data), data.replace()):
        assert_same(twin, data)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_grouping_agrees_with_a_loop(qid):
    data = RankingData(np.zeros((len(qid), 1)), qid=qid)
    first_seen = list(dict.fromkeys(qid))
    assert data.query_ids.tolist() == first_seen
    for k, query in enumerate(first_seen):
        assert data.rows(k).tolist() == [row for row, q in enumerate(qid) if q == query]


@pytest.mark.parametrize(
    "qid",
    [["b", "a", "b"], np.array(["b", "a", "b"]), np.array([2, 1, 2], np.uint8), [2.0, 1.0, 2.0],
     np.array([2**63 + 1, 5, 2**63 + 1], np.uint64), [2**63 + 1, 5, 2**63 + 1],
     [10**30, 5, 10**30], np.array([[2], [1], [2]])],
)  # fmt: skip
def test_query_ids_of_any_type(qid):
    data = RankingData(np.zeros((3, 1)), qid=qid)
    assert data.n_queries == 2
    assert data.rows(0).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        (np.ma.masked_array([1, 2, 2], mask=[False, True, False]), "row 1 is masked"),
        ([None, "a", "a"], "whole numbers or text, but row 0 has None"),
        (["a", "b", None], "whole numbers or text, but row 2 has None"),
        (np.array([1, 1, "1"], object), "all whole numbers or all text, but row 0 has 1 and row 2 has '1'"),
    ],
)
def test_rows_without_a_query_id_are_named(qid, message):
    with pytest.raises(DataError, match=message):
        RankingData(np.zeros((3, 1)), qid=qid)


def test_group_sizes_replace_query_ids():
    assert RankingData(X, group_sizes=[2, 4]).query_sizes.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the queries of the rows are unknown"),
        ({"qid": QID, "group_sizes": [6]}, "not both"),
        ({"group_sizes": [2, 3]}, "add up to 5, but there are 6"),
        ({"group_sizes": [6, 0]}, "group 1 has no rows"),
        ({"group_sizes": [2.5, 3.5]}, "whole numbers"),
        ({"qid": [1, 2]}, "one entry for each of the 6 rows.*group_sizes"),
        ({"qid": [1.5] * 6}, "row 0 has 1.5"),
        ({"qid": [1, 2, np.nan, 3, 4, 5]}, "row 2 has nan"),
        ({"qid": ["a", "b", None, "a", "b", "c"]}, "row 2 has None"),
        ({"qid": ["a", 3, "b", "a", "b", "c"]}, "row 0 has 'a' and row 1 has 3"),
        ({"qid": QID, "relevance": np.arange(6).astype("datetime64[s]")}, "must be numbers"),
        ({"qid": QID, "preferences": (["a"], ["b"])}, "column of row numbers"),
        ({"qid": QID, "relevance": [1, 2]}, "relevance.*6 rows"),
        ({"qid": QID, "relevance": [1, 2, np.inf, 0, 0, 0]}, "row 2 is infinite"),
        ({"qid": QID, "relevance": list("abcdef")}, "must be numbers"),
        ({"qid": QID, "labels": {"two words": Y}}, "plain word"),
        ({"qid": QID, "relevance": Y, "labels": {"relevance": Y}}, "not both"),
        ({"qid": QID, "document_weights": [1, 1, -1, 1, 1, 1]}, "entry 2 is -1"),
        ({"qid": QID, "document_weights": [1, 1, np.nan, 1, 1, 1]}, "entry 2 is nan"),
        ({"qid": QID, "query_weights": {7: 1, 3: 1}}, "no entry for query id 9"),
        ({"qid": QID, "query_weights": [1, 2]}, "3 queries"),
        ({"qid": QID, "query_weights": [1, 2, 3, 4, 5, 6]}, "must be constant within a query"),
        ({"qid": QID, "positions": [0, 1, 2, 3, 4, 5]}, "whole numbers from 1.*row 0 has 0"),
        ({"qid": QID, "positions": [1.5, 1, 2, 3, 4, 5]}, "row 0 has 1.5"),
        ({"qid": QID, "preferences": ([0], [1])}, "two documents of one query"),
        ({"qid": QID, "preferences": ([0], [0])}, "two documents of one query"),
        ({"qid": QID, "preferences": ([0], [6])}, "has row 6"),
        ({"qid": QID, "preferences": ([0], [2], [1.5])}, "must be in .0, 1., but pair 0 has 1.5"),
        ({"qid": QID, "preferences": ([0, 2], [2])}, "must have the same length, but have 2"),
        ({"qid": QID, "preferences": 3}, "preferences must be"),
        ({"qid": QID, "document_ids": ["a"]}, "document_ids"),
        ({"qid": QID, "feature_names": ["p"]}, "1 names, but there are 2 features"),
        ({"qid": QID, "feature_names": ["p", "p"]}, "'p' occurs twice"),
    ],
)
def test_invalid_columns_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        RankingData(X, **arguments)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([1, 2, 3], "two dimensions"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        ([["a", "b"]], "numbers"),
        (np.array([[1, "x"], [2, 3]], object), "row 0, column 1 holds 'x'"),
        (np.zeros((2, 2), complex), "numbers, but got complex"),
    ],
)
def test_features_must_be_a_matrix_of_numbers(features, message):
    with pytest.raises(DataError, match=message):
        RankingData(features, qid=np.zeros(len(features), int))


def test_query_weights_by_row_and_by_query_agree():
    by_row = RankingData(X, qid=QID, query_weights=[1.5, 0.5, 1.5, 2, 0.5, 1.5])
    by_query = RankingData(X, qid=QID, query_weights=[1.5, 0.5, 2])
    assert by_row.query_weights.tolist() == by_query.query_weights.tolist() == [1.5, 0.5, 2]


def test_masked_values_are_missing():
    masked = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    assert np.isnan(RankingData(masked, qid=[1]).features[0, 1])


def test_sparse_features_stay_sparse_and_the_callers_matrix_is_unchanged():
    matrix = sparse.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    data = RankingData(matrix, qid=[1, 1])
    assert sparse.issparse(data.features)
    assert data.features.dtype == np.float32
    assert data.features.toarray().tolist() == [[0, 3, 0], [3, 0, 0]]
    assert data.feature(1).tolist() == [3, 0]
    assert matrix.nnz == 3
    assert "(sparse)" in repr(data)


def test_losses_of_float32_are_reported():
    numbers = np.array([10**9, 10**9 + 1, 10**9 + 2, 1, 2, 4 * 10**9])
    with pytest.warns(podium.PodiumWarning) as warned:
        data = RankingData(np.column_stack([numbers, np.full(6, 1e300), np.arange(6) / 10]), qid=QID)
    assert ["became equal" in str(w.message) for w in warned] == [True, False]
    assert len(data.losses) == 2
    assert "equal in float32 in feature 0" in data.losses[0]
    assert "infinite in feature 1" in data.losses[1]
    assert not RankingData(X, qid=QID).losses
    assert data.select([0]).losses == data.losses


def test_select_keeps_whole_queries_in_row_order(data):
    part = data.select([2, 0])
    assert part.qid.tolist() == [7, 7, 9, 7]
    assert part.features.tolist() == X[[0, 2, 3, 5]].tolist()
    assert part.query_weights.tolist() == [1.5, 2.0]
    assert list(zip(part.preferences.i, part.preferences.j, strict=True)) == [(0, 3)]
    assert part.document_ids.tolist() == list("acdf")
    assert_same(data.select(np.array([True, False, True])), part)
    assert data.select([]).n_documents == 0
    for wrong in ([3], [-1], np.array([True]), ["a"]):
        with pytest.raises(DataError):
            data.select(wrong)


def test_concatenate_joins_parts_again(data):
    a, b = data.select([0]), data.select([1, 2])
    joined = RankingData.concatenate([a, b])
    assert joined.n_queries == 3
    assert joined.query_weights.tolist() == [1.5, 0.5, 2.0]
    assert list(zip(joined.preferences.i, joined.preferences.j, strict=True)) == [(0, 2), (5, 3)]
    with pytest.raises(DataError, match="number of features"):
        RankingData.concatenate([a, RankingData([[1]], [1], qid=[1])])
    with pytest.raises(DataError, match="label sources"):
        RankingData.concatenate([a, RankingData([[1, 2]], qid=[1], feature_names=["p", "q"])])


def test_concatenated_data_has_document_ids_only_if_all_parts_do():
    named = RankingData(np.ones((2, 1)), [0, 1], qid=[1, 1], document_ids=["a", "b"])
    other = RankingData(np.zeros((1, 1)), [1], qid=[2])
    with pytest.warns(podium.PodiumWarning, match="part 1 has no document ids"):
        whole = RankingData.concatenate([named, other])
    assert whole.document_ids is None
    assert whole.relevance.tolist() == [0, 1, 1]
    assert RankingData.concatenate([named, named]).document_ids.tolist() == ["a", "b", "a", "b"]


def test_missing_features_and_labels_are_refused(data):
    for wrong in ("z", 2, -1):
        with pytest.raises(DataError, match="no feature"):
            data.feature(wrong)
    with pytest.raises(DataError, match="no relevance"):
        _ = RankingData(X, qid=QID).relevance


rows = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 12), st.just(2)), elements=st.sampled_from([0, -0.0, 1, 2, np.nan])
)


@given(rows, st.data())
def test_canonical_order_does_not_depend_on_the_order_of_rows(features, draw):
    n = len(features)
    pick = lambda options: draw.draw(st.lists(st.sampled_from(options), min_size=n, max_size=n))  # noqa: E731
    columns = {
        "relevance": pick([0, 1, np.nan]), "qid": pick([1, 2]), "document_weights": pick([1, 2]),
        "positions": pick([1, 2, -1]), "document_ids": pick(["a", "b"]),
    }  # fmt: skip
    clicks = pick([0, 0.5])
    data = RankingData(features, **columns, labels={"clicks": clicks})
    shuffle = np.array(draw.draw(st.permutations(range(n))))
    shuffled = RankingData(
        features[shuffle], labels={"clicks": np.array(clicks)[shuffle]},
        **{name: np.array(values)[shuffle] for name, values in columns.items()},
    )  # fmt: skip

    def content(d):
        signatures = {}
        for k, query in enumerate(d.query_ids.tolist()):
            rows = d.canonical_order[d.offsets[k] : d.offsets[k + 1]]
            assert sorted(rows) == sorted(d.rows(k))
            signatures[query] = [
                (str(d.features[r] + 0.0), str(d.relevance[r]), d.document_ids[r], d.positions[r],
                 d.document_weights[r], d.labels["clicks"][r])
                for r in rows
            ]  # fmt: skip
        return signatures

    assert content(data) == content(shuffled)


def test_canonical_order_uses_labels_last_before_document_ids():
    # Equal features: the position decides, not the label, whatever the order of the labels.
    for labels in ([0, 1], [1, 0]):
        data = RankingData(np.ones((2, 1)), labels, qid=[1, 1], positions=[2, 1])
        assert data.canonical_order.tolist() == [1, 0]
    for names in (["a", "b"], ["b", "a"]):  # a model must not depend on names: the lower label comes first
        data = RankingData(np.ones((2, 1)), [1, 0], qid=[1, 1], document_ids=names)
        assert data.canonical_order.tolist() == [1, 0]
    data = RankingData(np.ones((2, 1)), [1, 1], qid=[1, 1], document_ids=["b", "a"])
    assert data.canonical_order.tolist() == [1, 0]


def test_canonical_order_distinguishes_rows_that_differ_in_preferences_only():
    features = np.array([[1], [1], [2]], np.float32)
    a = RankingData(features, qid=[1] * 3, preferences=([0], [2]))
    b = RankingData(features, qid=[1] * 3, preferences=([1], [2]))
    preferred = [data.canonical_order.tolist().index(data.preferences.i[0]) for data in (a, b)]
    assert preferred[0] == preferred[1]


@pytest.mark.parametrize(("n", "n_queries"), [(1, 1), (300, 1), (3000, 1500), (70_000, 3), (70_000, 500)])
@pytest.mark.parametrize("n_values", [3, 10**9])
def test_canonical_order_equals_a_sort_of_all_rows(n, n_queries, n_values):
    rng = np.random.default_rng(n)
    features = rng.integers(0, n_values, (n, 2)).astype(np.float32)
    data = RankingData(features, rng.integers(0, 2, n), qid=rng.integers(0, n_queries, n))
    keys = (data.relevance, data.row_hashes, data.query_of_row)
    assert np.array_equal(data.canonical_order, data.order[np.lexsort([key[data.order] for key in keys])])


def test_hashes_of_rows_follow_the_definition():
    def mixed(word):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            word = (word ^ (word >> shift)) * factor % 2**64
        return word

    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, 1.0]
    features = np.random.default_rng(0).choice(special, (40, 37)).astype(np.float32)
    for row, row_hash in zip(features, RankingData(features, qid=np.zeros(40, int)).row_hashes.tolist(), strict=True):
        cells = [0x7FC00000 if np.isnan(x) else int(np.float32(x).view(np.uint32)) for x in row]
        words = [((k + 1) << 32 | bits) * 0x9E3779B97F4A7C15 % 2**64 for k, bits in enumerate(cells) if row[k] != 0]
        assert row_hash == sum(map(mixed, words)) % 2**64


def test_canonical_order_is_the_same_for_sparse_and_dense():
    dense = podium.artificial(20, documents=30, features=8).features * (np.arange(8) % 2)
    qid = np.repeat(np.arange(20), 30)
    a, b = RankingData(dense, qid=qid), RankingData(sparse.csr_matrix(dense), qid=qid)
    assert np.array_equal(a.canonical_order, b.canonical_order)


def test_a_wider_row_of_zeros_has_the_same_hash():
    from podium.data.canonical import hash_rows

    narrow = np.array([[1, np.nan, 3]], np.float32)
    other_nan = narrow.copy()
    other_nan.view(np.uint32)[0, 1] = 0x7FFFFFFF
    wide = np.hstack([narrow, np.zeros((1, 2), np.float32)])
    assert hash_rows(narrow) == hash_rows(wide) == hash_rows(other_nan)
    assert hash_rows(narrow) != hash_rows(narrow[:, ::-1].copy())


def test_preferences_are_columns_in_a_tuple_and_rows_in_a_list():
    rows = [(0, 1), (2, 3)]
    for form in (rows, np.array(rows), ([0, 2], [1, 3])):
        pairs = RankingData(np.ones((4, 1)), qid=[1] * 4, preferences=form).preferences
        assert (pairs.i.tolist(), pairs.j.tolist()) == ([0, 2], [1, 3])
    assert len(RankingData(np.ones((4, 1)), qid=[1] * 4, preferences=[]).preferences) == 0


def test_masked_labels_are_missing():
    labels = np.ma.masked_array([1.0, 2.0], [True, False])
    assert np.isnan(RankingData([[1], [2]], labels, qid=[1, 1]).relevance).tolist() == [True, False]


def test_replace_changes_only_what_is_named(data):
    assert data.replace(relevance=[0] * 6).relevance.tolist() == [0] * 6
    assert set(data.replace(relevance=[0] * 6).labels) == {"relevance", "clicks"}
    assert set(data.replace(labels={"dwell": [1] * 6}).labels) == {"relevance", "dwell"}
    assert set(data.replace(relevance=None).labels) == {"clicks"}
    regrouped = RankingData(X, Y, qid=QID).replace(group_sizes=[3, 3])
    assert regrouped.query_sizes.tolist() == [3, 3]
    with pytest.warns(podium.PodiumWarning, match="infinite"):
        lossy = RankingData(np.array([1e300, 1, 2, 3, 4, 5])[:, None], qid=QID)
    assert lossy.replace(relevance=Y).losses == lossy.losses


def test_sparse_features_are_frozen_and_their_losses_reported():
    with pytest.warns(podium.PodiumWarning, match="infinite in feature 0"):
        data = RankingData(sparse.csr_matrix([[1e300, 1.0], [0, 2.0]]), qid=[1, 1])
    assert data.losses == ("values beyond float32's range became infinite in feature 0",)
    with pytest.raises(ValueError, match="read-only"):
        data.features.data[0] = 9


def test_ragged_features_are_refused():
    with pytest.raises(DataError, match="matrix of numbers"):
        RankingData([[1, 2], [3]], qid=[1, 1])


def test_writing_from_many_threads_leaves_the_umask_alone(tmp_path):
    import os
    from concurrent.futures import ThreadPoolExecutor

    from podium.core import files

    before = os.umask(0o077)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: files._umask(), range(2000))) == {0o077}
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)


def test_rows_are_selected_by_number_or_by_a_mask():
    data = RankingData(np.arange(8.0).reshape(4, 2), qid=[1, 1, 2, 2], preferences=[(0, 1), (3, 2)])
    for documents in (data, data.replace(preferences=None)):
        assert documents.take(np.array([True, True, False, True])).features[:, 0].tolist() == [0, 2, 6]
        assert documents.take([3, 2]).features[:, 0].tolist() == [6, 4]
        assert len(documents.take([])) == 0
        for wrong in (np.array([True]), np.array([0.5]), np.array([[0]]), [4], [-5], ["a"], None):
            with pytest.raises(DataError, match="row"):
                documents.take(wrong)
    pairs = data.take(np.array([True, False, True, True])).preferences
    assert (pairs.i.tolist(), pairs.j.tolist()) == ([2], [1])  # the pair of row 1 goes with it
    assert data.take([0]).preferences.i.tolist() == []


def test_names_that_files_cannot_store_are_refused():
    with pytest.raises(DataError, match=r"feature_names: 'a\\ud800' cannot be encoded as UTF-8"):
        RankingData(np.zeros((2, 2)), qid=[1, 1], feature_names=["a\ud800", "b"])
    with pytest.raises(DataError, match=r"categories: 'x\\udfff' cannot be encoded"):
        RankingData(np.array([["x\udfff"], ["y"]], object), qid=[1, 1], categorical=[0])
