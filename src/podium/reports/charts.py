"""The basis of all charts: data, the light and dark theme, and chart files."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.files import replacing
from podium.core.validation import require_number, to_path
from podium.errors import DataError, MissingExtraError

Chart = Any  # an Altair chart of any kind: layered, concatenated, …
Row = Mapping[str, Any]

WIDTH, HEIGHT = 460, 260  # of one panel, in pixels
# Liberation Sans comes with vl-convert and has the metrics of Arial, so pictures are the same on every machine.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# Text may be a fifth wider in other fonts, so leave room for it.
MARGINS = {"left": 28, "right": 28, "top": 12, "bottom": 12}
SUFFIXES = (".svg", ".png", ".html", ".json")


@dataclass(frozen=True)
class Colours:
    """The colours of the light or the dark theme.

    Attributes:
        series: colours of lines and bars, in this order. Each has a contrast of at least 3 with the background, and any
            two differ by at least 0.1 in OKLab, for people with and without each kind of colour blindness.
        background, text, quiet, grid: colours of the page, of text, of secondary text and lines, and of the grid.
        ramp: colours from low to high values.

    """

    series: tuple[str, ...]
    background: str
    text: str
    quiet: str
    grid: str
    ramp: tuple[str, str]


LIGHT = Colours(
    ("#077cd6", "#f06000", "#18696d", "#bc7e9a", "#784701", "#333333"),
    "#ffffff", "#1b1f24", "#5c6470", "#e3e6ea", ("#d6e8f8", "#04509a"),
)  # fmt: skip
DARK = Colours(
    ("#6389f6", "#e46923", "#40d893", "#be89ac", "#feef7f", "#b8f8ee"),
    "#14181f", "#e8eaee", "#a4acb8", "#2c333e", ("#22344f", "#9cc4ff"),
)  # fmt: skip


class _Altair:
    """Vega-Altair, imported when the first chart is made."""

    def __getattr__(self, name: str) -> Any:
        try:
            import altair
        except ImportError:
            raise MissingExtraError("altair", "report", "a chart") from None
        return getattr(altair, name)


alt: Any = _Altair()


def data_of(rows: Iterable[Row]) -> Any:
    """Return rows as the data of a chart, with plain Python numbers and None for numbers that are not finite.

    Altair refuses data frames of more than 5000 rows. It does not check rows inside a chart, so functions that make
    charts must keep the number of rows small.
    """
    return alt.Data(values=[{name: _plain(value) for name, value in row.items()} for row in rows])


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def chart_of(rows: Iterable[Row]) -> Chart:
    """Return a chart of rows without marks and encodings."""
    return alt.Chart(data_of(rows))


def in_column(panels: Sequence[Chart]) -> Chart:
    """Return several panels one above the other, and a single panel as it is."""
    return panels[0] if len(panels) == 1 else alt.vconcat(*panels)


def names_axis(field: str, **options: Any) -> Any:
    """Return a vertical axis with a name for each row, in the order of the data."""
    axis = alt.Axis(tickSize=0, domain=False, **options)
    return alt.Y(f"{field}:N", sort=None, title=None, axis=axis)


def tooltips(*names: str, digits: str = ".4f") -> list[Any]:
    """Return the tooltips of numeric columns."""
    return [alt.Tooltip(f"{name}:Q", format=digits) for name in names]


def points_to_draw(values: Floats, most: int = 1000) -> Ints:
    """Return the indices of about `most` points, for a line that looks like the line through all points.

    It divides the line into `most` / 4 parts, and keeps the first, lowest, highest and last point of each part.
    """
    if len(values) <= most:
        return np.arange(len(values))
    parts = np.array_split(np.arange(len(values)), max(most // 4, 1))
    points = [(part[0], part[values[part].argmin()], part[values[part].argmax()], part[-1]) for part in parts]
    return np.unique(np.array(points))


def theme(dark: bool = False) -> dict[str, Any]:
    """Return the theme of all charts as a configuration of Vega-Lite.

    Marks name a style instead of a colour, so that the same chart can be drawn light or dark: `quiet` for dashed lines,
    `zero` for the zero line, `interval` and `band` for intervals, `mark` for a highlighted point, and `words` for text.
    """
    colours = DARK if dark else LIGHT
    first, second = colours.series[:2]
    words = {"labelColor": colours.text, "titleColor": colours.text, "labelFontSize": 12, "titleFontSize": 13}
    return {
        "background": colours.background,
        "font": FONT,
        "padding": MARGINS,
        "view": {"continuousWidth": WIDTH, "continuousHeight": HEIGHT, "stroke": None},
        "axis": words | {
            "titleFontWeight": "normal", "titlePadding": 8, "gridColor": colours.grid, "domainColor": colours.quiet,
            "tickColor": colours.quiet, "labelLimit": 240, "labelFlush": False, "labelSeparation": 8,
        },
        "legend": words | {"titleFontWeight": "normal", "symbolStrokeWidth": 2.5, "labelLimit": 280},
        "header": words | {"titleFontWeight": "normal"},
        "title": {
            "color": colours.text, "subtitleColor": colours.quiet, "fontSize": 15, "subtitleFontSize": 12,
            "anchor": "start", "offset": 12, "fontWeight": "bold",
        },
        "range": {"category": list(colours.series), "ramp": list(colours.ramp), "ordinal": list(colours.ramp)},
        "line": {"color": first, "strokeWidth": 2},
        "point": {"color": first, "filled": True, "size": 50, "opacity": 1},
        "circle": {"color": first, "opacity": 1},
        "bar": {"color": first},
        "area": {"color": first},
        "tick": {"color": first},
        "rule": {"color": colours.text},
        "text": {"color": colours.text, "fontSize": 12},
        "style": {
            "quiet": {"stroke": colours.quiet, "color": colours.quiet, "strokeWidth": 1, "strokeDash": [4, 3]},
            "zero": {"stroke": colours.quiet, "color": colours.quiet, "strokeWidth": 1},
            "interval": {"stroke": colours.text, "color": colours.text, "strokeWidth": 1.5},
            "band": {"fill": colours.text, "color": colours.text, "opacity": 0.2},
            "mark": {"fill": second, "color": second, "stroke": colours.background, "strokeWidth": 1.5, "size": 90},
            "words": {"fill": colours.text, "color": colours.text, "fontSize": 12},
        },
    }  # fmt: skip


def themed(chart: Chart, dark: bool = False) -> Chart:
    """Return a chart in Podium's theme, keeping its other configuration."""
    config = {} if chart.config is alt.Undefined else chart.config.to_dict()
    light_and_dark = (theme(), theme(dark=True))  # of a chart that has been themed before
    custom = {name: value for name, value in config.items() if all(value != t.get(name) for t in light_and_dark)}
    chart = chart.copy(deep=False)
    chart.config = alt.Config(**theme(dark) | custom)
    return chart


