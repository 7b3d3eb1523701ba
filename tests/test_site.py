"""The documentation site includes every page, and needs no network."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import podium
from tests.browser import needs_browser

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What a browser loads without a click; links that a reader may follow do not match.
LOADED = re.compile(
    r"""<(?:script|img|source|iframe)\b[^>]*\ssrc=["']?(?:https?:)?//[^\s>]*"""
    r"""|<link\b[^>]*\shref=["']?(?:https?:)?//[^\s>]*"""
    r"""|url\(\s*["']?(?:https?:)?//[^)]*\)|@import\s+["'](?:https?:)?//[^;]*"""
)


@pytest.fixture
def extensions(monkeypatch):
    """Return a function that imports one of our Sphinx extensions by name."""
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return importlib.import_module


def entries(page):
    """Yield the pages in the toctrees of a page."""
    for body in TOCTREE.findall(page.read_text()):
        for line in body.splitlines():
            if line.strip() and not line.startswith(":"):
                name = re.sub(r".*<(.*)>", r"\1", line.strip())
                yield (page.parent / f"{name}.md").resolve()


def test_every_page_is_in_one_toctree():
    named = [target for page in PAGES for target in entries(page)]
    assert sorted(named) == [page for page in PAGES if page != DOCS / "index.md"]


def test_rows_of_tables_have_as_many_cells_as_their_heads():
    for page in PAGES:
        lines = page.read_text().splitlines()
        for k, line in enumerate(lines):
            if re.fullmatch(r"\|[-:| ]*-[-:| ]*\|", line):
                end = next((n for n in range(k, len(lines)) if not lines[n].startswith("|")), len(lines))
                for row in lines[k - 1 : end]:
                    assert len(re.findall(r"(?<!\\)\|", row)) == line.count("|"), f"{page.name}: {row}"


def test_formulas_have_the_spaces_of_tex(extensions):
    mathml = extensions("mathml").mathml
    assert mathml("|x|").count('<mo lspace="0" rspace="0" stretchy="false">') == 2
    assert '<mi>log</mi><mspace width="0.167em" /><mi>x</mi>' in mathml(r"\log x")
    assert "mspace" not in mathml(r"\log(x)")
    assert '</msub><mspace width="0.167em" /><mi>log</mi>' in mathml(r"P_i \log(x)")
    assert "<msub><mi>log</mi><mn>2</mn></msub>" in mathml(r"\log_2 x")
    assert mathml(r"\lvert x \rvert").count('stretchy="false"') == 2


def test_signatures_shorten_array_types(extensions):
    public_names = extensions("public_names")
    array = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    assert public_names.shorten_arrays(f"(a: {array}) -> None") == "(a: NDArray[float64]) -> None"
    like = public_names.ARRAY_LIKE.replace("_Buffer", "~collections.abc._Buffer")
    assert public_names.shorten_arrays(f"x: {like} | None") == "x: ArrayLike | None"


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    packages = re.findall(r"^```\{public-names\} (\S+)", text, re.MULTILINE)
    assert len(set(packages)) == len(packages)
    left_out = {
        name for name, home in podium._HOMES.items() if not f"{home}.".startswith(tuple(f"{p}." for p in packages))
    }
    assert not left_out
    sources = (ROOT / "src" / "podium").glob("*/__init__.py")
    public = {f"podium.{path.parent.name}" for path in sources if "__all__" in path.read_text()}
    inner = {f"podium.{name}" for name in ("cli", "trees")}
    assert public - inner <= set(packages)
    assert set(podium._MOVED) <= set(packages)


def test_the_reference_names_each_thing_once(extensions):
    names_of = extensions("public_names").names_of
    assert "podium.NDCG" in names_of("podium.measures")
    assert "podium.measures.NDCG" not in names_of("podium.measures")
    assert "podium.measures.parse" in names_of("podium.measures")
    assert {"podium.DataError", "podium.errors.ParameterError"} <= set(names_of("podium.errors"))
    assert {"podium.artificial", "podium.read"} <= set(names_of("podium.data"))
    assert "podium.data.datasets.folds" in names_of("podium.data.datasets")
    assert not set(names_of("podium.data")) & set(names_of("podium.data.datasets"))


def test_docstrings_become_restructured_text(extensions):
    as_rst = extensions("markdown_docstrings").as_rst
    lines = ["The |ΔZ| of `a_`, n_trees_ and `k`².", "", ":param x: of `y`", ":type x_: int", "", ">>> f(`x`)", "|a|"]
    text = r"The \|ΔZ\| of ``a_``, n_trees\_ and ``k``\ ²."
    assert as_rst(lines) == [
        text, "", ":param x: of ``y``", r":type x\_: int", "", ">>> f(`x`)", "|a|",
    ]  # fmt: skip
    assert as_rst(["By NDCG@10 (`a`, `b`)."]) == [r"By NDCG\@10 (``a``, ``b``)."]
    assert as_rst(["So:", "", "    a_ = 1", "", "End."]) == ["So:", "", "::", "", "    a_ = 1", "", "End."]


