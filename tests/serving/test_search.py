"""/search: the scores of the library to the bit, hostile documents and queries, the page with the search box."""

import json
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import podium
from podium.errors import DataError
from podium.features import FeatureSet, Index, SearchPipeline
from podium.serving.bodies import Refused
from podium.serving.searching import SearchBody, ServedPipeline
from podium.serving.settings import Limits, Settings, model_files
from tests.browser import needs_browser
from tests.features.collections_ import TEXTS, built, documents
from tests.serving.conftest import Client, json_log
from tests.serving.test_page import served

FEATURES = FeatureSet(["bm25", "bm25(title)", "lm_jm(body)", "covered_ratio", "attribute(votes)"])
HOSTILE = [
    {
        "id": "<script>window.hacked=1</script>",
        "title": "<script>window.hacked=1</script> red",
        "body": "a",
        "votes": 1,
    },
    {
        "id": "\"'><img src=x onerror=window.hacked=1>",
        "title": "red 'quotes\" &amp; </bdi></li>",
        "body": "",
        "votes": 2,
    },
    {"id": "\u202eevil\u202c", "title": "\u202e\u2066 red right to left \u0000\u001b[31m", "body": "a red", "votes": 3},
    {"id": "plain", "title": "red shoes", "body": "with red laces", "votes": None},
    {"id": "a\nb", "title": "reds", "body": "x " * 300 + "red", "votes": 0},
]
QUIET = {"log_requests": False, "watch_seconds": 0}


def model_for(rows, seed=0):
    """Return a model of a few trees on random labels."""
    index = built(rows)
    data = FEATURES.compute(index, {"q": "red a", "r": "a b"}, candidates="bm25 top 100")
    labels = np.random.default_rng(seed).integers(0, 3, len(data)).astype(float)
    return podium.LambdaMART(n_trees=6, n_leaves=4, min_documents_in_leaf=1).fit(data.replace(relevance=labels))


@pytest.fixture(scope="module")
def model():
    extra = [{"id": f"e{k}", "title": "red a b"[: 1 + k % 7], "body": "b a " * k, "votes": k} for k in range(30)]
    return model_for([*HOSTILE, *extra])


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("pipelines") / "shop"
    SearchPipeline(built(HOSTILE), FEATURES, model).save(path)
    return path


@pytest.fixture(scope="module")
def client(folder):
    return Client(Settings(*model_files([str(folder)]), **QUIET))


def post(client, content, **options):
    headers = {"content-type": "application/json"} | options.pop("headers", {})
    return client("POST", "/search", content=json.dumps(content), headers=headers, **options)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(min_size=1), TEXTS, st.integers(1, 6))
def test_offline_online_and_http_give_the_same_bits(client, model, rows, text, k):
    index = built(rows)
    pipeline = SearchPipeline(index, FEATURES, model, 8)
    before = client.service.pipelines.pipelines
    client.service.pipelines.pipelines = {"any": ServedPipeline("any", pipeline)}
    try:
        posted = post(client, {"query": text, "k": k, "features": True}).json()
        got = client("GET", "/search", params={"q": text, "k": k, "features": "true"}).json()
    finally:
        client.service.pipelines.pipelines = before
    assert posted == got
    hits = pipeline.search(text, k)
    answered = [(hit["id"], hit["score"]) for hit in posted["hits"]]
    assert answered == list(zip(hits.ids, hits.scores.tolist(), strict=True))
    if not hits.ids:
        return
    data = FEATURES.compute(index, {"q": text}, candidates="bm25 top 8")
    offline = dict(zip(data.document_ids, model.predict(data).tolist(), strict=True))
    assert answered == [(document, offline[document]) for document, _ in answered]
    place_of = {document: place for place, document in enumerate(data.document_ids)}
    for hit in posted["hits"]:
        for name, value in hit["features"].items():
            expected = data.feature(name)[place_of[hit["id"]]]
            assert np.isnan(expected) if value is None else np.float32(value) == expected


