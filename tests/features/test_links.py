"""Link features against networkx and small graphs."""

import gzip
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features import FeatureSet, Index
from podium.features.links import Links, anchor_texts, host_of

networkx = pytest.importorskip("networkx")


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 12))
    edge = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    return nodes, draw(st.lists(edge, max_size=40))


def both(nodes, edges):
    """The same graph here and in networkx."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(map(str, range(nodes)))
    graph.add_edges_from((str(a), str(b)) for a, b in edges)
    links = Links([a for a, _ in edges], [b for _, b in edges], documents=range(nodes))
    return links, graph


def in_order(links, values):
    return [values[name] for name in links.ids]


@given(graph=graphs(), damping=st.sampled_from([0.5, 0.85, 0.95]), personal=st.booleans())
def test_pagerank_is_that_of_networkx(graph, damping, personal):
    links, theirs = both(*graph)
    weights = {"0": 3.0, str(graph[0] - 1): 1.5} if personal else None
    expected = networkx.pagerank(theirs, damping, personalization=weights, tol=1e-14, max_iter=2000)
    result = links.pagerank(damping, personalized=weights, tolerance=1e-13)
    np.testing.assert_allclose(result, in_order(links, expected), rtol=1e-9, atol=1e-12)
    assert result.sum() == pytest.approx(1)


@given(graph=graphs())
def test_degrees_are_those_of_networkx(graph):
    links, theirs = both(*graph)
    assert links.in_degree.tolist() == in_order(links, dict(theirs.in_degree))
    assert links.out_degree.tolist() == in_order(links, dict(theirs.out_degree))


@pytest.mark.parametrize("seed", range(5))
def test_hits_is_that_of_networkx(seed):
    theirs = networkx.gnp_random_graph(60, 0.1, seed=seed, directed=True)
    links = Links(*zip(*theirs.edges, strict=True), documents=range(60))
    hubs, authorities = networkx.hits(theirs, max_iter=10_000, tol=1e-14)
    result = links.hits(tolerance=1e-13)
    for values, expected in ((result.hubs, hubs), (result.authorities, authorities)):
        np.testing.assert_allclose(values, in_order(links, {str(k): v for k, v in expected.items()}), atol=1e-9)
        assert values.sum() == pytest.approx(1)


def test_hits_without_links_is_zero():
    result = Links([], [], documents=["a", "b"]).hits()
    assert (result.hubs.tolist(), result.authorities.tolist()) == ([0, 0], [0, 0])


def test_order_and_repetition_of_links_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 300, (2, 3000))
    order = rng.permutation(np.append(np.arange(3000), rng.integers(0, 3000, 500)))
    a, b = Links(source, target), Links([str(k) for k in source[order]], [str(k) for k in target[order]])
    assert a.ids == b.ids
    assert a.pagerank().tobytes() == b.pagerank().tobytes()
    assert a.hits().hubs.tobytes() == b.hits().hubs.tobytes()


def test_site_rank_is_the_pagerank_of_sites():
    pages = ["http://a.org/1", "http://a.org/2", "https://B.org:80/", "c.org/x"]
    links = Links(
        [pages[0], pages[0], pages[1], pages[2], pages[3]], [pages[1], pages[2], pages[2], pages[3], pages[2]]
    )
    sites = Links(["a.org", "b.org", "c.org"], ["b.org", "c.org", "b.org"])
    rank = dict(zip(sites.ids, sites.pagerank(0.7), strict=True))
    assert links.site_rank(damping=0.7).tolist() == [rank[host_of(page)] for page in links.ids]
    assert links.site_rank(lambda page: "one").tolist() == [1.0] * 4
    with pytest.raises(DataError, match="'///' has no host: pass site_of"):
        Links(["///"], ["a.org"]).site_rank()


def test_attributes_of_an_index():
    documents = [{"id": name, "title": "tea"} for name in ("b", "a", "lonely")]
    index = Index.build(documents, fields={"title": "english"})
    links = Links(["a", "x"], ["b", "b"])
    attributes = links.attributes(index.ids, site_of=lambda name: name)
    assert set(attributes) == {"pagerank", "hub", "authority", "in_degree", "out_degree", "site_rank"}
    assert attributes["in_degree"].tolist()[:2] == [2, 0]
    assert math.isnan(attributes["in_degree"][2])
    index.set_attributes(attributes)
    rows = FeatureSet(["attribute(pagerank)"]).rows(index, "tea", [0, 1, 2])
    np.testing.assert_array_equal(rows[:2, 0], links.pagerank()[[1, 0]].astype(rows.dtype))


def test_anchor_texts_are_a_field_of_an_index():
    target, text = ["b", 1, "b", "absent", "b", "b"], ["Tea house", "coffee", "best tea", "tea", None, float("nan")]
    anchors = anchor_texts(["a", "b", 1], target, text)
    assert anchors == [[], ["Tea house", "best tea"], ["coffee"]]
    assert anchor_texts(["a", "b", 1], target[::-1], text[::-1]) == anchors
    documents = [{"id": name, "anchor": words} for name, words in zip(("a", "b", "1"), anchors, strict=True)]
    index = Index.build(documents, fields={"anchor": "english"})
    assert index.search("tea").ids == ["b"]
    assert index.fields["anchor"].n_words == 5
    with pytest.raises(DataError, match="text: expected the text of a link in row 0, but got 7"):
        anchor_texts(["a"], ["a"], [7])


def test_frames_and_files(tmp_path):
    expected = Links(["a", "b"], ["b", "c"])
    frame = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"]})
    path = tmp_path / "links.tsv.gz"
    with gzip.open(path, "wt") as file:
        file.write("source\ttarget\n# a comment\n#from\tto\na\tb\n\nb\tc\n")
    for links in (Links.read(frame, source="from", target="to"), Links.read(path)):
        assert links.ids == expected.ids
        assert (links.matrix != expected.matrix).nnz == 0
    with pytest.raises(DataError, match="no column 'source'; it has 'from', 'to'"):
        Links.read(frame)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\tb\nc\n", r"line 2: expected a source, a tab and a target, but found 'c'"),
        ("a\tb\tc\n", r"line 1: .* found 'a\\tb\\tc'"),
        ("a\tb\n\tc\n", r"no source or no target: \{'source': '', 'target': 'c'\}"),
        ("", "cannot be read"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, problem):
    path = tmp_path / "links.tsv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=problem):
        Links.read(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        Links.read(tmp_path / "absent.tsv")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Links(["a"], []), "1 sources and 0 targets"),
        (lambda: Links([], []), "at least one link or document"),
        (lambda: Links([["a"]], ["b"]), "2 dimensions"),
        (lambda: Links(["a", ""], ["b", "c"]), "source, row 1: the id is missing"),
        (lambda: Links([1.5], [2]), "source, row 0: expected a name or a whole number, but got 1.5"),
        (lambda: Links(["a"], np.array([None], object)), "target, row 0: the id is missing"),
        (lambda: Links([1], [2]).pagerank(damping=1), "damping must be between 0 and 1"),
        (lambda: Links([1], [2]).pagerank(tolerance=0), "tolerance"),
        (lambda: Links([1], [2]).pagerank(max_steps=0), "max_steps"),
        (lambda: Links([1], [2]).pagerank(personalized={"3": 1}), "'3' is not a document of the graph"),
        (lambda: Links([1], [2]).pagerank(personalized={"2": -1}), "negative"),
        (lambda: Links([1], [2]).pagerank(personalized={"2": 0}), "at least one document"),
    ],
)
def test_bad_input_is_refused(make, problem):
    with pytest.raises(DataError, match=problem):
        make()


def test_too_few_steps_warn():
    with pytest.warns(PodiumWarning, match="PageRank stopped after max_steps=1"):
        Links(["a", "b"], ["b", "c"]).pagerank(max_steps=1)
