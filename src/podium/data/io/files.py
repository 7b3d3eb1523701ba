"""Ranking data from files and to files, the format told by the suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from podium.core.progress import progress
from podium.core.validation import to_path
from podium.data.io.text.blocks import Source, source_name
from podium.data.io.text.options import Absent, Returning, TextOptions
from podium.data.memory import Budget
from podium.data.ranking_data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError, FileFormatError

Format = Literal["letor", "csv", "tsv", "parquet"]

COMPRESSED = (".gz", ".bz2", ".xz")
SUFFIXES: dict[str, Format] = {
    ".txt": "letor", ".letor": "letor", ".svm": "letor", ".svmlight": "letor", ".libsvm": "letor",
    ".dat": "letor", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that a file's name promises."""
    suffixes = to_path(path).suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        suffixes.pop()
    found = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    if found is None:
        raise DataError(
            f"{os.fspath(path)}: the format is not clear from the name; end it in one of "
            f"{', '.join(SUFFIXES)} (and .gz, .bz2 or .xz), or give format='letor', 'csv', 'tsv' or 'parquet'"
        )
    return found


def read(
    source: Source | Sequence[Source],
    format: Format | None = None,  # noqa: A002
    *,
    n_features: int | None = None,
    absent: Absent = "zero",
    first_index: int = 1,
    largest_index: int = 1_000_000,
    sparse: bool = False,
    returning_qid: Returning = "warn",
    relevance: str | None = None,
    qid: str | None = None,
    labels: Mapping[str, str] | None = None,
    document_weights: str | None = None,
    query_weights: str | None = None,
    positions: str | None = None,
    document_ids: str | None = None,
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    unlabelled: float | None = None,
    normalize: str | None = None,
    n_threads: int | None = None,
    max_bytes: int | None = None,
) -> RankingData:
    """Read ranking data; several files are read as one.

    Args:
        source: a path, an open binary file, or several of them. Text may be compressed with gzip, bzip2
            or xz, whatever its name.
        format: `"letor"` (also SVMlight, LibSVM), `"csv"`, `"tsv"` or `"parquet"`; by default what the
            suffix says.
        n_features: LETOR: the number of features; by default the largest index met.
        absent: LETOR: what a feature that a line does not name is: `"zero"` or `"missing"` (NaN).
        first_index: LETOR: what the file calls its first feature, 1 or 0.
        largest_index: LETOR: an index above this is taken for a mistake.
        sparse: LETOR: keep the features as a scipy csr_array.
        returning_qid: text: what to do where a query id comes back after other queries: `"warn"` and
            take its rows as one query, `"merge"` silently, or `"error"`.
        relevance, qid, labels, document_weights, query_weights, positions, document_ids, feature_names:
            CSV, TSV, Parquet: the columns that serve for these; the defaults are those of `RankingData`.
        categorical: CSV, TSV, Parquet: features that hold categories, by name; text is kept as names of categories.
            Columns of Parquet that hold categories need not be named.
        unlabelled: a label value that stands for "not labelled".
        normalize: bring features to a common scale within each query: `"sum"`, `"zscore"` or `"minmax"`.
        n_threads: threads to parse with; all cores by default. The result is the same.
        max_bytes: how much of the text, and of the arrays made of it, may be held in memory; by default three
            quarters of what is free. Beyond that it is an error, so that a stream without an end is stopped.

    Raises:
        FileFormatError: with file, line and column where the text is not as it should be.

    """
    sources: list[Source] = list(source) if isinstance(source, list | tuple) else [source]  # type: ignore[list-item]
    if not sources:
        raise DataError("there is no file to read")
    kind = format or _common_format(sources)
    if kind not in ("letor", "csv", "tsv", "parquet"):
        raise DataError(f"format must be 'letor', 'csv', 'tsv' or 'parquet', not {kind!r}")
    options = TextOptions(n_features, absent, first_index, largest_index, sparse, returning_qid, n_threads)
    roles = {
        "relevance": relevance, "qid": qid, "labels": _columns_of_labels(labels),
        "document_weights": document_weights, "query_weights": query_weights,
        "positions": positions, "document_ids": document_ids,
    }  # fmt: skip
    _refuse_unused(kind, options, roles | {"feature_names": feature_names, "categorical": categorical})
    _require_names("feature_names", feature_names)
    _require_names("categorical", categorical)
    categorical = categorical or ()
    _require_columns(roles)
    try:
        data = _from_format(kind, sources, options, roles, feature_names, categorical, Budget(max_bytes))
    except MemoryError as error:
        raise FileFormatError(source_name(sources[0]), "does not fit into the memory that this process has") from error
    if unlabelled is not None:
        data = data.replace(labels={source: np.where(v == unlabelled, np.nan, v) for source, v in data.labels.items()})
    if normalize is None:
        return data
    scaled = data.normalized(normalize)
    scaled._set(absent_value=data.absent_value, reading=MappingProxyType({**data.reading, "normalize": normalize}))
    return scaled


