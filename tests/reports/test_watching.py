"""Curves in the terminal, and observers that draw them."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, LambdaMART, LinearRanker
from podium.reports import Watch, curve
from podium.reports.watching import Picture


def dots(text):
    """Return the dots of braille characters as an array."""
    lines = text.split("\n")
    found = np.zeros((4 * len(lines), 2 * len(lines[0])), bool)
    bits = (
        (0, 0, 0x01),
        (1, 0, 0x02),
        (2, 0, 0x04),
        (0, 1, 0x08),
        (1, 1, 0x10),
        (2, 1, 0x20),
        (3, 0, 0x40),
        (3, 1, 0x80),
    )
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            for down, right, bit in bits:
                found[4 * row + down, 2 * column + right] = bool((ord(character) - 0x2800) & bit)
    return found


class TestCurve:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([0, 1, 2, 3, 4, 5, 6, 7], ["⠀⠀⡠⠊", "⡠⠊⠀⠀"]),
            ([7, 0], ["⠑⢄⠀⠀", "⠀⠀⠑⢄"]),
            ([3, 3, 3], ["⠀⠀⠀⠀", "⠉⠉⠉⠉"]),
            ([-1.7e308, 1.7e308], ["⠀⠀⡠⠊", "⡠⠊⠀⠀"]),
            ([0.0, 5e-324], ["⠀⠀⠀⠀", "⠉⠉⠉⠉"]),
            ([3], ["⠀⠀⠀⠀", "⠁⠀⠀⠀"]),
            ([], ["⠀⠀⠀⠀", "⠀⠀⠀⠀"]),
            ([float("nan")], ["⠀⠀⠀⠀", "⠀⠀⠀⠀"]),
            ([float("inf"), 0, 1], ["⠀⠀⠀⡜", "⠀⠀⠜⠀"]),
        ],
    )
    def test_known_curves(self, values, expected):
        assert curve(values, 4, 2).split("\n") == expected

    def test_every_value_has_its_dot_where_columns_and_values_match(self):
        heights = [3, 0, 7, 5, 1, 6, 2, 4]
        found = dots(curve(heights, 4, 2))
        for column, height in enumerate(heights):
            assert found[7 - height, column]

    def test_a_column_of_many_values_reaches_from_the_lowest_to_the_highest(self):
        values = np.random.default_rng(0).random(1000)
        values[[100, 900]] = -1, 2
        found = dots(curve(values, 10, 5))
        assert found[19, 2]  # 1000 values in 20 columns, 50 each
        assert found[0, 18]
        assert not found[0, :18].any()

    @given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.integers(1, 12), st.integers(1, 5))
    def test_the_line_is_whole_and_uses_the_height(self, values, width, height):
        text = curve(values, width, height)
        assert [len(line) for line in text.split("\n")] == [width] * height
        found = dots(text)
        assert found.any(axis=0).all()
        for left, right in zip(found.T[:-1], found.T[1:], strict=True):
            apart = np.abs(np.flatnonzero(left)[:, None] - np.flatnonzero(right)[None, :]).min()
            assert apart <= 2  # rounding to dots may add one
        if max(values) - min(values) > 1e-6 and len(values) > 2 * width:
            assert found[0].any()
            assert found[-1].any()

    def test_invalid_arguments(self):
        for wrong in ((0, 2), (2, 0), (1.5, 2)):
            with pytest.raises(DataError, match=r"width|height"):
                curve([1, 2], *wrong)
        with pytest.raises(DataError, match="a list of numbers"):
            curve([[1, 2]], 2, 2)


def rounds(values, best, first=0):
    for k, value in enumerate(values):
        yield SimpleNamespace(iteration=first + k, means={"valid/ap": value, "valid/err": 0.5}, best_iteration=best)


def test_the_picture_has_labels_and_fits_the_terminal():
    picture = Picture(total=10)
    for one in rounds([0.1, 0.4, 0.3], best=1):
        picture.add(one)
    lines = picture.text(60, 24).split("\n")
    assert lines[0] == "valid/ap"
    assert lines[1].startswith("0.4000 ┤")
    assert lines[12].startswith("0.1000 ┤")
    assert lines[13].split() == ["1", "3"]
    assert lines[14] == "round 3 of 10, now 0.3000, best 0.4000 in round 2, 0.0 s"
    assert lines[15] == "valid/err 0.5000"
    assert max(map(len, lines)) <= 60
    assert "\n".join(line[8:] for line in lines[1:13]) == curve([0.1, 0.4, 0.3], 52, 12)
    for width, height in ((30, 8), (20, 3)):
        lines = picture.text(width, height).split("\n")
        assert max(map(len, lines)) <= width
    later = Picture()
    for one in rounds([0.2, 0.3], best=1, first=5):  # a run that goes on; its best is not drawn
        later.add(one)
    assert "round 7, now 0.3000, 0.0 s" in later.text(60, 24)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_it_draws_only_on_terminals(monkeypatch):
    data = podium.artificial(20, features=4)
    for stream, term, draws in (
        (io.StringIO(), "xterm", False),
        (Terminal(), "dumb", False),
        (Terminal(), "xterm", True),
    ):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr(sys, "stderr", stream)
        with Watch(3) as watch:
            model = LambdaMART(3, n_leaves=4, verbose=0).fit(data, valid=data, observers=[watch])
        assert watch.picture.values == model.history_["valid/ndcg@10"]
        assert ("round 3 of 3" in stream.getvalue()) == draws
        if draws:
            last = stream.getvalue().rpartition("valid/ndcg@10")[2]
            assert f"best {max(watch.picture.values):.4f}" in last
        else:
            assert stream.getvalue() == ""


def test_watch_needs_validation_data():
    with pytest.raises(DataError, match=r"Watch needs validation data: pass valid=…"):
        LambdaMART(2).fit(podium.artificial(20, features=4), observers=[Watch()])
    with pytest.raises(DataError, match="total must be"):
        Watch(0)


class TestObservers:
    def test_rounds_have_the_best_round_so_far(self):
        data = podium.artificial(20, features=4)
        for ranker in (LambdaMART(8, n_leaves=4), LinearRanker(n_iterations=8)):
            seen = []
            model = ranker.fit(data, valid=data, observers=[seen.append])
            values = model.history_["valid/ndcg@10"]
            assert [one.means["valid/ndcg@10"] for one in seen] == values
            assert [one.best_iteration for one in seen] == [int(np.argmax(values[: k + 1])) for k in range(8)]

    def test_coordinate_ascent_is_observed(self):
        seen = []
        model = LinearRanker(method="ascent", n_iterations=2).fit(
            podium.artificial(20, features=4), observers=[seen.append]
        )
        assert [one.means["train/ndcg@10"] for one in seen] == model.history_["train/ndcg@10"]
        assert [one.iteration for one in seen] == list(range(len(seen)))
        assert all(one.best_iteration is None for one in seen)

    @pytest.mark.parametrize("needs_arrays", [True, False])
    def test_arrays_are_copied_only_for_observers_that_need_them(self, needs_arrays):
        class Observer:
            def __init__(self):
                self.needs_arrays, self.seen = needs_arrays, []

            def __call__(self, round_):
                self.seen.append(round_.scores)

        observer = Observer()
        LambdaMART(3).fit(podium.artificial(20, features=4), observers=[observer])
        assert (observer.seen[0] is observer.seen[1]) != needs_arrays
        mixed = Observer()
        LambdaMART(2).fit(podium.artificial(20, features=4), observers=[mixed, lambda _: None])
        assert mixed.seen[0] is not mixed.seen[1]
