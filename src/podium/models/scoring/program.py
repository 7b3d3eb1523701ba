"""Programs, which describe as arrays how to score in blocks with a model; no code is compiled for it.

1. *Searches*: the ascending thresholds of a feature. The rank of a value among them, a byte, determines all comparisons
   with them. A feature has two searches if its missing values go left at some nodes and right at others, or if it has
   more thresholds than a byte can number.
2. *Comparisons* of a rank with a bound. Equal comparisons of all trees are computed once.
3. *Choices* and *codes* (`podium.models.scoring.encoding`), in groups of as many trees as codes fit into 64 bits:
   eight one-byte codes, or four two-byte codes.
4. *Leaves*: a table of each tree's leaf values by code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Bytes, Float32s, Floats, Int32s, Ints
from podium.core.bitwise import CODES, MAX_LEVELS, levels_for, pivots_of
from podium.core.compiling import kernel
from podium.models.scoring.encoding import COMPARISONS, EncodedTrees, encode_all
from podium.models.scoring.traversal import TreeArrays

MAX_ROWS = 1 << 15  # rows of words: in small blocks, two bytes are then enough for their positions
MAX_COMPARISONS = MAX_ROWS - (1 << 12)  # to leave room for temporary rows
MAX_PROGRAM_NODES = 1 << 18  # per program: building a larger one would take too much memory at once
MAX_THRESHOLDS = (1 << MAX_LEVELS) - 1  # per search
MAX_MEMBERS = 1 << 24  # bytes of all tables of categories
MISSING_LEFT, MISSING_RIGHT = -128, 127  # a rank below every bound, and one below none


class Searches(NamedTuple):
    """The searches, sorted by feature; `pivots` has the thresholds in the layout of `core.bitwise.find_ranks`."""

    feature: Ints
    table: Ints
    n_levels: Ints
    missing: Ints
    pivots: Float32s


class Comparisons(NamedTuple):
    """The comparisons, sorted by search, of ranks with a bound."""

    search: Int32s
    bound: NDArray[np.int8]


class Categories(NamedTuple):
    """The categorical features: comparison k tests whether the index of a value is among its members."""

    feature: Ints  # sorted
    # value_offsets, values: the categories of each feature in any node, ascending
    value_offsets: Ints
    values: Float32s
    comparison_offsets: Ints  # where each feature's comparisons begin
    # member_offsets, members: 1 or 0 for each category of each comparison, followed by 0 for all other values
    member_offsets: Ints
    members: Bytes


class Groups(NamedTuple):
    """Trees in groups: entry g * 8 + k belongs to code k of group g; trees with two-byte codes have even k."""

    n_trees: Ints  # per group: 8, or 4 with two-byte codes
    # choice_offsets, choices: the choices of each group, as row numbers of words
    choice_offsets: Ints
    choices: NDArray[Any]
    # plane_offsets, planes: the bits of each code, as row numbers of words
    plane_offsets: Ints
    planes: NDArray[Any]
    # table, leaves: where the leaf values of each code's tree begin, and the values
    table: Ints
    leaves: Floats


class Program(NamedTuple):
    """The description of consecutive trees for scoring in blocks."""

    searches: Searches
    comparisons: Comparisons
    categories: Categories
    groups: Groups
    n_rows: int  # the number of rows of words


# The nodes that compare numbers, sorted by feature, missing direction and threshold, and where a new comparison begins.
SortedNodes = tuple[NDArray[np.intp], Bools]


def make_programs(trees: TreeArrays) -> list[Program]:
    """Return programs for consecutive parts of the trees; none if walking is faster or the tables are too large."""
    if len(trees.feature) <= MAX_PROGRAM_NODES:
        nodes = _sorted_nodes(trees, slice(None))
        if int(nodes[1].sum()) + len(trees.category_offsets) < MAX_COMPARISONS:
            program = make_program(trees, 0, trees.n_trees, nodes)
            return [] if program is None else [program]
    programs = []
    for first, last in pairwise(_cut_trees(trees.node_offsets)):
        of_trees = slice(trees.node_offsets[first], trees.node_offsets[last])
        program = make_program(trees, first, last, _sorted_nodes(trees, of_trees))
        if program is None:
            return []
        programs.append(program)
    return programs


def _cut_trees(node_offsets: Ints) -> list[int]:
    """Cut the trees into parts that are single trees, or have few enough nodes for two-byte row numbers."""
    n_trees = len(node_offsets) - 1
    cuts = [0]
    for tree in range(1, n_trees):
        if node_offsets[tree + 1] - node_offsets[cuts[-1]] > MAX_COMPARISONS:
            cuts.append(tree)
    return [*cuts, n_trees]


def _sorted_nodes(trees: TreeArrays, nodes: slice) -> SortedNodes:
    numeric = np.flatnonzero(trees.category[nodes] < 0)
    _, feature = np.unique(trees.feature[nodes][numeric], return_inverse=True)
    bits = (trees.threshold[nodes][numeric] + np.float32(0.0)).view(np.int32).astype(np.int64)  # −0 becomes 0
    ascending = np.where(bits < 0, -(1 << 31) - 1 - bits, bits)  # integers in the order of their floats
    key = (2 * feature + trees.missing_left[nodes][numeric]).astype(np.int64) * (1 << 32) + ascending
    order = np.argsort(key, kind="stable")
    is_new = np.ones(len(order), bool)
    is_new[1:] = key[order][1:] != key[order][:-1]
    return numeric[order], is_new


def make_program(trees: TreeArrays, first: int, last: int, sorted_nodes: SortedNodes) -> Program | None:
    """Return the program of trees `first` … `last` − 1; None if walking is faster or the tables are too large."""
    nodes = slice(trees.node_offsets[first], trees.node_offsets[last])
    order, is_new = sorted_nodes
    n_numeric = int(is_new.sum())
    searches, comparisons = _searches(trees, nodes, order[is_new])
    categories, category_nodes = _categories(trees, nodes)
    temporary = COMPARISONS + n_numeric + len(category_nodes)
    if len(categories.members) > MAX_MEMBERS or temporary >= MAX_ROWS:
        return None
    row = np.empty(len(trees.feature[nodes]), np.int32)
    row[order] = COMPARISONS + np.cumsum(is_new) - 1
    row[category_nodes] = COMPARISONS + n_numeric + np.arange(len(category_nodes))
    node_offsets, leaf_offsets = (
        offsets[first : last + 1] - offsets[first] for offsets in (trees.node_offsets, trees.leaf_offsets)
    )
    encoded = encode_all(trees.left[nodes], trees.right[nodes], row, node_offsets, temporary)
    if encoded is None:
        return None
    leaf_values = trees.leaf_value[trees.leaf_offsets[first] : trees.leaf_offsets[last]]
    groups, n_temporary = _groups(encoded, leaf_offsets, leaf_values, temporary)
    n_rows = temporary + n_temporary
    return Program(searches, comparisons, categories, groups, n_rows) if n_rows <= MAX_ROWS else None


def _searches(trees: TreeArrays, nodes: slice, node: NDArray[np.intp]) -> tuple[Searches, Comparisons]:
    """Return the searches of the comparisons' nodes, sorted by feature, missing direction and threshold."""
    feature, threshold = trees.feature[nodes][node], trees.threshold[nodes][node]
    missing_left = trees.missing_left[nodes][node]
    is_first = np.ones(len(node), bool)
    is_first[1:] = (feature[1:] != feature[:-1]) | (missing_left[1:] != missing_left[:-1])
    place = np.arange(len(node)) - np.maximum.accumulate(np.where(is_first, np.arange(len(node)), 0))
    rank = place % MAX_THRESHOLDS
    is_first |= rank == 0
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(node)))
    n_levels = np.array([levels_for(int(size)) for size in sizes], np.int64)
    tables = [
        pivots_of(threshold[start : start + size], levels)
        for start, size, levels in zip(starts, sizes, n_levels.tolist(), strict=True)
    ]
    search = np.cumsum(is_first) - 1
    bound = ((rank + 1) << (MAX_LEVELS - n_levels[search])) - 128
    searches = Searches(
        feature[starts].astype(np.int64), np.cumsum([0, *map(len, tables)])[:-1], n_levels,
        np.where(missing_left[starts], MISSING_LEFT, MISSING_RIGHT).astype(np.int64),
        np.concatenate([np.empty(0, np.float32), *tables]),
    )  # fmt: skip
    return searches, Comparisons(search.astype(np.int32), bound.astype(np.int8))


