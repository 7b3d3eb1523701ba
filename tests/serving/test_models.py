"""Which model answers, and how a new one takes the place of an old one."""

import asyncio
import json
import os
import shutil
import threading

import numpy as np
import pytest

import podium
from podium.serving.models import Registry, model_of_query, watched
from podium.serving.settings import Settings, model_files, parse_shares, read_token
from tests.serving.conftest import NAMES, Client, json_log

QUIET = {"log_requests": False, "watch_seconds": 0}


def digest(path):
    return podium.load(path).digest()


@pytest.fixture
def two(models):
    return {"web": models["web"], "news": models["news"]}


def test_a_request_names_its_model(two, documents):
    client = Client(Settings(two, **QUIET))
    for name, path in two.items():
        answer = client.rank({"documents": documents, "model": name}).json()
        scores = podium.load(path).predict(documents)
        assert answer["model"] == name
        assert answer["ranking"][0]["score"] == scores.max()
    assert client.rank({"documents": documents}).json()["model"] == "web"


def test_a_split_depends_on_the_query_and_is_near_its_shares(two, documents):
    split = {"web": 3, "news": 1}
    client = Client(Settings(two, split=split, **QUIET))
    queries = [{"documents": documents[:1], "query": query} for query in range(200)]
    answered = [ranking["model"] for ranking in client.rank({"queries": queries}).json()["queries"]]
    assert answered == [model_of_query(split, query) for query in range(200)]
    assert answered == [model_of_query(split, str(query)) for query in range(200)]
    assert 30 <= answered.count("news") <= 70
    assert client.rank({"documents": documents}).json()["model"] == "web"  # no query, no split
    everything = {model_of_query({"web": 0, "news": 1}, query) for query in range(100)}
    assert everything == {"news"}


def test_shadow_rankings_that_differ_are_counted(two, documents):
    client = Client(Settings(two, shadow="news", **QUIET))
    old, new = (
        [int(k) for k in (-podium.load(path).predict(documents)).argsort(kind="stable")] for path in two.values()
    )
    differ = next(k for k in range(1, 50) if old[:k] != new[:k])
    client.rank({"documents": documents, "k": differ})
    client.rank({"documents": documents[:1], "k": 5})
    client.rank({"documents": documents, "model": "web"})  # requests that name a model are not compared
    assert client.metric('podium_shadow_rankings_total{differs="yes",model="web"}') == 1
    assert client.metric('podium_shadow_rankings_total{differs="no",model="web"}') == 1


def test_a_shadow_model_must_encode_documents_alike(models, data, tmp_path):
    kinds = podium.RankingData(
        data.features.round(), data.relevance, qid=data.qid, feature_names=NAMES, categorical=["bm25"]
    )
    podium.LambdaMART(n_trees=1, n_leaves=2).fit(kinds).save(tmp_path / "kinds.podium")
    two = {"web": models["web"], "kinds": tmp_path / "kinds.podium"}
    with pytest.raises(podium.DataError, match="encode their features differently"):
        Client(Settings(two, shadow="kinds"))
    Client(Settings(two, split={"web": 1, "kinds": 1}, **QUIET))


def test_descriptions_hide_the_paths_of_the_host(two):
    client = Client(Settings(two, split={"news": 1.0}, shadow="web", **QUIET))
    answer = client("GET", "/models").json()
    assert (answer["default"], answer["split"], answer["shadow"]) == ("news", {"news": 1.0}, "web")
    web, news = answer["models"]
    assert (web["name"], web["feature_names"], web["digest"]) == ("web", list(NAMES), digest(two["web"]))
    assert news["n_features"] == 4
    assert str(two["web"].parent) not in json.dumps(answer)
    assert client("GET", "/health").json() == {"status": "alive"}
    assert client("GET", "/ready").json() == {"models": 2, "refused": []}


