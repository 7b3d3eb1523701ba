"""Which format a file has, by its suffix."""

from __future__ import annotations

import os
from typing import Literal

from podium.core.validation import to_path
from podium.errors import DataError

Format = Literal["letor", "csv", "tsv", "parquet"]

COMPRESSED = (".gz", ".bz2", ".xz")
SUFFIXES: dict[str, Format] = {
    ".txt": "letor", ".letor": "letor", ".svm": "letor", ".svmlight": "letor", ".libsvm": "letor",
    ".dat": "letor", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that a file's name promises."""
    suffixes = to_path(path).suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        suffixes.pop()
    name = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if name is None:
        raise DataError(
            f"{os.fspath(path)}: the format is not clear from the name; end it in one of "
            f"{', '.join(SUFFIXES)} (and .gz, .bz2 or .xz), or give format='letor', 'csv', 'tsv' or 'parquet'"
        )
    return name
