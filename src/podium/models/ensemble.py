"""The class `Ensemble`, trees in flat arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Floats, Int32s, Ints
from podium.core.validation import require_whole
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.errors import DataError
from podium.models.archive import Parts, StoredModel
from podium.models.base import Model
from podium.models.scoring import TreeArrays, TreeScorer, find_leaves
from podium.models.structure import ARRAYS, LEAF_ARRAYS, NODE_ARRAYS, check_trees, select_trees

if TYPE_CHECKING:
    from podium.trees import Bins, Tree

# Version 0.1 stored the borders between bins, and its reader requires them.
_UNUSED: dict[str, NDArray[Any]] = {"cut_counts": np.empty(0, np.int64), "cuts": np.empty(0, np.float32)}


@dataclass(frozen=True)
class Ensemble(Model):
    """A sequence of trees; a score is the sum of one leaf of each tree, in order.

    Attributes:
        n_features: the number of features.
        arrays: all trees in flat arrays. Tree t has the nodes from `node_offsets[t]` and the leaves from
            `leaf_offsets[t]` on. Children are counted from the tree's first node, and leaf k is ~k. See
            `podium.trees.Tree`.
        feature_names: names of the features, or None.
        info: facts about training, such as parameters and history, in JSON types.
        encoding: how the features of the training data were encoded: names of categories, shifts.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data).model_
        >>> model
        Ensemble(3 trees with 12 leaves on 4 features)
        >>> model.truncate(1).n_trees, model.leaves(data).shape
        (1, (1000, 3))

    """

    n_features: int
    arrays: dict[str, NDArray[Any]]
    feature_names: tuple[str, ...] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    encoding: Encoding = field(default_factory=Encoding)
    file_kind: ClassVar[str | None] = "podium ensemble"

    def __post_init__(self) -> None:
        """Raise if the arrays are not safe to traverse."""
        check_trees(self.arrays, self.n_features)
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise DataError(
                f"feature_names has {len(self.feature_names)} names, but there are {self.n_features} features"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values, which can be computed again."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Validate copies and pickles like any other ensemble.

        Unpickled arrays may be at any address, so those that are not aligned are copied.
        """
        arrays = {name: np.require(values, requirements="A") for name, values in state["arrays"].items()}
        self.__dict__.update(state | {"arrays": arrays})
        self.__post_init__()

    @classmethod
    def of_trees(cls, trees: Sequence[Tree], n_features: int, **others: Any) -> Ensemble:
        """Return the ensemble of these trees."""
        columns: dict[str, NDArray[Any]] = {}
        for name in (*NODE_ARRAYS, *LEAF_ARRAYS):
            columns[name] = np.concatenate([np.empty(0, ARRAYS[name]), *(getattr(tree, name) for tree in trees)])
        sets = [values for tree in trees for values in tree.categories]
        if sets:
            first_sets = np.cumsum([0, *(len(tree.categories) for tree in trees[:-1])])
            first_set = np.repeat(first_sets, [len(tree.category) for tree in trees])
            columns["category"] = np.where(columns["category"] >= 0, columns["category"] + first_set, -1)
        columns["category_values"] = np.concatenate([np.empty(0, np.float32), *sets])
        columns["category_offsets"] = np.cumsum([0, *map(len, sets)])
        columns["node_offsets"] = np.cumsum([0, *(len(tree.feature) for tree in trees)])
        columns["leaf_offsets"] = np.cumsum([0, *(tree.n_leaves for tree in trees)])
        arrays: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(columns[name], dtype) for name, dtype in ARRAYS.items()
        }
        return cls(n_features, arrays, **others)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.arrays["node_offsets"]) - 1

    @property
    def trees_per_round(self) -> int:
        """The number of trees per round of training: more than one if the ensemble is a sum of outputs."""
        per_round = self.info.get("trees_per_round", 1)
        return per_round if isinstance(per_round, int) and 0 < per_round <= max(1, self.n_trees) else 1

    @property
    def features_with_missing(self) -> frozenset[int] | None:
        """The numbers of the features that had missing values in training; None if unknown."""
        features = self.info.get("features_with_missing")
        if not isinstance(features, list) or not all(isinstance(feature, int) for feature in features):
            return None
        return frozenset(features)

    def __len__(self) -> int:
        return self.n_trees

    def __repr__(self) -> str:
        leaves = len(self.arrays["leaf_value"])
        return f"Ensemble({self.n_trees} trees with {leaves} leaves on {self.n_features} features)"

    def _predict_rows(
        self, features: Features, offsets: Ints | None = None, *, n_trees: int | None = None,
        n_threads: int | None = None,
    ) -> Floats:  # fmt: skip
        """Return the score of each row by the first `n_trees` trees, or all; `offsets` of queries are ignored."""
        last = self._checked_count(n_trees)
        scores = np.zeros(self._checked_rows(features))
        self.add_scores(features, scores, 0, last, n_threads)
        return scores

    def splits_at(self, bins: Bins) -> bool:
        feature, threshold, category = (self.arrays[name] for name in ("feature", "threshold", "category"))
        if bins.n_features != self.n_features:
            return False
        for k in np.unique(feature).tolist():
            nodes = feature == k
            is_number = category[nodes] < 0
            if (k in bins.categories) == bool(is_number.any()):
                return False
            cuts = np.append(bins.cuts[k], np.float32(np.inf))  # infinity separates missing values from all others
            if not np.isin(threshold[nodes][is_number], cuts).all():
                return False
            rare, offsets = bins.rare.get(k, np.empty(0, np.float32)), self.arrays["category_offsets"]
            for number_of_set in category[nodes][~is_number].tolist():
                left = self.arrays["category_values"][offsets[number_of_set] : offsets[number_of_set + 1]]
                if np.isin(rare, left).sum() not in (0, len(rare)):
                    return False
        return True

    def staged_predict(self, X: Any, n_threads: int | None = None) -> Iterator[Floats]:
        """Yield the scores after the first tree, the second, …"""
        features = self.schema.rows(X)
        scores = np.zeros(self._checked_rows(features))
        for tree in range(self.n_trees):
            self.add_scores(features, scores, tree, tree + 1, n_threads)
            yield scores.copy()

    def add_scores(
        self, features: Features, scores: Floats, first: int, last: int, n_threads: int | None = None
    ) -> None:
        """Add the values of the trees `first` … `last` − 1 to the scores of float32 rows, in place."""
        self._checked_rows(features)
        self._scorer.add_scores(features, scores, first, last, n_threads)

    def prepare(self) -> None:
        """Prepare scoring in blocks now, instead of after many documents."""
        self._scorer.prepare()

    @cached_property
    def _scorer(self) -> TreeScorer:
        return TreeScorer(self.arrays)

    def leaves(self, X: Any, n_threads: int | None = None) -> Int32s:
        """Return the leaf of each tree (column) that each row falls into."""
        features = self.schema.rows(X)
        self._checked_rows(features)
        return find_leaves(TreeArrays.of(self.arrays), features, n_threads)

    def truncate(self, n_trees: int) -> Ensemble:
        """Return the ensemble of the first trees, which is faster and less accurate."""
        numbers = np.arange(self._checked_count(n_trees))
        return replace(self, arrays=select_trees(self.arrays, numbers))

    def cut(self, *ends: int) -> tuple[Ensemble, ...]:
        """Cut the trees into consecutive ensembles: `cut(50)` returns the first 50 trees and the rest.

        Calling `add_scores` of each in turn gives the same bits as the whole ensemble.
        """
        bounds = [0, *ends, self.n_trees]
        for low, high in pairwise(bounds):
            require_whole("an end", high, low, most=self.n_trees)
        ranges = (np.arange(low, high) for low, high in pairwise(bounds))
        return tuple(replace(self, arrays=select_trees(self.arrays, numbers), info={}) for numbers in ranges)

    def tree(self, number: int) -> Tree:
        """Return one of the trees."""
        from podium.trees import Tree  # here, so that loading a model does not import binning and growing

        a = self.arrays
        nodes = slice(a["node_offsets"][number], a["node_offsets"][number + 1])
        leaves = slice(a["leaf_offsets"][number], a["leaf_offsets"][number + 1])
        entries = [k for k in a["category"][nodes] if k >= 0]  # the numbers of the tree's sets of categories
        renumbered = np.where(a["category"][nodes] >= 0, a["category"][nodes] - min(entries, default=0), -1)
        sets = tuple(
            a["category_values"][a["category_offsets"][k] : a["category_offsets"][k + 1]] for k in sorted(entries)
        )
        return Tree(
            a["feature"][nodes], a["threshold"][nodes], a["missing_left"][nodes], renumbered.astype(np.int32),
            a["left"][nodes], a["right"][nodes], a["gain"][nodes], a["count"][nodes], a["leaf_value"][leaves],
            a["leaf_count"][leaves], sets,
        )  # fmt: skip

    def outputs(self, n: int) -> tuple[Ensemble, ...]:
        """Return the ensembles of the n outputs, whose trees alternate in this one."""
        if n == 1:
            return (self,)
        numbers = [np.arange(output, self.n_trees, n) for output in range(n)]
        return tuple(replace(self, arrays=select_trees(self.arrays, trees), info={}) for trees in numbers)

    def weighted_sum(self, weights: Floats) -> Ensemble:
        """Return an ensemble that is the weighted sum of the outputs, whose trees alternate.

        Gains of different outputs have different units, so each is divided by the sum of the gains of its output.
        """
        outputs = np.arange(self.n_trees) % len(weights)
        of_leaves, of_nodes = (np.repeat(outputs, np.diff(self.arrays[f"{kind}_offsets"])) for kind in ("leaf", "node"))
        totals = np.bincount(of_nodes, self.arrays["gain"], len(weights))
        arrays = self.arrays | {
            "leaf_value": self.arrays["leaf_value"] * weights[of_leaves],
            "gain": self.arrays["gain"] / np.where(totals > 0, totals, 1.0)[of_nodes],
        }
        info = {"trees_per_round": len(weights), "output_weights": weights.tolist()}
        return replace(self, arrays=arrays, info=self.info | info)

    def importance(self, kind: Literal["gain", "count"] = "gain") -> Floats:
        """Return the sum of the gains of each feature's splits, or their number."""
        if kind not in ("gain", "count"):
            raise DataError(f"kind must be 'gain' or 'count', but got {kind!r}")
        weights = self.arrays["gain"] if kind == "gain" else None
        return np.bincount(self.arrays["feature"], weights, self.n_features).astype(np.float64)

    def _parameters(self) -> dict[str, NDArray[Any]]:
        return TreeArrays.of(self.arrays)._asdict()

    def dump(self, kind: Literal["text", "json"] = "text") -> str:
        """Return all trees as text or JSON."""
        if kind not in ("text", "json"):
            raise DataError(f"kind must be 'text' or 'json', but got {kind!r}")
        trees = (self.tree(k) for k in range(self.n_trees))
        try:
            nodes = [self._node(tree, 0 if len(tree.feature) else -1) for tree in trees]
            if kind == "json":
                return json.dumps({"n_features": self.n_features, "trees": nodes}, indent=1)
            lines: list[str] = []
            for k, root in enumerate(nodes):
                lines.append(f"tree {k}")
                self._add_lines(root, 1, lines)
            return "\n".join(lines)
        except RecursionError:
            raise DataError("a tree is too deep to be shown as text or JSON") from None

    def trees_to_dataframe(self, library: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return all nodes as a data frame, in the order and the columns of LightGBM's method of this name.

        A split sends `x <= threshold` left, or the values listed in `categories`, separated by `||`. Shifted features
        have thresholds of shifted values. Splits have no `value`.

        Args:
            library: the library of the frame.

        Example:
            >>> import podium
            >>> model = podium.LambdaMART(n_trees=2, n_leaves=3).fit(podium.artificial(20, features=4)).model_
            >>> model.trees_to_dataframe("polars")["node_index"].to_list()[:3]
            ['0-S0', '0-L0', '0-S1']

        """
        from podium.models.tree_frames import frame_of_trees

        return frame_of_trees(self, library)

    def _node(self, t: Tree, node: int) -> dict[str, Any]:
        if node < 0:
            return {"value": float(t.leaf_value[~node]), "count": int(t.leaf_count[~node])}
        test: dict[str, Any] = {"feature": self.label_of_feature(int(t.feature[node]))}
        if t.category[node] >= 0:
            names: dict[float, Any] = dict(enumerate(self.encoding.categories.get(int(t.feature[node]), ())))
            test["in"] = [names.get(value, value) for value in t.categories[t.category[node]].tolist()]
        else:
            limit = float(t.threshold[node])
            test |= {"at_most": limit if np.isfinite(limit) else str(limit), "missing_left": bool(t.missing_left[node])}
        return test | {
            "gain": float(t.gain[node]), "count": int(t.count[node]),
            "left": self._node(t, int(t.left[node])), "right": self._node(t, int(t.right[node])),
        }  # fmt: skip

    def _add_lines(self, node: dict[str, Any], depth: int, lines: list[str]) -> None:
        indent = "  " * depth
        if "value" in node:
            lines.append(f"{indent}{node['value']:.6g}  ({node['count']} documents)")
            return
        if "in" in node:
            test = f"in {node['in']}"
        else:
            test = f"<= {node['at_most']:.6g}" if isinstance(node["at_most"], float) else "is not missing"
            test += " or missing" if node["missing_left"] else ""
        lines.append(f"{indent}{node['feature']} {test}  ({node['count']} documents, gain {node['gain']:.4g})")
        self._add_lines(node["left"], depth + 1, lines)
        self._add_lines(node["right"], depth + 1, lines)

    def to_parts(self) -> Parts:
        return Parts({}, self.arrays | _UNUSED)

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Ensemble:
        arrays = {name: stored.array(name, dtype) for name, dtype in ARRAYS.items()}
        return cls(stored.n_features, arrays, stored.feature_names, stored.info, stored.encoding)

    def _checked_count(self, n_trees: int | None) -> int:
        if n_trees is None:
            return self.n_trees
        require_whole("n_trees", n_trees, 0, most=self.n_trees)
        return n_trees
