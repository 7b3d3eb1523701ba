"""Elasticsearch's own learning to rank, and the learning-to-rank plugins of Elasticsearch and OpenSearch.

Elasticsearch's own: the body of `PUT _ml/trained_models/<id>`. Sources: elastic/eland, eland/ml/_model_serializer.py;
elastic/elasticsearch, …/inference/trainedmodel/tree/TreeNode. Doubles; `decision_type` says how to compare; a missing
feature follows `default_left`.

The plugins: bodies for `POST _ltr/_featureset/<set>/_createmodel`. Sources: o19s/elasticsearch-learning-to-rank,
opensearch-project/opensearch-learning-to-rank-base, ranker/parser. Trees go in as XGBoost's dump, XGBoost's model or
RankLib's text. In XGBoost's forms `x < threshold` goes left, float32, NaN to the node's missing side, and no base score
is read. The model form takes leaves from `base_weights`, and numbers features by their place in the feature set.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.formats.base import CARRIES, Format, Written, json_content, truth_value, whole_number
from podium.formats.ranklib import RankLib, linear_constant
from podium.formats.trees import (
    CATEGORIES,
    JSON_INFINITY,
    Leaf,
    SplitNode,
    as_ensemble,
    as_float32_ensemble,
    below32,
    by_level,
    double_thresholds,
    feature_labels,
    finite_trees,
    floor32,
    make_tree,
    note_on_missing_as_zero,
    numbered_categories,
    require_index,
    scaled,
)
from podium.formats.xgboost import ROUNDING, document_of, dump, from_document, from_dump
from podium.models import Ensemble, LinearModel, Model
from podium.trees import Tree

GZIP = 31  # window bits that ask zlib for gzip's header
MAX_RATIO = 200  # of the size of a definition to its compressed size: stumps on 600 features reach 100
MAX_SMALL = 1 << 24  # definitions of up to this many bytes may have a higher ratio


class Elasticsearch(Format):
    """The definition of a trained model."""

    name = "elasticsearch"
    title = "Elasticsearch's native learning to rank"
    finds_by_name = True
    carries = CARRIES | {"shifted features": "by other means"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        keys = (b'"trained_model"', b'"trained_model_configs"', b'"compressed_definition"')
        return content.lstrip()[:1] == b"{" and any(key in content for key in keys)

    def read(self, content: bytes) -> Model:
        """Read the trees of a request body, a definition, or a response to `GET _ml/trained_models/<id>`."""
        definition = _definition(json.loads(content))
        if definition.get("preprocessors"):
            kinds = ", ".join(sorted({kind for step in definition["preprocessors"] for kind in step}))
            raise DataError(f"Elasticsearch changes the features before the trees see them (preprocessors: {kinds})")
        model = definition["trained_model"]
        if "tree" in model:
            return _ensemble([model["tree"]], [1.0], ())
        if "ensemble" not in model:
            raise DataError(f"a trained model of the kind {', '.join(model)} does not consist of trees")
        ensemble = model["ensemble"]
        members = [member["tree"] for member in ensemble["trained_models"]]
        aggregate = ensemble.get("aggregate_output", {"weighted_sum": {}})
        if set(aggregate) != {"weighted_sum"}:
            raise DataError(f"the trees are combined by {', '.join(aggregate)}, not by a weighted sum")
        _require_regression(ensemble, "the ensemble")
        weights = aggregate["weighted_sum"].get("weights") or [1.0] * len(members)
        return _ensemble(members, weights, ensemble.get("feature_names", ()))

    def write(self, model: Model, suffix: str = "", *, extractors: Sequence[dict[str, Any]] = ()) -> Written:
        """Write the request body.

        `extractors` are the `feature_extractors`, which define each feature; by default they are placeholders, one
        match query for each name.
        """
        ensemble = as_ensemble(model, self.name)
        labels = feature_labels(ensemble)
        trees = finite_trees(ensemble)
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
        notes = () if extractors else ("replace the feature extractors with the queries that define your features",)
        return Written(
            json_content(body),
            "a feature that does not match goes to the side that was learnt for missing values", notes,
        )  # fmt: skip


# --- reading


def _definition(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "trained_model_configs" in document:
        configs = document["trained_model_configs"]
        if len(configs) != 1:
            raise DataError(f"the response has {len(configs)} models, but expected one: request the model by its id")
        document = configs[0]
    if "compressed_definition" in document:
        document = json.loads(_decompressed(document["compressed_definition"]))
    definition: Mapping[str, Any] = document.get("definition", document)
    if "trained_model" not in definition:
        raise DataError("the model has no definition: request it with GET …?include=definition")
    return definition


def _decompressed(text: str) -> bytes:
    """Decode base64 and gzip up to a limit, because a small file could expand to a thousand times its size."""
    compressed = base64.b64decode(text)
    max_size = max(MAX_SMALL, MAX_RATIO * len(compressed))
    try:
        content = zlib.decompressobj(wbits=GZIP).decompress(compressed, max_size + 1)
    except zlib.error as error:
        raise DataError(f"compressed_definition is not valid gzip: {error}") from None
    if len(content) > max_size:
        raise DataError(f"compressed_definition expands to over {max_size:,} bytes")
    return content


def _ensemble(members: Sequence[Mapping[str, Any]], weights: Sequence[float], names: Sequence[str]) -> Ensemble:
    """Return trees times their weights; features are matched by name, because each tree has its own list of them."""
    number = {str(name): k for k, name in enumerate(names)}
    trees = []
    for k, (member, weight) in enumerate(zip(members, weights, strict=True)):
        _require_regression(member, f"tree {k}")
        columns = [number.setdefault(str(name), len(number)) for name in member["feature_names"]]
        trees.append(scaled(_tree(member["tree_structure"], columns, f"tree {k}"), float(weight)))
    return Ensemble.of_trees(trees, len(number), feature_names=tuple(number), info={"imported": "elasticsearch"})


def _require_regression(part: Mapping[str, Any], name: str) -> None:
    if part.get("target_type", "regression") != "regression":
        raise DataError(f"{name} is for {part['target_type']}, but a score is a regression")


def _tree(nodes: Sequence[Mapping[str, Any]], columns: Sequence[int], name: str) -> Tree:
    """Return a tree; as in Elasticsearch, keys are places in the list, and a node without a left child is a leaf."""

    def node(key: int) -> SplitNode | Leaf:
        require_index(key, len(nodes), f"{name}: a node")
        entry = nodes[key]
        count = whole_number(entry.get("number_samples", 0), f"{name}: number_samples")
        if "left_child" not in entry:
            (value,) = np.ravel(entry["leaf_value"])  # a number, or a list of one
            return Leaf(float(value), count)
        feature, left, right = (
            whole_number(entry[key], f"{name}: {key}") for key in ("split_feature", "left_child", "right_child")
        )
        threshold = float(entry["threshold"])
        missing_left = truth_value(entry.get("default_left", False), f"{name}: default_left")
        require_index(feature, len(columns), f"{name}: a feature")
        decision = entry.get("decision_type", "lte")
        if decision in ("gt", "gte"):  # the false branch is on the right
            left, right, missing_left = right, left, not missing_left
        elif decision not in ("lt", "lte"):
            raise DataError(f"{name} compares by {decision}, which is not a comparison with a threshold")
        bound = floor32(threshold) if decision in ("lte", "gt") else below32(threshold)
        gain = float(entry.get("split_gain", 0.0))
        return SplitNode(columns[feature], float(bound), missing_left, left, right, None, gain, count)

    return make_tree(0, node, name)


# --- writing


def _nodes(tree: Tree, thresholds: Sequence[float]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for k, (key, content, left) in enumerate(by_level(tree)):
        if isinstance(content, Leaf):
            entries.append({"node_index": k, "leaf_value": content.value})
            continue
        entries.append({
            "node_index": k, "decision_type": "lte", "split_feature": content.feature, "threshold": thresholds[key],
            "default_left": content.missing_left, "left_child": left, "right_child": left + 1,
        })  # fmt: skip
    return entries


OBJECTIVE = "rank:pairwise"  # scores as they are; older plugins refuse rank:ndcg, which means the same
Definition = Literal["xgboost+json", "xgboost+json+raw", "ranklib"]
ORDER = "the feature set must list the features in the model's order, because this definition refers to their numbers"


class Plugin(Format):
    """The base class of the formats of both plugins."""

    finds_by_name = True
    carries = CARRIES | {"linear models": "yes"}

    def read(self, content: bytes) -> Model:
        """Read the trees or weights of a request body."""
        model = json.loads(content)["model"]["model"]
        kind, text = model["type"], model["definition"]
        if kind == "model/ranklib":
            return RankLib().read(text.encode())
        definition = json.loads(text)
        if kind == "model/linear":
            weights = np.array([float(weight) for weight in definition.values()])
            return LinearModel(weights, np.zeros(len(weights)), 0.0, tuple(definition))
        if kind == "model/xgboost+json+raw":
            ensemble = from_document(definition, plugin=True)
        elif kind == "model/xgboost+json":
            ensemble = from_dump(definition if isinstance(definition, list) else definition["splits"])
        else:
            raise DataError(f"cannot read definitions of the type {kind}")
        if isinstance(definition, list) or not definition.get("missing_as_zero"):
            return ensemble
        zero_left = ensemble.arrays["threshold"] >= 0
        return replace(ensemble, arrays=ensemble.arrays | {"missing_left": zero_left})

    def write(
        self,
        model: Model,
        suffix: str = "",
        *,
        name: str = "podium",
        definition: Definition | None = None,
        missing: Literal["keep", "zero"] = "keep",
    ) -> Written:
        """Write the request body.

        Args:
            model: trees, a combination of them, or a linear model.
            suffix: ignored.
            name: the name of the model.
            definition: `"xgboost+json"` for XGBoost's dump, `"xgboost+json+raw"` for XGBoost's model, or `"ranklib"`
                for RankLib's text. By default the dump, or the weights of a linear model.
            missing: `"zero"` scores missing values as 0, for models that were trained with 0 in their place.
                Elasticsearch's plugin can do so only in RankLib's text.

        """
        note, zero = self._note_on_missing(definition, missing), missing == "zero"
        if definition == "ranklib":
            written = RankLib().write(model, missing=missing)
            return replace(written, content=_body(name, "ranklib", written.content.decode()), by_number=True)
        if isinstance(model, LinearModel) and definition is None:
            return _linear(model, name, self.name)
        if definition not in (None, "xgboost+json", "xgboost+json+raw"):
            raise DataError(f"definition must be 'xgboost+json', 'xgboost+json+raw' or 'ranklib', not {definition!r}")
        ensemble, notes = as_float32_ensemble(model, self.name), [ROUNDING]
        document: dict[str, Any] = {"missing_as_zero": True} if zero else {}
        if definition == "xgboost+json+raw":
            document |= document_of(ensemble, OBJECTIVE, plain=True)
            notes.append(ORDER)
        else:
            document |= {"objective": OBJECTIVE, "splits": dump(ensemble)}
        content = _body(name, definition or "xgboost+json", json.dumps(document, ensure_ascii=False, default=_finite))
        return Written(content, note_on_missing_as_zero(ensemble) if zero else note, tuple(notes))

    def _note_on_missing(self, definition: Definition | None, missing: str) -> str:
        """Return where the plugin sends missing values; raise if it cannot score them as 0."""
        raise NotImplementedError


class ElasticsearchPlugin(Plugin):
    """A model for the learning-to-rank plugin of Elasticsearch."""

    name = "elasticsearch-plugin"
    title = "the learning-to-rank plugin of Elasticsearch"

    def _note_on_missing(self, definition: Definition | None, missing: str) -> str:
        if missing == "zero" and definition != "ranklib":
            raise DataError("Elasticsearch's plugin reads missing values as 0 only with definition='ranklib'")
        since = "October 2025" if definition == "xgboost+json+raw" else "January 2024"
        return f"a feature that does not match is NaN and goes to its side (plugins since {since})"


class OpenSearch(Plugin):
    """A model for the learning-to-rank plugin of OpenSearch."""

    name = "opensearch"
    title = "the learning-to-rank plugin of OpenSearch"

    def _note_on_missing(self, definition: Definition | None, missing: str) -> str:
        return (
            "a feature that does not match is NaN and goes to its side from OpenSearch 3.8 on; 3.2 to 3.7 send it "
            "right at every split, and up to 3.1 it is 0"
        )


def _finite(array: NDArray[Any]) -> list[Any]:
    """Return an array for JSON, with `JSON_INFINITY` for infinity: the plugins' reader rounds it back to infinity."""
    if array.dtype == np.float32:
        array = np.clip(array.astype(np.float64), -JSON_INFINITY, JSON_INFINITY)
    return list(array.tolist())


def _body(name: str, kind: str, definition: str) -> bytes:
    """Return the request body, which holds the definition as a string."""
    body = {"model": {"name": name, "model": {"type": f"model/{kind}", "definition": definition}}}
    return json_content(body)


def _linear(model: LinearModel, name: str, format_name: str) -> Written:
    labels = feature_labels(model)
    note = f"scores are {linear_constant(model, format_name):.6g} lower than Podium's: the plugin has no constant term"
    weights = json.dumps(dict(zip(labels, model.weights.tolist(), strict=True)), ensure_ascii=False)
    return Written(_body(name, "linear", weights), "a feature that does not match counts as 0", (note,))
