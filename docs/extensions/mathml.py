"""Convert formulas to MathML when the site is built. Browsers draw it without a script or a font."""

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

BAR = re.compile('<mo(?: stretchy="false")?>&#x0007C;</mo>')
# A function without a bracket after it. In <msub>, the space would be a third child.
FUNCTION = re.compile(r"(?<!<msub>)<mi>(log|exp|sin|cos|ln)</mi>(?!<mo)")
# A factor before a function: a number, a name or a closing bracket.
FACTOR = re.compile(
    r"(</(?:mi|mn|msub|msup|mfrac|mover)>|&#x00029;</mo>)(?=(?:<msub>)?<mi>(?:log|exp|sin|cos|ln)</mi>)"
)
SPACE = '<mspace width="0.167em" />'


def mathml(formula: str, display: str = "inline") -> str:
    """Return a formula in MathML, with TeX's spaces: none next to the bars of |x|, thin ones in a log x."""
    text = BAR.sub('<mo lspace="0" rspace="0" stretchy="false">&#x0007C;</mo>', convert(formula, display=display))
    return FUNCTION.sub(rf"<mi>\1</mi>{SPACE}", FACTOR.sub(rf"\1{SPACE}", text))


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number if it has one."""
    formula = mathml(node.astext(), display="block")
    number = f'<span class="eqno">({escape(str(node["number"]))})</span>' if node.get("number") else ""
    writer.body.append(f'<div class="math" tabindex="0">{number}{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
