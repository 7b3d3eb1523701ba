"""The directive of the reference: `{public-names} podium.measures` documents every public name of a package.

What stands in the package `podium` itself is shown as users write it (`podium.NDCG`), the rest of `__all__` by its
package (`podium.measures.parse`). So no list of names has to be kept, and none can be forgotten.
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

# Classes of scikit-learn whose methods are told of there.
FOREIGN = "BaseEstimator, RegressorMixin, ClassifierMixin, TransformerMixin, OneToOneFeatureMixin"
# As Sphinx writes what NumPy calls NDArray[float64] and ArrayLike; ~ has it leave out the module.
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
    own = [f"podium.{name}" for name, home in homes if f"{home}.".startswith(f"{package}.")]
    module = import_module(package)
    return own + [f"{package}.{name}" for name in module.__all__ if name not in podium._HOMES]


def autodoc_of(name: str) -> list[str]:
    """The lines that have autodoc document a name."""
    package, _, last = name.rpartition(".")
    value = getattr(import_module(package), last)
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        is_estimator = any(base.__name__ == "BaseEstimator" for base in value.__mro__)
        if not is_estimator:
            return [f".. {kind}:: {name}", ""]
        own = parameters(value) if is_dataclass(value) else ()  # told of in the docstring
        lines = [f".. {kind}:: {name}", f"   :inherited-members: {FOREIGN}"]
        return [*lines, *([f"   :exclude-members: {', '.join(own)}"] if own else []), ""]
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


def signature_of(
    app: Sphinx, what: str, name: str, value: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """A signature as users know it: the parameters of estimators, and short names of arrays.

    The `__new__` of estimators takes any names, to say what is wrong with them.
    """
    if what == "class" and getattr(value, "_is_protocol", False):
        return "", None
    if what == "class" and hasattr(value, "get_params"):
        own = inspect.signature(value)
        arguments = stringify_signature(own, unqualified_typehints=True, show_return_annotation=False)
    if arguments:
        arguments = re.sub(r", _\w+: [^=]*(?=\)$)", "", arguments)  # fields of a class's own, which stand last
        arguments = shorten_arrays(arguments).replace("<factory>", "...")  # else Sphinx could not read it
    return arguments, returned and shorten_arrays(returned)


def shorten_arrays(text: str) -> str:
    """A signature with the names of arrays that users know."""
    text = re.sub(r"~?(?:[a-z_]+\.)+(?=(?:ndarray|dtype|Any|_Buffer|_SupportsArray|_NestedSequence)\b)", "", text)
    return ARRAY.sub(r"NDArray[\1]", re.sub(r"~?numpy\.", "", text)).replace(ARRAY_LIKE, "ArrayLike")


def shorten_types(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """The types of attributes in a docstring, which napoleon adds, with the same names."""
    lines[:] = [shorten_arrays(line) if line.startswith(":vartype ") else line for line in lines]


def shorten_properties(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """The types of properties, which no event hands out before: parts that together name an array become one."""
    for annotation in doctree.findall(addnodes.desc_annotation):
        starts = [0, *accumulate(len(child.astext()) for child in annotation.children)]
        for found in reversed(list(ARRAY.finditer(annotation.astext()))):
            first, last = starts.index(found.start()), starts.index(found.end())
            annotation[first:last] = [nodes.Text(f"NDArray[{found[1]}]")]


def is_skipped(app: Sphinx, what: str, name: str, value: Any, *_: Any) -> bool | None:
    """Leave out what scikit-learn adds to each class, and fields of named tuples, whose class tells of them."""
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
