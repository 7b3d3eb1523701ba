"""The directive of the reference: `{public-names} podium.measures` documents every public name of a package.

What stands in the package `podium` itself is shown there as users write it (`podium.NDCG`), the rest of `__all__` by the
package (`podium.measures.parse`). So no list of names has to be kept, and none can be forgotten.
"""

import inspect
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def names_of(package: str) -> list[str]:
    """The public names of a package, with the module that users import each from."""
    import podium

    own = [f"podium.{name}" for name, home in podium._HOMES.items() if f"{home}.".startswith(f"{package}.")]
    module = import_module(package)
    if not hasattr(module, "__all__"):
        return own
    return own + [f"{package}.{name}" for name in module.__all__ if name not in podium._HOMES]


def autodoc_of(name: str) -> list[str]:
    """The lines that have autodoc document a name."""
    package, _, last = name.rpartition(".")
    value = getattr(import_module(package), last)
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {name}", ""]
    return [f".. autofunction:: {name}" if callable(value) else f".. autodata:: {name}", ""]


class PublicNames(SphinxDirective):
    """`{public-names} PACKAGE`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Have autodoc write about each name."""
        container = nodes.container()
        lines = [line for name in names_of(self.arguments[0]) for line in autodoc_of(name)]
        text = StringList(["```{eval-rst}", *lines, "```"], source=f"<public names of {self.arguments[0]}>")
        self.state.nested_parse(text, self.content_offset, container)
        return container.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
