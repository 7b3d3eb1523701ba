"""Leaves as codes: how the bits of a leaf's number follow from the comparisons of a tree.

The comparisons of a tree are rows of words, a bit for each document. The leaf of a document is a *code*, and each bit
of the code is a row of words, too, made by *choices*: where the bits of a condition are set the bits of one row, else
those of another.

A tree of two leaves has a code of one bit, the comparison itself. In general a region of a tree is cut in two: the part
`inner` below one of its nodes, and what is left, `outer`, in which the node's sibling takes the place of their parent.
Both have codes. The code of the region has their bits, chosen by whether a document is in `inner`, and this condition
as one bit more. Bits that only one part has need no choice: whatever they are for the other part, its leaves stand in
the table at all of these codes. If the cut is below the root the condition is the root's comparison; cuts further down
need choices to join the comparisons on the way, and keep the codes of uneven trees short. A tree of n leaves so takes
about n choices, on 512 documents at once, where a walk takes its depth of steps for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel

Ints = NDArray[np.int64]
Int = Any  # an integer, compiled as int64

NO_BITS, ALL_BITS, COMPARISONS = 0, 1, 2  # rows of words: all bits unset, all set, then the comparisons
MAX_BITS = 14  # of a code: the leaves of a tree are a table of 2^bits
TOO_DEEP = -1  # what `encode_trees` returns for trees that need more


class EncodedTrees(NamedTuple):
    """The choices and codes of some trees, each with temporary rows of its own, numbered from 0 after `temporary`.

    Attributes:
        choices: rows of target, condition and the two to choose from, four for each choice.
        choice_offsets: of each tree's choices.
        planes: the rows of the bits of each tree's code.
        plane_offsets: of each tree's bits.
        n_temporary: the number of temporary rows of each tree.
        leaf_code, leaf_care: of each leaf the code, and which of its bits matter.

    """

    choices: NDArray[np.int32]
    choice_offsets: Ints
    planes: NDArray[np.int32]
    plane_offsets: Ints
    n_temporary: Ints
    leaf_code: NDArray[np.int32]
    leaf_care: NDArray[np.int32]


class _Region(NamedTuple):
    """The nodes of one tree, as regions are cut out of it; children below 0 are leaves."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    n_leaves: NDArray[np.int32]
    depth: NDArray[np.int32]
    row: NDArray[np.int32]  # of the node's comparison


class _Stack(NamedTuple):
    """The regions that are being encoded, and of the encoded ones what the code of the whole needs."""

    frames: NDArray[np.int64]  # node, bits, stage, condition, inner, outer
    sizes: NDArray[np.int64]  # bits and leaves of each encoded region
    bits: NDArray[np.int32]  # rows of the bits of encoded regions, one region after the other
    leaves: NDArray[np.int32]  # of encoded regions, likewise
    code: NDArray[np.int32]  # of each leaf, as far as it is known
    care: NDArray[np.int32]  # the bits of it that matter
    path: NDArray[np.int32]  # nodes on the way to a cut
    free: NDArray[np.int32]  # temporary rows that are not used any more
    counts: NDArray[np.int64]  # choices, temporary rows, free ones, bits and leaves of encoded regions


N_CHOICES, N_TEMPORARY, N_FREE, N_BITS, N_LEAVES = range(5)
MOST_CHOICES = 2 * MAX_BITS  # for each node: of its code's bits, and on the way to its cut


