"""Binning and growth, against the slow grower."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError
from podium.core import random
from podium.core.team import Team
from podium.models import Ensemble
from podium.trees import Grower, GrowthParameters, bin_features, find_bins
from podium.trees.gradient_sampling import LEADING_BITS, GradientSampler, compiled_sampling_threshold
from podium.trees.quantization import BoundedGradients, quantize
from tests.references.trees import grow_slowly


def leaves_of(tree, features):
    return Ensemble.of_trees([tree], features.shape[1]).leaves(features)[:, 0]


def quantized(gradients, hessians, split="newton", team=None):
    return quantize(BoundedGradients.of(gradients, hessians, team or Team(1)), split, team)


# --- quantization


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1e3))
def test_no_sum_leaves_its_field(gradients, scale):
    g = np.array(gradients)
    found = quantized(g, np.abs(g) * scale)
    assert (found.words & 0xFFFFFFFF).min() >= 1
    assert (found.words & 0xFFFFFFFF).max() == found.largest_weight
    gradient, hessian = found.words >> 32, found.words & 0xFFFFFFFF
    assert np.abs(gradient).sum() < 2**31
    assert hessian.sum() < 2**32
    total = int(found.words.sum())
    assert (total >> 32, total & 0xFFFFFFFF) == (gradient.sum(), hessian.sum())
    assert np.allclose(gradient * found.gradient_unit, g, atol=found.gradient_unit)


def test_sums_at_the_bound():
    n = 100_000
    for g in (np.full(n, 1.0), np.full(n, -1.0), np.concatenate([np.full(n // 2, 1.0), np.full(n // 2, -1.0)])):
        found = quantized(g, np.full(n, 0.25))
        gradient = found.words >> 32
        assert 2**31 - 2 * n < np.abs(gradient).sum() < 2**31
        assert int(found.words.sum()) >> 32 == gradient.sum()
    one = quantized(np.array([3.0]), np.array([0.0]))
    assert (one.words[0] >> 32) * one.gradient_unit == pytest.approx(3.0)


def test_what_cannot_be_quantized():
    for g, h in ([np.nan, 1], [np.inf, 1], [1, np.nan], [1, -1]):
        with pytest.raises(DataError):
            quantized(np.array([g, 0.0]), np.array([h, 0.0]))


# --- gradient-based sampling


def sampled(g, h, fraction, seed=0, split="newton", n_threads=1, order=None):
    keys = np.random.default_rng(5).integers(0, 2**64, len(g), dtype=np.uint64)
    with Team(n_threads) as team:
        return GradientSampler(fraction, keys, split, team, order).quantize(g, h, np.uint64(seed))


@given(st.lists(st.floats(2.0**-60, 2.0**60), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_importance_from_which_all_are_sampled(importances, fraction):
    """Σ min(1, u/μ) is what was wanted, for numbers that are their own leading bits."""
    half = np.int32(1 << (30 - LEADING_BITS))
    bits = np.array(importances, np.float32).view(np.int32) // (2 * half) * (2 * half) + half
    u = bits.view(np.float32).astype(float)
    counts = np.bincount(bits // (2 * half), minlength=1 << LEADING_BITS)
    heavy = compiled_sampling_threshold(counts, fraction * len(u))
    assert np.minimum(1, u / heavy).sum() == pytest.approx(fraction * len(u), rel=1e-9)


@pytest.mark.parametrize("split", ["newton", "least-squares"])
def test_sums_over_samples_are_unbiased(split):
    rng = np.random.default_rng(0)
    n, times = 4000, 300
    g, h = rng.normal(size=n) * rng.random(n) ** 4, rng.random(n) ** 6 + 1e-6
    part = rng.random(n) < 0.3  # some documents, like those of a leaf
    weights = np.ones(n) if split == "least-squares" else h
    sums = []
    for seed in range(times):
        found = sampled(g, h, 0.4, seed, split)
        mine = found.sampled[part[found.sampled]]
        words = found.words[mine]
        sums.append([(words >> 32).sum() * found.gradient_unit, (words & 0xFFFFFFFF).sum() * found.weight_unit,
                     len(found.sampled) / n])  # fmt: skip
        assert sorted([*found.sampled, *found.unsampled]) == list(range(n))
        assert (np.diff(found.sampled) > 0).all()
        assert found.source.sum_bounds[0] == pytest.approx(np.abs(g).sum())  # leaf values are made of what was given
    mean, error = np.mean(sums, 0), np.std(sums, 0) / np.sqrt(times)
    assert abs(mean[0] - g[part].sum()) < 4 * error[0]
    assert abs(mean[1] - weights[part].sum()) < 4 * error[1]
    assert mean[2] == pytest.approx(0.4, abs=0.01)
    by_chance = np.sqrt((1 / 0.4 - 1) * (g[part] ** 2).sum())  # with the same chance for every document
    assert np.std(sums, 0)[0] < 0.5 * by_chance


def test_a_sample_is_listed_in_the_order_that_is_given():
    rng = np.random.default_rng(3)
    g, h, order = rng.normal(size=500), rng.random(500), rng.permutation(500).astype(np.int32)
    usual, other = sampled(g, h, 0.4), sampled(g, h, 0.4, order=order)
    assert other.sampled.tolist() == [row for row in order if row in set(usual.sampled)]
    assert sorted(other.unsampled) == sorted(usual.unsampled)
    assert (other.words[usual.sampled] == usual.words[usual.sampled]).all()
    assert (other.gradient_unit, other.weight_unit) == (usual.gradient_unit, usual.weight_unit)


def test_important_documents_are_always_sampled_as_they_are():
    g, h = np.concatenate([np.full(10, 100.0), np.full(990, 0.1)]), np.ones(1000)
    for seed in range(20):
        found = sampled(g, h, 0.3, seed)
        assert found.sampled[:10].tolist() == list(range(10))
        assert ((found.words[:10] >> 32) * found.gradient_unit).tolist() == pytest.approx([100.0] * 10)
        light = found.words[found.sampled[10:]] & 0xFFFFFFFF
        assert len(light) < 400
        assert light.min() == light.max()  # each represents the same number of documents


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1e3), st.floats(0.05, 0.95))
def test_no_sum_over_a_sample_leaves_its_field(gradients, scale, fraction):
    g = np.array(gradients)
    found = sampled(g, np.abs(g) * scale, fraction)
    words = found.words if found.sampled is None else found.words[found.sampled]
    assert np.abs(words >> 32).sum() < 2**31
    assert (words & 0xFFFFFFFF).sum() < 2**32


def test_random_numbers_are_those_of_the_data():
    keys = np.random.default_rng(0).integers(0, 2**64, 70_000, dtype=np.uint64)
    g, n = np.ones(70_000), 70_000
    for n_threads in (1, 3):
        with Team(n_threads) as team:
            sampler = GradientSampler(0.25, keys, "newton", team)
            found = sampler.quantize(g, g, random.seed_of("a purpose"))
        # √2, the importance of all, is known by its leading bits only
        near = random.uniform(keys, "a purpose")
        assert len(found.sampled) == pytest.approx(0.25 * n, rel=0.05)
        assert near[found.sampled].max() < near[found.unsampled].min()


def test_what_cannot_be_sampled():
    for g, h in ([np.nan, 1], [np.inf, 1], [1, np.nan], [1, -1]):
        with pytest.raises(DataError):
            sampled(np.array([g, 0.0]), np.array([h, 0.0]), 0.5)
    assert sampled(np.zeros(3), np.ones(3), 0.5).sampled is None  # nothing to tell documents apart by
    with pytest.raises(DataError, match="split_fraction"):
        podium.LambdaMART(split_fraction=0).fit(podium.artificial_web(2, features=3))


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


def options(split, width):
    """Options that are off by default, also with values without effect: fewer kinds of kernels are compiled."""
    groups = st.lists(st.lists(st.integers(0, width - 1), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)
    return st.fixed_dictionaries({
        "l1": st.sampled_from([1e-200, 0.5, 2.0, 9.0]),
        "min_gain_to_split": st.sampled_from([0.0, 0.3, 4.0]),
        "min_hessian_in_leaf": st.sampled_from([0.0, 1.0, 4.5, 8.0] if split == "newton" else [0.0]),
        "feature_fraction_per_node": st.sampled_from([0.3, 0.6, 1.0]),
        "interaction_constraints": st.one_of(st.just((tuple(range(width)),)), groups.map(tuple)),
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["plain", "with options", "symmetric"])
@pytest.mark.parametrize("split", ["newton", "least-squares"])
@given(st.data())
def test_trees_equal_the_slow_growers(split, kind, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    features = rng.integers(0, data.draw(st.integers(2, 12)), (n, width)).astype(np.float32)
    features[rng.random((n, width)) < data.draw(st.sampled_from([0, 0.2]))] = np.nan
    categorical = (0,) if kind == "symmetric" or (kind == "plain" and data.draw(st.booleans())) else ()
    parameters = GrowthParameters(
        n_leaves=data.draw(st.integers(2, 8)), split=split, l2=data.draw(st.sampled_from([0.0, 3.0])),
        max_depth=data.draw(st.sampled_from([None, 1, 3])),
        min_documents_in_leaf=data.draw(st.integers(1, 5)),
        min_documents_to_split=data.draw(st.sampled_from([2, 9, 20])),
        symmetric=kind == "symmetric", **{} if kind == "plain" else data.draw(options(split, width)),
    )  # fmt: skip
    g, h = rng.integers(-5, 6, n).astype(float), rng.integers(0, 4, n).astype(float)
    found = quantized(g, h, split)
    if not np.isnan(features).any() and data.draw(st.booleans()):
        found = sampled(g, h, data.draw(st.sampled_from([0.2, 0.5, 0.8])), data.draw(st.integers(0, 99)), split)
    seen = np.isin(np.arange(n), found.sampled) if found.sampled is not None else None
    binned = bin_features(features, find_bins(features, categorical=categorical))
    units = (found.gradient_unit, found.weight_unit)
    words, seed = (found.words >> 32, found.words & 0xFFFFFFFF), data.draw(st.integers(0, 2**64 - 1))
    slow = grow_slowly(features, *words, parameters, categorical, units, seen, seed)
    with Team(data.draw(st.sampled_from([1, 2, 3]))) as team:
        same_tree(slow, features, Grower(binned, parameters, team).grow(found, seed=np.uint64(seed)))


@pytest.fixture(scope="module")
def problem():
    data = podium.artificial_web(20, features=40)
    rng = np.random.default_rng(0)
    gradients = data.relevance - 0.5 + rng.normal(0, 0.3, len(data))
    return data.features, quantized(gradients, rng.random(len(data)) + 0.1)


def test_threads_and_row_order_do_not_matter(problem):
    features, gradients = problem
    bins = find_bins(features)
    trees = []
    for n_threads, order in ((1, None), (3, None), (2, np.random.default_rng(1).permutation(len(features)))):
        shown, words = (features, gradients.words) if order is None else (features[order], gradients.words[order])
        with Team(n_threads) as team:
            grower = Grower(
                bin_features(shown, bins), GrowthParameters(n_leaves=20, min_documents_in_leaf=1, l2=0.0), team
            )
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
                packed = quantized(g, h, split, team)
                grown = Grower(
                    binned, GrowthParameters(n_leaves=12, split=split, min_documents_in_leaf=1, l2=0.0), team
                ).grow(packed)
                found.append((grown, grown.sums(packed.source, team)))
        for grown, sums in found[1:]:
            assert np.array_equal(grown.tree.threshold, found[0][0].tree.threshold)
            assert np.array_equal(grown.tree.gain, found[0][0].tree.gain)
            assert np.array_equal(grown.rows, found[0][0].rows)
            assert np.array_equal(sums, found[0][1])
        first, (gradient_sums, hessian_sums) = found[0]
        for k, rows in enumerate(first.leaf_rows):
            assert gradient_sums[k] == pytest.approx(g[rows].sum())
            assert hessian_sums[k] == pytest.approx(h[rows].sum())


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
def test_documents_outside_the_sample_are_partitioned_and_counted(seed, n_threads):
    """Also those with missing values that nobody saw."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    x = rng.integers(0, 6, (n, 3)).astype(np.float32)
    x[rng.random((n, 3)) < 0.2] = np.nan
    found = sampled(rng.normal(size=n), rng.random(n) ** 4, 0.3, seed % 99)
    fewest = int(rng.integers(1, 5))
    with Team(n_threads) as team:
        grower = Grower(
            bin_features(x, find_bins(x)), GrowthParameters(n_leaves=8, min_documents_in_leaf=fewest, l2=0.0), team
        )
        grown = grower.grow(found)
        some = np.flatnonzero(rng.random(n) < 0.7).astype(np.int32)
        fewer = grower.grow(found, some)
        assert sorted(fewer.rows.tolist()) == some.tolist()
        grown = grower.grow(found)
        assert sorted(grown.rows.tolist()) == list(range(n))
        assert grown.tree.n_leaves == 1 or grown.tree.leaf_count.min() >= fewest
        predicted = leaves_of(grown.tree, x)
        for k, rows in enumerate(grown.leaf_rows):
            assert (predicted[rows] == k).all()
        gradient_sums, _ = grown.sums(found.source, team)
        assert gradient_sums == pytest.approx([found.source.gradients[rows].sum() for rows in grown.leaf_rows])


