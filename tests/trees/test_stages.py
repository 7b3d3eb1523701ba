"""Each stage of growth, compiled separately, compared with NumPy or brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.compiling import kernel
from podium.core.intrinsics import wait_at_barrier
from podium.core.team import Team
from podium.trees import bin_features, find_bins
from podium.trees.bin_matrix import cell_of
from podium.trees.grower import add_node, leaf_with_highest_gain, share_of_features
from podium.trees.growth_types import (
    CELLS,
    CHUNK,
    LEAF,
    SCRATCH,
    SPLIT,
    FeatureTable,
    GrowingTree,
    GrowthLimits,
    Member,
    N,
    NewLeaves,
    PackedGradients,
)
from podium.trees.histograms import build_histograms, complete_histograms
from podium.trees.partitioning import WORDS_PER_THREAD, Partition, partition_leaf
from podium.trees.splitting import choose_split, score_features


@kernel
def histograms_stage(member, bins, words, features, new, tree, tile, scratches, completed):
    assigned = share_of_features(member, features)
    build_histograms(member, bins, words, features, assigned, new, tree, tile, scratches[member.thread].words)
    wait_at_barrier(member.barrier, member.n_threads)
    if completed:
        complete_histograms(member, features, assigned, new, tree)


@kernel
def splitting_stage(member, bins, gradients, features, limits, tree, scratches):
    new, scratch = NewLeaves(N(0), N(0), N(1)), scratches[member.thread]
    assigned = share_of_features(member, features)
    score_features(member, features, assigned, limits, new, tree, scratch)
    choose_split(bins, gradients, features, limits, tree.leaves[0], tree.splits[0], True, tree, scratch)


@kernel
def partition_stage(member, bins, tree, buffer):
    return partition_leaf(member, bins, tree.leaves[0], N(1), tree.documents, buffer)


@kernel
def node_stage(split, new, parts, limits, direction, leaves, nodes):
    add_node(N(split), N(new), parts, limits, N(direction), leaves, nodes)


@kernel
def next_leaf(leaves, n_leaves):
    return leaf_with_highest_gain(leaves, n_leaves)


class Problem:
    """A leaf with some of the documents, and its sibling with others."""

    def __init__(self, rng, n=300, width=6, n_threads=1, sizes=(50, 90), categorical=()):
        self.x = rng.integers(0, 9, (n, width)).astype(np.float32)
        self.x[:, 1::4] = rng.integers(0, 200, self.x[:, 1::4].shape)  # more bins, and so more cells
        self.x[:, 6::8] = rng.integers(0, 200, self.x[:, 6::8].shape)
        self.x[:, 2::4] = np.where(rng.random(self.x[:, 2::4].shape) < 0.7, 0, self.x[:, 2::4])  # one common bin
        self.x[rng.random((n, width)) < 0.1] = np.nan
        self.x[:, 3::8] = np.where(rng.random(self.x[:, 3::8].shape) < 0.7, np.nan, self.x[:, 3::8])
        self.binned = bin_features(self.x, find_bins(self.x, categorical=categorical))
        self.bins, self.layout = self.binned.matrix, self.binned.layout
        self.gradients = rng.integers(-50, 51, n)
        self.weights = rng.integers(1, 9, n)
        self.words = (self.gradients << 32) + self.weights
        kinds = np.isin(np.arange(width), categorical) if categorical else None
        layout, counts = self.layout, self.binned.bins.counts
        self.table = FeatureTable(
            np.arange(width), np.argsort(layout.first_cell), counts, layout.first_cell, layout.n_cells,
            layout.common_cell, layout.block_cells, layout.block_strides, kinds, np.zeros(width, np.int64),
        )  # fmt: skip
        documents = rng.permutation(n).astype(np.int32)
        leaves = np.zeros(3, LEAF)
        leaves["low"], leaves["high"], leaves["histogram"] = -np.inf, np.inf, np.arange(3)
        leaves["start"], leaves["end"] = [0, sizes[0], 0], [sizes[0], sum(sizes), 0]
        leaves["sample_end"] = leaves["end"]
        for leaf in leaves:
            leaf["total"] = self.words[documents[leaf["start"] : leaf["end"]]].sum()
        cells = self.layout.total_cells
        self.tree = GrowingTree(
            leaves, np.zeros(0, LEAF), documents, np.full((3, cells), 7, np.int64), np.empty((2, width), SPLIT)
        )  # fmt: skip
        barrier, n_left = np.zeros(16, np.int64), np.zeros(n_threads * WORDS_PER_THREAD, np.int64)
        partial, shares = np.empty((n_threads - 1, cells), np.int64), self.layout.shares(n_threads)
        self.members = [
            Member(k, n_threads, shares, np.zeros(1, np.int64), barrier, n_left, partial) for k in range(n_threads)
        ]
        self.tiles = np.empty((n_threads, self.bins.width * CHUNK), np.uint8)
        self.scratches, self.buffer = np.zeros(n_threads, SCRATCH), np.empty(n, np.int32)

    def rows(self, leaf):
        record = self.tree.leaves[leaf]
        return self.tree.documents[record["start"] : record["end"]].copy()

    def histogram(self, rows):
        """Return the expected histogram: the sums of words in the cells of each feature."""
        counted = np.zeros(self.layout.total_cells, np.int64)
        for feature, first in enumerate(self.layout.first_cell):
            cells = cell_of(self.binned.column(feature)[rows].astype(int), self.layout.n_cells[feature])
            np.add.at(counted, first + cells, self.words[rows])
        return counted

    def cells(self, leaf):
        """Return the histogram of a leaf, with zeros between the cells of two features."""
        counted = np.zeros(self.layout.total_cells, np.int64)
        for first, n in zip(self.layout.first_cell, self.layout.n_cells, strict=True):
            counted[first : first + n] = self.tree.histograms[leaf, first : first + n]
        return counted

    def run(self, stage, *arguments):
        with Team(len(self.members)) as team:
            return team.run(lambda k: stage(self.members[k], *arguments))


def build(problem, new, completed=True):
    with Team(len(problem.members)) as team:
        team.run(
            lambda k: histograms_stage(
                problem.members[k], problem.bins, problem.words, problem.table, new, problem.tree, problem.tiles[k],
                problem.scratches, completed,
            )
        )  # fmt: skip


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 6, 12, 21, 75])
def test_histograms_equal_numpys(n_threads, width):
    problem = Problem(np.random.default_rng(width), width=width, n_threads=n_threads)
    small, large = problem.rows(0), problem.rows(1)
    parent = problem.histogram(np.concatenate([small, large]))
    problem.tree.histograms[1] = parent
    build(problem, NewLeaves(0, 1, 2))
    for leaf, rows in ((0, small), (1, large)):
        assert np.array_equal(problem.cells(leaf), problem.histogram(rows))
    assert (problem.tree.histograms[2] == 7).all()


def test_histograms_of_large_leaves_are_shared_by_rows():
    problem = Problem(np.random.default_rng(1), n=3000, width=5, n_threads=3, sizes=(2005, 100))
    assert len(problem.rows(0)) > problem.layout.total_cells
    build(problem, NewLeaves(0, 0, 1))
    assert np.array_equal(problem.cells(0), problem.histogram(problem.rows(0)))


@pytest.mark.parametrize("n_threads", [1, 2, 5, 40])
def test_shares_cover_all_features_once(n_threads):
    layout = Problem(np.random.default_rng(0), width=75).layout
    shares = layout.shares(n_threads)
    assert (np.diff(shares, axis=0) >= 0).all()
    assert shares[0].tolist() == [0, 0, 0]
    assert shares[-1].tolist() == layout.ends[-1].tolist()
    n_features_of_cell = np.zeros(layout.total_cells, int)
    for first, n in zip(layout.first_cell, layout.n_cells, strict=True):
        n_features_of_cell[first : first + n] += 1
    assert n_features_of_cell.max() == 1
    assert len(layout.dense) > 32
    assert len(layout.groups) > 1
    assert set(layout.block_strides) == {64, 256}


def test_only_rare_bins_of_sparse_features_are_stored():
    problem = Problem(np.random.default_rng(3), width=75)
    layout, bins = problem.layout, problem.bins
    cells = [[] for _ in range(bins.n_rows)]
    for group in range(len(layout.groups) - 1):
        starts = bins.starts[group * (bins.n_rows + 1) :]
        for row in range(bins.n_rows):
            cells[row] += bins.entries[starts[row] : starts[row + 1]].tolist()
    for row in range(bins.n_rows):
        expected = [
            layout.first_cell[f] + cell_of(int(problem.binned.column(f)[row]), layout.n_cells[f])
            for f in layout.sparse
            if problem.binned.column(f)[row] != layout.common[f]
        ]
        assert cells[row] == expected
    assert sum(map(len, cells)) < 0.5 * len(layout.sparse) * bins.n_rows


def test_rows_are_ordered_by_their_rare_bins():
    problem = Problem(np.random.default_rng(3), width=75)
    columns = np.array([problem.binned.column(f) for f in problem.layout.sparse])
    n_rare = (columns != problem.layout.common[problem.layout.sparse][:, None]).sum(axis=0)
    order = problem.binned.rows_by_entries
    assert sorted(order) == list(range(problem.bins.n_rows))
    assert (np.diff(n_rare[order]) >= 0).all()
    dense = np.random.default_rng(0).random((50, 3), np.float32)
    assert bin_features(dense, find_bins(dense)).rows_by_entries is None


def sides(problem, rows, l2):
    """Yield all splits of a leaf: the feature, and whether each row goes left."""
    for feature in range(problem.x.shape[1]):
        bins = problem.binned.column(feature)[rows]
        if problem.table.is_categorical is not None and problem.table.is_categorical[feature]:
            present = [b for b in np.unique(bins) if b]
            means = {b: problem.gradients[rows[bins == b]].sum() / (problem.weights[rows[bins == b]].sum() + l2)
                     for b in present}  # fmt: skip
            ranked = sorted(present, key=lambda b: (-means[b], b))
            yield from ((feature, np.isin(bins, ranked[:k])) for k in range(1, len(ranked) + 1))
            continue
        for last in range(1, int(problem.table.n_bins[feature]) + 1):
            yield feature, (bins > 0) & (bins <= last)
            if (bins == 0).any():
                yield feature, bins <= last


def score(problem, rows, l2):
    return float(problem.gradients[rows].sum()) ** 2 / (problem.weights[rows].sum() + l2)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 4, 15]), st.sampled_from([0.0, 2.5]))
def test_the_best_split_equals_brute_force(seed, categorical, min_documents, l2):
    rng = np.random.default_rng(seed)
    problem = Problem(rng, n=80, width=4, sizes=(60, 10), categorical=(1,) if categorical else ())
    build(problem, NewLeaves(0, 0, 1), completed=False)  # scoring does that
    rows, largest = problem.rows(0), int(problem.weights.max())
    gradients, limits = PackedGradients(problem.words, largest, False), GrowthLimits(3, -1, min_documents, 2, l2)
    problem.run(splitting_stage, problem.bins, gradients, problem.table, limits, problem.tree, problem.scratches)
    leaf = problem.tree.leaves[0]
    allowed = [
        score(problem, rows[left], l2) + score(problem, rows[~left], l2)
        for _, left in sides(problem, rows, l2)
        if min(left.sum(), (~left).sum()) >= min_documents
    ]
    gain = max(allowed, default=0.0) - score(problem, rows, l2)
    if leaf["feature"] < 0:
        assert gain <= 1e-9 * max(1.0, max(allowed, default=0.0))
        return
    assert leaf["gain"] == pytest.approx(gain, rel=1e-9, abs=1e-9)
    left = leaf["goes_left"][problem.binned.column(int(leaf["feature"]))[rows]] == 1
    assert problem.words[rows[left]].sum() == leaf["left_total"]
    assert min(left.sum(), (~left).sum()) >= min_documents
    assert score(problem, rows[left], l2) + score(problem, rows[~left], l2) == pytest.approx(max(allowed))


def test_a_leaf_without_a_gain_has_no_split():
    problem = Problem(np.random.default_rng(0), n=80, width=2, sizes=(60, 10))
    problem.words[:] = (5 << 32) + 2
    problem.tree.leaves[0]["total"] = 60 * problem.words[0]
    build(problem, NewLeaves(0, 0, 1))
    gradients, limits = PackedGradients(problem.words, 2, False), GrowthLimits(3, -1, 1, 2, 0.0)
    problem.run(splitting_stage, problem.bins, gradients, problem.table, limits, problem.tree, problem.scratches)
    assert (problem.tree.leaves[0]["feature"], problem.tree.leaves[0]["gain"]) == (-1, 0.0)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_sampled", [0, 17, 50])
def test_a_partition_keeps_the_order(n_threads, n_sampled):
    rng = np.random.default_rng(n_sampled)
    problem = Problem(rng, n_threads=n_threads, sizes=(50, 90))
    leaf = problem.tree.leaves[0]
    leaf["sample_end"], leaf["feature"] = n_sampled, 3
    leaf["goes_left"][:] = rng.random(CELLS) < 0.5
    before = problem.tree.documents.copy()
    sampled, others = before[:n_sampled], before[n_sampled:50]
    parts = problem.run(partition_stage, problem.bins, problem.tree, problem.buffer)

    def goes_left(rows):
        return leaf["goes_left"][problem.binned.column(3)[rows]] == 1

    left = [sampled[goes_left(sampled)], others[goes_left(others)]]
    right = [sampled[~goes_left(sampled)], others[~goes_left(others)]]
    expected = np.concatenate([*left, *right, before[50:]])
    assert np.array_equal(problem.tree.documents, expected)
    middle = len(left[0]) + len(left[1])
    assert set(parts) == {
        Partition(len(left[0]), middle, middle + len(right[0]), 2 * len(left[0]) <= n_sampled, True)
    }  # fmt: skip


@pytest.mark.parametrize("direction", [-1, 0, 1])
@pytest.mark.parametrize("is_left_small", [True, False])
def test_a_node_and_its_children(direction, is_left_small):
    leaves, nodes = np.zeros(3, LEAF), np.zeros(2, LEAF)
    leaves["low"], leaves["high"], leaves["histogram"] = -10.0, 10.0, [0, 9, 9]
    root = leaves[0]
    root["end"], root["sample_end"], root["parent"], root["feature"], root["gain"] = 100, 60, -1, 4, 2.5
    root["total"], root["left_total"] = (8 << 32) + 6, (6 << 32) + 2
    root["goes_left"][[0, 3]] = 1
    limits = GrowthLimits(3, -1, 1, 2, 0.0)
    node_stage(0, 1, Partition(20, 35, 75, is_left_small, True), limits, direction, leaves, nodes)
    left, right = leaves[0], leaves[1]
    assert (left["start"], left["sample_end"], left["end"]) == (0, 20, 35)
    assert (right["start"], right["sample_end"], right["end"]) == (35, 75, 100)
    assert (left["total"], right["total"]) == ((6 << 32) + 2, (2 << 32) + 4)
    assert (left["histogram"], right["histogram"]) == ((1, 0) if is_left_small else (0, 1))
    assert [(leaf["parent"], leaf["is_left"], leaf["depth"]) for leaf in (left, right)] == [(0, 1, 1), (0, 0, 1)]
    node = nodes[0]
    assert (node["end"] - node["start"], node["feature"], node["gain"], node["parent"]) == (100, 4, 2.5, -1)
    assert np.flatnonzero(node["goes_left"]).tolist() == [0, 3]
    middle = (3.0 + 0.5) / 2
    bounds = {0: [(-10, 10), (-10, 10)], 1: [(-10, middle), (middle, 10)], -1: [(middle, 10), (-10, middle)]}
    assert [(leaf["low"], leaf["high"]) for leaf in (left, right)] == bounds[direction]


def test_of_the_leaves_with_the_highest_gain_the_first_is_next():
    leaves = np.zeros(5, LEAF)
    leaves["gain"] = [1.0, 3.0, 2.0, 3.0, 9.0]
    assert next_leaf(leaves, 4) == 1


def test_threads_share_all_features():
    @kernel
    def shares(member, features):
        return share_of_features(member, features)

    problem = Problem(np.random.default_rng(0), width=21, n_threads=3)
    table = problem.table._replace(scanned=problem.table.scanned[::4])
    parts = [shares(member, table) for member in problem.members]
    for begin, end in (("begin", "end"), ("first_group", "last_group"), ("first_cell", "last_cell"), ("first", "last")):
        starts, ends = [getattr(part, begin) for part in parts], [getattr(part, end) for part in parts]
        assert [*starts, ends[-1]] == [0, *ends]
    assert parts[-1].last_cell == problem.layout.total_cells
    assert parts[-1].last == len(table.scanned)
