"""POST /rank: rankings are those of the model, and bad input is refused with one sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.data.schema import Schema
from podium.serving.bodies import Matcher, decode_queries
from podium.serving.settings import Limits, Settings
from tests.serving.conftest import NAMES, Client, json_log


def expected(model, rows):
    scores = podium.load(model).predict(np.array(rows, np.float32))
    return [(int(k), float(scores[k])) for k in np.argsort(-scores, kind="stable")]


def ranking(response):
    assert response.status_code == 200, response.text
    return [(document["index"], document["score"]) for document in response.json()["ranking"]]


def test_a_ranking_equals_that_of_the_model(client, models, documents):
    response = client.rank({"documents": documents})
    assert response.json()["model"] == "web"
    assert ranking(response) == expected(models["web"], documents)
    assert "id" not in response.json()["ranking"][0]


def test_values_by_name_in_any_order(client, models, documents):
    named = [dict(zip(reversed(NAMES), reversed(row), strict=True)) for row in documents]
    assert ranking(client.rank({"documents": named})) == expected(models["web"], documents)
    mixed = [*named[:3], *documents[3:]]
    assert ranking(client.rank({"documents": mixed})) == expected(models["web"], documents)


def test_null_is_a_missing_value(client, models, documents):
    holes = [[None if (k + j) % 3 == 0 else value for j, value in enumerate(row)] for k, row in enumerate(documents)]
    with_nan = [[np.nan if value is None else value for value in row] for row in holes]
    assert ranking(client.rank({"documents": holes})) == expected(models["web"], with_nan)


@pytest.mark.parametrize(("absent", "hint"), [("zero", "send 0"), ("missing", "send null")])
def test_a_feature_is_absent_as_in_the_training_data(tmp_path, absent, hint):
    text = "".join(f"{k % 3} qid:{k // 6} 1:{k} 2:{k % 5}\n" for k in range(60))
    (tmp_path / "train.txt").write_text(text)
    train = podium.read(tmp_path / "train.txt", absent=absent)
    podium.LambdaMART(n_trees=2, n_leaves=4).fit(train).save(tmp_path / "web.podium")
    client = Client(Settings({"web": tmp_path / "web.podium"}, log_requests=False))
    response = client.rank({"documents": [{"1": 3}]})
    assert response.status_code == 422
    assert hint in response.text


def test_ids_and_k(client, models, documents):
    ids = [f"d{k}" if k % 2 else k for k in range(len(documents))]
    answer = client.rank({"documents": documents, "ids": ids, "k": 3, "query": "shoes"}).json()
    best = expected(models["web"], documents)[:3]
    assert answer["ranking"] == [{"index": k, "score": score, "id": ids[k]} for k, score in best]


def test_several_queries(client, models, documents):
    parts = [documents[:4], [], documents[4:9]]
    answer = client.rank({"queries": [{"documents": part, "k": 2} for part in parts]}).json()
    rankings = [
        [(document["index"], document["score"]) for document in query["ranking"]] for query in answer["queries"]
    ]
    assert rankings == [expected(models["web"], part)[:2] if part else [] for part in parts]


def test_equal_documents_stay_in_their_order(client, documents):
    assert [k for k, _ in ranking(client.rank({"documents": [documents[0]] * 5}))] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_category", [False, True])
def test_booleans_are_served_as_in_training(data, tmp_path, is_category):
    flags = pd.Series(data.features[:, 0] > 0)
    frame = pd.DataFrame(
        {"x": data.features[:, 1].astype(float), "new": flags.astype("category") if is_category else flags}
    )
    model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(frame, data.relevance, qid=data.qid)
    model.save(tmp_path / "flags.podium")
    client = Client(Settings({"flags": tmp_path / "flags.podium"}, log_requests=False))
    rows = data.rows(0)
    scores_by_index = dict(ranking(client.rank({"documents": frame.iloc[rows].to_dict(orient="records")})))
    assert [scores_by_index[k] for k in range(len(rows))] == model.predict(frame)[rows].tolist()


def test_categories_shifts_and_normalized_features(data, tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.choice(["shoes", "hats", "7"], len(data))
    stamps = 1.7e9 + rng.integers(0, 1000, len(data))
    columns = np.column_stack([data.features[:, 0].astype(object), kinds, stamps])
    frame = podium.RankingData(
        columns, data.relevance + (kinds == "hats"), qid=data.qid, feature_names=["a", "kind", "time"], categorical=[1]
    )
    models = {
        "kinds": podium.LambdaMART(n_trees=5, n_leaves=6).fit(frame),
        "scaled": podium.LambdaMART(n_trees=5, n_leaves=6).fit(data.normalized("minmax")),
        "plain": podium.LambdaMART(n_trees=2, n_leaves=3).fit(data),
    }
    for name, model in models.items():
        model.save(tmp_path / f"{name}.podium")
    client = Client(Settings({name: tmp_path / f"{name}.podium" for name in models}, log_requests=False))
    rows = data.rows(0)
    for name, source, values in (("kinds", frame, columns), ("scaled", data.normalized("minmax"), data.features)):
        scores = models[name].predict(source)[rows]
        sent = [[float(v) if not isinstance(v, str) else v for v in row] for row in values[rows]]
        scores_by_index = dict(ranking(client.rank({"documents": sent, "model": name})))
        assert [scores_by_index[k] for k in range(len(rows))] == scores.tolist()
    unseen = client.rank({"documents": [[1, "gloves", 1.7e9], [1, None, 1.7e9]], "model": "kinds"})
    assert len({score for _, score in ranking(unseen)}) == 1
    for model, row in (("plain", [1, "2", 3, 4]), ("kinds", ["1", "hats", 1.7e9])):
        response = client.rank({"documents": [row], "model": model})
        assert response.status_code == 422
        assert "must be a number, but got text" in response.json()["error"]


ROW = [1, 2, 3, 4]
BAD = [
    (b"", 400, "is not valid JSON"),
    (b"[1]", 400, "Expected object"),
    (b"{}", 400, "neither documents nor queries"),
    (b'{"documents": [[NaN, 1, 2, 3]]}', 400, "NaN and Infinity are not allowed"),
    (b'{"documents": [[Infinity, 1, 2, 3]]}', 400, "NaN and Infinity are not allowed"),
    (b'{"documents": [[1e999, 1, 2, 3]]}', 400, "out of range"),
    (b'{"documents": [[1e200, 1, 2, 3]]}', 422, "the feature 'bm25' is too large"),
    (b'{"documents": ' + b"[" * 100_000, 400, "Expected"),
    (b'{"x": ' + b"[" * 100_000, 400, ""),
    (b'{"documents": [{"a\xff": 1}]}', 400, "not UTF-8"),
    ({"documents": [["a", 2, 3, 4]]}, 400, "Expected bool | float | null, got str"),
    ({"documents": [[1, 2, 3]]}, 422, "document 0 has 3 values, but the model expects 4"),
    ({"documents": [ROW, {"bm25": 1, "age": 2, "clicks": 3}]}, 422, "document 1 lacks the feature 'length'"),
    ({"documents": [dict.fromkeys([*NAMES, "lenght"], 1)]}, 422, "'lenght', but the model has no such feature (did"),
    ({"documents": [ROW], "ids": []}, 422, "1 documents but 0 ids"),
    ({"documents": [ROW], "k": 0}, 400, "k"),
    ({"documents": [ROW], "k": 1.5}, 400, "k"),
    ({"documents": [ROW], "nonsense": 1}, 400, "nonsense"),
    ({"documents": [ROW], "model": "none"}, 404, "no model 'none'"),
    ({"documents": [ROW], "queries": []}, 400, "both"),
    ({"queries": [], "k": 3}, 400, "k outside of the queries"),
    ({"queries": [{"documents": [ROW]}, {"documents": [[1]]}]}, 422, "query 1: document 0"),
]


@pytest.mark.parametrize(("content", "status", "words"), BAD)
def test_bad_input_gets_one_sentence(client, content, status, words):
    response = client.rank(content)
    assert (response.status_code, list(response.json())) == (status, ["error"])
    sentence = response.json()["error"]
    assert words in sentence
    assert len(sentence) < 400
    assert "/" not in sentence.replace("GET /models", "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from([*NAMES, "x"]), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=60)
@given(
    st.dictionaries(st.sampled_from(["documents", "queries", "ids", "k", "model", "query"]), json_values)
    | st.fixed_dictionaries({"documents": st.lists(st.lists(st.none() | st.floats(), min_size=4, max_size=4))})
    | json_values
)
def test_any_json_gets_an_answer(client, content):
    response = client.rank(content)
    assert response.status_code in (200, 400, 404, 422)
    assert ("error" in response.json()) == (response.status_code != 200)


@settings(max_examples=30)
@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(client, content):
    assert client.rank(content).status_code == 400


def test_requests_beyond_the_limits_are_refused(models, documents):
    limits = Limits(body_bytes=2_000, documents=5)
    client = Client(Settings({"web": models["web"]}, limits=limits, log_requests=False))
    assert client.rank({"documents": [ROW] * 5}).status_code == 200
    too_many = client.rank({"queries": [{"documents": [ROW] * 3}] * 2})
    assert (too_many.status_code, too_many.json()["error"]) == (413, "the request has 6 documents, but the limit is 5")
    large = client.rank(b" " * 2_001)
    assert (large.status_code, large.json()["error"]) == (413, "the body is larger than the limit of 2000 bytes")
    with pytest.raises(podium.DataError, match="no model could be loaded"):
        Client(Settings({"web": models["web"]}, limits=Limits(features=3)))


def test_other_content_types_are_refused(client):
    response = client("POST", "/rank", content=json.dumps({"documents": []}), headers={"content-type": "text/plain"})
    assert response.status_code == 415
    assert "application/json" in response.json()["error"]


def test_internal_errors_reveal_nothing(client, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("secret in /etc/passwd")

    monkeypatch.setattr(client.service.ranker, "rank", fail)
    with json_log() as lines:
        response = client.rank({"documents": [ROW]})
    assert response.status_code == 500
    assert response.json() == {"error": "the service failed to answer; see its log for details"}
    logged = lines[0]
    assert (logged["event"], logged["kind"]) == ("failure", "RuntimeError")
    assert "secret" not in str(logged)


number_texts = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr), st.integers(-(2**62), 2**62).map(str),
    st.just("null"), st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1})?", fullmatch=True),
)  # fmt: skip
blanks = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])


@given(st.lists(st.lists(number_texts, min_size=2, max_size=2), min_size=1, max_size=4), blanks)
def test_numbers_are_read_as_python_reads_them(texts, blank):
    """Compare each value with the float32 of Python's float."""
    rows = [f"{blank}[{blank}{row[0]}{blank},{row[1]}]" for row in texts]
    [query], _ = decode_queries(f'{blank}{{"documents"{blank}:{blank}[{",".join(rows)}]}}'.encode(), False)
    expected = np.array([[np.nan if text == "null" else float(text) for text in row] for row in texts], np.float32)
    np.testing.assert_array_equal(Matcher(Schema(2)).rows(query.documents), expected)
