"""Export of features to search engines that have the same formula, as feature sets, stores and rank profiles.

Sources: the manuals of the learning-to-rank plugins of Elasticsearch and OpenSearch, Elastic's guide to learning to
rank, Solr's reference guide, and Vespa's reference of rank features.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.features.attributes import Attribute
from podium.features.feature import Feature
from podium.features.feature_set import FeatureSet
from podium.features.ranking_functions import BM25
from podium.features.term_features import TF, Boolean, Covered, CoveredRatio, StreamLength


class _UnknownError(Exception):
    """Raised with the reason why an engine cannot compute a feature."""


@dataclass(frozen=True)
class EngineFeatures:
    """Features in the format of a search engine.

    Attributes:
        content: the text to upload, or to add to a schema.
        names: the engine's name of each exported feature, by the text of the feature.
        left_out: the reasons why features were not exported, by the text of the feature.
        notes: settings that the engine requires, and differences in its values.

    Example:
        >>> from podium.features import export_features
        >>> export_features(["bm25(title)", "phrase(title)"], "solr").names
        {'bm25(title)': 'bm25(title)'}

    """

    content: str
    names: dict[str, str]
    left_out: dict[str, str]
    notes: tuple[str, ...]


class _FeatureEngine:
    """A search engine: its form of each feature that it can compute, and of the whole set.

    A method named after a feature returns its form, or raises `_UnknownError` with the reason why the engine cannot
    compute it.
    """

    name: ClassVar[str]
    notes: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def written(self, feature: Feature) -> Any:
        """Return the engine's form of a feature, or raise `_UnknownError`."""
        ways: dict[type, Callable[[Any], Any]] = {
            BM25: self.bm25, Attribute: self.attribute, TF: self.tf, StreamLength: self.stream_length,
            Boolean: self.boolean, Covered: self.covered, CoveredRatio: self.covered_ratio,
        }  # fmt: skip
        if type(feature) not in ways:
            raise _UnknownError("the engine has no such formula")
        if len(feature.fields) != 1:
            raise _UnknownError("it combines several fields: copy them into one field of the engine, and use that")
        return ways[type(feature)](feature)

    def unknown(self, feature: Feature) -> Any:
        """Raise `_UnknownError`; most engines lack most features."""
        raise _UnknownError("the engine has no such formula")

    bm25 = attribute = tf = stream_length = boolean = covered = covered_ratio = unknown

    def lucene_bm25(self, feature: BM25) -> tuple[str, float]:
        """Return the field and the factor of a BM25 that Lucene computes."""
        self.require_lucene_idf(feature)
        if (feature.k1, feature.b) != (1.2, 0.75):
            self.remarks.append(
                f"{feature}: set the similarity of the field {feature.fields[0]!r} to BM25 with k1={feature.k1:g} and "
                f"b={feature.b:g}"
            )
        return feature.fields[0], feature.k1 + 1.0 if feature.scaled else 1.0

    def require_lucene_idf(self, feature: BM25) -> None:
        """Raise `_UnknownError` if BM25 has another idf than Lucene and Vespa."""
        if feature.idf != "lucene":
            raise _UnknownError(f"its BM25 has Lucene's idf, not idf={feature.idf}")

    def number_if_missing(self, feature: Feature) -> float:
        """Return the value of documents without an attribute, NaN if it is undefined."""
        if feature.missing == "minimum":
            raise _UnknownError("the engine does not know the minimum of the candidates")
        return float(feature.missing)

    def name_of(self, feature: Feature) -> str:
        """Return the engine's name of a feature, by default the name that models are trained with."""
        return str(feature)

    def document(self, features: dict[str, Any], name: str) -> str:
        """Return the text to upload, given the form of each feature by the engine's name."""
        raise NotImplementedError


LUCENE = (
    "Lucene stores the length of a field in one byte, so scores of long fields differ from about the third digit.",
    "Lucene counts every repetition of a query word; Podium counts each word once.",
    "Document frequencies are those of one shard, unless the search has search_type=dfs_query_then_fetch "
    "(Solr: ExactStatsCache).",
    "The engine must analyze fields as Podium's index does.",
)