def save_chart(chart: Chart, path: str | os.PathLike[str], *, dark: bool = False, scale: float = 2.0) -> None:
    """Write a chart to a file atomically; the same chart gives the same bytes.

    Args:
        chart: the result of a `plot` method, or any Altair chart.
        path: a file ending in `.svg` or `.png` for a picture, `.html` for a page with tooltips that works offline, or
            `.json` for Vega-Lite.
        dark: whether to use the dark theme.
        scale: the number of PNG pixels per pixel of the chart.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from podium.reports.charts import alt, data_of, save_chart
        >>> rows = data_of([{"trees": 1, "ndcg": 0.5}, {"trees": 2, "ndcg": 0.6}])
        >>> chart = alt.Chart(rows).mark_line().encode(x="trees:Q", y="ndcg:Q")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_chart(chart, Path(folder) / "line.svg", dark=True)

    """
    path = to_path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: a chart file must end in one of {', '.join(SUFFIXES)}, but got {suffix!r}")
    require_number("scale", scale, above=0)
    if not hasattr(chart, "to_dict"):
        raise DataError(f"chart must be an Altair chart, for example from plot(), but got a {type(chart).__name__}")
    content = _content(themed(chart, dark), suffix[1:], scale)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def safe_in_script(text: str) -> str:
    """Return JSON that is safe inside a script element even if its names contain HTML."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class _ScriptJson(json.JSONEncoder):
    """Encodes JSON for a script element."""

    def encode(self, o: Any) -> str:
        return safe_in_script(super().encode(o))


def _content(chart: Chart, file_format: str, scale: float) -> bytes:
    if file_format == "json":
        return bytes(chart.to_json(indent=1, sort_keys=True).encode() + b"\n")
    try:
        import vl_convert  # noqa: F401 - Altair draws with it
    except ImportError:
        raise MissingExtraError("vl-convert-python", "report", "a picture of a chart") from None
    if file_format == "png":
        binary = io.BytesIO()
        chart.save(binary, format="png", scale_factor=scale)
        return binary.getvalue()
    text = io.StringIO()
    if file_format == "html":
        chart.save(text, format="html", inline=True, json_kwds={"cls": _ScriptJson})
        return text.getvalue().encode()
    chart.save(text, format="svg")
    return _renumbered(text.getvalue()).encode()


def _renumbered(svg: str) -> str:
    """Number clips and gradients from 0: Vega counts them across all charts of a process, so files would differ."""
    names = dict.fromkeys(re.findall(r'\bid="((?:clip|gradient_)\d+)"', svg))
    numbers = {name: f"{name.rstrip('0123456789')}{k}" for k, name in enumerate(names)}
    return re.sub(r'(?<=[#"])(?:clip|gradient_)\d+(?=[)"])', lambda name: numbers.get(name[0], name[0]), svg)
