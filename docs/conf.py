"""The documentation site, built by Sphinx: `make docs` writes it into site/."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "extensions")]

from podium import __version__  # noqa: E402

project = "Podium"
copyright = "the authors of Podium"  # noqa: A001
version = release = __version__

extensions = [
    "myst_parser", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon",
    "mathml", "markdown_docstrings", "public_names", "benchmark_tables",
]  # fmt: skip
exclude_patterns = ["extensions/*"]

# Pages are Markdown. Headings have anchors, so that pages may point to a section.
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# The reference: everything from docstrings, Google style.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
# Links to names of other libraries, and to Podium's inner types, lead nowhere: the site is built without a network.
nitpick_ignore_regex = [("py:.*", r"(?!podium\.).*"), ("py:.*", r"podium\.\w+\.\w+\.\w+")]
suppress_warnings = ["ref.python"]

html_theme = "pydata_sphinx_theme"
html_title = "Podium"
html_static_path = ["static"]
html_css_files = ["podium.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_theme_options = {
    "logo": {"text": "Podium"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "show_prev_next": True,
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": ["sphinx-version"],
}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system has it
html_sidebars = {"index": [], "tutorial": []}
pygments_style = "default"
