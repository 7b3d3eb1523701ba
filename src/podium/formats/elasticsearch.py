"""Elasticsearch's own learning to rank: the body of `PUT _ml/trained_models/<id>`.

Sources: elastic/eland, eland/ml/_model_serializer.py; elastic/elasticsearch, …/inference/trainedmodel/tree/TreeNode.
Doubles; `decision_type` says how to compare; a missing feature follows `default_left`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.errors import DataError
from podium.formats.base import Format, Written
from podium.formats.trees import (
    CATEGORIES,
    Leaf,
    Split,
    as_ensemble,
    double_thresholds,
    feature_labels,
    floor32,
    make_tree,
    node_of,
    numbered_categories,
    plain_trees,
    root_of,
    scaled,
)
from podium.models import Ensemble, Model
from podium.trees import Tree


class Elasticsearch(Format):
    """The definition of a trained model."""

    name = "elasticsearch"
    title = "Elasticsearch's native learning to rank"
    finds_by_name = True
    carries = {  # noqa: RUF012
        "missing directions": "yes", "categories": "by other means", "combined models": "by other means",
        "several outputs": "no", "linear models": "no", "nets": "no", "shifted features": "by other means",
    }  # fmt: skip

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """An object with a definition of a trained model."""
        return content.lstrip()[:1] == b"{" and b'"trained_model"' in content

    def read(self, content: bytes, source: str) -> Model:
        """The ensemble of a request body."""
        ensemble = json.loads(content)["definition"]["trained_model"]["ensemble"]
        names = tuple(map(str, ensemble["feature_names"]))
        trees = [_tree(member["tree"]["tree_structure"], k) for k, member in enumerate(ensemble["trained_models"])]
        if set(ensemble.get("aggregate_output", {"weighted_sum": {}})) != {"weighted_sum"}:
            raise DataError("the trees are not joined by a weighted sum")
        weights = ensemble.get("aggregate_output", {}).get("weighted_sum", {}).get("weights") or [1.0] * len(trees)
        trees = [scaled(tree, float(weight)) for tree, weight in zip(trees, weights, strict=True)]
        return Ensemble.of_trees(trees, len(names), feature_names=names, info={"imported": "elasticsearch"})

    def write(self, model: Model, suffix: str = "", *, extractors: Sequence[dict[str, Any]] = ()) -> Written:
        """The request body.

        Args:
            model: trees, or a combination of them.
            suffix: not needed.
            extractors: `feature_extractors`, which say where Elasticsearch finds each feature; by default one match
                query for each name, to be replaced.

        """
        ensemble = as_ensemble(model, self.name)
        labels = feature_labels(ensemble)
        trees = plain_trees(ensemble, self.name)
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        shared = {"feature_names": labels, "target_type": "regression"}
        members = [
            {"tree": {**shared, "tree_structure": _nodes(tree, t)}} for tree, t in zip(trees, thresholds, strict=True)
        ]
        body: dict[str, Any] = {
            "input": {"field_names": labels},
            "inference_config": {"learning_to_rank": {"feature_extractors": list(extractors) or [
                {"query_extractor": {"feature_name": label, "query": {"match": {label: "{{query}}"}}}}
                for label in labels
            ]}},
            "definition": {"trained_model": {"ensemble": {
                **shared, "aggregate_output": {"weighted_sum": {}}, "trained_models": members,
            }}},
        }  # fmt: skip
        if categories := numbered_categories(ensemble):
            body["metadata"] = {CATEGORIES: categories}
        notes = () if extractors else ("replace the feature extractors by the queries that your features come from",)
        return Written(
            json.dumps(body, ensure_ascii=False).encode(),
            "a feature that does not match goes to the side that was learnt for missing values", notes,
        )  # fmt: skip


def _tree(structure: Sequence[dict[str, Any]], number: int) -> Tree:
    """A tree of a definition."""
    nodes = {int(node["node_index"]): node for node in structure}

    def node(key: int) -> Split | Leaf:
        entry = nodes[key]
        if "leaf_value" in entry:
            return Leaf(float(entry["leaf_value"]))
        if entry.get("decision_type", "lte") != "lte":
            raise DataError(f"tree {number} compares by {entry['decision_type']}; only lte is read")
        return Split(
            int(entry["split_feature"]), float(floor32(float(entry["threshold"]))), bool(entry.get("default_left")),
            int(entry["left_child"]), int(entry["right_child"]),
        )  # fmt: skip

    return make_tree(0, node, f"tree {number}")


def _nodes(tree: Tree, thresholds: Sequence[float]) -> list[dict[str, Any]]:
    """The nodes of a tree, numbered from the root."""
    node = node_of(tree)
    order: list[Any] = [root_of(tree)]
    entries: list[dict[str, Any]] = []
    for k, key in enumerate(order):  # grows while it is walked
        content = node(key)
        if isinstance(content, Leaf):
            entries.append({"node_index": k, "leaf_value": content.value})
            continue
        left = len(order)
        order += [content.left, content.right]
        entries.append({
            "node_index": k, "decision_type": "lte", "split_feature": content.feature, "threshold": thresholds[key],
            "default_left": content.missing_left, "left_child": left, "right_child": left + 1,
        })  # fmt: skip
    return entries