def test_an_answer_has_both_rankings_and_snippets(client, folder):
    pipeline = SearchPipeline.load(folder)
    answer = post(client, {"query": "red laces", "k": 3, "compare": True}).json()
    hits, retrieved = pipeline.search("red laces", 100), pipeline.index.search("red laces", 3)
    assert (answer["pipeline"], answer["retrieval"]) == ("shop", "bm25")
    assert [hit["id"] for hit in answer["hits"]] == hits.ids[:3]
    assert [hit["id"] for hit in answer["retrieved"]] == retrieved.ids
    for hit in answer["hits"] + answer["retrieved"]:
        place = hits.ids.index(hit["id"])
        assert (hit["rank"], hit["score"]) == (place + 1, hits.scores[place])
        assert (hit["retrieval_rank"], hit["retrieval_score"]) == (
            hits.retrieval_ranks[place], hits.retrieval_scores[place],
        )  # fmt: skip
    plain = next(hit for hit in answer["retrieved"] if hit["id"] == "plain")
    assert plain["text"] == {"title": ["", "red", " shoes"], "body": ["with ", "red", " ", "laces", ""]}
    assert "retrieved" not in post(client, {"query": "red"}).json()


def test_why_names_features_and_terms(client, folder):
    pipeline = SearchPipeline.load(folder)
    pair = ["plain", HOSTILE[2]["id"]]
    why = post(client, {"query": "red a", "pair": pair}).json()["why"]
    expected = pipeline.why("red a", *pair)
    assert [why["above"], why["below"]] == pair
    assert why["scores"] == [expected.score_a, expected.score_b]
    assert [(feature["feature"], feature["difference"]) for feature in why["features"]] == [
        (row[0], row[-1]) for row in expected.rows
    ]
    bm25 = next(feature for feature in why["features"] if feature["feature"] == "bm25")
    for place in (0, 1):
        assert np.float32(sum(terms[place] for terms in bm25["terms"].values())) == np.float32(bm25["values"][place])
    places = {(term["term"], term["field"]) for term in why["terms"]}
    assert places == {("red", "title"), ("red", "body"), ("a", "body")}
    analyzer, texts = pipeline.index.fields["title"].analyzer, {row["id"]: row for row in HOSTILE}
    for term in why["terms"]:
        counts = {key: analyzer.terms(row[term["field"]]).count(term["term"]) for key, row in texts.items()}
        assert term["occurrences"] == [counts[document] for document in pair]
        assert term["documents"] == sum(map(bool, counts.values()))


def test_the_other_paths_include_the_pipeline(client, folder):
    description = client("GET", "/models").json()
    assert [model["name"] for model in description["models"]] == ["shop"]
    (pipeline,) = description["pipelines"]
    assert (pipeline["name"], pipeline["documents"], pipeline["candidates"]) == ("shop", 5, 100)
    assert pipeline["fields"] == {"title": "english", "body": "english"}
    assert pipeline["features"] == list(FEATURES.names)
    assert str(folder) not in json.dumps(description)
    ranked = client.rank({"documents": [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]}).json()
    assert ranked["model"] == "shop"
    assert client.metric('podium_documents_total{model="shop"}') > 0
    assert client.metric('podium_requests_total{path="/search",status="200"}') > 0


