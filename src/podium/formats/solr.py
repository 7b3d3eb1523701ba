"""Solr: `MultipleAdditiveTreesModel` and `LinearModel`, as the model store reads them.

Source: apache/solr,
solr/modules/ltr/src/java/org/apache/solr/ltr/model/{MultipleAdditiveTreesModel,LinearModel}.java. All numbers are
strings. A node sends `x <= threshold + 1e-6` left, as float32; features are identified by name; leaves times the tree's
weight are added as float32.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from podium.errors import DataError
from podium.formats.base import CARRIES, Format, Written, json_content
from podium.formats.ranklib import java_number, linear_constant
from podium.formats.trees import (
    Leaf,
    SplitNode,
    as_float32_ensemble,
    document_of_tree,
    feature_labels,
    largest_float,
    note_on_missing_as_zero,
    numeric_trees,
    scaled,
    tree_of_document,
)
from podium.models import Ensemble, LinearModel, Model
from podium.trees import Tree

TREES, LINEAR = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "org.apache.solr.ltr.model.LinearModel"
SLACK = np.float32(1e-6)  # Solr adds it to every threshold
LINEAR_MISSING = "a feature that does not match counts as 0, but in Podium as the mean of its feature"
KEPT_MISSING = 'NaN goes to the side that was learnt for it; define the features with "defaultValue": "NaN"'


class Solr(Format):
    """A model of Solr's learning-to-rank module."""

    name = "solr"
    title = "Solr's model store"
    finds_by_name = True
    carries = CARRIES | {"linear models": "yes"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content.lstrip()[:1] == b"{" and b"org.apache.solr.ltr.model" in content[:65536]

    def read(self, content: bytes) -> Model:
        document = json.loads(content)
        names = [str(feature["name"]) for feature in document["features"]]
        if len(set(names)) < len(names):
            raise DataError("a feature is listed twice")
        norms = [_norm(feature) for feature in document["features"]]
        params = document["params"]
        if document["class"].endswith("LinearModel"):
            return _linear_of(params["weights"], names, norms)
        if not document["class"].endswith("MultipleAdditiveTreesModel"):
            raise DataError(f"{document['class']} is neither a tree model nor a linear model")
        zero = str(params.get("isNullSameAsZero", "true")).lower() != "false"
        number = {name: k for k, name in enumerate(names)}
        trees = [
            scaled(_tree(tree["root"], number, norms, zero, k), float(_single(tree["weight"])))
            for k, tree in enumerate(params["trees"])
        ]
        return Ensemble.of_trees(trees, len(names), feature_names=tuple(names), info={"imported": "solr"})

    def write(
        self, model: Model, suffix: str = "", *, name: str = "podium", store: str = "_DEFAULT_",
        missing: Literal["keep", "zero"] = "keep",
    ) -> Written:  # fmt: skip
        """Write the body to PUT into the model store.

        Args:
            model: trees, a combination of them, or a linear model.
            suffix: ignored.
            name: the name of the model in Solr.
            store: the feature store of its features.
            missing: `"keep"` writes the side of missing values at each node (`isNullSameAsZero` is false). With
                `"zero"`, Solr scores missing values as 0.

        """
        header: dict[str, Any] = {"class": TREES, "name": name, "store": store}
        if isinstance(model, LinearModel):
            return _linear(model, header | {"class": LINEAR})
        ensemble = as_float32_ensemble(model, self.name)
        labels = feature_labels(ensemble)
        trees = [_nested(tree, labels, missing == "keep") for tree in numeric_trees(ensemble)]
        params = {
            "isNullSameAsZero": str(missing == "zero").lower(),
            "trees": [{"weight": "1", "root": tree} for tree in trees],
        }
        document = header | {"features": [{"name": label} for label in labels], "params": params}
        content = json_content(document)
        note = KEPT_MISSING if missing == "keep" else note_on_missing_as_zero(ensemble)
        return Written(content, note, *_inexact(ensemble))


# --- reading

Norm = tuple[np.float32, np.float32]  # shift and scale of a feature: the trees see (x − shift) / scale, in float32
_JAVA_NUMBER = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")


def _number(value: Any) -> float:
    """Parse a number as Java does: `0.5f` and `1.d` are numbers, but Python's `1_000` is not."""
    match = _JAVA_NUMBER.fullmatch(str(value).strip())
    if match is None:
        raise DataError(f"{value!r:.60} is not a number that Java reads")
    return float(match[1])


def _single(value: Any) -> np.float32:
    return np.float32(_number(value))


def _norm(feature: Mapping[str, Any]) -> Norm:
    """Return the shift and the scale by which Solr normalizes a feature before it scores."""
    norm = feature.get("norm") or {}
    kind, params = str(norm.get("class")).rpartition(".")[2], norm.get("params") or {}
    if not norm or kind == "IdentityNormalizer":
        return np.float32(0), np.float32(1)
    if kind == "MinMaxNormalizer":
        shift = _single(params.get("min", "-Infinity"))
        scale = _single(params.get("max", "Infinity")) - shift
    elif kind == "StandardNormalizer":
        shift, scale = _single(params.get("avg", 0)), _single(params.get("std", 1))
    else:
        raise DataError(f"Solr normalizes {feature['name']!r} by {kind}, which Podium does not know")
    if not (np.isfinite(shift) and np.isfinite(scale) and scale > 0):
        raise DataError(
            f"Solr normalizes {feature['name']!r} by {kind}, which needs finite numbers and a positive range"
        )
    return shift, scale


def _linear_of(weights: Mapping[str, Any], names: Sequence[str], norms: Sequence[Norm]) -> LinearModel:
    """Return a model with weights of raw values; the shifts of the norms go into the constant."""
    shifts, scales = np.array(norms, np.float64).T
    scaled_weights = np.array([_number(weights[name]) for name in names]) / scales
    constant = -float(np.dot(scaled_weights, shifts))
    return LinearModel(scaled_weights, np.zeros(len(names)), constant, tuple(names), {"imported": "solr"})


def _before_norm(threshold: np.float32, norm: Norm) -> np.float32:
    """Return the largest float32 x whose normalized value is at most a threshold: rounding preserves order."""
    shift, scale = norm
    if (shift == 0 and scale == 1) or not np.isfinite(threshold):
        return threshold
    raw: np.float32 = largest_float(lambda x: bool((x - shift) / scale <= threshold), np.float32)
    return raw


def _tree(root: Mapping[str, Any], number: Mapping[str, int], norms: Sequence[Norm], zero: bool, k: int) -> Tree:
    def node(entry: Mapping[str, Any]) -> SplitNode | Leaf:
        if "feature" not in entry:
            if "value" not in entry or "left" in entry or "right" in entry:
                raise DataError(f"tree {k} has a node that is neither a split with a feature nor a leaf with a value")
            return Leaf(float(_single(entry["value"])))
        if entry["feature"] not in number:
            raise DataError(f"tree {k} uses {entry['feature']!r}, which is not among the features: Solr would score 0")
        feature = number[entry["feature"]]
        threshold = _before_norm(_single(entry["threshold"]) + SLACK, norms[feature])
        missing_left = bool(threshold >= 0) if zero else entry.get("missing") == "left"
        return SplitNode(feature, float(threshold), missing_left, entry["left"], entry["right"])

    return tree_of_document(root, node, f"tree {k}")


# --- writing


@cache
def without_slack(threshold: np.float32) -> tuple[np.float32, bool]:
    """Return the largest s with float32(s + 1e-6) <= threshold, and whether the sum equals the threshold."""
    if not np.isfinite(threshold):
        return threshold, True
    lowered = largest_float(lambda x: bool(x + SLACK <= threshold), np.float32)
    return lowered, bool(np.float32(lowered + SLACK) == threshold)


def _nested(tree: Tree, labels: list[str], keep_missing: bool) -> dict[str, Any]:
    def entry(_: int, content: SplitNode | Leaf) -> dict[str, Any]:
        if isinstance(content, Leaf):
            return {"value": repr(float(np.float32(content.value)))}
        threshold = without_slack(np.float32(content.threshold))[0]
        missing = {"missing": "left" if content.missing_left else "right"} if keep_missing else {}
        return {"feature": labels[content.feature], "threshold": java_number(float(threshold))} | missing

    return document_of_tree(tree, entry)


def _inexact(ensemble: Ensemble) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which values go the other way in Solr: a note for single float32 numbers, a difference for more."""
    arrays, labels = ensemble.arrays, feature_labels(ensemble)
    splits = zip(arrays["feature"].tolist(), arrays["threshold"].tolist(), arrays["category"].tolist(), strict=True)
    used = {(feature, threshold) for feature, threshold, category in splits if category < 0}
    gaps = []
    for feature, threshold in used:
        lowered, is_exact = without_slack(np.float32(threshold))
        if not is_exact:
            reached = np.float32(lowered + SLACK)
            is_wide = bool(np.nextafter(reached, np.float32(np.inf)) < threshold)
            gaps.append((is_wide, threshold - float(reached), labels[feature], float(reached), threshold))
    if not gaps:
        return (), ()
    is_wide, _, label, low, high = max(gaps)
    text = (
        f"Solr adds 1e-6 to every threshold, and {len(gaps)} of {len(used)} thresholds are not such sums: "
        f"values just below them go right, not left, such as those of {label!r} above {low:.9g} and up to {high:.9g}"
    )
    if not is_wide:
        return (text,), ()
    return (), (f"{text}. Multiply features with such small values by a constant before training",)


def _linear(model: LinearModel, header: dict[str, Any]) -> Written:
    """Write weights by name; drop the constant, which does not change a ranking."""
    labels = feature_labels(model)
    weights = {label: repr(weight) for label, weight in zip(labels, model.weights.tolist(), strict=True)}
    document = header | {"features": [{"name": label} for label in labels], "params": {"weights": weights}}
    constant = linear_constant(model, Solr.name)
    note = f"scores are {constant:.6g} lower than Podium's: Solr's linear models have no constant term"
    return Written(json_content(document), LINEAR_MISSING, (note,))
