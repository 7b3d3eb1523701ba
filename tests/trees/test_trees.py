"""Binning and growth, against the slow grower."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import podium
from podium import DataError
from podium.models import Ensemble
from podium.testing.trees import grow_slowly
from podium.threads import Team
from podium.trees import Grower, GrowthParameters, bin_features, find_bins
from podium.trees.binning import cut_points
from podium.trees.growing import quantised


def leaves_of(tree, features):
    return Ensemble.of_trees([tree], features.shape[1]).leaves(features)[:, 0]


# --- binning


@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=60),
    st.integers(2, 20),
)
def test_cuts_separate_values_and_bins_are_few(values, max_bins):
    column = np.array(values, np.float32)
    bins = find_bins(column[:, None], max_bins)
    cuts = bins.cuts[0]
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) < max_bins
    distinct = np.unique(column + np.float32(0))
    if len(distinct) <= max_bins:
        assert len(cuts) == len(distinct) - 1
    found = bin_features(column[:, None], bins).column(0)
    assert found.tolist() == [1 + int((cuts < x).sum()) for x in column]
    shuffled = np.random.default_rng(0).permutation(column)
    assert np.array_equal(find_bins(shuffled[:, None], max_bins).cuts[0], cuts)


def test_frequent_values_have_a_bin_to_themselves_and_the_rest_is_shared_out():
    values = np.arange(1000, dtype=np.float32)
    counts = np.ones(1000, np.int64)
    counts[500] = 1000
    cuts = cut_points(values, counts, 11)
    alone = np.searchsorted(cuts, [499, 500, 501])
    assert alone[0] < alone[1] or alone[1] < alone[2]
    sizes = np.bincount(np.searchsorted(cuts, values), weights=counts)
    assert len(sizes) <= 11
    assert np.sort(sizes)[:-1].max() < 250


def test_missing_values_infinities_and_zeros():
    x = np.array([[np.nan], [-np.inf], [-0.0], [0.0], [1.0], [np.inf]], np.float32)
    bins = find_bins(x)
    assert bin_features(x, bins).column(0).tolist() == [0, 1, 2, 2, 3, 4]
    assert bins.cuts[0][0] == -np.inf
    nothing = find_bins(np.full((3, 1), np.nan, np.float32))
    assert nothing.counts.tolist() == [1]


def test_sparse_features_are_binned_as_dense_ones():
    dense = podium.artificial_web(3, features=20).features
    a, b = find_bins(dense), find_bins(sparse.csr_array(dense))
    assert all(np.array_equal(x, y) for x, y in zip(a.cuts, b.cuts, strict=True))
    assert np.array_equal(bin_features(dense, a).flat, bin_features(sparse.csr_array(dense), b, n_threads=3).flat)


def test_what_cannot_be_binned():
    x = np.arange(300, dtype=np.float32)[:, None]
    for wrong in ({"max_bins": 1}, {"max_bins": 256}, {"categorical": [1]}, {"categorical": [0]}):
        with pytest.raises(DataError):
            find_bins(x, **wrong)
    with pytest.raises(DataError, match="bins are for 1 features"):
        bin_features(np.zeros((2, 2), np.float32), find_bins(x))


# --- quantisation


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1e3))
def test_no_sum_leaves_its_field(gradients, scale):
    g = np.array(gradients)
    found = quantised(g, np.abs(g) * scale)
    assert (found.words & 0xFFFFFFFF).min() >= 1
    assert (found.words & 0xFFFFFFFF).max() == found.largest_weight
    gradient, curvature = found.words >> 32, found.words & 0xFFFFFFFF
    assert np.abs(gradient).sum() < 2**31
    assert curvature.sum() < 2**32
    total = int(found.words.sum())
    assert (total >> 32, total & 0xFFFFFFFF) == (gradient.sum(), curvature.sum())
    assert np.allclose(gradient * found.gradient_unit, g, atol=found.gradient_unit)


def test_sums_at_the_bound():
    n = 100_000
    for g in (np.full(n, 1.0), np.full(n, -1.0), np.concatenate([np.full(n // 2, 1.0), np.full(n // 2, -1.0)])):
        found = quantised(g, np.full(n, 0.25))
        gradient = found.words >> 32
        assert 2**31 - 2 * n < np.abs(gradient).sum() < 2**31
        assert int(found.words.sum()) >> 32 == gradient.sum()
    one = quantised(np.array([3.0]), np.array([0.0]))
    assert (one.words[0] >> 32) * one.gradient_unit == pytest.approx(3.0)


def test_what_cannot_be_quantised():
    for g, h in ([np.nan, 1], [np.inf, 1], [1, np.nan], [1, -1]):
        with pytest.raises(DataError):
            quantised(np.array([g, 0.0]), np.array([h, 0.0]))


# --- growth


def same_tree(slow, features, grown):
    """Whether both trees split the same rows in the same way, node by node."""
    tree = grown.tree
    leaf_rows = [sorted(rows.tolist()) for rows in grown.leaf_rows]

    def walk(node, place):
        if node.feature < 0:
            assert place < 0, f"a leaf where the engine splits on feature {tree.feature[place]}"
            assert leaf_rows[~place] == sorted(node.rows.tolist())
            return
        assert place >= 0, f"the engine does not split where feature {node.feature} should be"
        assert tree.feature[place] == node.feature
        x = features[node.rows, node.feature]
        if tree.category[place] >= 0:
            goes_left = np.isin(x, tree.categories[tree.category[place]])
        else:
            goes_left = np.where(np.isnan(x), tree.missing_left[place], x <= tree.threshold[place])
        assert goes_left.tolist() == node.goes_left.tolist()
        walk(node.left, tree.left[place])
        walk(node.right, tree.right[place])

    walk(slow, 0 if len(tree.feature) else -1)
    predicted = leaves_of(tree, features)
    for k, rows in enumerate(leaf_rows):
        assert (predicted[rows] == k).all()


@pytest.mark.parametrize("split", ["newton", "least-squares"])
@given(st.data())
def test_trees_equal_the_slow_growers(split, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    features = rng.integers(0, data.draw(st.integers(2, 12)), (n, width)).astype(np.float32)
    features[rng.random((n, width)) < data.draw(st.sampled_from([0, 0.2]))] = np.nan
    categorical = (0,) if data.draw(st.booleans()) else ()
    parameters = GrowthParameters(
        n_leaves=data.draw(st.integers(2, 8)), split=split, l2=data.draw(st.sampled_from([0.0, 3.0])),
        max_depth=data.draw(st.sampled_from([None, 1, 3])),
        min_documents_in_leaf=data.draw(st.integers(1, 5)),
    )  # fmt: skip
    found = quantised(rng.integers(-5, 6, n).astype(float), rng.integers(0, 4, n).astype(float), split)
    binned = bin_features(features, find_bins(features, categorical=categorical))
    units = (found.gradient_unit, found.weight_unit)
    slow = grow_slowly(features, found.words >> 32, found.words & 0xFFFFFFFF, parameters, categorical, units)
    with Team(data.draw(st.sampled_from([1, 2, 3]))) as team:
        same_tree(slow, features, Grower(binned, parameters, team).grow(found))


@pytest.fixture(scope="module")
def problem():
    data = podium.artificial_web(20, features=40)
    rng = np.random.default_rng(0)
    gradients = data.relevance - 0.5 + rng.normal(0, 0.3, len(data))
    return data.features, quantised(gradients, rng.random(len(data)) + 0.1)


def test_threads_and_row_order_do_not_matter(problem):
    features, gradients = problem
    bins = find_bins(features)
    trees = []
    for n_threads, order in ((1, None), (3, None), (2, np.random.default_rng(1).permutation(len(features)))):
        shown, words = (features, gradients.words) if order is None else (features[order], gradients.words[order])
        with Team(n_threads) as team:
            grower = Grower(bin_features(shown, bins), GrowthParameters(n_leaves=20), team)
            trees.append(grower.grow(replace(gradients, words=words)).tree)
    for other in trees[1:]:
        for name in ("feature", "threshold", "missing_left", "left", "right", "gain", "count", "leaf_count"):
            assert np.array_equal(getattr(other, name), getattr(trees[0], name)), name


def test_large_leaves_are_shared_out_by_rows():
    """Leaves so large that each thread counts a share of their rows; and the sums of leaves, likewise shared."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, (70_000, 21)).astype(np.float32)
    g = np.sin(x[:, 0]) + x[:, 1] / 20 + rng.normal(0, 1, len(x))
    h = rng.random(len(x))
    binned = bin_features(x, find_bins(x))
    for split in ("newton", "least-squares"):
        found = []
        for n_threads in (1, 2, 3):
            with Team(n_threads) as team:
                packed = quantised(g, h, split, team)
                grown = Grower(binned, GrowthParameters(n_leaves=12, split=split), team).grow(packed)
                found.append((grown, grown.sums(team)))
        for grown, sums in found[1:]:
            assert np.array_equal(grown.tree.threshold, found[0][0].tree.threshold)
            assert np.array_equal(grown.tree.gain, found[0][0].tree.gain)
            assert np.array_equal(grown.rows, found[0][0].rows)
            assert np.array_equal(sums, found[0][1])
        first, (pushes, bends) = found[0]
        for k, rows in enumerate(first.leaf_rows):
            assert pushes[k] == pytest.approx(g[rows].sum())
            assert bends[k] == pytest.approx(h[rows].sum())