def test_parameters_have_their_effect(problem):
    features, gradients = problem
    binned = bin_features(features, find_bins(features))
    plain = quantized((gradients.words >> 32).astype(float), np.ones(len(features)), "least-squares")

    def grow(**p):
        return Grower(binned, GrowthParameters(**{"n_leaves": 31, "min_documents_in_leaf": 1, "l2": 0.0} | p)).grow(
            plain if "split" in p else gradients
        )

    assert grow(n_leaves=9).tree.n_leaves == 9
    assert grow(n_leaves=99, max_depth=2, min_documents_in_leaf=50).tree.n_leaves == 4
    assert grow(n_leaves=99, min_documents_in_leaf=300).tree.leaf_count.min() >= 300
    assert not np.array_equal(grow(split="least-squares").tree.feature, grow().tree.feature)
    some = np.arange(0, len(features), 3, dtype=np.int32)
    sampled = Grower(binned, GrowthParameters(n_leaves=31, min_documents_in_leaf=1, l2=0.0)).grow(
        gradients, some, np.array([3, 7])
    )
    assert set(sampled.tree.feature) <= {3, 7}
    assert sampled.tree.leaf_count.sum() == len(some)
    for wrong in ({"n_leaves": 1}, {"max_depth": 0}, {"min_documents_in_leaf": 0}, {"split": "x"}, {"l2": -1}):
        with pytest.raises(DataError):
            GrowthParameters(**{"n_leaves": 31, "min_documents_in_leaf": 1, "l2": 0.0} | wrong)


