"""Bins against a slow reference, for any values and any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import podium
from podium.errors import DataError
from podium.trees import bin_features, find_bins
from podium.trees.bin_matrix import cell_of
from tests.references.trees import cut_slowly

TINY, HUGE = np.float32(1e-45), np.finfo(np.float32).max
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, TINY, -TINY, 2 * TINY, HUGE, -HUGE, 1.0, -1.0], np.float32)
SPECIAL = np.append(SPECIAL, np.array(0xFFC00001, np.uint32).view(np.float32))  # a NaN with a sign


KINDS = {  # of columns of n values
    "normal": lambda n, rng: rng.normal(size=n),
    "wide": lambda n, rng: rng.normal(size=n) * 10.0 ** rng.integers(-44, 38, n),
    "few": lambda n, rng: rng.integers(-3, 4, n),
    "about as many as bins": lambda n, rng: rng.integers(0, rng.integers(250, 262), n),
    "zeros": lambda n, rng: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
    "constant": lambda n, rng: np.full(n, rng.choice(SPECIAL)),
    "crowded": lambda n, rng: np.append(1e30, 1 + rng.integers(0, 2**14, n - 1) * 2.0**-23),
    "neighbours": lambda n, rng: rng.integers(0x3F800000, 0x3F800000 + 400, n).astype(np.uint32).view(np.float32),
    "special": lambda n, rng: rng.choice(SPECIAL, n),
}


def bits(cuts):
    return [c.view(np.uint32).tolist() for c in cuts]


def sparsely(dense):
    """Return compressed sparse rows that store some of the zeros and every NaN."""
    rows, columns = np.nonzero((dense != 0) | (np.random.default_rng(1).random(dense.shape) < 0.1))
    return sparse.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)


@settings(max_examples=15)
@given(
    st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=20), st.sampled_from([1, 2, 15, 64, 65, 300, 1500]),
    st.sampled_from([2, 3, 14, 15, 16, 31, 254, 255]), st.integers(0, 2**32), st.sampled_from([0.0, 0.3]),
)  # fmt: skip
def test_cuts_and_bins_are_those_of_the_reference(kinds, n, max_bins, seed, missing):
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        X = np.stack([KINDS[kind](n, rng) for kind in kinds], axis=1).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    slow = [cut_slowly(column, max_bins) for column in X.T]
    expected = np.stack([np.searchsorted(cuts, column) + 1 for cuts, column in zip(slow, X.T, strict=True)], axis=1)
    expected[np.isnan(X)] = 0
    for features in (X, np.asfortranarray(X), sparsely(X)):
        bins = find_bins(features, max_bins, n_threads=1)
        assert bits(bins.cuts) == bits(slow)
        binned = bin_features(features, bins, n_threads=1)
        assert np.array_equal(binned.columns.reshape(len(kinds), n).T, expected)
    matrix, dense, n_cells = binned.matrix, binned.layout.dense, binned.layout.n_cells
    rows = matrix.rows[: n * matrix.width].reshape(n, -1)
    assert np.array_equal(rows[:, : len(dense)], cell_of(expected[:, dense], n_cells[dense]))
    assert not rows[:, len(dense) :].any()


@pytest.mark.parametrize("kind", ["normal", "zeros", "crowded", "wide"])
def test_many_values_have_the_cuts_of_the_reference(kind):
    column = KINDS[kind](200_000, np.random.default_rng(0)).astype(np.float32)
    for values in (column, np.sort(column)):
        assert bits(find_bins(values[:, None], 255).cuts) == bits([cut_slowly(column, 255)])


@settings(max_examples=30)
@given(st.sampled_from([1, 16, 254, 255, 256, 300, 700]), st.integers(2, 255), st.integers(0, 2**32))
def test_categories_are_those_of_the_reference(n_categories, max_bins, seed):
    rng = np.random.default_rng(seed)
    categories = np.unique(rng.choice(np.append(SPECIAL, rng.normal(size=800).astype(np.float32)), n_categories))
    train, test = (np.stack([rng.choice(k, 500) for k in (categories, SPECIAL)], axis=1) for _ in range(2))
    for form in (lambda x: x, sparsely):
        bins = find_bins(form(train), max_bins, categorical=[0], n_threads=2)
        values, counts = np.unique(train[:, 0][~np.isnan(train[:, 0])] + np.float32(0), return_counts=True)
        n_frequent = max_bins if len(values) <= max_bins else max_bins - 1
        frequent = values[np.sort(np.argsort(-counts, kind="stable")[:n_frequent])].tolist()
        assert bins.categories[0].tolist() == frequent
        bin_of = {x: k for k, x in enumerate(frequent, 1)}
        bin_of |= dict.fromkeys(set(values.tolist()) - set(frequent), len(frequent) + 1)
        expected = [bin_of.get(x, 0) for x in test[:, 0].tolist()]
        assert bin_features(form(test), bins).column(0).tolist() == expected


def test_threads_and_rows_do_not_matter():
    data = podium.artificial_web(40, seed=2)
    X = data.features.copy()
    X[::7, 3] = np.nan
    order = np.random.default_rng(0).permutation(len(X))
    for form in (lambda x: x, sparsely):
        bins = find_bins(form(X), n_threads=1)
        columns = bin_features(form(X), bins, n_threads=1).columns
        for n_threads in (2, 3, 7):
            assert bits(find_bins(form(X[order]), n_threads=n_threads).cuts) == bits(bins.cuts)
            assert np.array_equal(bin_features(form(X), bins, n_threads=n_threads).columns, columns)


def test_a_frequent_value_has_its_own_bin_and_other_bins_get_equal_shares():
    values = np.arange(1000, dtype=np.float32)
    column = np.append(values, np.full(999, values[500]))
    cuts = find_bins(column[:, None], 11).cuts[0]
    neighbours = np.searchsorted(cuts, [499, 500, 501])
    assert neighbours[0] < neighbours[1] or neighbours[1] < neighbours[2]
    sizes = np.bincount(np.searchsorted(cuts, column))
    assert len(sizes) <= 11
    assert np.sort(sizes)[:-1].max() < 250


def test_missing_values_infinities_and_zeros_have_their_bins():
    x = np.array([[np.nan], [-np.inf], [-0.0], [0.0], [1.0], [np.inf]], np.float32)
    bins = find_bins(x)
    assert bin_features(x, bins).column(0).tolist() == [0, 1, 2, 2, 3, 4]
    assert bins.cuts[0][0] == -np.inf
    assert find_bins(np.full((3, 1), np.nan, np.float32)).counts.tolist() == [1]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 20)])
def test_data_without_rows_or_features_can_be_binned(shape):
    for features in (np.zeros(shape, np.float32), sparse.csr_array(shape, dtype=np.float32)):
        bins = find_bins(features)
        assert bins.counts.tolist() == [1] * shape[1]
        assert bin_features(features, bins).n_rows == shape[0]


def test_invalid_arguments_of_binning_are_refused():
    x = np.arange(300, dtype=np.float32)[:, None]
    for wrong in ({"max_bins": 1}, {"max_bins": 256}, {"categorical": [1]}):
        with pytest.raises(DataError):
            find_bins(x, **wrong)
    with pytest.raises(DataError, match="bins are for 1 features"):
        bin_features(np.zeros((2, 2), np.float32), find_bins(x))