def _from_format(
    kind: str,
    sources: list[Source],
    options: TextOptions,
    roles: dict[str, Any],
    feature_names: Sequence[str] | None,
    categorical: Sequence[str],
    budget: Budget,
) -> RankingData:
    if kind == "parquet":
        from podium.data.io.parquet import read_parquet

        return read_parquet(sources, roles, feature_names, categorical, budget)
    with progress(f"reading {source_name(sources[0])}", _total_size(sources)) as advance:
        if kind == "letor":
            from podium.data.io.text.letor import read_letor

            arguments = read_letor(sources, options, advance, budget)
        else:
            from podium.data.io.text.delimited import read_delimited

            arguments = read_delimited(
                sources, _DELIMITERS[kind], roles, feature_names, categorical, options, advance, budget
            )
    absent_value = arguments.pop("absent_value", None)
    try:
        data = RankingData(**arguments)
    except DataError as error:  # an infinite label, a negative weight, …: rows count from 0, without the header
        raise FileFormatError(source_name(sources[0]), str(error)) from None
    reading: dict[str, Any] = {"categorical": list(categorical)} if categorical else {}
    if kind == "letor":
        reading = {"absent": options.absent, "first_index": options.first_index}
    data._set(absent_value=absent_value, reading=MappingProxyType(reading))
    return data


def write(
    data: RankingData,
    path: str | os.PathLike[str],
    format: Format | None = None,  # noqa: A002
    *,
    absent: Literal["zero", "missing", "none"] = "zero",
    lossy: bool = False,
) -> None:
    """Write ranking data; what was there under that name is replaced only once all is written.

    Args:
        data: the data; every float32 is written so that it reads back as the same bits.
        path: where to; `.gz`, `.bz2` and `.xz` compress text.
        format: `"letor"` or `"parquet"`; by default what the suffix says.
        absent: LETOR: which features are left out of a line: zeros, missing ones (NaN), or none. The first
            line is always full, so that the number of features can be told.
        lossy: LETOR text holds the relevance, the query ids, the features and a document id. Data that has
            more is refused, unless `lossy=True` lets the rest go.

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


def _common_format(sources: Sequence[Source]) -> Format:
    formats = set()
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            raise DataError("a stream has no suffix: give its format, as in read(stream, format='letor')")
        formats.add(format_of(source))
    if len(formats) > 1:
        raise DataError(f"files that are read as one must have one format, not {', '.join(sorted(formats))}")
    return formats.pop()


def _columns_of_labels(labels: Any) -> dict[str, str]:
    if labels is not None and not isinstance(labels, Mapping):
        raise DataError(f"labels must map names to columns, as in {{'clicks': 'clicked'}}, not {labels!r:.60}")
    return dict(labels or {})


def _require_columns(roles: dict[str, Any]) -> None:
    """Files have columns by name: nothing else can serve for a role."""
    named = {name: value for name, value in roles.items() if name != "labels" and value is not None}
    named |= {f"labels[{source!r}]": column for source, column in roles["labels"].items()}
    wrong = next((name for name, column in named.items() if not isinstance(column, str)), None)
    if wrong is not None:
        raise DataError(f"{wrong} must be the name of a column, not {named[wrong]!r:.60}")


def _require_names(argument: str, names: Any) -> None:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if names is not None and not (is_list and all(isinstance(name, str) for name in names)):
        raise DataError(f"{argument} must be a list of names of columns, not {names!r:.60}")


def _refuse_unused(kind: str, options: TextOptions, of_columns: dict[str, Any]) -> None:
    """Nothing that the caller says is dropped in silence."""
    if kind == "letor":
        unused = [name for name, value in of_columns.items() if value]
    else:
        default = TextOptions()
        names = ["n_features", "absent", "first_index", "largest_index", "sparse"]
        names += ["returning_qid"] * (kind == "parquet")
        unused = [name for name in names if getattr(options, name) != getattr(default, name)]
    if unused:
        raise DataError(f"{unused[0]} has no meaning for the format {kind!r}")


def _total_size(sources: Sequence[Source]) -> float | None:
    sizes = []
    for source in sources:
        if not isinstance(source, str | os.PathLike) or not Path(source).is_file():
            return None
        sizes.append(Path(source).stat().st_size)
    return sum(sizes)
