"""Names of categories as other tools keep them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from podium.data.encoding import Encoding, category_name
from podium.errors import DataError, PodiumWarning


def encoding_of(values: Mapping[int, Sequence[Any]], n_features: int, tool: str) -> Encoding:
    """The encoding whose category k of a feature is the k-th of its values, each known by its text."""
    categories: dict[int, tuple[str, ...]] = {}
    for feature, listed in values.items():
        if feature >= n_features:
            raise DataError(f"there are names of categories for feature {feature}, but {n_features} features")
        names = tuple(str(category_name(value)) for value in listed)
        if len(set(names)) < len(names):
            return without_names(tool, f"two categories of feature {feature} have the same text")
        categories[feature] = names
    return Encoding(categories)


def without_names(tool: str, reason: str) -> Encoding:
    """No names, and a warning: the model then takes the numbers that the tool gave its categories."""
    warnings.warn(
        f"{tool} numbered the categories of a frame; give the imported model those numbers, not names: {reason}",
        PodiumWarning,
        stacklevel=2,
    )
    return Encoding()