def _categories(trees: TreeArrays, nodes: slice) -> tuple[Categories, NDArray[np.intp]]:
    """Return the tables of the nodes that test categories, and these nodes sorted by feature."""
    node = np.flatnonzero(trees.category[nodes] >= 0)
    node = node[np.argsort(trees.feature[nodes][node], kind="stable")]
    feature = trees.feature[nodes][node]
    entries = trees.category[nodes][node]
    sets = [trees.category_values[trees.category_offsets[k] : trees.category_offsets[k + 1]] for k in entries]
    features, starts = np.unique(feature, return_index=True)
    bounds = np.append(starts, len(node)).astype(np.int64)
    values_of_features = [np.unique(np.concatenate(sets[a:b])) for a, b in pairwise(bounds)]
    members = [
        np.append(np.isin(values, sets[k]), False)
        for values, (a, b) in zip(values_of_features, pairwise(bounds), strict=True)
        for k in range(a, b)
    ]
    return Categories(
        features.astype(np.int64), np.cumsum([0, *map(len, values_of_features)]),
        np.concatenate([np.empty(0, np.float32), *values_of_features]), bounds, np.cumsum([0, *map(len, members)])[:-1],
        np.concatenate([np.empty(0, np.uint8), *members]).astype(np.uint8),
    ), node  # fmt: skip