@pytest.mark.parametrize("split", ["newton", "least-squares"])
@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_constraints_hold(direction, split):
    rng = np.random.default_rng(3)
    x = rng.random((2000, 3)).astype(np.float32)
    y = np.sin(9 * x[:, 0]) + x[:, 1] + rng.normal(0, 0.1, 2000)
    hessians = rng.random(2000) + 0.1
    parameters = GrowthParameters(n_leaves=30, monotone=(direction, 0, 0), split=split, min_documents_in_leaf=1, l2=0.0)
    grown = Grower(bin_features(x, find_bins(x)), parameters).grow(quantized(y, hessians, split))
    values = np.array([y[rows].sum() / hessians[rows].sum() for rows in grown.leaf_rows])
    tree = grown.with_values(grown.within_bounds(values))
    assert 0 in tree.feature
    for _ in range(50):
        line = np.repeat(rng.random((1, 3)).astype(np.float32), 200, axis=0)
        line[:, 0] = np.linspace(0, 1, 200)
        assert (np.diff(tree.leaf_value[leaves_of(tree, line)]) * direction >= 0).all()
    free = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=30, min_documents_in_leaf=1, l2=0.0)).grow(
        quantized(y, np.ones(2000))
    )
    line_values = free.with_values(np.array([y[r].mean() for r in free.leaf_rows])).leaf_value[
        leaves_of(free.tree, line)
    ]
    assert (np.diff(line_values) * direction < 0).any()
    for wrong in ((1,), (2, 0, 0)):
        with pytest.raises(DataError):
            Grower(
                bin_features(x, find_bins(x)),
                GrowthParameters(monotone=wrong, n_leaves=31, min_documents_in_leaf=1, l2=0.0),
            )


