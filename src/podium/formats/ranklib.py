"""RankLib's text: LambdaMART, MART, Random Forests, linear models; also read by the search plugins' `model/ranklib`.

Source: codelibs/ranklib, src/main/java/ciir/umass/edu/learning/tree/{Ensemble,Split,RFRanker}.java, parsing. A node
sends `x <= threshold` left, as float32; features are numbered from 1; a missing value is 0; leaves times the tree's
weight are added as float32.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

from podium.errors import DataError
from podium.formats.base import CARRIES, Format, Written, whole_number
from podium.formats.trees import (
    Leaf,
    SplitNode,
    as_float32_ensemble,
    categories_text,
    node_of,
    note_on_missing_as_zero,
    numeric_trees,
    require_missing_as_zero,
    require_unshifted,
    root_of,
    scaled,
    tree_of_document,
)
from podium.models import Ensemble, LinearModel, Model
from podium.models.archive import MAX_FEATURES
from podium.models.base import INFERRED
from podium.trees import Tree

TREES = ("lambdamart", "mart", "random forests")
LINEAR = ("linear regression", "coordinate ascent")
MAX_WEIGHTS = 1 << 20  # of a linear model: it has one for each feature up to the last that the file names
LINEAR_MISSING = "a missing value counts as 0, but in Podium as the mean of its feature"
FEATURES = "feature n of the file (from 1) is feature n − 1 of the model; keep this order when you serve the model"


class RankLib(Format):
    """RankLib's model files."""

    name = "ranklib"
    title = "RankLib's text"
    suffixes = (".ranklib",)
    carries = CARRIES | {"missing directions": "no", "linear models": "yes"}

    def recognizes(self, content: bytes, suffix: str) -> bool:
        return content[:3] == b"## " and content[3:].splitlines()[0].strip().lower().decode(errors="replace") in (
            *TREES, *LINEAR
        )  # fmt: skip

    def read(self, content: bytes) -> Model:
        text = content.decode("utf-8")
        lines = [line.strip() for line in text.splitlines()]
        if not lines or not lines[0].startswith("## "):
            raise DataError("the first line must be '## ' and the name of a ranker")
        kind = lines[0][3:].strip().lower()
        body = [line for line in lines if line and not line.startswith("#")]
        if kind in LINEAR:
            return _linear(body)
        if kind not in TREES:
            raise DataError(f"{lines[0][3:]!r} is not a ranker that Podium reads: {', '.join((*TREES, *LINEAR))}")
        return _ensemble("".join(body), is_forest=kind == "random forests")

    def write(self, model: Model, suffix: str = "", *, missing: Literal["keep", "zero"] = "keep") -> Written:
        """Write trees or weights.

        `missing="zero"` also exports models that treat missing values differently from 0, which RankLib cannot. Use it
        if no values will be missing, or if they mean 0.
        """
        if isinstance(model, LinearModel):
            return Written(_linear_text(model).encode(), LINEAR_MISSING, (FEATURES,))
        ensemble = as_float32_ensemble(model, self.name)
        if missing != "zero":
            require_missing_as_zero(ensemble, self.name)
        return Written(tree_text(ensemble).encode(), note_on_missing_as_zero(ensemble), (FEATURES,))


# --- reading


def _elements(text: str) -> list[ElementTree.Element]:
    """Return the ensembles of a file; refuse entities and document types before anything is parsed."""
    if "<!" in text.replace("<!--", ""):
        raise DataError("declarations such as <!DOCTYPE or <!ENTITY are not allowed in a model")
    text = re.sub(r"<\?xml[^<>]*\?>", "", text)
    try:
        root = ElementTree.fromstring(f"<models>{text}</models>")
    except ElementTree.ParseError as error:
        raise DataError(f"the trees are not valid XML: {error}") from None
    ensembles = list(root)
    if not ensembles or any(element.tag != "ensemble" for element in ensembles):
        raise DataError("there is no <ensemble>")
    return ensembles


def _ensemble(text: str, *, is_forest: bool) -> Ensemble:
    """Return all trees as an ensemble; a forest is the mean of its ensembles."""
    ensembles = _elements(text)
    share = 1.0 / len(ensembles) if is_forest else 1.0
    features: set[int] = set()
    trees = [
        scaled(_tree(tree, k, features), share * float(np.float32(float(tree.get("weight", "1")))))
        for ensemble in ensembles for k, tree in enumerate(ensemble)
    ]  # fmt: skip
    return Ensemble.of_trees(trees, max(features, default=-1) + 1, info={"imported": "ranklib", INFERRED: True})


