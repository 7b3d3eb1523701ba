"""Models to serve, and clients of a service in this process."""

import asyncio
import io
import json
import logging
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import httpx
import numpy as np
import pytest

import podium
from podium.serving.app import Service
from podium.serving.monitoring import set_up_log
from podium.serving.settings import Settings

NAMES = ("bm25", "age", "clicks", "length")


@pytest.fixture(scope="session")
def data():
    data = podium.artificial_web(30, features=4, seed=3)
    return podium.RankingData(data.features, data.relevance, qid=data.qid, feature_names=NAMES)


@pytest.fixture(scope="session")
def models(data, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    models = {
        "web": podium.LambdaMART(n_trees=6, n_leaves=4).fit(data),
        "news": podium.LambdaMART(n_trees=3, n_leaves=4, measure="ap").fit(data),
    }
    paths = {}
    for name, model in models.items():
        paths[name] = folder / f"{name}.podium"
        model.save(paths[name])
    return paths


class Client:
    """Calls a service in this process, as a server would."""

    def __init__(self, settings: Settings) -> None:
        self.service = Service(settings)

    def __call__(self, method, path, **options) -> httpx.Response:
        async def call():
            transport = httpx.ASGITransport(app=self.service, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **options)

        return asyncio.run(call())

    def rank(self, content, **options) -> httpx.Response:
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        headers = {"content-type": "application/json"} | options.pop("headers", {})
        return self("POST", "/rank", content=content, headers=headers, **options)

    def metric(self, line: str) -> float:
        lines = [text for text in self("GET", "/metrics").text.splitlines() if text.startswith(line + " ")]
        return float(lines[0].split()[-1]) if lines else 0.0


@pytest.fixture(scope="session")
def client(models) -> Client:
    return Client(Settings({"web": models["web"]}, log_requests=False))


@contextmanager
def json_log():
    """Set up the log, and give its lines at the end."""
    root, stream, lines = logging.getLogger(), io.StringIO(), []
    handlers, level = root.handlers[:], root.level
    with redirect_stderr(stream):
        set_up_log()
        yield lines
    logging.captureWarnings(False)
    logging.raiseExceptions = True
    root.handlers[:], root.level = handlers, level
    lines += map(json.loads, stream.getvalue().splitlines())


@pytest.fixture(scope="session")
def documents(data) -> list[list[float]]:
    return data.features[data.rows(0)].astype(np.float64).tolist()
