"""Scores of an exported file as its consumer computes them: with the consumer's library, or by its rules.

`RULES` compare and add as the consumers' sources do, in double or in float32. They only cover what Podium writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from podium.errors import DataError
from podium.formats import ubjson
from podium.formats.base import import_model
from podium.formats.solr import SLACK
from podium.formats.trees import feature_labels
from podium.models import LinearModel, Model

Floats = NDArray[Any]
Scores = Callable[[Floats], Floats]  # of rows of doubles


def consumer_of(path: Path, format_name: str, model: Model) -> tuple[str, Scores]:
    """Return the library, or the rules, that score the file of a model: a name, and a function from rows to scores."""
    if format_name in LIBRARIES:
        library, load = LIBRARIES[format_name]
        try:
            return library, load(path)
        except ImportError:  # the library is not installed
            pass
    if format_name == "onnx":
        raise DataError("checking an ONNX file needs ONNX Runtime, which is not installed: pip install onnxruntime")
    if isinstance(model, LinearModel):
        return f"the weights of {format_name}", import_model(path, format_name).predict
    return f"the rules of {format_name}", _scores_by_rules(RULES[format_name](path.read_bytes(), model))


# --- libraries


def _lightgbm(path: Path) -> Scores:
    import lightgbm

    booster = lightgbm.Booster(model_file=path)
    return lambda rows: np.asarray(booster.predict(rows))


def _xgboost(path: Path) -> Scores:
    import xgboost

    booster = xgboost.Booster(model_file=bytearray(path.read_bytes()))  # JSON or UBJSON by content, not by suffix
    return lambda rows: np.asarray(booster.inplace_predict(rows, validate_features=False))


def _catboost(path: Path) -> Scores:
    import catboost  # type: ignore[import-untyped]

    model = catboost.CatBoost().load_model(str(path), format="cbm" if path.suffix.lower() == ".cbm" else "json")
    return lambda rows: np.asarray(model.predict(rows))


def _onnx(path: Path) -> Scores:
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several threads add the trees in another order
    session = onnxruntime.InferenceSession(path, options)
    single = session.get_inputs()[0].type == "tensor(float)"
    return lambda rows: session.run(None, {"X": _single(rows) if single else rows})[0].ravel()


LIBRARIES: dict[str, tuple[str, Callable[[Path], Scores]]] = {
    "lightgbm": ("LightGBM", _lightgbm), "xgboost": ("XGBoost", _xgboost), "catboost": ("CatBoost", _catboost),
    "onnx": ("ONNX Runtime", _onnx),
}  # fmt: skip


# --- rules


class Question(NamedTuple):
    """A split: whether values of a feature, NaN where they are missing, go left."""

    feature: int
    goes_left: Callable[[Floats], NDArray[np.bool_]]
    left: Any
    right: Any


class Rules(NamedTuple):
    """How a consumer reads a file."""

    roots: Sequence[Any]  # the root of each tree
    ask: Callable[[Any], Question | float]  # what a node is: a question, or the value of a leaf
    single: bool  # whether values are rounded to float32 and scores are added as float32, not double
    zero: bool = False  # whether missing values are 0


def _scores_by_rules(rules: Rules) -> Scores:
    kind: Any = np.float32 if rules.single else np.float64

    def scores(rows: Floats) -> Floats:
        rows = _single(rows) if rules.single else rows
        rows = np.where(np.isnan(rows), kind(0), rows) if rules.zero else rows
        total = np.zeros(len(rows), kind)
        for root in rules.roots:
            total += _leaf_values(root, rules.ask, rows)
        return total

    return scores


def _leaf_values(root: Any, ask: Callable[[Any], Question | float], rows: Floats) -> Floats:
    values = np.empty(len(rows), rows.dtype)
    waiting = [(root, np.arange(len(rows)))]
    while waiting:
        node, indices = waiting.pop()
        answer = ask(node)
        if not isinstance(answer, Question):
            values[indices] = answer
            continue
        is_left = answer.goes_left(rows[indices, answer.feature])
        waiting += [(answer.left, indices[is_left]), (answer.right, indices[~is_left])]
    return values


def _single(rows: Floats) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return rows.astype(np.float32)


def _at_most(threshold: Any, missing_left: Any) -> Callable[[Floats], NDArray[np.bool_]]:
    return lambda x: np.where(np.isnan(x), bool(missing_left), x <= threshold)


def _below(threshold: Any, missing_left: Any) -> Callable[[Floats], NDArray[np.bool_]]:
    return lambda x: np.where(np.isnan(x), bool(missing_left), x < threshold)


def _among(categories: Sequence[float]) -> Callable[[Floats], NDArray[np.bool_]]:
    return lambda x: np.isin(x, list(categories))


def _lightgbm_text(content: bytes, _: Model) -> Rules:
    """Return the rules of include/LightGBM/tree.h: doubles, `x <= threshold`; each node has a side for NaN."""
    trees = []
    for block in content.decode().split("\nend of trees")[0].split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        trees.append({key: list(map(float, text.split())) for key, text in fields.items()})

    def ask(key: tuple[dict[str, list[float]], int]) -> Question | float:
        tree, k = key
        if k < 0:
            return tree["leaf_value"][~k]
        kind, threshold = int(tree["decision_type"][k]), tree["threshold"][k]
        goes_left = _at_most(threshold, kind & 2)
        if kind & 1:
            first, last = (int(bound) for bound in tree["cat_boundaries"][int(threshold) :][:2])
            words = [int(word) for word in tree["cat_threshold"][first:last]]
            goes_left = _among([bit for bit in range(32 * len(words)) if words[bit // 32] >> bit % 32 & 1])
        children = ((tree, int(tree[side][k])) for side in ("left_child", "right_child"))
        return Question(int(tree["split_feature"][k]), goes_left, *children)

    return Rules([(tree, 0 if "split_feature" in tree else -1) for tree in trees], ask, single=False)


def _lightgbm_json(content: bytes, _: Model) -> Rules:
    """Return the rules of LightGBM for its dump."""
    return _dump_of_lightgbm(json.loads(content), _at_most, lambda feature, number: number)


def _vespa(content: bytes, model: Model) -> Rules:
    """Return the rules of Vespa's LightGBMParser: `x < threshold`, double; sets are lists of names."""
    document = json.loads(content)
    infos, categories = document["feature_infos"], model.encoding.categories
    with_names = [k for k, label in enumerate(document["feature_names"]) if infos.get(label, {}).get("values")]
    names = dict(zip(with_names, document["pandas_categorical"] or (), strict=False))
    return _dump_of_lightgbm(document, _below, lambda feature, k: categories[feature].index(names[feature][k]))


