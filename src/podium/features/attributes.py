"""Features of documents alone: numeric attributes, and the form of URLs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.features.feature import Feature, register
from podium.features.matches import PairBlock


@register
@dataclass(frozen=True, eq=False)
class Attribute(Feature):
    """A numeric attribute of the document.

    Example:
        >>> from podium.features import FeatureSet, Index
        >>> index = Index.build([{"id": 1, "title": "Red shoes", "votes": 12}], fields={"title": "english"})
        >>> FeatureSet(["attribute(votes)"]).rows(index, "shoes", [0]).tolist()
        [[12.0]]

    """

    name: ClassVar[str] = "attribute"
    formula: ClassVar[str] = "the value of the attribute"
    undefined: ClassVar[str] = "the document does not have the attribute"
    takes: ClassVar[str] = "attribute"

    def values(self, pairs: PairBlock) -> Floats:
        return np.asarray(pairs.index.attributes[self.fields[0]], np.float64)[pairs.rows]


@dataclass(frozen=True, eq=False)
class TextForm(Feature):
    """A number computed from the stored text of one field."""

    undefined: ClassVar[str] = "the field is empty"
    takes: ClassVar[str] = "field"

    def values(self, pairs: PairBlock) -> Floats:
        (name,) = self.fields
        rows, place = np.unique(pairs.rows, return_inverse=True)
        texts = (pairs.index.text(int(row))[name] for row in rows)
        return np.array([self.number(text) if text else np.nan for text in texts], np.float64)[place]

    @abstractmethod
    def number(self, text: str) -> int:
        """Return the number for a text that is not empty."""


@register
@dataclass(frozen=True, eq=False)
class Slashes(TextForm):
    """Number of slashes in the text of a field, such as a URL."""

    name: ClassVar[str] = "slashes"
    formula: ClassVar[str] = "occurrences of /"
    source: ClassVar[str] = "MSLR-WEB, feature 126"

    def number(self, text: str) -> int:
        return text.count("/")


@register
@dataclass(frozen=True, eq=False)
class CharacterLength(TextForm):
    """Number of characters in the text of a field, such as a URL."""

    name: ClassVar[str] = "character_length"
    formula: ClassVar[str] = "characters of the field"
    source: ClassVar[str] = "MSLR-WEB, feature 127"

    def number(self, text: str) -> int:
        return len(text)