def test_services_without_pipelines_do_not_search(models):
    client = Client(Settings({"web": models["web"]}, **QUIET))
    assert post(client, {"query": "a"}).status_code == 404
    assert client("GET", "/models").json()["pipelines"] == []
    assert "/search" not in client("GET", "/openapi.json").json()["paths"]
    assert client("GET", "/").content == client("GET", "/ranking").content


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        ({}, 400, "query"),
        ({"query": 7}, 400, "query"),
        ({"query": "x" * 1001}, 400, "query"),
        ({"query": "x", "k": 0}, 400, "k"),
        ({"query": "x", "k": 1.5}, 400, "k"),
        ({"query": "x", "k": 1001}, 400, "k"),
        ({"query": "x", "colour": 1}, 400, "colour"),
        ({"query": "x", "pipeline": "none"}, 404, "there is no pipeline 'none'"),
        ({"query": "red", "pair": ["plain"]}, 400, "pair"),
        ({"query": "red", "pair": ["plain", "nobody"]}, 422, "no document 'nobody'"),
    ],
)
def test_bad_bodies(client, content, status, words):
    response = post(client, content)
    assert response.status_code == status, response.text
    assert words in response.json()["error"]


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ("", 400, "'q', the query, is missing"),
        ("q=a&q=b", 400, "'q' occurs twice"),
        ("q=a&colour=red", 400, "'colour' is not one of q, k, pipeline, features, compare"),
        ("q=a&k=many", 400, "k"),
        ("q=a&k=0", 400, "k"),
        ("q=a&compare=perhaps", 400, "compare"),
        ("q=" + "x" * 1001, 400, "query"),
        ("q=a&pipeline=none", 404, "there is no pipeline 'none'"),
    ],
)
def test_bad_parameters(client, parameters, status, words):
    response = client("GET", f"/search?{parameters}")
    assert response.status_code == status, response.text
    assert words in response.json()["error"]


def test_odd_queries_are_answered(client):
    for text in ("", " ", "\u0000\u202e", "<script>alert(1)</script>", '"', "%", "red " * 200, "\U0001f600", "\ud7ff"):
        response = post(client, {"query": text})
        assert response.status_code == 200, text
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-content-type-options"] == "nosniff"
    assert {hit["id"] for hit in post(client, {"query": "red"}).json()["hits"]} == {row["id"] for row in HOSTILE}


def test_limits_and_tokens(folder):
    limits = Limits(body_bytes=60)
    client = Client(Settings(*model_files([str(folder)]), token="s3cret", limits=limits, **QUIET))
    for call in (lambda **o: post(client, {"query": "red"}, **o), lambda **o: client("GET", "/search?q=red", **o)):
        assert call().status_code == 401
        assert call(headers={"authorization": "Bearer s3cret"}).status_code == 200
    authorized = {"authorization": "Bearer s3cret"}
    assert post(client, {"query": "red " * 20}, headers=authorized).status_code == 413
    assert client("POST", "/search", content=b'{"query":"a"}', headers=authorized).status_code == 415
    for path in ("/", "/ranking"):
        assert client("GET", path).status_code == 200


def test_a_pipeline_that_is_saved_again_is_reloaded(model, tmp_path):
    folder = tmp_path / "shop"
    SearchPipeline(built(HOSTILE), FEATURES, model).save(folder)
    client = Client(Settings(*model_files([str(folder)]), **QUIET))
    digest = client("GET", "/models").json()["models"][0]["digest"]
    more = [*HOSTILE, {"id": "new", "title": "a very red thing", "body": "", "votes": 9}]
    SearchPipeline(built(more), FEATURES, model_for(more, seed=3)).save(folder)
    with json_log() as lines:
        client.service.reload()
    assert "pipeline loaded" in [line["event"] for line in lines]
    assert "new" in [hit["id"] for hit in post(client, {"query": "very red"}).json()["hits"]]
    assert client("GET", "/models").json()["models"][0]["digest"] != digest
    manifest = folder / "podium-pipeline.json"
    manifest.write_text("{}")
    with json_log() as lines:
        client.service.reload()
        client.service.reload()
    (line,) = [line for line in lines if line["event"] == "pipeline refused"]
    assert "damaged" in line["reason"]
    assert "new" in [hit["id"] for hit in post(client, {"query": "very red"}).json()["hits"]]


def test_an_index_alone_is_refused_with_what_to_do(tmp_path):
    Index.build(HOSTILE, fields={"title": "english"}).save(tmp_path / "index")
    with pytest.raises(
        DataError, match="is an index, which has no model: train a search pipeline with podium pipeline"
    ):
        model_files([str(tmp_path / "index")])


def test_a_damaged_pipeline_is_not_served(folder, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "podium-pipeline.json").write_text("{}")
    with pytest.raises(podium.FileFormatError, match="damaged"):
        model_files([str(tmp_path / "bad")])


