"""Vespa: a file for `lightgbm("model.json")` in a rank profile.

Source: vespa-engine/vespa, model-integration/…/importer/lightgbm. Vespa reads LightGBM's `x <= threshold` as
`x < threshold`, in double, so thresholds are written one step higher; NaN follows `default_left`. Feature names are
pasted into the ranking expression, so they must be rank features. A set of categories becomes a list of strings.
"""

from __future__ import annotations

import json
import math

import numpy as np

from podium.formats.base import Format, Written, json_content
from podium.formats.lightgbm import LightGBMJson, dump, from_dump
from podium.formats.trees import as_ensemble, double_thresholds, feature_labels, finite_trees
from podium.models import Ensemble, Model


class Vespa(Format):
    """LightGBM's dump with thresholds for Vespa's comparison."""

    name = "vespa"
    title = "Vespa, as a LightGBM model"
    finds_by_name = True
    carries = LightGBMJson.carries

    def read(self, content: bytes) -> Model:
        """Read a file as Vespa does: it ignores LightGBM's comparison, missing types and averages."""
        document = json.loads(content) | {"average_output": False}
        waiting = [tree["tree_structure"] for tree in document["tree_info"]]
        while waiting:
            node = waiting.pop()
            if "leaf_value" not in node:
                node["missing_type"] = "NaN"
                if node["decision_type"] == "<=":  # Vespa reads it as <
                    node["threshold"] = math.nextafter(float(node["threshold"]), -math.inf)
                waiting += [node["left_child"], node["right_child"]]
        return from_dump(document)

    def write(self, model: Model, suffix: str = "") -> Written:
        """Write the file to put into the application's `models` folder."""
        ensemble = as_ensemble(model, self.name)
        labels, named = feature_labels(ensemble), _named(ensemble)
        trees = finite_trees(ensemble, named=named)
        thresholds = double_thresholds(trees, ensemble.encoding.shifts)
        above = [[math.nextafter(t, math.inf) for t in of_tree] for of_tree in thresholds]
        document = {
            "name": "tree", "version": "v4", "objective": "lambdarank", "average_output": False,
            "max_feature_idx": ensemble.n_features - 1, "feature_names": labels,
            "feature_infos": {labels[k]: {"values": list(range(len(names)))} for k, names in named.items()},
            "tree_info": dump(trees, above),
            "pandas_categorical": [list(names) for names in named.values()] or None,
        }  # fmt: skip
        notes = [
            f'use it as lightgbm("FILE") in a rank profile; features are rank features: {", ".join(labels[:3])}, …'
        ]
        notes += [f"{labels[k]!r} is compared with category names, so it must be a string attribute" for k in named]
        return Written(
            json_content(document), "NaN goes to the side that was learnt for it",
            tuple(notes), named=named,
        )  # fmt: skip


def _named(ensemble: Ensemble) -> dict[int, tuple[str, ...]]:
    """Return the features that Vespa can compare by category names, with these names.

    Vespa pastes the names into an expression, in quotes, and compares sets with strings only. So categories are written
    as numbers if splits also compare the feature with a threshold, or if a name would break the quotes.
    """
    arrays = ensemble.arrays
    is_set, sizes = arrays["category"] >= 0, np.append(np.diff(arrays["category_offsets"]), 0)
    by_number = set(arrays["feature"][~is_set | (sizes[arrays["category"]] == 0)].tolist())
    return {
        k: names for k, names in sorted(ensemble.encoding.categories.items())
        if k in arrays["feature"] and k not in by_number
        and not any(sign in name for name in names for sign in '"\\\n\r')
    }  # fmt: skip