def encode_all(
    left: NDArray[np.int32], right: NDArray[np.int32], row: NDArray[np.int32], node_offsets: Ints, temporary: int
) -> EncodedTrees | None:
    """The choices and codes of trees; None where one is so large or deep that a walk is faster.

    Args:
        left, right, node_offsets: of the trees, as in `podium.models.Ensemble`.
        row: of the comparison of each node.
        temporary: the first temporary row.

    """
    n_nodes, n_trees = len(left), len(node_offsets) - 1
    n_leaves = n_nodes + n_trees
    if np.diff(node_offsets).max(initial=0) >= 1 << MAX_BITS:
        return None
    encoded = EncodedTrees(
        np.empty(4 * MOST_CHOICES * n_nodes, np.int32), np.zeros(n_trees + 1, np.int64),
        np.empty(MAX_BITS * n_trees, np.int32), np.zeros(n_trees + 1, np.int64), np.zeros(n_trees, np.int64),
        np.zeros(n_leaves, np.int32), np.zeros(n_leaves, np.int32),
    )  # fmt: skip
    n_choices = encode_trees(left, right, row, node_offsets, temporary, encoded)
    if n_choices == TOO_DEEP:
        return None
    return encoded._replace(
        choices=encoded.choices[: 4 * n_choices], planes=encoded.planes[: encoded.plane_offsets[-1]]
    )


@kernel
def encode_trees(
    left: NDArray[np.int32], right: NDArray[np.int32], row: NDArray[np.int32], node_offsets: Ints, temporary: Int,
    encoded: EncodedTrees,
) -> Int:  # fmt: skip
    """Fill in the choices and codes of all trees; the number of choices, or `TOO_DEEP`."""
    largest = 0
    for tree in range(len(node_offsets) - 1):
        largest = max(largest, node_offsets[tree + 1] - node_offsets[tree])
    region = _Region(
        np.empty(largest, np.int32), np.empty(largest, np.int32), np.empty(largest, np.int32),
        np.empty(largest, np.int32), np.empty(largest, np.int32),
    )  # fmt: skip
    stack = _Stack(
        np.empty((MAX_BITS + 2, 6), np.int64), np.empty((2 * MAX_BITS + 4, 2), np.int64),
        np.empty((MAX_BITS + 2) ** 2, np.int32), np.empty(largest + 1, np.int32), np.empty(largest + 1, np.int32),
        np.empty(largest + 1, np.int32), np.empty(largest + 1, np.int32), np.empty((MAX_BITS + 2) ** 2, np.int32),
        np.zeros(5, np.int64),
    )  # fmt: skip
    n_choices = np.int64(0)
    for tree in range(len(node_offsets) - 1):
        first, n = node_offsets[tree], node_offsets[tree + 1] - node_offsets[tree]
        n_bits, spare = 1, 1
        while (1 << (n_bits - spare)) < n + 1:
            n_bits += 1
        while True:
            _fill_region(left, right, row, first, n, region)
            stack.counts[:] = 0
            stack.counts[N_CHOICES] = n_choices
            stack.code[:] = 0
            stack.care[:] = 0
            if _encode(0 if n else -1, n_bits, spare, temporary, region, stack, encoded.choices):
                break
            n_bits, spare = n_bits + 1, spare + 1
            if n_bits > MAX_BITS:
                return TOO_DEEP
        n_choices = stack.counts[N_CHOICES]
        encoded.choice_offsets[tree + 1] = n_choices
        encoded.n_temporary[tree] = stack.counts[N_TEMPORARY]
        _keep_code(tree, first + tree, n + 1, stack, encoded)
    return n_choices


@helper
def _keep_code(tree: Int, first_leaf: Int, n_leaves: Int, stack: _Stack, encoded: EncodedTrees) -> None:
    """The rows of a tree's code, and the codes of its leaves."""
    start = encoded.plane_offsets[tree]
    for j in range(stack.counts[N_BITS]):
        encoded.planes[start + j] = stack.bits[j]
    encoded.plane_offsets[tree + 1] = start + stack.counts[N_BITS]
    for leaf in range(n_leaves):
        encoded.leaf_code[first_leaf + leaf], encoded.leaf_care[first_leaf + leaf] = stack.code[leaf], stack.care[leaf]


@helper
def _fill_region(left: Any, right: Any, row: Any, first: Int, n: Int, region: _Region) -> None:
    """The whole tree, with the number of leaves and the depth below each node; children come after their parents."""
    for node in range(n - 1, -1, -1):
        region.left[node], region.right[node] = left[first + node], right[first + node]
        region.row[node] = row[first + node]
        _measure(node, region)


