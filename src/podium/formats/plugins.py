"""The learning-to-rank plugins of Elasticsearch and OpenSearch: bodies for `POST _ltr/_featureset/<set>/_createmodel`.

Sources: o19s/elasticsearch-learning-to-rank, opensearch-project/opensearch-learning-to-rank-base, ranker/parser.
Trees go in as XGBoost's dump: `x < threshold` goes left, float32, NaN to the node's missing side. No base score is
read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from podium.errors import DataError
from podium.formats.base import Format, Written
from podium.formats.ranklib import linear_constant
from podium.formats.trees import as_ensemble, feature_labels, missing_as_zero, require_float32
from podium.formats.xgboost import ROUNDING, dump
from podium.formats.xgboost_reading import from_dump
from podium.models import LinearModel, Model

CARRIES: dict[str, Any] = {
    "missing directions": "yes", "categories": "by other means", "combined models": "by other means",
    "several outputs": "no", "linear models": "yes", "nets": "no", "shifted features": "no",
}  # fmt: skip

OBJECTIVE = "rank:pairwise"  # scores as they are; older plugins refuse rank:ndcg, which means the same


class Plugin(Format):
    """What both plugins read."""

    finds_by_name = True

    def read(self, content: bytes, source: str) -> Model:
        """The trees or weights of a request body."""
        model = json.loads(content)["model"]["model"]
        definition = json.loads(model["definition"])
        if model["type"] == "model/linear":
            weights = np.array([float(weight) for weight in definition.values()])
            return LinearModel(weights, np.zeros(len(weights)), 0.0, tuple(definition))
        if model["type"] != "model/xgboost+json":
            raise DataError(f"definitions of the type {model['type']} are not read")
        if isinstance(definition, list):
            return from_dump(definition)
        ensemble = from_dump(definition["splits"])
        if not definition.get("missing_as_zero"):
            return ensemble
        zero_left = ensemble.arrays["threshold"] >= 0
        return replace(ensemble, arrays=ensemble.arrays | {"missing_left": zero_left})


class ElasticsearchPlugin(Plugin):
    """A model for the plugin of Elasticsearch."""

    name = "elasticsearch-plugin"
    title = "the learning-to-rank plugin of Elasticsearch"
    carries = CARRIES

    def write(self, model: Model, suffix: str = "", *, name: str = "podium") -> Written:
        """The request body.

        Args:
            model: trees, a combination of them, or a linear model.
            suffix: not needed.
            name: of the model.

        """
        missing = "a feature that does not match is NaN and goes to its side (plugins since January 2024)"
        if isinstance(model, LinearModel):
            return _linear(model, name, self.name)
        ensemble = as_ensemble(model, self.name)
        require_float32(ensemble, self.name)
        definition = {"objective": OBJECTIVE, "splits": dump(ensemble, self.name)}
        return Written(_body(name, "model/xgboost+json", definition), missing, (ROUNDING,))


class OpenSearch(Plugin):
    """A model for the plugin of OpenSearch."""

    name = "opensearch"
    title = "the learning-to-rank plugin of OpenSearch"
    carries = CARRIES

    def write(
        self, model: Model, suffix: str = "", *, name: str = "podium", missing: Literal["keep", "zero"] = "keep"
    ) -> Written:
        """The request body.

        Args:
            model: trees, a combination of them, or a linear model.
            suffix: not needed.
            name: of the model.
            missing: `"keep"` for OpenSearch 3.8 and later; `"zero"` adds `missing_as_zero`, for models that were
                trained with 0 for what is missing.

        """
        if isinstance(model, LinearModel):
            return _linear(model, name, self.name)
        ensemble = as_ensemble(model, self.name)
        require_float32(ensemble, self.name)
        definition: dict[str, Any] = {"objective": OBJECTIVE, "splits": dump(ensemble, self.name)}
        text = (
            "a feature that does not match is NaN and goes to its side from OpenSearch 3.8 on; 3.2 to 3.7 send it "
            "right at every split, and up to 3.1 it is 0"
        )
        if missing == "zero":
            definition = {"missing_as_zero": True, **definition}
            text = missing_as_zero(ensemble)
        return Written(_body(name, "model/xgboost+json", definition), text, (ROUNDING,))


def _body(name: str, kind: str, definition: Any) -> bytes:
    """The request body: the definition is text within it."""
    inner = json.dumps(definition, ensure_ascii=False)
    body = {"model": {"name": name, "model": {"type": kind, "definition": inner}}}
    return json.dumps(body, ensure_ascii=False).encode()


def _linear(model: LinearModel, name: str, format_name: str) -> Written:
    """Weights by name."""
    labels = feature_labels(model)
    note = f"scores are lower by {linear_constant(model, format_name):.6g} than here: the plugin knows no constant"
    weights = dict(zip(labels, model.weights.tolist(), strict=True))
    return Written(_body(name, "model/linear", weights), "a feature that does not match counts as 0", (note,))
