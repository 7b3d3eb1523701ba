"""The exact top k against a full sort: any trees, any features, any queries."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import experiments.top_documents as top_documents_module
import podium
from experiments.top_documents import pieces_of, top_documents
from podium import DataError, RankingData
from podium.models import Ensemble
from podium.trees import Tree

ORDINARY = st.floats(-2, 2)
ODD = st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-52, 2**-53, 2**-53 * 1.0001, 0.1, -0.1, 1e16, -1e16, 1e290, -1e290,
                       5e-324, -5e-324, 2.5e-308, 2**-1021, 2**-1030])  # fmt: skip
CELLS = st.sampled_from([0.0, 1.0, 2.0, -1.0, np.nan, np.inf, -np.inf])


def stump(low, high, feature=0, threshold=0.5, missing_left=True):
    """Low where the feature is at most the threshold."""
    return Tree(
        np.array([feature], np.int32), np.array([threshold], np.float32), np.array([missing_left]),
        np.array([-1], np.int32), np.array([-1], np.int32), np.array([-2], np.int32), np.zeros(1), np.ones(1, np.int64),
        np.array([low, high]), np.ones(2, np.int64),
    )  # fmt: skip


def leaf(value):
    ints, nothing = np.empty(0, np.int32), np.empty(0)
    return Tree(
        ints, np.empty(0, np.float32), np.empty(0, bool), ints, ints, ints, nothing, np.empty(0, np.int64),
        np.array([value]), np.ones(1, np.int64),
    )  # fmt: skip


@st.composite
def ensembles(draw, n_features=2):
    values = draw(st.sampled_from([ORDINARY, ODD, st.one_of(ORDINARY, ODD), st.sampled_from([0.0, 1.0])]))
    stumps = st.builds(
        stump, values, values, st.integers(0, n_features - 1), st.sampled_from([-0.5, 0.5, 1.5]), st.booleans()
    )
    trees = draw(st.lists(st.one_of(stumps, st.builds(leaf, values)), max_size=14))
    shrinking = draw(st.sampled_from([1.0, 0.5, 0.1]))  # later trees matter less, as those of boosting do
    trees = [replace(tree, leaf_value=tree.leaf_value * shrinking**k) for k, tree in enumerate(trees)]
    return Ensemble.of_trees(trees, n_features)


@st.composite
def queries(draw, n_features=2):
    n = draw(st.integers(0, 40))
    cells = draw(st.lists(st.lists(CELLS, min_size=n_features, max_size=n_features), min_size=n, max_size=n))
    qid = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return RankingData(np.array(cells, np.float32).reshape(n, n_features), qid=np.array(qid, np.int64))


@pytest.fixture
def many_looks(monkeypatch):
    """A look after every tree, and no document too many to be dropped."""
    monkeypatch.setattr(top_documents_module, "SMALLEST_PIECE", 1)
    monkeypatch.setattr(top_documents_module, "NEXT_LOOK", 1.0)
    monkeypatch.setattr(top_documents_module, "GONE", 0.0)
    monkeypatch.setattr(top_documents_module, "DOCUMENTS_AT_ONCE", 16)


def require_sorted(model, data, k):
    """The same rows, order and bits as those of a sort of all scores, which is stable."""
    found, scores = top_documents(model, data, k), model.predict(data)
    expected = [rows[np.argsort(-scores[rows], kind="stable")][:k] for rows in map(data.rows, range(data.n_queries))]
    assert found.offsets.tolist() == [0, *np.cumsum([len(rows) for rows in expected]).tolist()]
    for query, rows in enumerate(expected):
        assert found.of_query(query)[0].tolist() == rows.tolist()
        assert found.of_query(query)[1].tobytes() == scores[rows].tobytes()
    assert found.n_all == len(data) * model.n_trees
    assert found.n_evaluated <= found.n_all
    return found


@pytest.mark.usefixtures("many_looks")
def test_any_trees_and_queries_give_what_a_sort_gives():
    @given(ensembles(), queries(), st.one_of(st.integers(1, 4), st.integers(1, 50)))
    def check(model, data, k):
        require_sorted(model, data, k)

    check()


@pytest.mark.usefixtures("many_looks")
@pytest.mark.parametrize("seed", range(10))
def test_most_is_saved_where_later_trees_matter_little(seed):
    rng = np.random.default_rng(seed)
    trees = [stump(*rng.normal(size=2) * 0.6**t, rng.integers(0, 3), rng.normal()) for t in range(40)]
    data = RankingData(rng.normal(size=(300, 3)).astype(np.float32), qid=rng.integers(0, 5, 300))
    found = require_sorted(Ensemble.of_trees(trees, 3), data, 5)
    assert found.share_evaluated < 0.8


@pytest.mark.usefixtures("many_looks")
@pytest.mark.parametrize("value", [0.0, 5e-324, 1.0, 1e290])
def test_equal_scores_stay_in_the_order_of_the_rows(value):
    model = Ensemble.of_trees([leaf(value), *(stump(0.0, 0.0) for _ in range(6))], 1)
    data = RankingData(np.zeros((9, 1), np.float32), qid=[1, 2, 1, 2, 1, 2, 1, 2, 1])
    assert require_sorted(model, data, 3).rows.tolist() == [0, 2, 4, 1, 3, 5]


@given(ensembles(), queries())
def test_every_end_lies_within_its_bounds(model, data):
    """In exact arithmetic, after every tree: the bounds hold for the rounded sums that scoring makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_documents_module, "SMALLEST_PIECE", 1)
        patch.setattr(top_documents_module, "NEXT_LOOK", 1.0)
        pieces = pieces_of(model)
    scores, ends = np.zeros(len(data)), model.predict(data)
    for piece in pieces:
        piece.trees.add_scores(data.features, scores, 0, piece.trees.n_trees)
        lowest, highest = piece.bounds(scores)
        assert (lowest <= ends).all()
        assert (ends <= highest).all()
    assert scores.tobytes() == ends.tobytes()