def _dump_of_lightgbm(document: Mapping[str, Any], compares: Any, value_of: Callable[[int, int], int]) -> Rules:
    """Return the rules of nested trees in double; `value_of` turns a number in a set of a feature into a value."""

    def ask(node: Mapping[str, Any]) -> Question | float:
        if "leaf_value" in node:
            return float(node["leaf_value"])
        feature = node["split_feature"]
        if node["decision_type"] == "==":
            goes_left = _among([value_of(feature, int(number)) for number in node["threshold"].split("||")])
        else:
            goes_left = compares(node["threshold"], node["default_left"])
        return Question(feature, goes_left, node["left_child"], node["right_child"])

    return Rules([tree["tree_structure"] for tree in document["tree_info"]], ask, single=False)


def _xgboost_model(content: bytes, _: Model) -> Rules:
    """Return the rules of src/predictor: float32, `x < split_condition`; listed categories go right."""
    return _model_rules(json.loads(content) if content[:2] == b'{"' else ubjson.loads(content), "split_conditions")


def _model_rules(document: Mapping[str, Any], leaves: str) -> Rules:
    """Return the rules of XGBoost's model, whose leaf values are in the array `leaves`."""
    trees = document["learner"]["gradient_booster"]["model"]["trees"]

    def ask(key: tuple[Mapping[str, Any], int]) -> Question | float:
        tree, k = key
        if tree["left_children"][k] < 0:
            return float(tree[leaves][k])
        feature, left, right = (tree[key][k] for key in ("split_indices", "left_children", "right_children"))
        if tree["split_type"][k]:
            number = list(tree["categories_nodes"]).index(k)
            first, size = tree["categories_segments"][number], tree["categories_sizes"][number]
            return Question(feature, _among(tree["categories"][first : first + size]), (tree, right), (tree, left))
        bound = _single(np.array(tree["split_conditions"][k]))
        return Question(feature, _below(bound, tree["default_left"][k]), (tree, left), (tree, right))

    return Rules([(tree, 0) for tree in trees], ask, single=True)