class _PluginFeatures(_FeatureEngine):
    """A feature set of Elasticsearch's learning-to-rank plugin, for POST _ltr/_featureset/NAME."""

    name = "elasticsearch-plugin"
    notes = LUCENE
    parameter = "{{keywords}}"

    def bm25(self, feature: Feature) -> Any:
        assert isinstance(feature, BM25)
        field, boost = self.lucene_bm25(feature)
        return _or_zero({"match": {field: {"query": self.parameter, "boost": boost}}})

    def boolean(self, feature: Feature) -> Any:
        match = {"match": {feature.fields[0]: {"query": self.parameter, "operator": "and"}}}
        return _or_zero({"constant_score": {"filter": match, "boost": 1.0}})

    def attribute(self, feature: Feature) -> Any:
        (field,) = feature.fields
        missing = self.number_if_missing(feature)
        self.remarks.append(f"{feature}: Elasticsearch and OpenSearch refuse scores below 0")
        value: dict[str, Any] = {"field": field}
        query: Any = {"exists": {"field": field}}
        if not math.isnan(missing):
            value["missing"], query = missing, {"match_all": {}}
        return {"function_score": {"query": query, "field_value_factor": value, "boost_mode": "replace"}}

    def tf(self, feature: Feature) -> Any:
        assert isinstance(feature, TF)
        if feature.statistic not in ("sum", "min", "max"):
            raise _UnknownError(f"match_explorer cannot compute the {feature.statistic} over terms that do not occur")
        query = {"match": {feature.fields[0]: self.parameter}}
        return _or_zero({"match_explorer": {"type": f"{feature.statistic}_raw_tf", "query": query}})

    def document(self, features: dict[str, Any], name: str) -> str:
        entries = [
            {"name": key, "params": ["keywords"], "template_language": "mustache", "template": query}
            for key, query in features.items()
        ]
        return _json({"featureset": {"name": name, "features": entries}})


class _OpenSearchFeatures(_PluginFeatures):
    """A feature set of OpenSearch's learning-to-rank plugin, in the same form."""

    name = "opensearch"


class _ElasticsearchFeatures(_PluginFeatures):
    """Feature extractors of Elasticsearch's own learning to rank."""

    name = "elasticsearch"
    parameter = "{{query}}"
    tf = _FeatureEngine.unknown

    def document(self, features: dict[str, Any], name: str) -> str:
        """Return the extractors: `model.export(…, format="elasticsearch", extractors=json.load(…))`."""
        return _json([{"query_extractor": {"feature_name": key, "query": query}} for key, query in features.items()])


class _SolrFeatures(_FeatureEngine):
    """A feature store of Solr, for PUT schema/feature-store."""

    name = "solr"
    notes = LUCENE
    package = "org.apache.solr.ltr.feature."

    def bm25(self, feature: Feature) -> Any:
        assert isinstance(feature, BM25)
        field, boost = self.lucene_bm25(feature)
        weight = "" if boost == 1 else f"^{boost:g}"
        return {"class": f"{self.package}SolrFeature", "params": {"q": f"{{!dismax qf={field}{weight} mm=1}}${{text}}"}}

    def attribute(self, feature: Feature) -> Any:
        missing = self.number_if_missing(feature)
        default = "NaN" if math.isnan(missing) else f"{missing:g}"
        params = {"field": feature.fields[0], "defaultValue": default}
        return {"class": f"{self.package}FieldValueFeature", "params": params}

    def stream_length(self, feature: Feature) -> Any:
        """Return the length, which Lucene rounds to one byte."""
        return {"class": f"{self.package}FieldLengthFeature", "params": {"field": feature.fields[0]}}

    def document(self, features: dict[str, Any], name: str) -> str:
        return _json([{"store": name, "name": key, **feature} for key, feature in features.items()])