def test_a_damaged_model_is_named_and_the_others_answer(two, documents, tmp_path):
    (tmp_path / "bad.podium").write_bytes(two["web"].read_bytes()[:300])
    client = Client(Settings({**two, "bad": tmp_path / "bad.podium"}, **QUIET))
    assert client("GET", "/ready").json() == {"models": 2, "refused": ["bad"]}
    assert client("GET", "/models").json()["refused"] == ["bad"]
    assert client.rank({"documents": documents}).json()["model"] == "web"
    assert client.rank({"documents": documents, "model": "bad"}).status_code == 503
    first = Client(Settings({"bad": tmp_path / "bad.podium", **two}, **QUIET))  # never answer with another default
    assert first.rank({"documents": documents}).status_code == 503
    assert first.rank({"documents": documents, "model": "web"}).status_code == 200
    example = first("GET", "/openapi.json").json()["paths"]["/rank"]["post"]["requestBody"]["content"]
    assert first.rank(example["application/json"]["example"]).status_code == 200
    for options in ({"split": {"web": 1, "bad": 1}}, {"shadow": "bad"}):
        with pytest.raises(podium.DataError, match="'bad' of the split or shadow could not be loaded"):
            Client(Settings({**two, "bad": tmp_path / "bad.podium"}, **options, **QUIET))


def test_examples_are_documents_that_a_model_accepts(data, tmp_path):
    rng = np.random.default_rng(0)
    kinds, times = rng.choice(["shoes", "hats"], len(data)), 1.7e9 + rng.integers(0, 9, len(data))
    columns = np.column_stack([data.features[:, 0].astype(object), kinds, times])
    mixed = podium.RankingData(columns, data.relevance, qid=data.qid, feature_names=["a", "kind", "t"], categorical=[1])
    nameless = podium.RankingData(data.features, data.relevance, qid=data.qid)
    fitted = {
        "mixed": podium.LambdaMART(n_trees=3, n_leaves=4).fit(mixed),
        "nameless": podium.LambdaMART(n_trees=3, n_leaves=4).fit(nameless),
        "linear": podium.PRank(epochs=1).fit(nameless),
    }
    for name, model in fitted.items():
        model.save(tmp_path / f"{name}.podium")
    client = Client(Settings({name: tmp_path / f"{name}.podium" for name in fitted}, **QUIET))
    for model in client("GET", "/models").json()["models"]:
        response = client.rank({"documents": model["example"], "model": model["name"]})
        assert (response.status_code, len(response.json()["ranking"])) == (200, 3)


@pytest.fixture
def registry(models, tmp_path):
    shutil.copy(models["web"], tmp_path / "web.podium")
    events = []
    files, folders = model_files([str(tmp_path)])
    good = tmp_path / "good"
    good.mkdir()
    registry = Registry(Settings(files, folders, good_files=good), lambda event, **facts: events.append((event, facts)))
    registry.events, registry.folder = events, tmp_path
    return registry


def replace(registry, source, name="web.podium"):
    shutil.copy(source, registry.folder / "new")
    (registry.folder / "new").replace(registry.folder / name)


