"""The directive of the reference: `{public-names} podium.measures` documents every public name of a package.

Names of the package `podium` itself appear as users write them (`podium.NDCG`), the rest of `__all__` with its package
(`podium.measures.parse`). So there is no list of names to maintain.
"""

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module
from itertools import accumulate
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

import podium
from podium.core.parameters import parameters

# Classes of scikit-learn, which documents their methods.
FOREIGN = "BaseEstimator, RegressorMixin, ClassifierMixin, TransformerMixin, OneToOneFeatureMixin"
# How Sphinx writes NumPy's NDArray[float64] and ArrayLike; ~ leaves out the module.
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")
ARRAY_LIKE = (
    "_Buffer | _SupportsArray[dtype[Any]] | _NestedSequence[_SupportsArray[dtype[Any]]] | "
    "complex | bytes | str | _NestedSequence[complex | bytes | str]"
)


def names_of(package: str) -> list[str]:
    """List the public names of a package, with the module that users import each from.

    A package inside another lists only its `__all__`: names of `podium` are in the list of the outer one.
    """
    is_outer = package.count(".") == 1
    homes = podium._HOMES.items() if is_outer else ()
    top_level = [f"podium.{name}" for name, home in homes if f"{home}.".startswith(f"{package}.")]
    module = import_module(package)
    return top_level + [f"{package}.{name}" for name in module.__all__ if name not in podium._HOMES]


def autodoc_of(name: str) -> list[str]:
    """Return the directive with which autodoc documents a name."""
    package, _, last = name.rpartition(".")
    value = getattr(import_module(package), last)
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        is_estimator = any(base.__name__ == "BaseEstimator" for base in value.__mro__)
        if not is_estimator:
            return [f".. {kind}:: {name}", ""]
        declared = parameters(value) if is_dataclass(value) else ()  # the docstring lists them
        lines = [f".. {kind}:: {name}", f"   :inherited-members: {FOREIGN}"]
        return [*lines, *([f"   :exclude-members: {', '.join(declared)}"] if declared else []), ""]
    return [f".. autofunction:: {name}" if callable(value) else f".. autodata:: {name}", ""]


class PublicNames(SphinxDirective):
    """`{public-names} PACKAGE`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Let autodoc document each name."""
        container = nodes.container()
        lines = [line for name in names_of(self.arguments[0]) for line in autodoc_of(name)]
        text = StringList(["```{eval-rst}", *lines, "```"], source=f"<public names of {self.arguments[0]}>")
        self.state.nested_parse(text, self.content_offset, container)
        return container.children


def signature_of(
    app: Sphinx, what: str, name: str, value: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return a signature as users know it: the parameters of estimators, and short names of arrays.

    The `__new__` of estimators accepts any names, so that the error can name the right one.
    """
    if what == "class" and getattr(value, "_is_protocol", False):
        return "", None
    if what == "class" and hasattr(value, "get_params"):
        signature = inspect.signature(value)
        arguments = stringify_signature(signature, unqualified_typehints=True, show_return_annotation=False)
    if arguments:
        arguments = re.sub(r", _\w+: [^=]*(?=\)$)", "", arguments)  # private fields, which come last
        arguments = shorten_arrays(arguments).replace("<factory>", "...")  # Sphinx cannot parse <factory>
    return arguments, returned and shorten_arrays(returned)


def shorten_arrays(text: str) -> str:
    """Return a signature with the names of arrays that users know."""
    text = re.sub(r"~?(?:[a-z_]+\.)+(?=(?:ndarray|dtype|Any|_Buffer|_SupportsArray|_NestedSequence)\b)", "", text)
    return ARRAY.sub(r"NDArray[\1]", re.sub(r"~?numpy\.", "", text)).replace(ARRAY_LIKE, "ArrayLike")


def shorten_types(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Shorten the types of attributes, which napoleon adds to a docstring."""
    lines[:] = [shorten_arrays(line) if line.startswith(":vartype ") else line for line in lines]


def shorten_properties(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Shorten the types of properties in the document tree: no earlier event has them."""
    for annotation in doctree.findall(addnodes.desc_annotation):
        starts = [0, *accumulate(len(child.astext()) for child in annotation.children)]
        for match in reversed(list(ARRAY.finditer(annotation.astext()))):
            first, last = starts.index(match.start()), starts.index(match.end())
            annotation[first:last] = [nodes.Text(f"NDArray[{match[1]}]")]


def is_skipped(app: Sphinx, what: str, name: str, value: Any, *_: Any) -> bool | None:
    """Skip what scikit-learn adds to each class, and fields of named tuples, which the class documents."""
    foreign = re.fullmatch(r"set_\w+_request|get_metadata_routing|set_output", name)
    return True if foreign or str(value.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-signature", signature_of)
    app.connect("autodoc-skip-member", is_skipped)
    app.connect("autodoc-process-docstring", shorten_types, priority=550)
    app.connect("doctree-resolved", shorten_properties)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
