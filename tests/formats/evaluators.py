"""Independent evaluators of the formats whose consumers are not Python packages; they follow the consumers' sources.

They read the written files from scratch and share no code with `podium.formats`.
"""

import json
import math
import re

import numpy as np

f32 = np.float32


def ranklib(content, rows):
    """ciir.umass.edu.learning.tree: x <= threshold, float32; NaN is 0; features from 1; float32 sums."""
    text = "".join(line.strip() for line in content.decode().splitlines() if not line.strip().startswith("#"))
    assert re.search(r">\s+<", text) is None  # a blank between two tags is fatal there
    tokens = re.findall(r"<[^>]+>|[^<]+", text)

    def split(k):
        assert tokens[k].startswith("<split")
        if tokens[k + 1] == "<output>":
            return f32(tokens[k + 2]), k + 5
        assert (tokens[k + 1], tokens[k + 4]) == ("<feature>", "<threshold>")
        feature, threshold = int(tokens[k + 2]), f32(tokens[k + 5])
        left, after = split(k + 7)
        right, after = split(after)
        return (feature, threshold, left, right), after + 1

    trees, k = [], tokens.index("<ensemble>") + 1
    while tokens[k].startswith("<tree"):
        weight = f32(re.search('weight="([^"]+)"', tokens[k])[1])
        root, k = split(k + 1)
        trees.append((weight, root))
        k += 1

    def score(row):
        total = f32(0)
        for weight, root in trees:
            node = root
            while isinstance(node, tuple):
                x = f32(row[node[0] - 1])
                x = f32(0) if np.isnan(x) else x
                node = node[2] if x <= node[1] else node[3]
            total = f32(total + f32(node * weight))
        return total

    return np.array([score(row) for row in rows])


def solr(content, rows):
    """MultipleAdditiveTreesModel: float32(x) <= float32(threshold) + 1e-6f; missing by side, or 0."""
    document = json.loads(content)
    names = [feature["name"] for feature in document["features"]]
    params = document["params"]
    assert isinstance(params["isNullSameAsZero"], str)
    zero = params["isNullSameAsZero"] == "true"

    def score(row):
        total = f32(0)
        for tree in params["trees"]:
            node = tree["root"]
            while "feature" in node:
                assert isinstance(node["threshold"], str)
                x = f32(row[names.index(node["feature"])])
                if np.isnan(x) and not zero:
                    node = node["left"] if node["missing"] == "left" else node["right"]
                    continue
                x = f32(0) if np.isnan(x) else x
                node = node["left"] if x <= f32(f32(node["threshold"]) + f32(1e-6)) else node["right"]
            total = f32(total + f32(f32(node["value"]) * f32(tree["weight"])))
        return total

    return np.array([score(row) for row in rows])


def elasticsearch(content, rows):
    """TreeNode.java: doubles, lte; null follows default_left; weighted_sum."""
    ensemble = json.loads(content)["definition"]["trained_model"]["ensemble"]
    names = ensemble["feature_names"]

    def score(row):
        total = 0.0
        for member in ensemble["trained_models"]:
            assert member["tree"]["feature_names"] == names
            nodes = {node["node_index"]: node for node in member["tree"]["tree_structure"]}
            node = nodes[0]
            while "leaf_value" not in node:
                x = float(row[node["split_feature"]])
                assert node["decision_type"] == "lte"
                left = node["default_left"] if math.isnan(x) else x <= node["threshold"]
                node = nodes[node["left_child" if left else "right_child"]]
            total += node["leaf_value"]
        return total

    return np.array([score(row) for row in rows])


KEYS = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "leaf", "children"}


def plugin(content, rows, names):
    """XGBoostJsonParser of the plugins: strict keys; threshold > x goes left, float32; NaN by the missing side."""
    model = json.loads(content)["model"]["model"]
    assert model["type"] == "model/xgboost+json"
    definition = json.loads(model["definition"])
    assert definition["objective"] in {"binary:logitraw", "rank:pairwise", "reg:linear"}  # which older plugins accept
    missing_as_zero = definition.get("missing_as_zero", False)

    def check(node):
        assert set(node) <= KEYS
        if "leaf" not in node:
            assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
            assert node["missing"] in (node["yes"], node["no"])
            for child in node["children"]:
                check(child)

    for tree in definition["splits"]:
        check(tree)

    def score(row):
        total = f32(0)
        for tree in definition["splits"]:
            node = tree
            while "leaf" not in node:
                x = f32(row[names.index(node["split"])])
                if np.isnan(x) and missing_as_zero:
                    x = f32(0)
                next_id = node["missing"] if np.isnan(x) else node["yes" if f32(node["split_condition"]) > x else "no"]
                node = next(child for child in node["children"] if child["nodeid"] == next_id)
            total = f32(total + f32(node["leaf"]))
        return total

    return np.array([score(row) for row in rows])


def raw_plugin(content, rows):
    """XGBoostRawJsonParser of the plugins: split_indices count the set's features; leaves are in base_weights."""
    model = json.loads(content)["model"]["model"]
    assert model["type"] == "model/xgboost+json+raw"
    document = json.loads(model["definition"], parse_constant=lambda text: 1 / 0)  # Infinity and NaN are not JSON
    learner = document["learner"]
    assert learner["feature_types"] == ["float"] * len(learner["feature_names"])
    assert learner["objective"]["name"] in {"binary:logitraw", "rank:pairwise", "reg:linear"}
    missing_as_zero = document.get("missing_as_zero", False)

    def score(row):
        total = f32(0)
        for tree in learner["gradient_booster"]["model"]["trees"]:
            k = 0
            while tree["left_children"][k] != -1:
                x = f32(row[tree["split_indices"][k]])
                x = f32(0) if np.isnan(x) and missing_as_zero else x
                left = tree["default_left"][k] == 1 if np.isnan(x) else f32(tree["split_conditions"][k]) > x
                k = tree["left_children" if left else "right_children"][k]
            total = f32(total + f32(tree["base_weights"][k]))
        return total

    return np.array([score(row) for row in rows])


def vespa(content, rows, categories=None):
    """LightGBMParser of Vespa: x < threshold, double, although LightGBM means <=; NaN by default_left; sets of strings.

    `categories` are the names of the numbers in the rows.
    """
    document = json.loads(content, parse_constant=lambda text: 1 / 0)  # Infinity and NaN are not JSON
    infos = document["feature_infos"]
    with_values = [k for k, name in enumerate(document["feature_names"]) if infos.get(name, {}).get("values")]
    names = dict(zip(with_values, document["pandas_categorical"] or [], strict=False))
    assert "pandas_categorical" in document
    assert "objective" in document

    def score(row):
        total = 0.0
        for tree in document["tree_info"]:
            node = tree["tree_structure"]
            while "leaf_value" not in node:
                x = float(row[node["split_feature"]])
                if node["decision_type"] == "==":
                    feature = node["split_feature"]
                    categories_left = {names[feature][int(c)] for c in node["threshold"].split("||")}
                    left = not math.isnan(x) and categories[feature][int(x)] in categories_left
                elif math.isnan(x):
                    left = node["default_left"]
                else:
                    left = x < node["threshold"]
                node = node["left_child" if left else "right_child"]
            total += node["leaf_value"]
        return total

    return np.array([score(row) for row in rows])
