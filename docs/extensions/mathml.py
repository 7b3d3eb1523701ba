"""Formulas as MathML, made while the site is built: browsers draw them without a script and without a font."""

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own, with its number if it has one."""
    formula = convert(node.astext(), display="block")
    number = f'<span class="eqno">({escape(str(node["number"]))})</span>' if node.get("number") else ""
    writer.body.append(f'<div class="math" tabindex="0">{number}{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it the way that formulas are drawn."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
