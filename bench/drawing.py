"""Pictures drawn from the tables of results: `python -m bench.drawing` draws all for which results exist."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.harness import RESULTS
from podium.reports.charts import alt, chart_of, save_chart, themed

Rows = list[dict[str, Any]]


def lines(rows: Iterable[dict[str, Any]], x: str, y: str, family: str | None = None, **options: Any) -> Any:
    """Return points joined by lines, one line per family, on axes with these options of scales."""
    scales = {"x": alt.Scale(**options.get("x_scale", {})), "y": alt.Scale(**options.get("y_scale", {}))}
    # Vega interprets dots and brackets in names, so the columns get plain names.
    values = [{"x": row[x], "y": row[y], "family": row[family] if family else ""} for row in rows]
    chart = chart_of(values).mark_line(point={"size": 45}).encode(
        x=alt.X("x:Q", title=x, scale=scales["x"], axis=alt.Axis(**options.get("x_axis", {}))),
        y=alt.Y("y:Q", title=y, scale=scales["y"], axis=alt.Axis(**options.get("y_axis", {}))),
    )  # fmt: skip
    families = list(dict.fromkeys(row["family"] for row in values))
    return chart.encode(color=alt.Color("family:N", title=None, scale=alt.Scale(domain=families))) if family else chart


def logarithmic(values: Iterable[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return scale and axis for these values: a little beyond them, with ticks at 1, 2 and 5 times powers of ten."""
    values = list(values)
    low, high = min(values) / 1.3, max(values) * 1.3
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    ticks = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    axis = {"values": [tick for tick in ticks if low <= tick <= high], "format": "~s" if high >= 1e4 else "~g"}
    return {"type": "log", "domain": [low, high]}, axis


def scaling(rows: Rows) -> Any:
    """Draw time per tree and memory against rows, features and leaves."""
    columns = ("rows", "features", "leaves")

    def panel(name: str, y: str) -> Any:
        points = [{name: row[name], y: float(row[y])} for row in rows if row["what"] == name]
        y_scale, y_axis = logarithmic(float(row[y]) for row in rows if row["what"] in columns)  # shared by all panels
        x_axis = {"values": [row[name] for row in points], "format": "~s"}
        options = {"x_scale": logarithmic(row[name] for row in points)[0], "x_axis": x_axis}
        return lines(points, name, y, y_scale=y_scale, y_axis=y_axis, **options).properties(width=220, height=170)

    return themed(alt.concat(*(panel(name, y) for y in ("a tree, ms", "memory, MB") for name in columns), columns=3))


def neural(rows: Rows) -> Any:
    """Draw seconds per epoch, factored and pair by pair, against documents per query."""
    points, slopes = [], {"factored": "", "pair by pair": ""}
    for row in rows:
        size = re.fullmatch(r"epoch of RankNet, 100 queries × (\d+) documents", row["what"])
        if not size:
            continue
        slow = re.search(r"pair by pair ([\d.]+) s", row["result"])
        assert slow, row
        x = {"documents per query": int(size[1])}
        points += [x | {"way": "factored", "seconds": float(row["seconds"])}]
        points += [x | {"way": "pair by pair", "seconds": float(slow[1])}]
        for name in slopes:
            slope = re.search(rf"slopes.*\b{name} ([\d.]+)", row["result"])
            slopes[name] = f"{name}, slope {slope[1]}" if slope else ""
    y = "seconds for an epoch of 100 queries"
    named = [point | {y: point["seconds"], "way": slopes[point["way"]]} for point in points]
    x = "documents per query"
    x_scale, y_scale, y_axis = logarithmic(p[x] for p in points)[0], *logarithmic(p["seconds"] for p in points)
    options = {"x_scale": x_scale, "x_axis": {"values": [p[x] for p in points[::2]]}}
    return themed(lines(named, x, y, "way", y_scale=y_scale, y_axis=y_axis, **options))


def time_to_accuracy(rows: Rows) -> Any:
    """Draw NDCG@10 against seconds, with a line for each tool."""
    x, y = "seconds of training, 2 cores", "NDCG@10"
    points = [{x: float(row["seconds"]), y: float(row[y].split()[0]), "tool": row["tool"]} for row in rows]
    x_scale, x_axis = logarithmic(point[x] for point in points)
    return themed(lines(points, x, y, "tool", x_scale=x_scale, x_axis=x_axis, y_scale={"zero": False}))


def cluster_model(rows: Rows) -> Any:
    """Draw seconds per tree against workers, for each way to add histograms and for the work on documents alone."""
    x, y = "workers", "seconds for a tree"
    ways = {
        "the client adds histograms": "a tree, the client adds histograms, ms",
        "workers add histograms in a tree": "a tree, workers add histograms, ms",
        "work on documents alone": "work on documents, ms",
    }
    points = [{x: row[x], y: float(row[ways[way]]) / 1e3, "way": way} for way in ways for row in rows]
    x_scale, x_axis = logarithmic(point[x] for point in points)
    y_scale, y_axis = logarithmic(point[y] for point in points)
    return themed(lines(points, x, y, "way", x_scale=x_scale, x_axis=x_axis, y_scale=y_scale, y_axis=y_axis))


PICTURES: dict[str, Callable[[Rows], Any]] = {
    "scaling": scaling, "neural": neural, "time_to_accuracy": time_to_accuracy, "cluster_model": cluster_model,
}  # fmt: skip


def draw(name: str, rows: Rows, folder: Path = RESULTS) -> None:
    """Draw the picture of a table, if it has one."""
    if name in PICTURES:
        save_chart(PICTURES[name](rows), folder / f"{name}.svg")


if __name__ == "__main__":
    for one in PICTURES:
        draw(one, json.loads((RESULTS / f"{one}.json").read_text(encoding="utf-8"))["rows"])
