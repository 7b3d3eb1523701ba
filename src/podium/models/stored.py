"""The parts of a model in its file: entries of the header, arrays, and the models that it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from podium.data.encoding import Encoding
from podium.errors import DataError, FileFormatError
from podium.models.archive import MOST_FEATURES, Arrays


class Parts(NamedTuple):
    """What `Model.to_parts` returns.

    Attributes:
        entries: of the header, as JSON has them.
        arrays: one-dimensional arrays, or bytes, by name.
        children: the models that this one is made of; the file describes each in the same way.

    """

    entries: dict[str, Any]
    arrays: dict[str, Any]
    children: tuple[Any, ...] = ()


@dataclass(frozen=True)
class StoredModel:
    """What `Model.from_parts` reads: an unchecked header, and arrays whose checksums are right.

    Attributes:
        path: the file, for errors.
        header: the entries.
        array: returns an array, or bytes, by name and type.
        children: the models that this one is made of.
        module: the torch module to put weights in, if the file holds a net of the user's.

    """

    path: str
    header: dict[str, Any]
    array: Arrays
    children: tuple[Any, ...] = ()
    module: Any = None

    def error(self, problem: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(self.path, problem)

    def arrays(self, types: dict[str, Any]) -> dict[str, Any]:
        """Return several arrays by name."""
        return {name: self.array(name, dtype) for name, dtype in types.items()}

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an entry that is a mapping; an empty one if it is missing or something else."""
        entry = self.header.get(key)
        return entry if isinstance(entry, dict) else {}

    @property
    def info(self) -> dict[str, Any]:
        """Parameters, history and the like."""
        return self.mapping("info")

    @property
    def n_features(self) -> int:
        """The number of features."""
        n_features = self.header.get("n_features")
        if type(n_features) is not int or not 0 <= n_features <= MOST_FEATURES:
            raise self.error("the number of features is not valid")
        return n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, or None."""
        names = self.header.get("feature_names")
        if names is not None and not _are_names(names, self.n_features):
            raise self.error("the names of the features are not valid")
        return None if names is None else tuple(names)

    @property
    def encoding(self) -> Encoding:
        """How the features are encoded."""
        try:
            return Encoding.from_json(self.header.get("encoding"), self.n_features)
        except DataError as error:
            raise self.error(str(error)) from None


def _are_names(names: Any, n_features: int) -> bool:
    """Return whether there is a name for each feature, all different and without halves of surrogate pairs."""
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        return False
    return len(set(names)) == len(names) and not any("\ud800" <= c <= "\udfff" for c in set("".join(names)))