def test_sums_that_all_round_upwards_stay_within_their_bounds():
    """1 + 2^-53 (1 + ε), many times: each rounds to the next double, twice as far as the sum of the leaves says."""
    n, small = 400, 2**-53 * 1.001
    model = Ensemble.of_trees([leaf(1.0), *(stump(0.0, small) for _ in range(n))], 1)
    end = model.predict([[1.0]])[0]
    assert Fraction(end) > 1 + Fraction(small) * n * 3 / 2  # the case is as hard as it claims
    (first, *_) = (piece for piece in pieces_of(model) if piece.trees.n_trees)
    scores = np.zeros(1)
    first.trees.add_scores(np.ones((1, 1), np.float32), scores, 0, first.trees.n_trees)
    assert first.bounds(scores)[1][0] >= end
    # A document that begins higher by less than rounding adds to the others must not push them out.
    starts = [stump(1.0, 1 + 2**-52 * 0.75 * n, feature=1), *(stump(0.0, small) for _ in range(n))]
    hard = Ensemble.of_trees(starts, 2)
    data = RankingData(np.array([[0, 1]] + [[1, 0]] * 9, np.float32), qid=np.zeros(10))
    assert require_sorted(hard, data, 3).rows.tolist() == [1, 2, 3]


@pytest.fixture(scope="module")
def trained():
    data = podium.artificial_web(60, documents=(5, 60), features=12)
    features = data.features.copy()
    features[::5, 0] = np.nan
    data = data.replace(features=features)
    return podium.LambdaMART(n_trees=60, n_leaves=8).fit(data).model_, data


@pytest.mark.parametrize("k", [1, 3, 10, 1000])
def test_trained_trees_give_what_a_sort_gives(trained, k):
    model, data = trained
    found = require_sorted(model, data, k)
    if k == 1:
        assert found.share_evaluated < 0.99
        assert "60 queries" in repr(found)
    shuffled = data.take(np.random.default_rng(0).permutation(len(data)))
    require_sorted(model, shuffled, k)


def test_all_kinds_of_input_and_any_number_of_threads_give_the_same(trained):
    model, data = trained
    features = np.nan_to_num(data.features)
    data = data.replace(features=features)
    expected = top_documents(model, data, 4)
    frame = pd.DataFrame(features).add_prefix("f").assign(qid=data.qid)
    for other in (data.replace(features=csr_array(features)), frame):
        found = top_documents(model, other, 4, n_threads=2)
        assert (found.rows.tolist(), found.scores.tolist()) == (expected.rows.tolist(), expected.scores.tolist())
    rows = data.rows(3)
    for one in (features[rows], csr_array(features[rows]), pd.DataFrame(features[rows])):
        alone = top_documents(model, one, 4)
        assert rows[alone.rows].tolist() == expected.of_query(3)[0].tolist()


def test_nothing_is_found_in_nothing(trained):
    model, data = trained
    empty = top_documents(model, data.features[:0])
    assert (len(empty.rows), empty.offsets.tolist(), empty.share_evaluated) == (0, [0, 0], 1.0)
    none = top_documents(model, data.take(np.empty(0, np.int64)))
    assert (len(none.rows), none.offsets.tolist()) == (0, [0])
    assert top_documents(model.truncate(0), data.features[:5], 2).rows.tolist() == [0, 1]


@pytest.mark.parametrize("k", [0, -1, 1.5, None, True])
def test_a_wrong_k_is_refused(trained, k):
    with pytest.raises(DataError, match="k must be a whole number from 1"):
        top_documents(trained[0], trained[1], k)


def test_trees_are_cut_where_they_are_told(trained):
    model, data = trained
    parts = model.cut(7, 7, 50)
    assert [part.n_trees for part in parts] == [7, 0, 43, 10]
    scores = np.zeros(len(data))
    for part in parts:
        part.add_scores(data.features, scores, 0, part.n_trees)
    assert scores.tobytes() == model.predict(data).tobytes()
    for wrong in [(61,), (5, 4), (-1,)]:
        with pytest.raises(DataError, match="an end must be"):
            model.cut(*wrong)
