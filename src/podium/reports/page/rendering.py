"""A report as one HTML file, with its style, its scripts and its charts inside."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from podium.core.pages import base_style
from podium.errors import MissingExtraError
from podium.reports.charts import FONT, import_altair, safe_in_script, theme
from podium.reports.page.contents import Figures, Queries, Report

PACKAGE = "podium.reports.page"


def require_extra() -> None:
    """Refuse early where a library for reports is not installed."""
    import_altair()
    for module, package in (("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError(package, "report", "a report") from None


def as_html(report: Report) -> str:
    """The file as text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["signed"] = signed
    environment.filters["number"] = lambda value: f"{value:.4g}"
    charts = [figure.spec for section in report.sections for part in section.parts if isinstance(part, Figures)
              for figure in part.figures]  # fmt: skip
    arrows = {
        f"{section.key}-{k}": query.arrows
        for section in report.sections
        for part in section.parts
        if isinstance(part, Queries)
        for k, query in enumerate(part.queries)
        if query.arrows is not None
    }
    looks = {"light": theme(), "dark": theme(dark=True), "font": FONT}
    return environment.get_template("report.html").render(
        report=report,
        style=_safe_style(base_style() + _file("report.css")),
        data=_safe_json({"charts": charts, "arrows": arrows, "looks": looks}),
        library=_library() if charts else "",
        script=_file("report.js"),
    )


def signed(value: float) -> str:
    """A number with its sign, for people."""
    return f"{'−' if value < 0 else '+'}{abs(value):.3g}"


def _file(name: str) -> str:
    return files(PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def _safe_json(content: Any) -> str:
    return safe_in_script(json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def _safe_style(style: str) -> str:
    return re.sub(r"\n\s*", "\n", style)


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle
    return f"(function () {{{bundle()}}})();".replace("</script", "<\\/script")
