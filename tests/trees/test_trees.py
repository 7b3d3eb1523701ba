"""Quantization, sampling and growth; trees are compared with those of a slow grower."""

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
def test_no_sum_overflows_its_bits(gradients, scale):
    g = np.array(gradients)
    packed = quantized(g, np.abs(g) * scale)
    gradient, hessian = packed.words >> 32, packed.words & 0xFFFFFFFF
    assert hessian.min() >= 1
    assert hessian.max() == packed.largest_weight
    assert np.abs(gradient).sum() < 2**31
    assert hessian.sum() < 2**32
    total = int(packed.words.sum())
    assert (total >> 32, total & 0xFFFFFFFF) == (gradient.sum(), hessian.sum())
    assert np.allclose(gradient * packed.gradient_unit, g, atol=packed.gradient_unit)


def test_sums_come_close_to_the_bound():
    n = 100_000
    for g in (np.full(n, 1.0), np.full(n, -1.0), np.concatenate([np.full(n // 2, 1.0), np.full(n // 2, -1.0)])):
        packed = quantized(g, np.full(n, 0.25))
        gradient = packed.words >> 32
        assert 2**31 - 2 * n < np.abs(gradient).sum() < 2**31
        assert int(packed.words.sum()) >> 32 == gradient.sum()
    packed = quantized(np.array([3.0]), np.array([0.0]))
    assert (packed.words[0] >> 32) * packed.gradient_unit == pytest.approx(3.0)


def test_invalid_gradients_cannot_be_quantized():
    for g, h in ([np.nan, 1], [np.inf, 1], [1, np.nan], [1, -1]):
        with pytest.raises(DataError):
            quantized(np.array([g, 0.0]), np.array([h, 0.0]))


# --- gradient-based sampling


def sampled(g, h, fraction, seed=0, split="newton", n_threads=1, order=None):
    keys = np.random.default_rng(5).integers(0, 2**64, len(g), dtype=np.uint64)
    with Team(n_threads) as team:
        return GradientSampler(fraction, keys, split, team, order).quantize(g, h, np.uint64(seed))


@given(st.lists(st.floats(2.0**-60, 2.0**60), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_threshold_gives_the_expected_size(importances, fraction):
    """Σ min(1, u/μ) is the expected size, for numbers that their leading bits represent exactly."""
    half = np.int32(1 << (30 - LEADING_BITS))
    bits = np.array(importances, np.float32).view(np.int32) // (2 * half) * (2 * half) + half
    u = bits.view(np.float32).astype(float)
    counts = np.bincount(bits // (2 * half), minlength=1 << LEADING_BITS)
    threshold = compiled_sampling_threshold(counts, fraction * len(u))
    assert np.minimum(1, u / threshold).sum() == pytest.approx(fraction * len(u), rel=1e-9)


@pytest.mark.parametrize("split", ["newton", "least-squares"])
def test_sums_over_samples_are_unbiased(split):
    rng = np.random.default_rng(0)
    n, times = 4000, 300
    g, h = rng.normal(size=n) * rng.random(n) ** 4, rng.random(n) ** 6 + 1e-6
    part = rng.random(n) < 0.3  # some documents, like those of a leaf
    weights = np.ones(n) if split == "least-squares" else h
    sums = []
    for seed in range(times):
        sample = sampled(g, h, 0.4, seed, split)
        words = sample.words[sample.sampled[part[sample.sampled]]]
        sums.append([(words >> 32).sum() * sample.gradient_unit, (words & 0xFFFFFFFF).sum() * sample.weight_unit,
                     len(sample.sampled) / n])  # fmt: skip
        assert sorted([*sample.sampled, *sample.unsampled]) == list(range(n))
        assert (np.diff(sample.sampled) > 0).all()
        assert sample.source.sum_bounds[0] == pytest.approx(np.abs(g).sum())  # leaf values come from all documents
    mean, error = np.mean(sums, 0), np.std(sums, 0) / np.sqrt(times)
    assert abs(mean[0] - g[part].sum()) < 4 * error[0]
    assert abs(mean[1] - weights[part].sum()) < 4 * error[1]
    assert mean[2] == pytest.approx(0.4, abs=0.01)
    deviation_of_uniform = np.sqrt((1 / 0.4 - 1) * (g[part] ** 2).sum())  # with equal probabilities
    assert np.std(sums, 0)[0] < 0.5 * deviation_of_uniform


def test_a_sample_can_be_listed_in_another_order():
    rng = np.random.default_rng(3)
    g, h, order = rng.normal(size=500), rng.random(500), rng.permutation(500).astype(np.int32)
    ascending, other = sampled(g, h, 0.4), sampled(g, h, 0.4, order=order)
    assert other.sampled.tolist() == [row for row in order if row in set(ascending.sampled)]
    assert sorted(other.unsampled) == sorted(ascending.unsampled)
    assert (other.words[ascending.sampled] == ascending.words[ascending.sampled]).all()
    assert (other.gradient_unit, other.weight_unit) == (ascending.gradient_unit, ascending.weight_unit)


def test_important_documents_are_always_sampled_as_they_are():
    g, h = np.concatenate([np.full(10, 100.0), np.full(990, 0.1)]), np.ones(1000)
    for seed in range(20):
        sample = sampled(g, h, 0.3, seed)
        assert sample.sampled[:10].tolist() == list(range(10))
        assert ((sample.words[:10] >> 32) * sample.gradient_unit).tolist() == pytest.approx([100.0] * 10)
        weights = sample.words[sample.sampled[10:]] & 0xFFFFFFFF
        assert len(weights) < 400
        assert weights.min() == weights.max()  # each represents the same number of documents


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1e3), st.floats(0.05, 0.95))
def test_no_sum_over_a_sample_overflows_its_bits(gradients, scale, fraction):
    g = np.array(gradients)
    sample = sampled(g, np.abs(g) * scale, fraction)
    words = sample.words if sample.sampled is None else sample.words[sample.sampled]
    assert np.abs(words >> 32).sum() < 2**31
    assert (words & 0xFFFFFFFF).sum() < 2**32


def test_random_numbers_depend_only_on_keys_and_seed():
    keys = np.random.default_rng(0).integers(0, 2**64, 70_000, dtype=np.uint64)
    g, n = np.ones(70_000), 70_000
    for n_threads in (1, 3):
        with Team(n_threads) as team:
            sampler = GradientSampler(0.25, keys, "newton", team)
            sample = sampler.quantize(g, g, random.seed_of("a purpose"))
        # All have the importance √2, of which only the leading bits determine the threshold.
        numbers = random.uniform(keys, "a purpose")
        assert len(sample.sampled) == pytest.approx(0.25 * n, rel=0.05)
        assert numbers[sample.sampled].max() < numbers[sample.unsampled].min()


def test_invalid_gradients_and_fractions_cannot_be_sampled():
    for g, h in ([np.nan, 1], [np.inf, 1], [1, np.nan], [1, -1]):
        with pytest.raises(DataError):
            sampled(np.array([g, 0.0]), np.array([h, 0.0]), 0.5)
    assert sampled(np.zeros(3), np.ones(3), 0.5).sampled is None  # all documents are equally important
    with pytest.raises(DataError, match="split_fraction"):
        podium.LambdaMART(split_fraction=0).fit(podium.artificial_web(2, features=3))


# --- growth


def assert_same_tree(slow, features, grown):
    """Assert that both trees split the same rows in the same way, node by node."""
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
    """Return options that are off by default. Some values have no effect, so that fewer kernels are compiled."""
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
    packed = quantized(g, h, split)
    if not np.isnan(features).any() and data.draw(st.booleans()):
        packed = sampled(g, h, data.draw(st.sampled_from([0.2, 0.5, 0.8])), data.draw(st.integers(0, 99)), split)
    is_sampled = np.isin(np.arange(n), packed.sampled) if packed.sampled is not None else None
    binned = bin_features(features, find_bins(features, categorical=categorical))
    units = (packed.gradient_unit, packed.weight_unit)
    words, seed = (packed.words >> 32, packed.words & 0xFFFFFFFF), data.draw(st.integers(0, 2**64 - 1))
    slow = grow_slowly(features, *words, parameters, categorical, units, is_sampled, seed)
    with Team(data.draw(st.sampled_from([1, 2, 3]))) as team:
        assert_same_tree(slow, features, Grower(binned, parameters, team).grow(packed, seed=np.uint64(seed)))


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
        rows, words = (features, gradients.words) if order is None else (features[order], gradients.words[order])
        with Team(n_threads) as team:
            grower = Grower(
                bin_features(rows, bins), GrowthParameters(n_leaves=20, min_documents_in_leaf=1, l2=0.0), team
            )
            trees.append(grower.grow(replace(gradients, words=words)).tree)
    for other in trees[1:]:
        for name in ("feature", "threshold", "missing_left", "left", "right", "gain", "count", "leaf_count"):
            assert np.array_equal(getattr(other, name), getattr(trees[0], name)), name


def test_threads_that_share_the_rows_of_a_leaf_grow_the_same_tree():
    """The leaves are large enough for each thread to count, and to sum, a share of their rows."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, (70_000, 21)).astype(np.float32)
    g = np.sin(x[:, 0]) + x[:, 1] / 20 + rng.normal(0, 1, len(x))
    h = rng.random(len(x))
    binned = bin_features(x, find_bins(x))
    for split in ("newton", "least-squares"):
        results = []
        for n_threads in (1, 2, 3):
            with Team(n_threads) as team:
                packed = quantized(g, h, split, team)
                grown = Grower(
                    binned, GrowthParameters(n_leaves=12, split=split, min_documents_in_leaf=1, l2=0.0), team
                ).grow(packed)
                results.append((grown, grown.sums(packed.source, team)))
        first, (gradient_sums, hessian_sums) = results[0]
        for grown, sums in results[1:]:
            assert np.array_equal(grown.tree.threshold, first.tree.threshold)
            assert np.array_equal(grown.tree.gain, first.tree.gain)
            assert np.array_equal(grown.rows, first.rows)
            assert np.array_equal(sums, (gradient_sums, hessian_sums))
        for k, rows in enumerate(first.leaf_rows):
            assert gradient_sums[k] == pytest.approx(g[rows].sum())
            assert hessian_sums[k] == pytest.approx(h[rows].sum())


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
def test_documents_outside_the_sample_are_partitioned_and_counted(seed, n_threads):
    """This includes documents whose missing values do not occur in the sample."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    x = rng.integers(0, 6, (n, 3)).astype(np.float32)
    x[rng.random((n, 3)) < 0.2] = np.nan
    sample = sampled(rng.normal(size=n), rng.random(n) ** 4, 0.3, seed % 99)
    min_documents = int(rng.integers(1, 5))
    parameters = GrowthParameters(n_leaves=8, min_documents_in_leaf=min_documents, l2=0.0)
    with Team(n_threads) as team:
        grower = Grower(bin_features(x, find_bins(x)), parameters, team)
        grower.grow(sample)
        rows = np.flatnonzero(rng.random(n) < 0.7).astype(np.int32)
        assert sorted(grower.grow(sample, rows).rows.tolist()) == rows.tolist()
        grown = grower.grow(sample)
        assert sorted(grown.rows.tolist()) == list(range(n))
        assert grown.tree.n_leaves == 1 or grown.tree.leaf_count.min() >= min_documents
        predicted = leaves_of(grown.tree, x)
        for k, rows in enumerate(grown.leaf_rows):
            assert (predicted[rows] == k).all()
        gradient_sums, _ = grown.sums(sample.source, team)
        assert gradient_sums == pytest.approx([sample.source.gradients[rows].sum() for rows in grown.leaf_rows])


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
    rows = np.arange(0, len(features), 3, dtype=np.int32)
    on_parts = Grower(binned, GrowthParameters(n_leaves=31, min_documents_in_leaf=1, l2=0.0)).grow(
        gradients, rows, np.array([3, 7])
    )
    assert set(on_parts.tree.feature) <= {3, 7}
    assert on_parts.tree.leaf_count.sum() == len(rows)
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


def test_trees_learn_the_direction_of_missing_values():
    x = np.array([[1], [2], [3], [4], [np.nan], [np.nan]], np.float32)
    for y in ([0, 0, 9, 9, 9, 9], [0, 0, 9, 9, 0, 0]):
        grown = Grower(
            bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2, min_documents_in_leaf=1, l2=0.0)
        ).grow(quantized(np.array(y) - 4.5, np.ones(6)))
        assert grown.tree.missing_left[0] == (y[4] == 0)
    grown = Grower(bin_features(x, find_bins(x)), GrowthParameters(n_leaves=2, min_documents_in_leaf=1, l2=0.0)).grow(
        quantized(np.array([-1, -1, -1, -1, 2.0, 2.0]), np.ones(6))
    )
    assert grown.tree.threshold[0] == np.inf  # missing values alone on the right
    assert sorted(map(len, grown.leaf_rows)) == [2, 4]


@pytest.mark.parametrize("features", [np.zeros((5, 2)), np.full((5, 1), np.nan), np.zeros((5, 0))])
def test_constant_features_give_a_tree_of_one_leaf(features):
    features = features.astype(np.float32)
    grown = Grower(
        bin_features(features, find_bins(features)), GrowthParameters(n_leaves=31, min_documents_in_leaf=1, l2=0.0)
    ).grow(quantized(np.arange(5.0), np.ones(5)))
    assert grown.tree.n_leaves == 1
    assert leaves_of(grown.tree, features).tolist() == [0] * 5
