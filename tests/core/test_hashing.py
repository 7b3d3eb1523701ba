"""Hashes of content."""

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from podium.core.hashing import content_hash


@dataclass
class Holder:
    table: object

    @functools.cached_property
    def cached(self):
        return 1


class Plain:
    def __init__(self, table):
        self.table = table


class Shown(Plain):
    def __repr__(self):
        return "Shown()"


def test_every_element_of_an_array_counts():
    a = np.arange(5000.0)
    b = a.copy()
    b[2500] = 0
    c = a + 0.0
    c[1] = np.nextafter(1.0, 2)
    for hold in (
        lambda x: x,
        Holder,
        Plain,
        Shown,
        pd.Series,
        lambda x: [x],
        lambda x: {"k": x},
        lambda x: Holder([x]),
    ):
        assert content_hash(hold(a)) == content_hash(hold(a.copy()))
        assert (
            len({content_hash(hold(x)) for x in (a, b, c, a.astype(np.float32), a.reshape(50, 100).ravel()[:-1])}) == 5
        )


def test_kinds_are_distinguished():
    values = [
        1, 1.0, True, "1", b"1", None, [1], [[1]], [], {}, {1: 1}, {1}, np.array([1]), np.array(["1"]),
        np.array([[1]]), Holder(1), Plain(1), Shown(1), int, Holder, [1, 2], [2, 1], ["ab"], ["a", "b"], 1j,
    ]  # fmt: skip
    assert len(set(map(content_hash, values))) == len(values)
    assert content_hash(np.float64(1)) == content_hash(1.0)
    assert content_hash((1, 2)) == content_hash([1, 2])
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash(np.array([1, "a"], object)) != content_hash(np.array([1, "b"], object))
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    assert content_hash(days) == content_hash(days.copy()) != content_hash(days[::-1])


def test_cached_properties_do_not_count():
    holder = Holder(1)
    assert holder.cached == 1
    assert content_hash(holder) == content_hash(Holder(1))


def test_different_functions_have_different_hashes():
    assert content_hash(lambda: 1) != content_hash(lambda: 1)
    assert content_hash(functools.partial(max, 1)) != content_hash(functools.partial(max, 2))
