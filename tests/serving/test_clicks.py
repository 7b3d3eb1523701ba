"""The service with a click log: POST /events, features that it computes, and what it showed."""

import json
import random
import threading

import jsonschema
import numpy as np
import pytest

import podium
from podium.clicks import ClickLog, Replay
from podium.clicks.simulating import simulate_events
from podium.errors import DataError
from podium.serving.running import run_service
from podium.serving.settings import Limits, Settings
from tests.serving.conftest import Client

FEATURES = ["rate(click, by=document)", "count(impression, by=query+document)", "recency(click, by=user)"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    log = ClickLog.read(simulate_events(300), format="metarank")
    past = log.features(FEATURES)
    values = np.column_stack([log.shown["text_score"], past.features])
    data = podium.RankingData(values, log.clicked, qid=log.impression, feature_names=["text_score", *FEATURES])
    path = tmp_path_factory.mktemp("model") / "clicks.podium"
    podium.LambdaMART(n_trees=5, n_leaves=4).fit(data).save(path)
    return path


def client_of(model, folder, **options):
    return Client(Settings({"clicks": model}, clicks=folder, log_requests=False, **options))


def query(rng, **more):
    ids = rng.sample("abcdefgh", 5)
    documents = [{"text_score": round(rng.random(), 3)} for _ in ids]
    return {"documents": documents, "ids": ids, "query": rng.choice(["tea", "mug"]), "user": rng.choice("uv")} | more


def send(client, events, **headers):
    content = events if isinstance(events, bytes) else json.dumps({"events": events}).encode()
    return client("POST", "/events", content=content, headers={"content-type": "application/json"} | headers)


def click(ranking, item):
    return {"event": "interaction", "type": "click", "ranking": ranking, "item": item}


def work(client, rng, n):
    for _ in range(n):
        answer = client.rank(query(rng, k=4))
        assert answer.status_code == 200, answer.text
        body = answer.json()
        items = rng.sample([document["id"] for document in body["ranking"]], rng.randrange(3))
        sent = send(client, [click(body["id"], item) for item in items])
        assert sent.json() == {"accepted": len(items), "ignored": 0}, sent.text


def test_logged_features_and_scores_equal_the_replay_of_the_log(model, tmp_path):
    """Compare under load from several threads, with a restart of the service."""
    for part in range(2):
        client = client_of(model, tmp_path)
        threads = [threading.Thread(target=work, args=(client, random.Random(10 * part + k), 15)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.service.clicks.live._file.close()  # no snapshot, as after a kill
    log = ClickLog.read(tmp_path / "events.jsonl", format="metarank")
    assert (log.n_impressions, len(log)) == (90, 360)
    assert log.clicked.sum() > 30
    values = Replay(FEATURES).replay(log)
    for k, name in enumerate(FEATURES):
        np.testing.assert_array_equal(log.shown[name], values[:, k])
    assert np.nanmax(values[:, 0]) > 0
    rows = np.column_stack([log.shown["text_score"], values]).astype(np.float32)
    np.testing.assert_array_equal(log.shown["model_score"], podium.load(model).predict(rows))
    assert log.ranking_data().feature_names == (*sorted(FEATURES), "text_score")
    assert log.check() == () or {finding.kind for finding in log.check()} <= {"ties"}


def test_bad_events_are_named(model, tmp_path):
    client = client_of(model, tmp_path, limits=Limits(documents=5))
    for events, status, message in [
        (b"{", 400, "not valid JSON"),
        ([{"event": "clicks"}], 400, "events[0]"),
        ([{"event": "interaction", "type": "click"}], 400, "missing required field item - at $.events[0]"),
        ([{"event": "interaction", "type": "click", "item": 3}], 400, "$.events[0].item"),
        ([{"event": "ranking", "id": "r", "items": [{"id": ""}]}], 400, "$.events[0].items[0].id"),
        ([{"event": "interaction", "type": "dwell", "item": "a"}], 422, "event 0: the type 'dwell' is reserved"),
        ([{"event": "item", "item": "a"}] * 6, 413, "6 events, but the limit is 5"),
    ]:
        answer = send(client, events)
        assert answer.status_code == status, answer.text
        assert message in answer.json()["error"]
    assert (tmp_path / "events.jsonl").read_bytes() == b""
    assert send(client, [click("nothing", "a")]).json() == {"accepted": 1, "ignored": 1}


def test_bad_queries_are_named(model, tmp_path):
    client, rng = client_of(model, tmp_path), random.Random(0)
    for change, message in [
        ({"ids": None}, "ids are missing"),
        ({"ids": ["a"] * 5}, "ids must be distinct and not empty"),
        ({"documents": [[0.5, 1, 1, 1]] * 5}, "document 0: send values by name"),
        ({"documents": [{"text_score": 1, FEATURES[0]: 0.5}] * 5}, "which the service computes"),
    ]:
        answer = client.rank(query(rng) | change)
        assert answer.status_code == 422
        assert message in answer.json()["error"]
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_explaining_logs_nothing(model, tmp_path):
    client = client_of(model, tmp_path)
    body = json.dumps(query(random.Random(0))).encode()
    answer = client("POST", "/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_events_need_the_token(model, tmp_path):
    client = client_of(model, tmp_path, token="secret")
    assert send(client, []).status_code == 401
    assert send(client, [], authorization="Bearer secret").status_code == 200


def test_without_a_log_there_are_no_events(client):
    assert send(client, []).status_code == 404
    assert "/events" not in client("GET", "/openapi.json").json()["paths"]


def test_the_document_describes_events_and_leaves_computed_features_out(model, tmp_path):
    document = client_of(model, tmp_path).service.document()
    example = document["paths"]["/rank"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert set(example["documents"][0]) == {"text_score"}
    for path, body in (("/rank", example), ("/events", {"events": [click("r", "a")]})):
        schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        whole = schema | {"components": document["components"]}
        jsonschema.Draft202012Validator(whole).validate(body)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole).validate({"events": [{"event": "interaction"}]})


def test_one_worker_only(model, tmp_path):
    with pytest.raises(DataError, match="a click log needs a single worker"):
        run_service(Settings({"clicks": model}, clicks=tmp_path), "127.0.0.1", 0, 2)
