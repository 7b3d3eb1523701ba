"""The stable sort for kernels, and the ranks that it updates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.sorting import sort_with_items
from podium.measures.ranking import sort_ranked, sort_top


@given(st.lists(st.integers(-5, 5), max_size=100))
def test_equal_keys_stay_in_their_order(numbers):
    keys = np.array(numbers, np.float64)
    items, n = np.arange(len(keys)), len(keys)
    expected = np.argsort(keys, kind="stable")
    sort_with_items(keys, items, np.empty(n), np.empty(n, np.int64), n)
    assert items.tolist() == expected.tolist()
    assert keys.tolist() == sorted(map(float, numbers))


@pytest.mark.parametrize("n", [1, 2, 30, 200])
@pytest.mark.parametrize("moved", [0, 3, 1000])
def test_ranks_are_updated(n, moved):
    """Whether few documents moved and are inserted, or many are sorted, the ranks are the same."""
    rng = np.random.default_rng(n + moved)
    by_place = np.round(rng.normal(size=n) * 3)
    places = np.argsort(-by_place, kind="stable").astype(np.int32)
    for place in rng.integers(0, n, moved):
        by_place[place] = np.round(rng.normal() * 3)
    scores = by_place[places]
    sort_ranked(scores, places, np.empty(n), np.empty(n, np.int32))
    assert places.tolist() == np.argsort(-by_place, kind="stable").tolist()
    assert scores.tolist() == by_place[places].tolist()


@pytest.mark.parametrize("n", [1, 2, 30, 200])
@pytest.mark.parametrize("depth", [1, 5, 29, 200])
@pytest.mark.parametrize("moved", [0, 3, 1000])
def test_the_top_is_updated(n, depth, moved):
    """The first documents are those of a complete sort, and no other document is lost."""
    rng = np.random.default_rng(n + moved)
    by_place = np.round(rng.normal(size=n) * 3)
    places = np.argsort(-by_place, kind="stable").astype(np.int32)
    for place in rng.integers(0, n, moved):
        by_place[place] = np.round(rng.normal() * 3)
    scores = by_place[places]
    sort_top(scores, places, depth, np.empty(n), np.empty(n, np.int32))
    assert places[:depth].tolist() == np.argsort(-by_place, kind="stable")[:depth].tolist()
    assert sorted(places.tolist()) == list(range(n))
    assert scores.tolist() == by_place[places].tolist()