def _groups(encoded: EncodedTrees, leaf_offsets: Ints, values: Floats, temporary: int) -> tuple[Groups, int]:
    """Return the trees in groups, and the number of temporary rows that the largest group needs."""
    n_bits = np.diff(encoded.plane_offsets)
    n_trees = len(n_bits)
    firsts, sizes, tree = [], [], 0
    while tree < n_trees:
        sizes.append(CODES if (n_bits[tree : tree + CODES] <= 8).all() else CODES // 2)
        firsts.append(tree)
        tree += sizes[-1]
    bounds = np.minimum(np.append(firsts, n_trees), n_trees).astype(np.int64)
    group = np.searchsorted(bounds[1:], np.arange(n_trees), side="right")
    before = np.cumsum(encoded.n_temporary) - encoded.n_temporary  # temporary rows of a group are consecutive
    shift = before - before[bounds[group]] if n_trees else before
    choices = _moved(encoded.choices, 4 * np.diff(encoded.choice_offsets), shift, temporary)
    planes = _moved(encoded.planes, n_bits, shift, temporary)
    code_of_tree = CODES * group + (np.arange(n_trees) - bounds[group]) * (CODES // np.array(sizes, np.int64)[group])
    bits_of_code = np.zeros(CODES * len(sizes), np.int64)
    bits_of_code[code_of_tree] = np.minimum(n_bits, 8)
    is_long = n_bits > 8
    bits_of_code[code_of_tree[is_long] + 1] = n_bits[is_long] - 8
    table_offsets = np.cumsum(np.append(1, 1 << n_bits))
    table = np.zeros(CODES * len(sizes), np.int64)
    table[code_of_tree] = table_offsets[:-1]
    leaves = np.full(table_offsets[-1], -0.0)  # the first entry is for absent trees: x + −0 = x for every x
    fill_tables(leaf_offsets, n_bits, table_offsets, encoded.leaf_code, encoded.leaf_care, values, leaves)
    n_temporary = np.bincount(group, encoded.n_temporary, len(sizes)).max(initial=0)
    return Groups(
        np.array(sizes, np.int64), encoded.choice_offsets[bounds], choices,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(bits_of_code)]), planes, table, leaves,
    ), int(n_temporary)  # fmt: skip


def _moved(rows: Int32s, sizes: Ints, shift: Ints, temporary: int) -> NDArray[np.uint16]:
    """Return row numbers with each tree's temporary rows moved after those of earlier trees of its group."""
    moved = rows + np.where(rows >= temporary, np.repeat(shift, sizes), 0)
    return moved.astype(np.uint16)


@kernel
def fill_tables(
    leaf_offsets: Ints, n_bits: Ints, table_offsets: Ints, code: Any, care: Any, values: Any, leaves: Any
) -> None:
    """Write each leaf's value to all entries of its tree's table that agree with its code in the bits that matter."""
    for tree in range(len(n_bits)):
        first = table_offsets[tree]
        for leaf in range(leaf_offsets[tree], leaf_offsets[tree + 1]):
            free = ((1 << n_bits[tree]) - 1) & ~np.int64(care[leaf])
            others = np.int64(0)
            while True:  # loop over all subsets of the bits that do not matter
                leaves[first + (code[leaf] | others)] = values[leaf]
                others = (others - free) & free
                if others == 0:
                    break
