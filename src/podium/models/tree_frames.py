"""Trees as a data frame: a row for each node, in the columns of LightGBM's `trees_to_dataframe`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.errors import DataError

if TYPE_CHECKING:
    from podium.models.ensemble import Ensemble

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # what makes a frame of columns
COLUMNS = (
    "tree_index", "node_depth", "node_index", "left_child", "right_child", "parent_index", "split_feature",
    "split_gain", "threshold", "categories", "decision_type", "missing_direction", "value", "count",
)  # fmt: skip


def frame_of_trees(model: Ensemble, library: str) -> Any:
    """Return the nodes of all trees as a frame of a library, see `Ensemble.trees_to_dataframe`."""
    if library not in FRAMES:
        raise DataError(f"library must be one of {', '.join(map(repr, FRAMES))}, not {library!r}")
    try:
        make_frame = getattr(import_module(library), FRAMES[library])
    except ImportError:
        raise DataError(f"{library} is not installed: pip install {library}") from None
    rows = [row for number in range(model.n_trees) for row in _rows(model, number)]
    return make_frame({name: [row.get(name) for row in rows] for name in COLUMNS})


def _rows(model: Ensemble, number: int) -> list[dict[str, Any]]:
    """Return the nodes of a tree in depth-first order, left subtrees first."""
    tree = model.tree(number)
    rows: list[dict[str, Any]] = []
    waiting: list[tuple[int, int | None, int]] = [(0 if len(tree.feature) else -1, None, 1)]
    while waiting:
        node, parent, depth = waiting.pop()
        row: dict[str, Any] = {
            "tree_index": number, "node_depth": depth, "node_index": _name(number, node),
            "parent_index": None if parent is None else _name(number, parent),
        }  # fmt: skip
        rows.append(row)
        if node < 0:
            row |= {"value": float(tree.leaf_value[~node]), "count": int(tree.leaf_count[~node])}
            continue
        feature, left, right = int(tree.feature[node]), int(tree.left[node]), int(tree.right[node])
        row |= {
            "left_child": _name(number, left), "right_child": _name(number, right),
            "split_feature": model.label_of_feature(feature), "split_gain": float(tree.gain[node]),
            "count": int(tree.count[node]),
        }  # fmt: skip
        if tree.category[node] >= 0:
            names: dict[float, Any] = dict(enumerate(model.encoding.categories.get(feature, ())))
            values = tree.categories[tree.category[node]].tolist()
            row |= {"categories": "||".join(str(names.get(v, f"{v:g}")) for v in values), "decision_type": "=="}
            row["missing_direction"] = "right"  # like every category that is not in the set
        else:
            row |= {"threshold": float(tree.threshold[node]), "decision_type": "<="}
            row["missing_direction"] = "left" if tree.missing_left[node] else "right"
        waiting += [(right, node, depth + 1), (left, node, depth + 1)]
    return rows


def _name(tree: int, node: int) -> str:
    return f"{tree}-S{node}" if node >= 0 else f"{tree}-L{~node}"