def _tree(element: ElementTree.Element, number: int, features: set[int]) -> Tree:
    """Return the tree of an element, which holds `feature`, `threshold` and two splits in this order, or `output`."""

    def node(entry: ElementTree.Element) -> SplitNode | Leaf:
        output = entry.find("output")
        if output is not None:
            return Leaf(float(np.float32(float(output.text or ""))))
        if len(entry) != 4:
            raise DataError(f"tree {number}: a split has {len(entry)} parts, not feature, threshold and two splits")
        feature = whole_number(entry[0].text or "", f"tree {number}: a feature") - 1
        if not 0 <= feature < MAX_FEATURES:
            raise DataError(f"tree {number}: features must be numbered from 1 to {MAX_FEATURES}, not {feature + 1}")
        features.add(feature)
        threshold = np.float32(float(entry[1].text or ""))
        return SplitNode(feature, float(threshold), bool(threshold >= 0), entry[2], entry[3])

    return tree_of_document(element[0] if len(element) else element, node, f"tree {number}")


def _linear(body: list[str]) -> LinearModel:
    """Parse weights: `0:constant 1:w 2:w …`, where the constant is optional."""
    words = (word.partition(":") for word in " ".join(body).split())
    entries = {whole_number(number, "a feature"): float(weight) for number, _, weight in words}
    n = max(entries, default=0)
    if min(entries, default=0) < 0 or n > MAX_WEIGHTS:
        raise DataError(f"features must be numbered from 1 to {MAX_WEIGHTS}")
    weights = np.zeros(n + 1)
    weights[list(entries)] = list(entries.values())
    return LinearModel(weights[1:], np.zeros(n), float(weights[0]), info={"imported": "ranklib", INFERRED: True})


# --- writing


def tree_text(ensemble: Ensemble) -> str:
    """Return the trees as RankLib's LambdaMART, with each tag on its own line: RankLib fails on spaces between tags."""
    trees = numeric_trees(ensemble)
    n_leaves = max((tree.n_leaves for tree in trees), default=1)
    lines = [
        "## LambdaMART", f"## No. of trees = {len(trees)}", f"## No. of leaves = {n_leaves}",
        "## No. of threshold candidates = 256", "## Learning rate = 1.0", "## Stop early = 0",
        *(f"## {key} = {text}" for key, text in categories_text(ensemble).items()), "", "<ensemble>",
    ]  # fmt: skip
    for number, tree in enumerate(trees):
        lines += [f'<tree id="{number + 1}" weight="1.0">', *_split_lines(tree), "</tree>"]
    return "\n".join([*lines, "</ensemble>", ""])


def _split_lines(tree: Tree) -> Iterator[str]:
    """Yield the lines of a tree, without recursion."""
    node = node_of(tree)
    waiting: list[Any] = [("", root_of(tree))]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        position, key = item
        content = node(key)
        yield f"<split{position}>"
        if isinstance(content, Leaf):
            yield f"<output> {float(np.float32(content.value))!r} </output>"
            yield "</split>"
        else:
            yield f"<feature> {content.feature + 1} </feature>"
            yield f"<threshold> {java_number(content.threshold)} </threshold>"
            waiting += ["</split>", (' pos="right"', content.right), (' pos="left"', content.left)]


def java_number(value: float) -> str:
    """Return a float32 as the text that Java parses to the same number."""
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def linear_constant(model: LinearModel, format_name: str) -> float:
    """Return the constant of a linear model if its weights apply to raw values; raise if a feature is shifted."""
    require_unshifted(model, np.flatnonzero(model.weights), format_name)
    return float(model.intercept - np.dot(model.weights, model.means))


def _linear_text(model: LinearModel) -> str:
    """Return the weights of raw values as text; the means go into the constant."""
    constant = linear_constant(model, RankLib.name)
    words = [f"0:{constant!r}", *(f"{k + 1}:{w!r}" for k, w in enumerate(model.weights.tolist()))]
    return "\n".join(["## Linear Regression", "## Lambda = 1.0E-10", " ".join(words), ""])
