"""Tokens, logs, counts and the description of the service."""

import logging
import sys

import jsonschema
import pytest

from podium.serving.monitoring import log
from podium.serving.settings import Limits, Settings
from tests.serving.conftest import Client, json_log


def test_a_token_guards_all_but_the_probes(models, documents):
    client = Client(Settings({"web": models["web"]}, token="s3cret", log_requests=False))
    for path in ("/models", "/metrics", "/openapi.json", "/nowhere"):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret"}):
            response = client("GET", path, headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer" in response.json()["error"]
    assert client.rank({"documents": documents}).status_code == 401
    assert client.rank({"documents": documents}, headers={"authorization": "Bearer s3cret"}).status_code == 200
    assert [client("GET", path).status_code for path in ("/health", "/ready")] == [200, 200]


def test_logs_are_json_without_documents(models):
    with json_log() as lines:
        client = Client(Settings({"web": models["web"]}))
        client.rank({"documents": [[12345.5, 2, 3, 4]], "ids": ["secret-id"], "query": "secret-query"})
        client("GET", "/secret-path")
    assert [(line["event"], line["path"], line["status"]) for line in lines] == [
        ("request", "/rank", 200),
        ("request", "other", 404),
    ]
    assert all(line["ms"] > 0 and line["time"] and line["level"] == "info" for line in lines)
    assert "secret" not in str(lines)
    assert "12345" not in str(lines)


def test_all_log_output_is_json():
    with json_log() as lines:
        logging.getLogger("py.warnings").warning("%s", "a warning")
        logging.getLogger("uvicorn.error").error("%s is in use", "the port")
        print("podium: compiling", file=sys.stderr)
        try:
            raise ValueError("secret")
        except ValueError as error:
            log("failure", level="error", error=error)
    warning, server, printed, failure = lines
    assert (warning["text"], warning["level"]) == ("a warning", "warning")
    assert (server["source"], server["level"], server["text"]) == ("uvicorn.error", "error", "the port is in use")
    assert (printed["event"], printed["text"]) == ("stderr", "podium: compiling")
    assert (failure["kind"], "secret" in str(failure)) == ("ValueError", False)


def test_requests_documents_and_times_are_counted(models, documents):
    client = Client(Settings({"web": models["web"]}, log_requests=False))
    for _ in range(3):
        client.rank({"documents": documents})
    client.rank(b"")
    assert client.metric('podium_requests_total{path="/rank",status="200"}') == 3
    assert client.metric('podium_requests_total{path="/rank",status="400"}') == 1
    assert client.metric('podium_documents_total{model="web"}') == 3 * len(documents)
    scoring = client.metric('podium_scoring_seconds_sum{model="web"}')
    assert 0 < scoring < client.metric('podium_request_seconds_sum{path="/rank"}')


def test_wrong_paths_and_methods(client):
    assert client("GET", "/nowhere").status_code == 404
    wrong = client("GET", "/rank")
    assert (wrong.status_code, "POST" in wrong.headers["allow"]) == (405, True)
    assert wrong.json() == {"error": "this path does not support this method"}


@pytest.fixture(scope="module")
def several(models):
    limits = Limits(documents=50)
    return Client(Settings({"web": models["web"], "news": models["news"]}, limits=limits, log_requests=False))


def test_the_openapi_document_distinguishes_valid_and_invalid_bodies(several):
    document = several("GET", "/openapi.json").json()
    body = document["paths"]["/rank"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator(body | {"components": document["components"]})
    row = [1, None, 3, 4.5]
    good = [
        {"documents": []},
        {"documents": [row], "ids": ["a"], "k": 3, "model": "news", "query": 7},
        {"documents": [{"bm25": 1, "age": None, "clicks": 0, "length": 2}], "ids": None},
        {"queries": [{"documents": [row]}, {"documents": [row], "model": "web"}]},
    ]
    bad = [
        {}, [], {"documents": [[1, 2, 3]]}, {"documents": [{"bm25": 1}]}, {"documents": [row], "k": 0},
        {"documents": [row], "model": "none"}, {"documents": [row] * 51}, {"documents": [[1e39, 1, 1, 1]]},
        {"documents": [row], "more": 1}, {"queries": [], "k": 1}, {"documents": [["a", 1, 1, 1]]},
    ]  # fmt: skip
    assert [several.rank(body).status_code for body in good] == [200] * len(good)
    assert [validator.is_valid(body) for body in good] == [True] * len(good)
    assert all(400 <= several.rank(body).status_code < 500 for body in bad)
    assert [validator.is_valid(body) for body in bad] == [False] * len(bad)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/rank", "/explain", "/models", "/health", "/ready", "/metrics"])
def test_schemathesis_finds_nothing(models, path):
    """A body that matches the schema may still give 422 (such as too few ids) or 413 (too many documents)."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, given, settings

    client = Client(
        Settings({"web": models["web"], "news": models["news"]}, limits=Limits(documents=20), log_requests=False)
    )
    document = client("GET", "/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.base_url = "http://test"
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "413", "422"]
    schema.config.checks.negative_data_rejection.expected_statuses += ["413"]
    for mode in schemathesis.GenerationMode:
        for operation in [found.ok() for found in schema.get_all_operations()]:
            if operation.path != path or (mode.is_negative and not operation.body):
                continue

            @settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
            @given(operation.as_strategy(generation_mode=mode))
            def check(case):
                arguments = case.as_transport_kwargs()
                response = client(
                    case.method,
                    case.formatted_path,
                    headers=arguments.get("headers"),
                    **{key: arguments[key] for key in ("json", "content") if key in arguments},
                )
                case.validate_response(schemathesis.Response.from_any(response))

            check()