def test_missing_values_learn_their_direction():
    x = np.array([[1], [2], [3], [4], [np.nan], [np.nan]], np.float32)
    for y in ([0, 0, 9, 9, 9, 9], [0, 0, 9, 9, 0, 0]):
        grown = Grower(
            bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2, min_documents_in_leaf=1, l2=0.0)
        ).grow(quantized(np.array(y) - 4.5, np.ones(6)))
        assert grown.tree.missing_left[0] == (y[4] == 0)
    alone = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2, min_documents_in_leaf=1, l2=0.0)).grow(
        quantized(np.array([-1, -1, -1, -1, 2.0, 2.0]), np.ones(6))
    )
    assert alone.tree.threshold[0] == np.inf
    assert sorted(map(len, alone.leaf_rows)) == [2, 4]


@pytest.mark.parametrize("features", [np.zeros((5, 2)), np.full((5, 1), np.nan), np.zeros((5, 0))])
def test_nothing_to_split(features):
    features = features.astype(np.float32)
    grown = Grower(
        bin_features(features, find_bins(features)), GrowthParameters(n_leaves=31, min_documents_in_leaf=1, l2=0.0)
    ).grow(quantized(np.arange(5.0), np.ones(5)))
    assert grown.tree.n_leaves == 1
    assert leaves_of(grown.tree, features).tolist() == [0] * 5