def test_models_that_cannot_be_explained_still_search(monkeypatch):
    def explain(*_, **__):
        raise DataError("it cannot be explained")

    monkeypatch.setattr(podium.models.LinearModel, "explain", explain)
    rows = [{"id": f"d{k}", "t": "red " * (k + 1)} for k in range(4)]
    index = Index.build(rows, fields={"t": "english"}, store_text=False)
    pipeline = SearchPipeline(index, ["bm25"], podium.models.LinearModel(np.ones(1), np.zeros(1)))
    served_pipeline = ServedPipeline("plain", pipeline)
    answer = served_pipeline.answer(SearchBody("red"))
    assert [hit.text for hit in answer.hits] == [{}] * 4  # the index stores no text
    with pytest.raises(Refused, match="cannot be explained"):
        served_pipeline.answer(SearchBody("red", pair=["d0", "d1"]))


def test_the_openapi_document_describes_search(client):
    jsonschema = pytest.importorskip("jsonschema")
    document = client("GET", "/openapi.json").json()
    operations = document["paths"]["/search"]
    parameters = [parameter["name"] for parameter in operations["get"]["parameters"]]
    assert parameters == ["q", "k", "pipeline", "features", "compare"]
    for name, good in ((("SearchBody", {"query": "a", "k": 3, "pair": ["a", "b"]})), ("SearchBody", {"query": "a"})):
        jsonschema.validate(good, document["components"]["schemas"][name])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"query": "a", "colour": 1}, document["components"]["schemas"]["SearchBody"])
    pair = [row["id"] for row in HOSTILE[:2]]
    answer = post(client, {"query": "red", "compare": True, "features": True, "pair": pair}).json()
    schema = {"$ref": "#/components/schemas/SearchAnswer", "components": document["components"]}
    jsonschema.validate(answer, schema)


def test_the_page_loads_nothing_external(client):
    response = client("GET", "/")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    text = response.text
    assert not re.search(r"https?://|@import|url\(|innerHTML|outerHTML|insertAdjacent|<script src", text)
    fields = re.findall(r'<(?:textarea|select|input)[^>]* id="(\w+)"', text)
    assert {"query", "compare", "pipeline", "token"} == set(fields)
    assert all(f'for="{field}"' in text for field in fields)


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_search_box_in_a_browser(browser, folder, width, scheme):
    browser("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 1000)
    browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.problems.clear()
    with served(Settings(*model_files([str(folder)]), **QUIET)) as address:
        browser.open(address)
        browser.until("document.getElementById('about').textContent.startsWith('5 documents')")
        browser.js("document.getElementById('query').focus()")
        browser.type("red <script>window.hacked=1</script>")
        browser.key("Enter", 13, "\r")
        browser.until("document.querySelectorAll('#lists section').length === 2")
        expected = SearchPipeline.load(folder).search("red <script>window.hacked=1</script>").ids
        shown = browser.js(
            "[...document.querySelectorAll('#lists section')[0].querySelectorAll('li')].map(x => x.dataset.id)"
        )
        assert shown == expected
        assert browser.js(
            "[...document.querySelectorAll('mark')].every(x => /^(reds?|script|window|hacked|1)$/i.test(x.textContent))"
        )
        browser.js(
            "[...document.querySelectorAll('#lists section')[0].querySelectorAll('input')].slice(0, 2)"
            ".forEach(x => x.click())"
        )
        browser.until("!document.getElementById('why').hidden")
        title = browser.js("document.getElementById('why-title').textContent")
        assert title == f"Why {expected[0]} ranks above {expected[1]}"
        assert browser.js("document.querySelectorAll('#why-features tbody tr').length") >= 1
        assert browser.js("document.querySelectorAll('script, img').length") == 1  # the page's own script
        assert browser.js("window.hacked === undefined")
        assert browser.js("document.documentElement.scrollWidth") <= width
        browser.open(f"{address}?q=laces")
        browser.until("document.querySelectorAll('#lists li').length === 2")
        browser.js("document.getElementById('query').value = 'nothing_of_this'")
        browser.js("document.getElementById('form').requestSubmit()")
        browser.until("document.getElementById('message').textContent.startsWith('No document')")
    assert not browser.problems
