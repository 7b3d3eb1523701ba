"""Cuts from parts of the documents are those of all documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from podium.core.merging import merge_all, merged
from podium.trees import distributed_binning, find_bins
from podium.trees.distributed_binning import find_bins_in_parts


def in_parts(features, home, max_bins, categorical=()):
    """Return the bins that each part finds, and the number of rounds."""
    return run_together([find_bins_in_parts(features[home == k], max_bins, categorical, 1) for k in np.unique(home)])


def run_together(parts):
    answer, rounds = None, 0
    while True:
        contributions, results = [], []
        for part in parts:
            try:
                contributions.append(part.send(answer))
            except StopIteration as end:
                results.append(end.value)
        if results:
            assert len(results) == len(parts)
            return results, rounds
        answer, rounds = merged(merge_all(contributions)), rounds + 1


def require_equal(bins, expected):
    for a, b in zip(bins.cuts, expected.cuts, strict=True):
        assert np.array_equal(a, b)
    for a, b in ((bins.categories, expected.categories), (bins.rare, expected.rare)):
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[k], b[k]) for k in a)


def column(random, kind, n):
    if kind == "numbers":
        return random.normal(size=n)
    if kind == "far apart":
        return np.exp(12 * random.normal(size=n)) * random.choice([-1, 1], n)
    if kind == "ties":
        return np.round(random.gamma(1.0, 30.0, n), 1)
    if kind == "zeros":
        return np.where(random.random(n) < 0.7, 0.0, random.normal(size=n))
    if kind == "few":
        return random.integers(0, 20, n)
    return np.full(n, np.nan if kind == "missing" else 3.0)


KINDS = ["numbers", "far apart", "ties", "zeros", "few", "missing", "constant"]


@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([2, 3, 16, 255]), st.sampled_from([4, 64]))
def test_parts_find_the_cuts_of_all(seed, n_parts, max_bins, max_listed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 1500))
    features = np.column_stack([column(random, kind, n) for kind in KINDS]).astype(np.float32)
    features[random.random(features.shape) < 0.05] = np.nan
    home = random.integers(0, n_parts, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed_binning, "MAX_LISTED", max_listed)
        results, rounds = in_parts(features, home, max_bins, [4])
    for bins in results:
        require_equal(bins, find_bins(features, max_bins, [4]))
    assert rounds < 30


def test_sparse_features_and_threads_give_the_same_cuts():
    random = np.random.default_rng(2)
    dense = np.where(random.random((3000, 20)) < 0.9, 0.0, random.normal(size=(3000, 20)).round(2)).astype(np.float32)
    expected = find_bins(dense, 30)
    for features, n_threads in ((csr_matrix(dense), 1), (dense, 3)):
        parts = [find_bins_in_parts(features[k::2], 30, [], n_threads) for k in range(2)]
        for bins in run_together(parts)[0]:
            require_equal(bins, expected)


def test_rounds_do_not_grow_with_the_bins():
    random = np.random.default_rng(1)
    features = np.column_stack([column(random, kind, 60_000) for kind in KINDS]).astype(np.float32)
    results, rounds = in_parts(features, random.integers(0, 2, 60_000), 255)
    require_equal(results[0], find_bins(features, 255))
    assert rounds < 12
