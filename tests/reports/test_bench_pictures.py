"""Pictures of benchmarks have the numbers of their tables."""

import json

import pytest

from bench.drawing import PICTURES, logarithmic
from bench.harness import RESULTS


def points_of(name):
    """Return the rows of a table, and all points of its picture."""
    rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    spec = PICTURES[name](rows).to_dict()
    panels = spec.get("concat", [spec])
    return rows, [point for panel in panels for point in panel["data"]["values"]]


def test_scaling():
    rows, points = points_of("scaling")
    drawn = [row for row in rows if row["what"] != "threads"]
    expected = [(row[row["what"]], float(row[y])) for y in ("a tree, ms", "memory, MB") for row in drawn]
    assert [(point["x"], point["y"]) for point in points] == expected


def test_neural():
    rows, points = points_of("neural")
    assert {point["family"].partition(",")[0] for point in points} == {"factored", "pair by pair"}
    shown = {(point["x"], point["y"]) for point in points if point["family"].startswith("factored")}
    start = "epoch of RankNet, 100 queries × "
    assert shown == {
        (int(row["what"].removeprefix(start).split()[0]), float(row["seconds"]))
        for row in rows
        if row["what"].startswith(start)
    }
    assert all("slope" in point["family"] for point in points)


def test_logarithmic_axes():
    scale, axis = logarithmic([3, 400])
    assert scale["domain"] == pytest.approx([3 / 1.3, 520])
    assert axis["values"] == [5, 10, 20, 50, 100, 200, 500]
