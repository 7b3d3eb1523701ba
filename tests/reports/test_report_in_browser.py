"""Reports in a real browser: nothing fails, nothing is asked of a network, every control works."""

import json

import pytest

import podium
from podium.core.pages import base_style
from tests.browser import needs_browser

pytestmark = [needs_browser, pytest.mark.slow]
MEASURES = ["ndcg@10", "ap"]
TAB = ("Tab", 9)


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(20, documents=25, features=5, part=part) for part in ("train", "valid", "test")]


@pytest.fixture(scope="module")
def model(parts):
    return podium.LambdaMART(12, n_leaves=4).fit(parts[0], valid=parts[1])


@pytest.fixture(scope="module")
def file(parts, model, tmp_path_factory):
    train, valid, test = parts
    path = tmp_path_factory.mktemp("report") / "report.html"
    others = {"feature": test.feature(0), "half": podium.LambdaMART(6, n_leaves=4).fit(train)}
    return podium.report(model, test, path, train=train, valid=valid, others=others, queries=2, measures=MEASURES)


def opened(browser, file, width=1280, scheme="light"):
    browser("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.problems.clear()
    browser.requests.clear()
    browser.open(file.as_uri())
    browser.until("document.documentElement.dataset.drawn === 'yes'")
    return browser


def text_of(browser, selector):
    return browser.js(f"document.querySelector({json.dumps(selector)}).innerText.trim()")


def click(browser, selector):
    browser.js(f"document.querySelector({json.dumps(selector)}).click()")


def shown_query(browser):
    shown = browser.js(
        "[...document.querySelectorAll('.query')].filter(one => !one.hidden).map(one => one.dataset.query)"
    )
    assert len(shown) == 1
    return int(shown[0])


def test_it_opens_without_errors_and_without_a_network(browser, file, parts, model):
    opened(browser, file)
    n_charts = browser.js("document.querySelectorAll('[data-chart]').length")
    assert n_charts > 15
    assert browser.js("document.querySelectorAll('[data-chart] svg').length") == n_charts
    assert set(browser.requests) <= {file.as_uri(), "data:,"}
    assert not browser.problems
    rows = browser.js(
        "[...document.querySelectorAll('#measures tbody tr')].map(row => [...row.cells].map(c => c.innerText))"
    )
    for name, data in zip(("train", "valid", "test"), parts, strict=True):
        for measure in MEASURES:
            mean = podium.evaluate(data, model, measure).means[measure]
            assert [name, measure, f"{mean:.4f}"] in [row[:3] for row in rows]


def test_every_control_works(browser, file, model):
    opened(browser, file)
    assert shown_query(browser) == 0
    click(browser, "[data-move='1']")
    assert shown_query(browser) == 1
    assert "is shown" in text_of(browser, ".queries [role=status]")
    click(browser, "[data-move='-1']")
    click(browser, "[data-move='-1']")
    last = browser.js("document.querySelectorAll('.query').length") - 1
    assert shown_query(browser) == last == 5
    choose = "(one => { one.value = '2'; one.dispatchEvent(new Event('change')); })"
    browser.js(f"{choose}(document.getElementById('queries-choice'))")
    assert shown_query(browser) == 2
    n = model.n_trees_
    descriptions = [text_of(browser, ".description")]
    assert descriptions[0].startswith(f"After round {n} of {n}: pairwise moves")
    for button in ("first", "1", "1", "-1", "last"):
        click(browser, f"[data-step='{button}']")
        descriptions.append(text_of(browser, ".description"))
    assert [text.partition(":")[0] for text in descriptions[1:]] == [
        "Before the first tree", f"After round 1 of {n}", f"After round 2 of {n}", f"After round 1 of {n}",
        f"After round {n} of {n}",
    ]  # fmt: skip
    assert descriptions[-1] == descriptions[0]
    assert browser.js("document.querySelectorAll('.drawing svg g').length") > 2
    assert browser.js("document.querySelector('[data-step=last]').disabled")
    assert browser.js("document.querySelector('.drawing').getAttribute('aria-label')") == descriptions[-1]
    click(browser, "[data-values='0'] summary")
    browser.until("!!document.querySelector('[data-values=\"0\"] table')")
    for summary in ("nav summary", ".arrows .folded summary", "#importance .folded summary"):
        before = browser.js(f"document.querySelector('{summary}').parentElement.open")
        click(browser, summary)
        assert browser.js(f"document.querySelector('{summary}').parentElement.open") is not before
    assert not browser.problems


def test_the_keyboard_is_enough(browser, file, model):
    opened(browser, file)
    browser.key(*TAB)
    assert browser.js("document.activeElement.className") == "skip"
    seen = []
    for _ in range(80):
        browser.key(*TAB)
        seen.append(
            browser.js("(one => one.id || one.dataset.move || one.dataset.step || one.tagName)(document.activeElement)")
        )
        if seen[-1] == "queries-round":
            break
    controls = [name for name in seen if name in ("queries-choice", "-1", "1", "first", "queries-round")]
    assert controls == ["queries-choice", "-1", "1", "first", "-1", "queries-round"]
    browser.key("ArrowLeft", 37)
    assert not text_of(browser, ".description").startswith(f"After round {model.n_trees_} ")
    browser.key("Home", 36)
    assert text_of(browser, ".description").startswith("Before the first tree")
    assert not browser.problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(browser, file, scheme):
    opened(browser, file, 390, scheme)
    assert browser.js("document.documentElement.scrollWidth") <= 390
    assert browser.js("[...document.querySelectorAll('.chart')].every(one => one.scrollWidth <= one.clientWidth + 1)")
    assert not browser.js("document.querySelector('nav details').open")
    back = browser.js("getComputedStyle(document.body).backgroundColor")
    colour = base_style().split("--back: ")[1 + (scheme == "dark")][:7]
    assert back == f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"
    assert not browser.problems


def test_charts_follow_a_change_of_scheme(browser, file):
    opened(browser, file)
    ink = "document.querySelector('[data-chart] svg text').getAttribute('fill')"
    light = browser.js(ink)
    browser("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.until(f"{ink} !== {json.dumps(light)}")
    assert not browser.problems


def test_it_prints_all_queries(browser, file):
    opened(browser, file)
    browser("Emulation.setEmulatedMedia", media="print")
    displays = browser.js("[...document.querySelectorAll('.query')].map(one => getComputedStyle(one).display)")
    assert set(displays) == {"block"}
    assert browser.js("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(browser("Page.printToPDF")["data"]) > 50_000
    browser("Emulation.setEmulatedMedia", media="")
    assert not browser.problems