@helper
def _measure(node: Int, region: _Region) -> None:
    left, right = np.int64(region.left[node]), np.int64(region.right[node])
    region.n_leaves[node] = _n_leaves(left, region) + _n_leaves(right, region)
    region.depth[node] = 1 + max(_depth(left, region), _depth(right, region))


@helper
def _n_leaves(node: Int, region: _Region) -> Int:
    return np.int64(region.n_leaves[node]) if node >= 0 else np.int64(1)


@helper
def _depth(node: Int, region: _Region) -> Int:
    return np.int64(region.depth[node]) if node >= 0 else np.int64(0)


@helper
def _fits(node: Int, n_bits: Int, spare: Int, region: _Region) -> Any:
    """Whether a region surely has a code of so many bits, or probably: `spare` more than its leaves need."""
    return _depth(node, region) <= n_bits or _n_leaves(node, region) << spare <= 1 << n_bits


@helper
def _encode(root: Int, n_bits: Int, spare: Int, temporary: Int, region: _Region, stack: _Stack, choices: Any) -> Any:
    """Encode a tree with codes of so many bits at most; whether that was possible."""
    frames, sizes, counts = stack.frames, stack.sizes, stack.counts
    top, n_encoded = 0, 0
    frames[0, 0], frames[0, 1], frames[0, 2] = root, n_bits, 0
    while top >= 0:
        node, n_bits, stage = frames[top, 0], frames[top, 1], frames[top, 2]
        if node < 0:  # a leaf has a code of no bits
            stack.leaves[counts[N_LEAVES]] = ~node
            counts[N_LEAVES] += 1
            sizes[n_encoded, 0], sizes[n_encoded, 1] = 0, 1
            n_encoded += 1
            top -= 1
        elif stage < 2:  # first the part where the condition holds, then the other
            if n_bits == 0:
                return False
            if stage == 0:
                _cut(top, spare, temporary, region, stack, choices)
            frames[top, 2] = stage + 1
            frames[top + 1, 0], frames[top + 1, 1], frames[top + 1, 2] = frames[top, 4 + stage], n_bits - 1, 0
            top += 1
        else:
            n_encoded -= 1
            _join(frames[top, 3], n_encoded, temporary, stack, choices)
            top -= 1
    return True


@helper
def _cut(top: Int, spare: Int, temporary: Int, region: _Region, stack: _Stack, choices: Any) -> None:
    """Cut the region of a frame in two: its condition, the part where it holds and the part where not."""
    frame = stack.frames[top]
    node, n_bits = frame[0], frame[1]
    left, right = np.int64(region.left[node]), np.int64(region.right[node])
    below_root = _fits(left, n_bits - 1, spare, region) and _fits(right, n_bits - 1, spare, region)
    if region.depth[node] <= n_bits or below_root:
        frame[3], frame[4], frame[5] = region.row[node], left, right
        return
    length = _find_cut(node, n_bits, spare, region, stack.path)
    inner = np.int64(stack.path[length])
    condition, is_inner = _condition(length, temporary, region, stack, choices)
    outer = _take_out(length, region, stack.path)
    frame[3] = condition
    frame[4], frame[5] = (inner, outer) if is_inner else (outer, inner)


@helper
def _find_cut(root: Int, n_bits: Int, spare: Int, region: _Region, path: Any) -> Int:
    """Go down to the larger child, again and again, as far as both parts get codes that are short enough.

    If there is no such place, to where the parts are most alike. `path` gets the nodes; the length of the way.
    """
    path[0] = root
    node, length, best, least = root, 0, 1, np.int64(1) << 40
    while node >= 0:
        left, right = np.int64(region.left[node]), np.int64(region.right[node])
        node = left if _n_leaves(left, region) >= _n_leaves(right, region) else right
        length += 1
        path[length] = node
        inner = _n_leaves(node, region)
        outer = _n_leaves(root, region) - inner
        if _fits(node, n_bits - 1, spare, region) and outer << spare <= 1 << (n_bits - 1):
            return length
        if abs(inner - outer) < least:
            best, least = length, abs(inner - outer)
    return best