def test_a_new_file_replaces_the_model_and_others_join(registry, models):
    registry.reload()
    assert not registry.events  # nothing has changed
    replace(registry, models["news"])
    registry.reload()
    assert registry.models["web"].digest == digest(models["news"])
    replace(registry, models["web"], "more.podium")
    registry.reload()
    assert list(registry.models) == ["web", "more"]
    assert [event for event, _ in registry.events] == ["model loaded"] * 2
    (registry.folder / "more.podium").unlink()
    registry.reload()
    assert list(registry.models) == ["web", "more"]  # what is gone stays until the next start


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "other features"])
def test_a_bad_file_leaves_the_old_model(registry, models, data, damage):
    old = registry.models["web"]
    path = registry.folder / "web.podium"
    whole = path.read_bytes()
    if damage == "other features":
        other = podium.RankingData(data.features[:, :2], data.relevance, qid=data.qid)
        registry._settings = Settings(
            {"web": path, "more": models["web"]}, split={"more": 1, "web": 1}, good_files=registry._settings.good_files
        )
        registry.models = {**registry.models, "more": old}
        podium.LambdaMART(n_trees=1, n_leaves=2).fit(other).save(path)
    else:
        path.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "text": b"hello"}[damage])
    registry.reload()
    assert registry.models["web"] is old
    [(event, facts)] = [event for event in registry.events if event[1]["model"] == "web"]
    assert (event, facts["level"]) == ("model refused", "error")
    registry.reload()
    assert len([event for event in registry.events if event[1]["model"] == "web"]) == 1  # it is tried only once
    if damage != "other features":  # a worker that starts now has the last good file
        again = Registry(registry._settings, lambda *_, **__: None)
        assert again.models["web"].digest == old.digest
        path.write_bytes(whole)
        registry.reload()
        assert registry.models["web"] is not old


def test_requests_see_either_the_old_or_the_new_model(registry, models):
    digests = {digest(models["web"]), digest(models["news"])}
    seen, end = set(), threading.Event()

    def look():
        while not end.is_set():
            seen.add(registry.choose(None, None).digest)

    thread = threading.Thread(target=look)
    thread.start()
    for k in range(10):
        replace(registry, models["news" if k % 2 else "web"])
        registry.reload()
    end.set()
    thread.join()
    assert seen == digests


def test_files_are_watched_and_a_signal_loads_all(registry, models):
    async def watch():
        async with watched(registry.reload, 0.02):
            replace(registry, models["news"])
            for _ in range(200):
                await asyncio.sleep(0.01)
                if registry.events:
                    break
        assert registry.models["web"].digest == digest(models["news"])
        async with watched(registry.reload, 0):
            os.kill(os.getpid(), 1)
            for _ in range(200):
                await asyncio.sleep(0.01)
                if len(registry.events) == 2:
                    break
        assert [event for event, _ in registry.events] == ["model loaded"] * 2

    asyncio.run(watch())


def test_file_names_that_are_not_utf8_are_escaped(models, documents, tmp_path):
    for source, name in ((models["web"], b"good\xff.podium"), (__file__, b"bad\xff.podium")):
        shutil.copy(source, os.path.join(os.fsencode(tmp_path), name))  # noqa: PTH118
    with json_log() as lines:
        client = Client(Settings(*model_files([str(tmp_path)]), **QUIET))
        assert client("GET", "/ready").json() == {"models": 1, "refused": ["bad\\udcff"]}
        assert client.rank({"documents": documents, "model": "good\\udcff"}).status_code == 200
        client.service.registry.reload(everything=True)
    assert [line["event"] for line in lines] == ["model refused", "model refused", "model loaded"]


def test_invalid_settings(models, tmp_path, monkeypatch):
    web = {"web": models["web"]}
    for bad, words in (
        ({"models": {}}, "no model to serve"),
        ({"models": web, "split": {"new": 1}}, "there is no model 'new'"),
        ({"models": web, "shadow": "new"}, "there is no model 'new'"),
        ({"models": web, "split": {"web": 0}}, "not all 0"),
        ({"models": web, "split": {"web": float("nan")}}, "not all 0"),
        ({"models": web, "token": ""}, "token"),
        ({"models": web, "watch_seconds": -1}, "watch_seconds"),
    ):
        with pytest.raises(podium.DataError, match=words):
            Settings(**bad)
    with pytest.raises(podium.DataError, match="two models are named 'web'"):
        model_files([str(models["web"]), "web=other.podium"])
    with pytest.raises(podium.DataError, match="is a folder"):
        model_files([f"x={tmp_path}"])
    with pytest.raises(podium.DataError, match="NAME=SHARE"):
        parse_shares(["web"])
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("PODIUM_TOKEN", "other")
    assert (read_token(tmp_path / "token"), read_token(None)) == ("s3cret", "other")
