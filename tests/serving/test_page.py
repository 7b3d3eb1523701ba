"""The page at /, in a real browser where there is one."""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

import podium
from podium.serving.app import Service
from podium.serving.describing import PAGE
from podium.serving.settings import Settings
from tests.browser import needs_browser
from tests.colours import contrast
from tests.serving.conftest import NAMES


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_loads_nothing_external(client, path):
    response = client("GET", path)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    text = response.text
    assert not re.search(r"https?://|@import|url\(|innerHTML|<script src|<link rel=.stylesheet", text)
    assert 'lang="en"' in text
    assert 'name="viewport"' in text
    fields = re.findall(r'<(?:textarea|select|input)[^>]* id="(\w+)"', text)
    assert fields
    assert all(f'for="{field}"' in text for field in fields)


COLOURS = {
    name: dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    for name, block in zip(("light", "dark"), re.findall(r":root \{(.*?)\}", PAGE.decode(), re.DOTALL), strict=True)
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_enough_contrast(scheme):
    """Require a contrast of at least 4.5, as in WCAG 2.2, 1.4.3."""
    colours = COLOURS[scheme]
    pairs = [(name, "back") for name in ("text", "soft", "accent", "up", "down", "bad")]
    for foreground, background in [*pairs, ("text", "panel"), ("on-accent", "accent")]:
        assert contrast(colours[foreground], colours[background]) >= 4.5, (foreground, background)


@contextmanager
def served(settings):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(Service(settings), port=port, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address(models):
    settings = Settings({"web": models["web"], "news": models["news"]}, log_requests=False, watch_seconds=0)
    with served(settings) as place:
        yield place


def cells(browser, section, selector):
    cells = f"document.querySelectorAll('#models section')[{section}].querySelectorAll('tbody {selector}')"
    return browser.js(f"[...{cells}].map(cell => cell.innerText.trim())")


def column(browser, section, number):
    return cells(browser, section, f"tr:not(.adding) td:nth-child({number})")


@needs_browser
@pytest.mark.slow
def test_a_query_is_ranked_and_explained_with_the_keyboard_alone(browser, address, models, documents):
    few = documents[:5]
    labels, ids = [0, 1, 2, 3, 4], [f"doc-{k}" for k in range(5)]
    browser.open(address)
    browser.until("document.getElementById('first').value === 'web'")
    tab = ("Tab", 9)
    for place in ("/docs", "text"):
        browser.key(*tab)
        assert browser.js("document.activeElement.getAttribute('href') || document.activeElement.id") == place
    browser.type(json.dumps({"documents": few, "labels": labels, "ids": ids}))
    seen = []
    for _ in range(5):
        browser.key(*tab)
        seen.append(browser.js("document.activeElement.id || document.activeElement.parentElement.id"))
    assert seen == ["features", "file", "first", "second", "rank"]
    browser.js("document.getElementById('second').value = 'news'")
    browser.key("Enter", 13, "\r")
    browser.until("document.querySelectorAll('#models section').length === 2")
    for section, name in enumerate(("web", "news")):
        scores = podium.load(models[name]).predict(few)
        order = (-scores).argsort(kind="stable").tolist()
        assert column(browser, section, 2 + section) == [f"doc-{k}" for k in order]
        assert column(browser, section, 3 + section) == [str(labels[k]) for k in order]
        shown = [float(text.replace("−", "-")) for text in column(browser, section, 4 + section)]
        assert shown == pytest.approx(scores[order].tolist(), abs=6e-5)
        reasons = cells(browser, section, "tr.adding td")
        assert len(reasons) == len(few)
        assert all(any(feature in cell for feature in NAMES) for cell in reasons)
    for _ in range(2):  # the first two documents are picked
        browser.key(*tab)
        browser.key(" ", 32, " ")
    browser.until("!document.getElementById('pair').hidden")
    best = (-podium.load(models["web"]).predict(few)).argsort(kind="stable").tolist()
    title = browser.js("document.getElementById('pair-title').innerText")
    assert title == f"Why doc-{best[0]} ranks above doc-{best[1]}"
    assert browser.js("document.querySelectorAll('#pair-table tbody tr').length") >= 1
    assert {request.partition(address)[1] or request for request in browser.requests} <= {address, "data:,"}
    assert not browser.problems


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(browser, address, documents, scheme, tmp_path):
    browser("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(address)
    browser.until("document.getElementById('first').value === 'web'")
    head = ",".join(["label", *NAMES])
    lines = [",".join(map(str, [k, *row])) for k, row in enumerate(documents[:3])]
    browser.js("document.getElementById('text').focus()")
    browser.type("\n".join([head, *lines]))
    browser.js("document.getElementById('form').requestSubmit()")
    browser.until("document.querySelectorAll('#models tbody tr.ranked').length === 3")
    assert browser.js("document.documentElement.scrollWidth") <= 360
    colour = browser.js("getComputedStyle(document.body).backgroundColor")
    back = COLOURS[scheme]["back"]
    assert colour == f"rgb({int(back[1:3], 16)}, {int(back[3:5], 16)}, {int(back[5:7], 16)})"


@needs_browser
@pytest.mark.slow
def test_other_formats_and_mistakes(browser, address, documents):
    browser.open(address)
    browser.until("document.getElementById('first').value === 'web'")

    def submit(text):
        browser.js(f"document.getElementById('text').value = {json.dumps(text)}")
        browser.js("document.getElementById('message').textContent = ''")
        browser.js("document.getElementById('form').requestSubmit()")
        return browser.until(
            "(words => words && !words.startsWith('Ranking') && words)(document.getElementById('message').textContent)"
        )

    rows = [" ".join(f"{k + 1}:{value}" for k, value in enumerate(row)) for row in documents[:3]]
    letor = "\n".join(f"{label} qid:7 {row} #docid = d{label}" for label, row in enumerate(rows))
    assert submit(letor).startswith("3 documents ranked")
    assert set(column(browser, 0, 2)) == {"d0", "d1", "d2"}
    assert "no documents" in submit("")
    assert "has 2 values, but the model expects 4" in submit("[[1, 2]]")
    assert "the model has no such feature" in submit("bm25,age,clicks,length,<b>x</b>\n1,2,3,4,5")
    assert "queries: paste only one" in submit(f"1 qid:1 {rows[0]}\n1 qid:2 {rows[1]}")


@needs_browser
@pytest.mark.slow
def test_the_box_starts_with_an_example_that_can_be_ranked(browser, address, documents):
    browser.open(address)
    browser.until("document.getElementById('first').value === 'web'")
    listed = browser.js("[...document.querySelectorAll('#features li')].map(item => item.innerText)")
    assert listed == list(NAMES)
    example = json.loads(browser.js("document.getElementById('text').value"))
    assert [sorted(document) for document in example["documents"]] == [sorted(NAMES)] * 3
    browser.js("document.getElementById('form').requestSubmit()")
    browser.until("document.querySelectorAll('#models tbody tr.ranked').length === 3")
    assert len(set(column(browser, 0, 3))) > 1  # the scores differ

    def choose(name):
        browser.js(f"document.getElementById('first').value = '{name}'")
        browser.js("document.getElementById('first').dispatchEvent(new Event('change'))")
        return browser.js("document.getElementById('text').value")

    assert json.loads(choose("news")) != example
    browser.js("document.getElementById('text').value = 'of the user'")
    assert choose("web") == "of the user"


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_the_docs_page_shows_every_path(browser, address, client, width):
    browser("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1, mobile=width < 1000)
    browser.problems.clear()  # those of other tests
    browser.open(address + "docs")
    browser.until("document.querySelectorAll('section').length > 1")
    titles = browser.js("[...document.querySelectorAll('h2')].map(title => title.innerText)")
    assert titles == [
        f"{method.upper()} {path}"
        for path, operations in client("GET", "/openapi.json").json()["paths"].items()
        for method in operations
    ]
    fields = browser.js("[...document.querySelectorAll('section td:first-child')].map(cell => cell.innerText)")
    assert {"documents", "ids", "k", "queries", "pair", "refused", "422"} <= set(fields)
    assert browser.js("document.documentElement.scrollWidth") <= width
    assert not browser.problems


@needs_browser
@pytest.mark.slow
def test_the_docs_page_asks_for_a_token(browser, models):
    with served(Settings({"web": models["web"]}, token="s3cret", log_requests=False, watch_seconds=0)) as place:
        browser.open(place + "docs")
        browser.until("!document.getElementById('guard').hidden")
        assert browser.js("document.querySelectorAll('section').length") == 0
        browser.js("document.getElementById('token').value = 's3cret'")
        browser.js("document.getElementById('token').dispatchEvent(new Event('change'))")
        browser.until("document.querySelectorAll('section').length > 1")
