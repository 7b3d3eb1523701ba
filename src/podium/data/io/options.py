"""Which format a file has, and how text is to be understood."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from podium.core.threads import thread_count
from podium.core.validation import require_whole, to_path
from podium.data.sparse import MOST_FEATURES
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


Absent = Literal["zero", "missing"]
Returning = Literal["warn", "merge", "error"]


@dataclass(frozen=True)
class TextOptions:
    """How to understand text; see `podium.read`. All but the last two are for LETOR."""

    n_features: int | None = None
    absent: Absent = "zero"
    first_index: int = 1
    largest_index: int = 1_000_000
    sparse: bool = False
    returning_qid: Returning = "warn"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if self.absent not in ("zero", "missing"):
            raise DataError(f"absent must be 'zero' or 'missing', not {self.absent!r}")
        require_whole("first_index", self.first_index, 0)
        if self.first_index > 1:
            raise DataError(f"first_index must be 0 or 1, not {self.first_index!r}")
        require_whole("n_features", self.n_features, 0, optional=True, most=MOST_FEATURES)
        require_whole("largest_index", self.largest_index, 0, most=MOST_FEATURES)
        if self.returning_qid not in ("warn", "merge", "error"):
            raise DataError(f"returning_qid must be 'warn', 'merge' or 'error', not {self.returning_qid!r}")
        thread_count(self.n_threads)
        if self.sparse and self.absent == "missing":
            raise DataError("sparse=True keeps absent features as zeros; absent='missing' needs sparse=False")

    @property
    def last_index(self) -> int:
        """The largest feature index that is taken for one."""
        if self.n_features is None:
            return self.largest_index
        return self.n_features - 1 + self.first_index

    @property
    def why_last(self) -> str:
        """The reason for that bound, for an error message."""
        return " (largest_index=… raises the bound)" if self.n_features is None else ", as n_features says"