def test_sentences_and_names_are_not_mistaken_for_types(extensions):
    module = extensions("markdown_docstrings")
    assert module.without_types(["the trees.", "", ":type: Rounds"]) == ["Rounds: the trees.", ""]
    assert module.without_types([":returns: *Data* -- read."]) == [":returns: Data: read."]
    assert module.without_types([":returns: Data, and `x` -- read."]) == [":returns: Data, and `x`: read."]
    shared = [":ivar a, b_: as given,", "    both.", ":ivar c: none."]
    assert module.split_shared_attributes(shared) == [
        ":ivar a: as given,", "    both.", ":ivar b_: as given,", "    both.", ":ivar c: none.",
    ]  # fmt: skip


def test_benchmarks_come_from_json(extensions, tmp_path):
    report = '{"title": "T", "machine": {"cpu": "C", "cores": 2, "python": "3", "packages": {"p": "1"}},'
    (tmp_path / "some.json").write_text(report + '"rows": [{"a": 1}, {"b": "x|y"}], "notes": ["A note."]}')
    text = extensions("benchmark_tables").tables(tmp_path)
    assert "(bench-some)=\n\n## T\n\n| a | b |\n| --- | --- |\n| 1 |  |\n|  | x\\|y |\n\nA note." in text
    assert "2 cores, C, Python 3, p 1." in text


def check_offline(site):
    """Check that no page or style loads anything from another host."""
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert files
    for path in files:
        addresses = LOADED.findall(path.read_text(encoding="utf-8"))
        assert not addresses, f"{path} loads {addresses}"


@pytest.fixture(scope="module")
def small_site(tmp_path_factory):
    """Build a site of one page that has everything a page may have."""
    source, site = (tmp_path_factory.mktemp(name) for name in ("docs", "site"))
    (source / "wide.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="9" viewBox="0 0 800 9"></svg>'
    )
    table = "\n".join("|" + "|".join(cell for _ in range(30)) + "|" for cell in ("head", "---", "`cells`"))
    (source / "index.md").write_text(
        f"# Small\n\nInline $x_i$ and\n\n$$\\frac{{a}}{{b}}{'+ x_i' * 30}$$\n\n```python\n{'podium ; ' * 30}\n```\n\n"
        f"{table}\n\n![wide](wide.svg)\n\n"
        ":::{card} A card\ntext\n:::\n\n```{public-names} podium.errors\n```\n"
    )
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--nitpicky", "-c", DOCS, source, site]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return site


@pytest.mark.slow
def test_a_small_site_needs_no_network(small_site):
    page = (small_site / "index.html").read_text()
    assert page.count("<math ") == 2
    assert 'id="podium.DataError"' in page
    assert "dataerror" in (small_site / "searchindex.js").read_text().lower()
    check_offline(small_site)


@pytest.mark.slow
@needs_browser
def test_search_works_without_a_server(small_site, browser):
    open_on_a_phone(browser, small_site / "search.html", "?q=dataerror")
    assert "podium.DataError" in browser.until("document.querySelector('#search-results li')?.innerText")
    assert all(address.startswith(("file:", "data:")) for address in browser.requests)
    assert not browser.problems


PHONE = 390  # pixels
UNSEEN = "[...document.images].filter(one => !one.complete || !one.naturalWidth).map(one => one.src)"


def open_on_a_phone(browser, page, query=""):
    browser("Emulation.setDeviceMetricsOverride", width=PHONE, height=800, deviceScaleFactor=1, mobile=True)
    browser.problems.clear()
    browser.requests.clear()
    browser.open(page.as_uri() + query)


def check_on_a_phone(browser, site):
    """Check that every page fits, shows its pictures, has no errors, and sends no request to a network."""
    for page in sorted(site.rglob("*.html")):
        if "_static" in page.parts:
            continue
        open_on_a_phone(browser, page)
        assert browser.js("document.documentElement.scrollWidth") <= PHONE, page
        assert browser.js(UNSEEN) == [], page
        assert all(address.startswith(("file:", "data:")) for address in browser.requests), page
        assert not browser.problems, page


@pytest.mark.slow
@needs_browser
def test_a_small_site_fits_on_a_phone(small_site, browser):
    check_on_a_phone(browser, small_site)
    open_on_a_phone(browser, small_site / "index.html")
    scrolled = "[...document.querySelectorAll('pre, div.math, .pst-scrollable-table-container, p:has(> img)')]"
    assert browser.js(f"{scrolled}.filter(one => one.scrollWidth > one.clientWidth).length") == 4
    below = "(one => one.children[1].getBoundingClientRect().bottom - one.children[0].getBoundingClientRect().bottom)"
    assert browser.js(f"{below}(document.querySelector('msub'))") > 2  # a font for formulas lowers indices


needs_site = pytest.mark.skipif(not (ROOT / "site" / "index.html").exists(), reason="`make docs` builds the site")


@needs_site
def test_the_whole_site_needs_no_network():
    check_offline(ROOT / "site")
    assert (ROOT / "site" / "searchindex.js").exists()
    pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "site").rglob("*.html")}
    assert "podium.Ranker" in re.sub("<[^>]*>", "", pages[ROOT / "site" / "index.html"])  # README's first lines
    assert not [path for path, text in pages.items() if "<p>| " in text], "a table that is not one"


@pytest.mark.slow
@needs_site
@needs_browser
def test_the_whole_site_fits_on_a_phone(browser):
    check_on_a_phone(browser, ROOT / "site")
