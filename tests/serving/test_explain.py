"""POST /explain: contributions are those of the library, and add up."""

import json

import numpy as np
import pytest

import podium
from podium.explain import explain
from podium.serving.settings import Limits, Settings
from tests.serving.conftest import NAMES, Client


def post(client, content):
    return client("POST", "/explain", content=json.dumps(content), headers={"content-type": "application/json"})


def test_contributions_are_those_of_the_library(client, models, documents):
    answer = post(client, {"documents": documents, "k": 5, "ids": list(range(100, 100 + len(documents)))}).json()
    expected = explain(podium.load(models["web"]), np.array(documents, np.float32))
    assert (answer["model"], answer["features"], answer["base"]) == ("web", list(NAMES), expected.base)
    assert len(answer["documents"]) == 5
    ranking = client.rank({"documents": documents, "k": 5}).json()["ranking"]
    for document, ranked in zip(answer["documents"], ranking, strict=True):
        assert (document["index"], document["score"]) == (ranked["index"], ranked["score"])
        assert document["id"] == 100 + document["index"]
        assert document["contributions"] == expected.values[document["index"]].tolist()
        assert sum(document["contributions"]) + answer["base"] == pytest.approx(document["score"], abs=1e-12)
    assert "why" not in answer


def test_why_one_document_ranks_above_another(client, documents):
    with_hole = [[None, *documents[0][1:]], *documents[1:]]
    why = post(client, {"documents": with_hole, "pair": [0, 3]}).json()["why"]
    assert (why["above"], why["below"]) == (0, 3)
    differences = [feature["difference"] for feature in why["features"]]
    assert sum(differences) == pytest.approx(why["scores"][0] - why["scores"][1], abs=1e-12)
    assert differences == sorted(differences, key=abs, reverse=True)
    bm25 = next(feature for feature in why["features"] if feature["feature"] == "bm25")
    assert bm25["values"] == [None, documents[3][0]]


def test_bad_requests_to_explain(models, documents):
    client = Client(Settings({"web": models["web"]}, limits=Limits(explained=3), log_requests=False))
    for content, status, words in (
        ({"documents": documents[:2], "pair": [0, 2]}, 422, "the pair has index 2, but there are 2 documents"),
        ({"documents": documents[:2], "pair": [0]}, 400, "pair"),
        ({"documents": documents[:4]}, 413, "4 documents to explain, but the limit is 3"),
        ({"documents": [["a", 1, 2, 3]]}, 422, "must be a number, but got text"),
        ({"queries": []}, 400, "queries"),
    ):
        response = post(client, content)
        assert response.status_code == status, content
        assert words in response.json()["error"]
    assert post(client, {"documents": []}).json()["documents"] == []
