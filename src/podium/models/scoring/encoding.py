"""Codes of leaves: how the bits of a leaf's number follow from the comparisons of a tree.

The comparisons of a tree are rows of words with a bit for each document. The leaf of a document is a *code*, and each
bit of the code is a row of words as well, computed by *choices*: a choice takes the bits of one row where the bits of a
condition are set, and those of another row elsewhere.

A tree of two leaves has a code of one bit, the comparison itself. In general a region of a tree is cut in two: the part
`inner` below one of its nodes, and the rest, `outer`, in which the node's sibling replaces their parent. Both have
codes. The code of the region has their bits, chosen by whether a document is in `inner`, and this condition as one more
bit. Bits that only one part has need no choice: the leaves of the other part are in the table at all values of these
bits. If the cut is below the root, the condition is the root's comparison. Cuts further down need choices to combine
the comparisons on the way, but keep the codes of unbalanced trees short. A tree of n leaves takes about n choices for
512 documents at once, while a walk takes as many steps as the tree is deep for each document.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Int, Int32s, Ints
from podium.core.compiling import helper, kernel

NO_BITS, ALL_BITS, COMPARISONS = 0, 1, 2  # rows of words: all bits unset, all set, then the comparisons
MAX_BITS = 14  # maximum length of a code: the leaves of a tree are a table of 2^bits
TOO_DEEP = -1  # the result of `encode_trees` for trees that need more


class EncodedTrees(NamedTuple):
    """The choices and codes of trees; each tree has its own temporary rows, numbered from `temporary` on."""

    choices: Int32s  # four rows for each choice: the target, the condition, and the two to choose from
    choice_offsets: Ints  # where each tree's choices begin
    planes: Int32s  # the rows of the bits of each tree's code
    plane_offsets: Ints  # where each tree's bits begin
    n_temporary: Ints  # the number of temporary rows of each tree
    # leaf_code, leaf_care: the code of each leaf, and which of its bits matter
    leaf_code: Int32s
    leaf_care: Int32s


# A node or leaf of a tree from which regions are cut out. Leaf k of a tree of n nodes is the entry n + k.
NODE = np.dtype(
    [
        ("left", np.int32),
        ("right", np.int32),
        ("n_leaves", np.int32),  # the number of leaves below it
        ("depth", np.int32),  # the depth of the tree below it
        ("row", np.int32),  # the row of its comparison; for a leaf, the code
        ("care", np.int32),  # for a leaf, the bits of the code that matter
    ]
)

# A region that is being encoded. Its two parts are encoded in turn: `stage` counts them.
FRAME = np.dtype(
    [
        ("root", np.int32),
        ("n_bits", np.int32),  # the maximum length of its code
        ("stage", np.int32),
        ("condition", np.int32),  # the row that distinguishes the parts
        ("yes", np.int32),  # the part where its bits are set
        ("no", np.int32),
    ]
)

# The progress of encoding a tree, a single record.
COUNTS = np.dtype(
    [
        ("n_choices", np.int64),
        ("n_temporary", np.int64),  # the number of temporary rows
        ("n_free", np.int64),  # the number of free ones among these
        ("n_bits", np.int64),  # the number of bits on the stack, of the codes of encoded regions
        ("n_leaves", np.int64),  # the number of leaves of these regions, on the stack
        ("spare", np.int64),  # by how many bits a code may exceed what the number of leaves needs
    ]
)

MAX_CHOICES = 2 * MAX_BITS  # per node: for its code's bits, and on the way to its cut
MAX_STACKED = (MAX_BITS + 2) ** 2  # bits of the codes of encoded regions: at most one code per level


class _Stacks(NamedTuple):
    """The regions that are encoded but not yet part of a larger one."""

    sizes: Ints  # the number of bits and of leaves of each
    bits: Int32s  # the rows of their codes
    leaves: Int32s
    free: Int32s  # temporary rows that are no longer in use
    path: Int32s  # the nodes on the way to a cut


def encode_all(left: Int32s, right: Int32s, row: Int32s, node_offsets: Ints, temporary: int) -> EncodedTrees | None:
    """Return the choices and codes of trees; None if one is so large or deep that a walk is faster.

    Args:
        left, right, node_offsets: the trees, as in `podium.models.Ensemble`.
        row: the row of each node's comparison.
        temporary: the first temporary row.

    """
    n_nodes, n_trees = len(left), len(node_offsets) - 1
    n_leaves = n_nodes + n_trees
    if np.diff(node_offsets).max(initial=0) >= 1 << MAX_BITS:
        return None
    encoded = EncodedTrees(
        np.empty(4 * MAX_CHOICES * n_nodes, np.int32), np.zeros(n_trees + 1, np.int64),
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
    left: Int32s, right: Int32s, row: Int32s, node_offsets: Ints, temporary: Int,
    encoded: EncodedTrees,
) -> Int:  # fmt: skip
    """Fill in the choices and codes of all trees, and return the number of choices, or `TOO_DEEP`."""
    largest = 1
    for tree in range(len(node_offsets) - 1):
        largest = max(largest, node_offsets[tree + 1] - node_offsets[tree])
    nodes, frames, counts = np.empty(2 * largest + 1, NODE), np.empty(MAX_BITS + 2, FRAME), np.zeros(1, COUNTS)
    stacks = _Stacks(
        np.empty(4 * (MAX_BITS + 2), np.int64), np.empty(MAX_STACKED, np.int32), np.empty(largest + 1, np.int32),
        np.empty(MAX_STACKED, np.int32), np.empty(largest + 1, np.int32),
    )  # fmt: skip
    n_choices = np.int64(0)
    for tree in range(len(node_offsets) - 1):
        first, n = node_offsets[tree], node_offsets[tree + 1] - node_offsets[tree]
        n_bits, spare = 1, 1
        while (1 << (n_bits - spare)) < n + 1:
            n_bits += 1
        while True:
            _fill_nodes(left[first : first + n], right[first : first + n], row[first : first + n], nodes)
            c = counts[0]
            c.n_choices, c.n_temporary, c.n_free, c.n_bits, c.n_leaves, c.spare = n_choices, 0, 0, 0, 0, spare
            if _encode(n, n_bits, temporary, nodes, frames, stacks, counts, encoded.choices):
                break
            n_bits, spare = n_bits + 1, spare + 1
            if n_bits > MAX_BITS:
                return TOO_DEEP
        n_choices = counts[0].n_choices
        encoded.choice_offsets[tree + 1], encoded.n_temporary[tree] = n_choices, counts[0].n_temporary
        start = encoded.plane_offsets[tree]
        encoded.plane_offsets[tree + 1] = start + counts[0].n_bits
        for j in range(counts[0].n_bits):
            encoded.planes[start + j] = stacks.bits[j]
        for leaf in range(n + 1):
            encoded.leaf_code[first + tree + leaf] = nodes[n + leaf].row
            encoded.leaf_care[first + tree + leaf] = nodes[n + leaf].care
    return n_choices


@helper
def _fill_nodes(left: Any, right: Any, row: Any, nodes: Any) -> None:
    """Fill in the nodes of a tree, with the number of leaves and the depth below each; children follow parents."""
    n = len(left)
    for leaf in range(n, 2 * n + 1):
        nodes[leaf].n_leaves, nodes[leaf].depth, nodes[leaf].row, nodes[leaf].care = 1, 0, 0, 0
    for node in range(n - 1, -1, -1):
        nodes[node].left = left[node] if left[node] >= 0 else n + ~left[node]
        nodes[node].right = right[node] if right[node] >= 0 else n + ~right[node]
        nodes[node].row = row[node]
        _measure(nodes, node)


@helper
def _measure(nodes: Any, node: Int) -> None:
    left, right = nodes[nodes[node].left], nodes[nodes[node].right]
    nodes[node].n_leaves = left.n_leaves + right.n_leaves
    nodes[node].depth = 1 + max(left.depth, right.depth)


@helper
def _encode(
    n: Int, n_bits: Int, temporary: Int, nodes: Any, frames: Any, stacks: _Stacks, counts: Any, choices: Any
) -> Any:
    """Encode a tree of n nodes with a code of limited length, and return whether that was possible."""
    top, n_encoded = 0, 0
    frames[0].root, frames[0].n_bits, frames[0].stage = 0, n_bits, 0
    while top >= 0:
        frame = frames[top]
        if frame.root >= n:  # a leaf has an empty code
            stacks.leaves[counts[0].n_leaves] = frame.root
            counts[0].n_leaves += 1
            stacks.sizes[2 * n_encoded], stacks.sizes[2 * n_encoded + 1] = 0, 1
            n_encoded += 1
            top -= 1
        elif frame.stage < 2:
            if frame.n_bits == 0:
                return False
            if frame.stage == 0:
                _cut(frame, temporary, nodes, stacks, counts, choices)
            below = frames[top + 1]
            below.root, below.n_bits, below.stage = frame.yes if frame.stage == 0 else frame.no, frame.n_bits - 1, 0
            frame.stage += 1
            top += 1
        else:
            n_encoded -= 1
            _join(frame.condition, n_encoded, temporary, nodes, stacks, counts, choices)
            top -= 1
    return True


@helper
def _cut(frame: Any, temporary: Int, nodes: Any, stacks: _Stacks, counts: Any, choices: Any) -> None:
    """Cut the region of a frame in two: set its condition, the part where it holds and the part where it does not.

    The cut is at the root if both parts below it get short enough codes. Otherwise it descends to the larger child
    until that is the case, or to where the parts are most similar in size.
    """
    root, spare = nodes[frame.root], counts[0].spare
    max_codes = 1 << (frame.n_bits - 1)  # of a part
    left, right = nodes[root.left], nodes[root.right]
    left_fits = left.depth < frame.n_bits or left.n_leaves << spare <= max_codes
    right_fits = right.depth < frame.n_bits or right.n_leaves << spare <= max_codes
    if root.depth <= frame.n_bits or (left_fits and right_fits):
        frame.condition, frame.yes, frame.no = root.row, root.left, root.right
        return
    path = stacks.path
    path[0] = frame.root
    node, length, best, min_gap = np.int64(frame.root), 0, 1, np.int64(1) << 40
    while nodes[node].depth > 0:
        left, right = nodes[nodes[node].left], nodes[nodes[node].right]
        node = np.int64(nodes[node].left if left.n_leaves >= right.n_leaves else nodes[node].right)
        length += 1
        path[length] = node
        n_inner = np.int64(nodes[node].n_leaves)
        n_outer = root.n_leaves - n_inner
        if (nodes[node].depth < frame.n_bits or n_inner << spare <= max_codes) and n_outer << spare <= max_codes:
            best = length
            break
        if abs(n_inner - n_outer) < min_gap:
            best, min_gap = length, abs(n_inner - n_outer)
    inner = path[best]
    holds_inside = nodes[path[best - 1]].left == inner
    frame.condition = _join_path(best, holds_inside, temporary, nodes, stacks, counts, choices)
    outer = _take_out(best, nodes, path)
    frame.yes, frame.no = (inner, outer) if holds_inside else (outer, inner)


@helper
def _join_path(
    length: Int, holds_inside: Any, temporary: Int, nodes: Any, stacks: _Stacks, counts: Any, choices: Any
) -> Int:
    """Return a row that marks the documents that follow the whole path, with set or with unset bits."""
    path = stacks.path
    condition = np.int64(nodes[path[length - 1]].row)
    others = np.int64(NO_BITS if holds_inside else ALL_BITS)  # the bits of documents that leave the path earlier
    for k in range(length - 2, -1, -1):
        target = condition if condition >= temporary else _new_row(temporary, stacks.free, counts)
        goes_left = nodes[path[k]].left == path[k + 1]
        yes, no = (condition, others) if goes_left else (others, condition)
        _choose(target, nodes[path[k]].row, yes, no, counts, choices)
        condition = target
    return condition


@helper
def _take_out(length: Int, nodes: Any, path: Any) -> Int:
    """Remove the node at the end of a path from its region, and return the root of the rest."""
    parent = nodes[path[length - 1]]
    sibling = np.int64(parent.right if parent.left == path[length] else parent.left)
    if length == 1:
        return sibling
    above = nodes[path[length - 2]]
    if above.left == path[length - 1]:
        above.left = sibling
    else:
        above.right = sibling
    for k in range(length - 2, -1, -1):
        _measure(nodes, np.int64(path[k]))
    return np.int64(path[0])


@helper
def _join(condition: Int, last: Int, temporary: Int, nodes: Any, stacks: _Stacks, counts: Any, choices: Any) -> None:
    """Join the codes of the last two encoded regions by the condition: `last` where it holds, else the other."""
    bits, sizes = stacks.bits, stacks.sizes
    n_yes, n_no = sizes[2 * last - 2], sizes[2 * last]
    first = counts[0].n_bits - n_yes - n_no
    second, longer = first + n_yes, max(n_yes, n_no)
    for j in range(longer):
        if j >= n_yes:
            bits[first + j] = bits[second + j]
        elif j < n_no:
            yes, no = np.int64(bits[first + j]), np.int64(bits[second + j])
            if yes >= temporary and no >= temporary:
                stacks.free[counts[0].n_free] = no
                counts[0].n_free += 1
            target = max(yes, no) if max(yes, no) >= temporary else _new_row(temporary, stacks.free, counts)
            target = yes if yes >= temporary else target
            _choose(target, condition, yes, no, counts, choices)
            bits[first + j] = target
    bits[first + longer] = condition
    counts[0].n_bits = first + longer + 1
    n_leaves = sizes[2 * last - 1] + sizes[2 * last + 1]
    for k in range(n_leaves):
        leaf = nodes[stacks.leaves[counts[0].n_leaves - n_leaves + k]]
        leaf.care |= 1 << longer
        if k < sizes[2 * last - 1]:
            leaf.row |= 1 << longer
    sizes[2 * last - 2], sizes[2 * last - 1] = longer + 1, n_leaves


@helper
def _new_row(temporary: Int, free: Any, counts: Any) -> Int:
    """Return a free temporary row, or a new one."""
    if counts[0].n_free:
        counts[0].n_free -= 1
        return np.int64(free[counts[0].n_free])
    counts[0].n_temporary += 1
    return temporary + counts[0].n_temporary - 1


@helper
def _choose(target: Int, condition: Int, yes: Int, no: Int, counts: Any, choices: Any) -> None:
    first = 4 * counts[0].n_choices
    choices[first], choices[first + 1], choices[first + 2], choices[first + 3] = target, condition, yes, no
    counts[0].n_choices += 1