class _VespaFeatures(_FeatureEngine):
    """A rank profile for a Vespa schema, with a function for each feature."""

    name = "vespa"
    notes = (
        "Vespa counts N and document frequencies on each content node.",
        "Vespa's BM25 has the factor k1 + 1; the profile divides by it unless the feature is scaled.",
        "Use the names of these functions as feature names before training: data.replace(feature_names=[…]).",
    )

    def __init__(self) -> None:
        super().__init__()
        self.properties: dict[str, tuple[float, float]] = {}

    def name_of(self, feature: Feature) -> str:
        return re.sub(r"\W+", "_", str(feature)).strip("_")

    def bm25(self, feature: Feature) -> Any:
        assert isinstance(feature, BM25)
        self.require_lucene_idf(feature)
        (field,) = feature.fields
        if self.properties.setdefault(field, (feature.k1, feature.b)) != (feature.k1, feature.b):
            raise _UnknownError(f"a rank profile has only one k1 and b for {field!r}, and another feature has others")
        return f"bm25({field})" + ("" if feature.scaled else f" / {feature.k1 + 1.0:g}")

    def attribute(self, feature: Feature) -> Any:
        value, missing = f"attribute({feature.fields[0]})", self.number_if_missing(feature)
        return value if math.isnan(missing) else f"if (isNan({value}) == 1, {missing:g}, {value})"

    def stream_length(self, feature: Feature) -> Any:
        return f"fieldLength({feature.fields[0]})"

    def covered(self, feature: Feature) -> Any:
        return f"fieldMatch({feature.fields[0]}).matches"

    def covered_ratio(self, feature: Feature) -> Any:
        return f"fieldMatch({feature.fields[0]}).queryCompleteness"

    def document(self, features: dict[str, Any], name: str) -> str:
        lines = [f"rank-profile {name} inherits default {{"]
        others = {field: settings for field, settings in self.properties.items() if settings != (1.2, 0.75)}
        if others:
            lines.append("    rank-properties {")
            for field, (k1, b) in others.items():
                lines += [f"        bm25({field}).k1: {k1:g}", f"        bm25({field}).b: {b:g}"]
            lines.append("    }")
        lines += [f"    function {key}() {{ expression: {expression} }}" for key, expression in features.items()]
        lines += ["    match-features {", *(f"        {key}" for key in features), "    }", "}", ""]
        return "\n".join(lines)


ENGINES: dict[str, type[_FeatureEngine]] = {
    engine.name: engine
    for engine in (_PluginFeatures, _OpenSearchFeatures, _ElasticsearchFeatures, _SolrFeatures, _VespaFeatures)
}


def export_features(features: Iterable[Feature | str], engine: str, name: str = "podium") -> EngineFeatures:
    """Export the features that a search engine computes by the same formula.

    Args:
        features: a `FeatureSet`, or texts of features.
        engine: `elasticsearch-plugin`, `opensearch`, `elasticsearch`, `solr` or `vespa`.
        name: the name of the feature set, store or rank profile.

    Example:
        >>> from podium.features import export_features
        >>> result = export_features(["bm25(title)", "lm_jm(title)", "attribute(votes)"], "vespa")
        >>> print(result.content)
        rank-profile podium inherits default {
            function bm25_title() { expression: bm25(title) / 2.2 }
            function attribute_votes() { expression: attribute(votes) }
            match-features {
                bm25_title
                attribute_votes
            }
        }
        <BLANKLINE>
        >>> result.left_out
        {'lm_jm(title)': 'the engine has no such formula'}

    """
    if engine not in ENGINES:
        raise DataError(
            f"there is no engine {engine!r}{did_you_mean(engine, ENGINES)}; choose from {', '.join(ENGINES)}"
        )
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise DataError(f"name must consist of letters, digits and underscores, but got {name!r}")
    target = ENGINES[engine]()
    written, names, left_out = {}, {}, {}
    for feature in FeatureSet(features):
        try:
            form = target.written(feature)
        except _UnknownError as reason:
            left_out[str(feature)] = str(reason)
            continue
        names[str(feature)] = target.name_of(feature)
        written[names[str(feature)]] = form
    if not written:
        raise DataError(f"{engine} cannot compute any of these features: {', '.join(left_out)}")
    if len(written) < len(names):
        raise DataError(f"two features have the same name in {engine}: {', '.join(names.values())}")
    return EngineFeatures(target.document(written, name), names, left_out, (*target.notes, *target.remarks))


def _or_zero(query: Any) -> Any:
    """Return a query that also matches all other documents, with score 0."""
    everything = {"constant_score": {"filter": {"match_all": {}}, "boost": 0.0}}
    return {"bool": {"must": everything, "should": query}}


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