def test_parameters_have_their_effect(problem):
    features, gradients = problem
    binned = bin_features(features, find_bins(features))
    plain = quantised((gradients.words >> 32).astype(float), np.ones(len(features)), "least-squares")

    def grow(**p):
        return Grower(binned, GrowthParameters(**p)).grow(plain if "split" in p else gradients)

    assert grow(n_leaves=9).tree.n_leaves == 9
    assert grow(n_leaves=99, max_depth=2, min_documents_in_leaf=50).tree.n_leaves == 4
    assert grow(n_leaves=99, min_documents_in_leaf=300).tree.leaf_count.min() >= 300
    assert not np.array_equal(grow(split="least-squares").tree.feature, grow().tree.feature)
    some = np.arange(0, len(features), 3, dtype=np.int32)
    sampled = Grower(binned, GrowthParameters()).grow(gradients, some, np.array([3, 7]))
    assert set(sampled.tree.feature) <= {3, 7}
    assert sampled.tree.leaf_count.sum() == len(some)
    for wrong in ({"n_leaves": 1}, {"max_depth": 0}, {"min_documents_in_leaf": 0}, {"split": "x"}, {"l2": -1}):
        with pytest.raises(DataError):
            GrowthParameters(**wrong)


@pytest.mark.parametrize("split", ["newton", "least-squares"])
@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_constraints_hold(direction, split):
    rng = np.random.default_rng(3)
    x = rng.random((2000, 3)).astype(np.float32)
    y = np.sin(9 * x[:, 0]) + x[:, 1] + rng.normal(0, 0.1, 2000)
    curvatures = rng.random(2000) + 0.1
    parameters = GrowthParameters(n_leaves=30, monotone=(direction, 0, 0), split=split)
    grown = Grower(bin_features(x, find_bins(x)), parameters).grow(quantised(y, curvatures, split))
    values = np.array([y[rows].sum() / curvatures[rows].sum() for rows in grown.leaf_rows])
    tree = grown.with_values(values)
    assert 0 in tree.feature
    for _ in range(50):
        line = np.repeat(rng.random((1, 3)).astype(np.float32), 200, axis=0)
        line[:, 0] = np.linspace(0, 1, 200)
        assert (np.diff(tree.leaf_value[leaves_of(tree, line)]) * direction >= 0).all()
    free = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=30)).grow(quantised(y, np.ones(2000)))
    line_values = free.with_values(np.array([y[r].mean() for r in free.leaf_rows])).leaf_value[
        leaves_of(free.tree, line)
    ]
    assert (np.diff(line_values) * direction < 0).any()
    for wrong in ((1,), (2, 0, 0)):
        with pytest.raises(DataError):
            Grower(bin_features(x, find_bins(x)), GrowthParameters(monotone=wrong))


def test_missing_values_learn_their_direction():
    x = np.array([[1], [2], [3], [4], [np.nan], [np.nan]], np.float32)
    for y in ([0, 0, 9, 9, 9, 9], [0, 0, 9, 9, 0, 0]):
        grown = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2)).grow(
            quantised(np.array(y) - 4.5, np.ones(6))
        )
        assert grown.tree.missing_left[0] == (y[4] == 0)
    alone = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2)).grow(
        quantised(np.array([-1, -1, -1, -1, 2.0, 2.0]), np.ones(6))
    )
    assert alone.tree.threshold[0] == np.inf
    assert sorted(map(len, alone.leaf_rows)) == [2, 4]


@pytest.mark.parametrize("features", [np.zeros((5, 2)), np.full((5, 1), np.nan), np.zeros((5, 0))])
def test_nothing_to_split(features):
    features = features.astype(np.float32)
    grown = Grower(bin_features(features, find_bins(features)), GrowthParameters()).grow(
        quantised(np.arange(5.0), np.ones(5))
    )
    assert grown.tree.n_leaves == 1
    assert leaves_of(grown.tree, features).tolist() == [0] * 5
