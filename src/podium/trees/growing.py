"""Best-first growth of one tree from integer histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.threads import Team
from podium.errors import DataError
from podium.trees.binning import BinnedFeatures, Bins
from podium.trees.leaves import GrownTree
from podium.trees.parameters import GrowthParameters
from podium.trees.quantization import BoundedGradients, QuantizedGradients, quantize
from podium.trees.tree import Tree


class Grower:
    """Grows trees on one set of binned documents, with a team of threads."""

    def __init__(self, binned: BinnedFeatures, parameters: GrowthParameters, team: Team | None = None) -> None:
        from podium.core.compiling import compile_beside
        from podium.trees import kernels

        self._compiled = compile_beside(kernels.grow, __name__, grow_a_little.__name__)
        self.binned, self.parameters, self.team = binned, parameters, team or Team(1)
        bins = binned.bins
        self.n_bins = bins.counts
        self.is_categorical = np.zeros(bins.n_features, bool)
        self.is_categorical[list(bins.categories)] = True
        self.monotone = np.zeros(bins.n_features, np.int64)
        if parameters.monotone is not None:
            if len(parameters.monotone) != bins.n_features or not set(parameters.monotone) <= {-1, 0, 1}:
                raise DataError(f"monotone must have −1, 0 or 1 for each of the {bins.n_features} features")
            self.monotone[:] = parameters.monotone
            if self.monotone[self.is_categorical].any():
                raise DataError("a categorical feature cannot be monotone")
        n, width, leaves = binned.n_rows, binned.width, min(parameters.n_leaves, max(2, binned.n_rows))
        self.columns = np.empty(n * bins.n_features, np.uint8)
        self.team.shares(n, lambda a, b: kernels.to_columns(binned.flat, n, width, bins.n_features, a, b, self.columns))
        self.n_leaves = leaves
        self.pool = np.empty((leaves, width * kernels.CELLS), np.int64)  # memory is taken as leaves come to be
        self.documents, self.spare = np.empty(n, np.int32), np.empty(n, np.int32)
        self.barrier = np.zeros(16, np.int64)
        self.room = kernels.room(self.team.n_threads, width)
        self.parted = np.zeros(self.team.n_threads * 8, np.int64)  # one cache line a thread

    def grow(
        self,
        gradients: QuantizedGradients,
        rows: NDArray[np.int32] | None = None,
        features: NDArray[np.int64] | None = None,
    ) -> GrownTree:
        """Grow a tree on some rows, rising, and features, rising (all by default).

        The leaf with the highest gain is split next, of equal ones the one that was made first. The rows of the
        result are those of this grower and change with the next tree. Rows that are not in the
        sample of the gradients are partitioned with the others.
        """
        from podium.trees import kernels

        self._compiled()
        p, width = self.parameters, self.binned.bins.n_features
        documents, n_seen = self._listed(gradients, rows)
        features = np.arange(width) if features is None else features
        l2 = p.l2 / gradients.weight_unit if p.split == "newton" else 0.0
        n_leaves = self.n_leaves
        leaves = np.zeros((n_leaves, kernels.N_INTS), np.int64)
        floats = np.zeros((n_leaves, kernels.N_FLOATS))
        goes_left = np.zeros((n_leaves, kernels.CELLS), bool)
        nodes, node_gains, node_goes_left = np.zeros_like(leaves), np.zeros(n_leaves), np.zeros_like(goes_left)
        root = leaves[0]
        root[kernels.SEEN], root[kernels.END], root[kernels.PARENT] = n_seen, len(documents), -1
        root[kernels.TOTAL] = sum(
            self.team.shares(n_seen, lambda a, b: int(kernels.sum_words(gradients.words, documents[a:b])))
        )
        floats[:, kernels.LOW], floats[:, kernels.HIGH] = -math.inf, math.inf
        found, splits = np.empty((2, width)), np.empty((2, width, 4), np.int64)
        depth = -1 if p.max_depth is None else p.max_depth

        flags = self.is_categorical if self.is_categorical.any() else None

        def work(thread: int) -> Any:
            return kernels.grow(
                thread, self.team.n_threads, self.barrier, self.columns, self.binned.flat, self.binned.n_rows,
                self.binned.width, gradients.words, gradients.largest_weight, documents, self.spare, features,
                self.n_bins, flags, self.monotone, gradients.counts_documents, p.min_documents_in_leaf, depth, l2,
                n_leaves, self.pool, leaves, floats, goes_left, nodes, node_gains, node_goes_left, found, splits,
                self.parted, *self.room,
            )  # fmt: skip

        many = int(self.team.run(work)[0])
        return self._finished(
            gradients, documents, leaves[:many], floats[:many], nodes[: many - 1], node_gains[: many - 1],
            node_goes_left[: many - 1],
        )  # fmt: skip

    def _listed(self, gradients: QuantizedGradients, rows: NDArray[np.int32] | None) -> tuple[NDArray[np.int32], int]:
        """The rows that take part, those that are seen first, and how many those are."""
        if gradients.sampled is None or gradients.unsampled is None:
            parts = [np.arange(self.binned.n_rows, dtype=np.int32) if rows is None else rows]
        elif rows is None:
            parts = [gradients.sampled, gradients.unsampled]
        else:
            takes_part = np.zeros(self.binned.n_rows, bool)
            takes_part[rows] = True
            parts = [some[takes_part[some]] for some in (gradients.sampled, gradients.unsampled)]
        return np.concatenate(parts, out=self.documents[: sum(map(len, parts))]), len(parts[0])

    def _finished(
        self, gradients: QuantizedGradients, documents: NDArray[np.int32], leaves: NDArray[np.int64],
        floats: NDArray[np.float64], nodes: NDArray[np.int64], gains: NDArray[np.float64], goes_left: NDArray[np.bool_],
    ) -> GrownTree:  # fmt: skip
        """The tree as flat arrays, its leaves in the order in which they came to be, their rows with them."""
        from podium.trees import kernels

        left, right = np.zeros(len(nodes), np.int32), np.zeros(len(nodes), np.int32)
        for table, places in ((nodes, np.arange(len(nodes))), (leaves, ~np.arange(len(leaves)))):
            parent, is_left = table[:, kernels.PARENT], table[:, kernels.IS_LEFT] == 1
            for side, mine in ((left, (parent >= 0) & is_left), (right, (parent >= 0) & ~is_left)):
                side[parent[mine]] = places[mine]
        threshold, category, categories = self._conditions(nodes, goes_left)
        starts, ends = leaves[:, kernels.START].copy(), leaves[:, kernels.END].copy()
        unit = gradients.gradient_unit**2 / gradients.weight_unit
        tree = Tree(
            nodes[:, kernels.FEATURE].astype(np.int32), threshold, nodes[:, kernels.MISSING_LEFT] == 1, category, left,
            right, gains * unit, nodes[:, kernels.END] - nodes[:, kernels.START], np.zeros(len(leaves)), ends - starts,
            categories,
        )  # fmt: skip
        worth = gradients.gradient_unit / gradients.weight_unit
        grown = GrownTree(
            tree,
            documents,
            starts,
            ends,
            goes_left,
            worth * floats[:, kernels.LOW],
            worth * floats[:, kernels.HIGH],
        )
        if self.parameters.split == "least-squares" and self.monotone.any():
            return self._with_newton_bounds(grown, gradients.source)
        return grown

    def _conditions(
        self, nodes: NDArray[np.int64], goes_left: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], tuple[NDArray[np.float32], ...]]:
        """What each node asks in terms of values: a threshold, or the number of its set of categories."""
        from podium.trees import kernels

        bins = self.binned.bins
        threshold, category = np.zeros(len(nodes), np.float32), np.full(len(nodes), -1, np.int32)
        categories: list[NDArray[np.float32]] = []
        for k, (feature, last) in enumerate(nodes[:, [kernels.FEATURE, kernels.BIN]].tolist()):
            if feature in bins.categories:
                category[k] = len(categories)
                known = bins.categories[feature]
                chosen = known[goes_left[k, 1 : len(known) + 1]]
                if feature in bins.rare and goes_left[k, len(known) + 1]:
                    chosen = np.sort(np.concatenate([chosen, bins.rare[feature]]))
                categories.append(chosen)
            else:
                cuts = bins.cuts[feature]
                threshold[k] = cuts[last - 1] if last <= len(cuts) else np.inf
        return threshold, category, tuple(categories)

    def _with_newton_bounds(self, grown: GrownTree, gradients: BoundedGradients) -> GrownTree:
        """Bounds of leaf values from the Newton values of the nodes, where splits were found by least squares."""
        tree, n = grown.tree, len(grown.tree.feature)
        sums = np.column_stack(grown.sums(gradients, self.team))
        of_nodes = np.zeros((n, 2))
        for k in range(n - 1, -1, -1):  # children come after their parents
            for child in (tree.left[k], tree.right[k]):
                of_nodes[k] += of_nodes[child] if child >= 0 else sums[~child]
        bounds = {0: (-math.inf, math.inf)}
        for k in range(n):
            low, high = bounds[k]
            children = [int(tree.left[k]), int(tree.right[k])]
            direction = int(self.monotone[tree.feature[k]])
            mine = [(low, high), (low, high)]
            if direction:
                pairs = [of_nodes[c] if c >= 0 else sums[~c] for c in children]
                values = [min(max(g / (h + self.parameters.l2) if h + self.parameters.l2 > 0 else 0.0, low), high)
                          for g, h in pairs]  # fmt: skip
                middle = (values[0] + values[1]) / 2
                lower, upper = (0, 1) if direction > 0 else (1, 0)
                mine[lower], mine[upper] = (low, min(high, middle)), (max(low, middle), high)
            bounds |= dict(zip(children, mine, strict=True))
        for leaf in range(len(grown.starts)):
            grown.low[leaf], grown.high[leaf] = bounds.get(~leaf, (-math.inf, math.inf))
        return grown


def grow_a_little() -> None:
    """Grow a tree on a few documents: what it takes to have growth compiled."""
    from podium.trees import kernels

    binned = BinnedFeatures(Bins((np.zeros(1, np.float32),), {}), 4, np.ones(4 * kernels.BLOCK + 32, np.uint8))
    grower = Grower(binned, GrowthParameters())
    grower.grow(quantize(BoundedGradients.of(np.arange(4.0), np.ones(4), grower.team)))
