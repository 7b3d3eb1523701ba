"""Export of features to search engines that have the same formula, as feature sets, stores and rank profiles.

Sources: the manuals of the learning-to-rank plugins of Elasticsearch and OpenSearch, Elastic's guide to learning to
rank, Solr's reference guide, and Vespa's reference of rank features.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.features.feature import Feature
from podium.features.feature_set import FeatureSet


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


class _Engine:
    """A search engine.

    A method `as_NAME` returns the engine's form of the feature with this name, or raises `_UnknownError` with the
    reason why the engine cannot compute it.
    """

    notes: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def form_of(self, feature: Feature) -> Any:
        """Return the engine's form of a feature, or raise `_UnknownError`."""
        form = getattr(self, f"as_{feature.word()}", None)
        if form is None:
            raise _UnknownError("the engine has no such formula")
        if len(feature.fields) != 1:
            raise _UnknownError("it combines several fields: copy them into one field of the engine, and use that")
        return form(feature)

    def name_of(self, feature: Feature) -> str:
        """Return the engine's name of a feature, by default the name that models are trained with."""
        return str(feature)

    def document(self, features: dict[str, Any], name: str) -> str:
        """Return the text to upload, given the form of each feature by the engine's name."""
        raise NotImplementedError


def _require_lucene_idf(bm25: Any) -> None:
    if bm25.idf != "lucene":  # which Vespa uses too
        raise _UnknownError(f"its BM25 has Lucene's idf, not idf={bm25.idf}")


def _number_if_missing(attribute: Feature) -> float:
    """Return the value of documents without an attribute, NaN if it is undefined."""
    if attribute.missing == "minimum":
        raise _UnknownError("the engine does not know the minimum of the candidates")
    return float(attribute.missing)


class _LuceneEngine(_Engine):
    notes = (
        "Lucene stores the length of a field in one byte, so scores of long fields differ from about the third digit.",
        "Lucene counts every repetition of a query word; Podium counts each word once.",
        "Document frequencies are those of one shard, unless the search has search_type=dfs_query_then_fetch "
        "(Solr: ExactStatsCache).",
        "The engine must analyze fields as Podium's index does.",
    )

    def boost(self, bm25: Any) -> float:
        """Return the factor of a BM25 that Lucene computes."""
        _require_lucene_idf(bm25)
        if (bm25.k1, bm25.b) != (1.2, 0.75):
            self.remarks.append(
                f"{bm25}: set the similarity of the field {bm25.fields[0]!r} to BM25 with k1={bm25.k1:g} and "
                f"b={bm25.b:g}"
            )
        return bm25.k1 + 1.0 if bm25.scaled else 1.0


class _Elasticsearch(_LuceneEngine):
    """Feature extractors of Elasticsearch's own learning to rank."""

    parameter = "{{query}}"

    def as_bm25(self, feature: Feature) -> Any:
        query = {"query": self.parameter, "boost": self.boost(feature)}
        return _or_zero({"match": {feature.fields[0]: query}})

    def as_boolean(self, feature: Feature) -> Any:
        match = {"match": {feature.fields[0]: {"query": self.parameter, "operator": "and"}}}
        return _or_zero({"constant_score": {"filter": match, "boost": 1.0}})

    def as_attribute(self, feature: Feature) -> Any:
        (field,) = feature.fields
        missing = _number_if_missing(feature)
        self.remarks.append(f"{feature}: Elasticsearch and OpenSearch refuse scores below 0")
        value: dict[str, Any] = {"field": field}
        query: Any = {"exists": {"field": field}}
        if not math.isnan(missing):
            value["missing"], query = missing, {"match_all": {}}
        return {"function_score": {"query": query, "field_value_factor": value, "boost_mode": "replace"}}

    def document(self, features: dict[str, Any], name: str) -> str:
        """Return the extractors: `model.export(…, format="elasticsearch", extractors=json.load(…))`."""
        return _json([{"query_extractor": {"feature_name": key, "query": query}} for key, query in features.items()])


class _Plugin(_Elasticsearch):
    """A feature set of the learning-to-rank plugin of Elasticsearch or OpenSearch, for POST _ltr/_featureset/NAME."""

    parameter = "{{keywords}}"

    def as_tf(self, feature: Any) -> Any:
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


class _Solr(_LuceneEngine):
    """A feature store of Solr, for PUT schema/feature-store."""

    def as_bm25(self, feature: Feature) -> Any:
        boost = self.boost(feature)
        weight = "" if boost == 1 else f"^{boost:g}"
        return _solr("SolrFeature", q=f"{{!dismax qf={feature.fields[0]}{weight} mm=1}}${{text}}")

    def as_attribute(self, feature: Feature) -> Any:
        missing = _number_if_missing(feature)
        default = "NaN" if math.isnan(missing) else f"{missing:g}"
        return _solr("FieldValueFeature", field=feature.fields[0], defaultValue=default)

    def as_stream_length(self, feature: Feature) -> Any:
        """Return the length, which Lucene rounds to one byte."""
        return _solr("FieldLengthFeature", field=feature.fields[0])

    def document(self, features: dict[str, Any], name: str) -> str:
        return _json([{"store": name, "name": key, **feature} for key, feature in features.items()])


class _Vespa(_Engine):
    """A rank profile for a Vespa schema, with a function for each feature."""

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

    def as_bm25(self, feature: Any) -> Any:
        _require_lucene_idf(feature)
        (field,) = feature.fields
        if self.properties.setdefault(field, (feature.k1, feature.b)) != (feature.k1, feature.b):
            raise _UnknownError(f"a rank profile has only one k1 and b for {field!r}, and another feature has others")
        return f"bm25({field})" + ("" if feature.scaled else f" / {feature.k1 + 1.0:g}")

    def as_attribute(self, feature: Feature) -> Any:
        value, missing = f"attribute({feature.fields[0]})", _number_if_missing(feature)
        return value if math.isnan(missing) else f"if (isNan({value}) == 1, {missing:g}, {value})"

    def as_stream_length(self, feature: Feature) -> Any:
        return f"fieldLength({feature.fields[0]})"

    def as_covered(self, feature: Feature) -> Any:
        return f"fieldMatch({feature.fields[0]}).matches"

    def as_covered_ratio(self, feature: Feature) -> Any:
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


ENGINES: dict[str, type[_Engine]] = {
    "elasticsearch-plugin": _Plugin,
    "opensearch": _Plugin,
    "elasticsearch": _Elasticsearch,
    "solr": _Solr,
    "vespa": _Vespa,
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
            form = target.form_of(feature)
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
    """Return a query that also matches all other documents, with a score of 0."""
    everything = {"constant_score": {"filter": {"match_all": {}}, "boost": 0.0}}
    return {"bool": {"must": everything, "should": query}}


def _solr(kind: str, **params: str) -> dict[str, Any]:
    return {"class": f"org.apache.solr.ltr.feature.{kind}", "params": params}


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
