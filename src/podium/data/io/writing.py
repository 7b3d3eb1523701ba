"""Ranking data to files, in the format of the suffix."""

from __future__ import annotations

import os
from typing import Literal

from podium.core.validation import to_path
from podium.data.io.suffixes import Format, format_of
from podium.data.ranking_data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError


def write(
    data: RankingData,
    path: str | os.PathLike[str],
    format: Format | None = None,  # noqa: A002
    *,
    absent: Literal["zero", "missing", "none"] = "zero",
    lossy: bool = False,
) -> None:
    """Write ranking data to a file; an older file of that name is replaced only once all is written.

    Args:
        data: the data; every float32 is written so that it reads back as the same bits.
        path: where to; `.gz`, `.bz2` and `.xz` compress text.
        format: `"letor"` or `"parquet"`; by default what the suffix says.
        absent: LETOR: which features are left out of a line: zeros, missing ones (NaN), or none. The first
            line is always full, so that the number of features can be told.
        lossy: LETOR text holds the relevance, the query ids, the features and a document id. Data that has
            more is refused, unless `lossy=True` drops the rest.

    Example:
        >>> import podium, tempfile, pathlib
        >>> data = podium.artificial(2, documents=3, features=4)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.txt"
        >>> podium.write(data, path)
        >>> bool((podium.read(path).features == data.features).all())
        True

    """
    kind, data = format or format_of(path), as_data(data)
    if kind == "parquet":
        from podium.data.io.parquet import write_parquet

        write_parquet(data, to_path(path))
    elif kind == "letor":
        from podium.data.io.text.letor_writer import write_letor

        write_letor(data, to_path(path), absent, lossy)
    else:
        raise DataError(f"{os.fspath(path)}: Podium writes 'letor' text and 'parquet', not {kind!r}")