@helper
def _condition(length: Int, temporary: Int, region: _Region, stack: _Stack, choices: Any) -> Any:
    """A row that tells who goes the whole way of a path: those whose bits are set, or those whose bits are not."""
    path = stack.path
    parent = path[length - 1]
    is_inner = region.left[parent] == path[length]
    condition = np.int64(region.row[parent])
    others = NO_BITS if is_inner else ALL_BITS  # what those get who leave the way before
    for k in range(length - 2, -1, -1):
        target = condition if condition >= temporary else _new_row(temporary, stack)
        if region.left[path[k]] == path[k + 1]:
            _choose(target, region.row[path[k]], condition, others, stack, choices)
        else:
            _choose(target, region.row[path[k]], others, condition, stack, choices)
        condition = target
    return condition, is_inner


@helper
def _take_out(length: Int, region: _Region, path: Any) -> Int:
    """Take the node at the end of a path out of its region; the root of what is left."""
    parent, inner = path[length - 1], path[length]
    sibling = np.int64(region.right[parent] if region.left[parent] == inner else region.left[parent])
    if length == 1:
        return sibling
    above = path[length - 2]
    if region.left[above] == parent:
        region.left[above] = sibling
    else:
        region.right[above] = sibling
    for k in range(length - 2, -1, -1):
        _measure(np.int64(path[k]), region)
    return np.int64(path[0])


@helper
def _join(condition: Int, last: Int, temporary: Int, stack: _Stack, choices: Any) -> None:
    """Join the codes of the last two encoded regions, `last` and the one before it, where the condition holds."""
    n_yes, n_no = stack.sizes[last - 1, 0], stack.sizes[last, 0]
    first = stack.counts[N_BITS] - n_yes - n_no
    second, longer = first + n_yes, max(n_yes, n_no)
    for j in range(longer):
        if j >= n_yes:
            stack.bits[first + j] = stack.bits[second + j]
        elif j < n_no:
            yes, no = np.int64(stack.bits[first + j]), np.int64(stack.bits[second + j])
            target = yes if yes >= temporary else no if no >= temporary else _new_row(temporary, stack)
            if yes >= temporary and no >= temporary:
                stack.free[stack.counts[N_FREE]] = no
                stack.counts[N_FREE] += 1
            _choose(target, condition, yes, no, stack, choices)
            stack.bits[first + j] = target
    stack.bits[first + longer] = condition
    stack.counts[N_BITS] = first + longer + 1
    n_leaves = stack.sizes[last - 1, 1] + stack.sizes[last, 1]
    for k in range(n_leaves):
        leaf = stack.leaves[stack.counts[N_LEAVES] - n_leaves + k]
        stack.care[leaf] |= 1 << longer
        if k < stack.sizes[last - 1, 1]:
            stack.code[leaf] |= 1 << longer
    stack.sizes[last - 1, 0], stack.sizes[last - 1, 1] = longer + 1, n_leaves


@helper
def _new_row(temporary: Int, stack: _Stack) -> Int:
    """A temporary row that is free, or a new one."""
    if stack.counts[N_FREE]:
        stack.counts[N_FREE] -= 1
        return np.int64(stack.free[stack.counts[N_FREE]])
    stack.counts[N_TEMPORARY] += 1
    return temporary + stack.counts[N_TEMPORARY] - 1


@helper
def _choose(target: Int, condition: Int, yes: Int, no: Int, stack: _Stack, choices: Any) -> None:
    first = 4 * stack.counts[N_CHOICES]
    choices[first], choices[first + 1], choices[first + 2], choices[first + 3] = target, condition, yes, no
    stack.counts[N_CHOICES] += 1
