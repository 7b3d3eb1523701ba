"""Features in the formats of search engines; features that an engine lacks are listed."""

import json

import pytest

from podium.errors import DataError
from podium.features import export_features, mslr
from podium.features.engine_export import ENGINES

FEATURES = [
    "bm25(title)", "bm25(body, k1=0.9, scaled=true)", "attribute(votes)", "attribute(price, missing=0)", "tf(title)",
    "boolean(title)", "stream_length(title)", "covered_ratio(title)", "lm_jm(title)", "bm25", "bm25f(title:3, body)",
    "bm25(title, idf=robertson)", "attribute(x, missing=minimum)",
]  # fmt: skip


def test_elasticsearch_plugin():
    result = export_features(FEATURES, "elasticsearch-plugin", "movies")
    body = json.loads(result.content)["featureset"]
    queries = {one["name"]: one["template"] for one in body["features"]}
    assert body["name"] == "movies"
    assert list(queries) == list(result.names) == [
        "bm25(title)", "bm25(body, k1=0.9, scaled=true)", "attribute(votes)", "attribute(price, missing=0)",
        "tf(title)", "boolean(title)",
    ]  # fmt: skip
    assert queries["bm25(title)"]["bool"]["should"] == {"match": {"title": {"query": "{{keywords}}", "boost": 1.0}}}
    assert queries["bm25(title)"]["bool"]["must"]["constant_score"]["boost"] == 0
    scaled = queries["bm25(body, k1=0.9, scaled=true)"]["bool"]["should"]["match"]["body"]
    assert scaled["boost"] == pytest.approx(1.9)
    assert any("k1=0.9" in note and "'body'" in note for note in result.notes)
    assert queries["attribute(votes)"]["function_score"]["query"] == {"exists": {"field": "votes"}}
    assert queries["attribute(price, missing=0)"]["function_score"]["field_value_factor"]["missing"] == 0
    assert queries["tf(title)"]["bool"]["should"]["match_explorer"]["type"] == "sum_raw_tf"
    assert set(result.left_out) | set(result.names) == set(FEATURES)
    assert "several fields" in result.left_out["bm25"]
    assert "idf=robertson" in result.left_out["bm25(title, idf=robertson)"]
    assert "minimum of the candidates" in result.left_out["attribute(x, missing=minimum)"]
    other = json.loads(export_features(FEATURES, "opensearch", "movies").content)
    assert other["featureset"] == body


def test_elasticsearch_extractors():
    result = export_features(FEATURES, "elasticsearch")
    first = json.loads(result.content)[0]["query_extractor"]
    assert first["feature_name"] == "bm25(title)"
    assert first["query"]["bool"]["should"]["match"]["title"]["query"] == "{{query}}"
    assert "tf(title)" in result.left_out


def test_solr():
    result = export_features(FEATURES, "solr", "movies")
    store = {one["name"]: one for one in json.loads(result.content)}
    assert store["bm25(title)"] == {
        "store": "movies", "name": "bm25(title)", "class": "org.apache.solr.ltr.feature.SolrFeature",
        "params": {"q": "{!dismax qf=title mm=1}${text}"},
    }  # fmt: skip
    assert store["bm25(body, k1=0.9, scaled=true)"]["params"]["q"] == "{!dismax qf=body^1.9 mm=1}${text}"
    assert store["attribute(votes)"]["params"] == {"field": "votes", "defaultValue": "NaN"}
    assert store["attribute(price, missing=0)"]["params"]["defaultValue"] == "0"
    assert store["stream_length(title)"]["class"].endswith("FieldLengthFeature")


def test_vespa():
    result = export_features([*FEATURES, "bm25(body, b=0.1)"], "vespa", "movies")
    lines = [line.strip() for line in result.content.splitlines()]
    assert "function bm25_title() { expression: bm25(title) / 2.2 }" in lines
    assert "function bm25_body_k1_0_9_scaled_true() { expression: bm25(body) }" in lines
    assert "bm25(body).k1: 0.9" in lines
    assert not any("bm25(title).k1" in line for line in lines)
    assert "function covered_ratio_title() { expression: fieldMatch(title).queryCompleteness }" in lines
    assert "one k1 and b" in result.left_out["bm25(body, b=0.1)"]
    assert result.names["bm25(title)"] == "bm25_title"
    assert "if (isNan(attribute(price)) == 1, 0, attribute(price))" in result.content


@pytest.mark.parametrize("engine", ENGINES)
def test_every_feature_is_exported_or_left_out_with_a_reason(engine):
    features = mslr(body="body", title="title", url="url", inlinks="links")
    result = export_features(features, engine)
    assert {*result.names, *result.left_out} == set(features.names)
    assert all(result.left_out.values())
    assert result.notes


def test_errors():
    with pytest.raises(DataError, match=r"no engine 'solar' .did you mean 'solr'"):
        export_features(["bm25(title)"], "solar")
    with pytest.raises(DataError, match="cannot compute any of these features: lm_jm"):
        export_features(["lm_jm(title)"], "solr")
    with pytest.raises(DataError, match="letters, digits and underscores"):
        export_features(["bm25(title)"], "vespa", "a b")