def _dump_rules(trees: Sequence[Any], model: Model, *, zero: bool = False) -> Rules:
    """Return the rules of XGBoost's dump, and of the plugins: float32, `x < split_condition`; NaN to `missing`."""
    number = {label: k for k, label in enumerate(feature_labels(model))}

    def ask(node: Mapping[str, Any]) -> Question | float:
        if "leaf" in node:
            return float(node["leaf"])
        bound = _single(np.array(node["split_condition"]))
        return Question(number[node["split"]], _below(bound, node["missing"] == node["yes"]), *node["children"])

    return Rules(trees, ask, single=True, zero=zero)


def _plugin(content: bytes, model: Model) -> Rules:
    written = json.loads(content)["model"]["model"]
    if written["type"] == "model/ranklib":
        return _ranklib(written["definition"].encode(), model)
    definition = json.loads(written["definition"])
    zero = definition.get("missing_as_zero", False)
    if "splits" in definition:
        return _dump_rules(definition["splits"], model, zero=zero)
    return _model_rules(definition, "base_weights")._replace(zero=zero)


def _catboost_model(content: bytes, _: Model) -> Rules:
    """Return the rules of CatBoost: `float32(x) > border` goes right; NaN is an infinity, by feature; double sums."""
    document = json.loads(content)
    borders = [
        (feature["flat_feature_index"], _single(np.array(border)), feature["nan_value_treatment"] == "AsTrue")
        for feature in document["features_info"]["float_features"] for border in feature["borders"]
    ]  # fmt: skip

    def ask(node: Mapping[str, Any]) -> Question | float:
        if "split" not in node:
            return float(node["value"])
        feature, border, is_high = borders[node["split"]["split_index"]]
        infinity = np.float32(np.inf if is_high else -np.inf)

        def goes_left(x: Floats) -> NDArray[np.bool_]:
            short = _single(x)
            is_left: NDArray[np.bool_] = np.where(np.isnan(short), infinity, short) <= border
            return is_left

        return Question(feature, goes_left, node["left"], node["right"])

    return Rules(document["trees"], ask, single=False)


def _ranklib(content: bytes, _: Model) -> Rules:
    """Return the rules of RankLib: float32, `x <= threshold`; a missing value is 0; features from 1."""
    lines = (line.strip() for line in content.decode().splitlines())
    trees = ElementTree.fromstring("".join(line for line in lines if not line.startswith("#")))

    def ask(split: ElementTree.Element) -> Question | float:
        if split[0].tag == "output":
            return float(split[0].text or "")
        feature, threshold, left, right = split
        return Question(int(feature.text or "") - 1, _at_most(np.float32(threshold.text), False), left, right)

    return Rules([tree[0] for tree in trees], ask, single=True, zero=True)


def _solr(content: bytes, _: Model) -> Rules:
    """Return the rules of MultipleAdditiveTreesModel: float32, `x <= threshold + 1e-6`."""
    document = json.loads(content)
    number = {feature["name"]: k for k, feature in enumerate(document["features"])}

    def ask(node: Mapping[str, Any]) -> Question | float:
        if "feature" not in node:
            return float(node["value"])
        threshold = np.float32(np.float32(node["threshold"]) + SLACK)
        goes_left = _at_most(threshold, node.get("missing") == "left")
        return Question(number[node["feature"]], goes_left, node["left"], node["right"])

    params = document["params"]
    return Rules([tree["root"] for tree in params["trees"]], ask, True, params["isNullSameAsZero"] == "true")


def _elasticsearch(content: bytes, _: Model) -> Rules:
    """Return the rules of TreeNode.java: doubles, `x <= threshold`; null follows `default_left`."""
    members = json.loads(content)["definition"]["trained_model"]["ensemble"]["trained_models"]

    def ask(key: tuple[Sequence[Mapping[str, Any]], int]) -> Question | float:
        nodes, k = key
        node = nodes[k]
        if "leaf_value" in node:
            return float(node["leaf_value"])
        goes_left = _at_most(node["threshold"], node["default_left"])
        return Question(node["split_feature"], goes_left, (nodes, node["left_child"]), (nodes, node["right_child"]))

    return Rules([(member["tree"]["tree_structure"], 0) for member in members], ask, single=False)


RULES: dict[str, Callable[[bytes, Model], Rules]] = {
    "lightgbm": _lightgbm_text, "lightgbm-json": _lightgbm_json, "vespa": _vespa, "xgboost": _xgboost_model,
    "xgboost-dump": lambda content, model: _dump_rules(json.loads(content), model), "opensearch": _plugin,
    "elasticsearch-plugin": _plugin, "catboost": _catboost_model, "ranklib": _ranklib, "solr": _solr,
    "elasticsearch": _elasticsearch,
}  # fmt: skip
