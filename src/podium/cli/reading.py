"""The options for reading ranking data."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer

from podium.cli.options import as_command
from podium.core.choices import Absent, DataFormat
from podium.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from podium.binned import BinnedFiles
    from podium.data import RankingData
    from podium.models import Model

Reader: TypeAlias = Any  # a partial of `_read`, called with files; its keywords are the options of the command line
Sources = Annotated[list[str], typer.Argument(help="Files, read as one data set; - is standard input.")]


def _read(
    sources: list[str],
    *,
    input_format: Annotated[
        DataFormat | None, typer.Option("--format", help="Format of the input; by default determined by the suffix.")
    ] = None,
    absent: Annotated[
        Absent | None, typer.Option(help="LETOR: how to read features that a line omits; zero by default.")
    ] = None,
    first_index: Annotated[
        int | None, typer.Option(help="LETOR: number of the first feature in the file, 1 (the default) or 0.")
    ] = None,
    qid: Annotated[str | None, typer.Option(help="CSV, TSV, Parquet: the column of query ids.")] = None,
    label: Annotated[str | None, typer.Option(help="CSV, TSV, Parquet: the column of relevance labels.")] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="CSV, TSV, Parquet: an additional source of labels, NAME=COLUMN. Repeatable."),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="CSV, TSV, Parquet: the feature columns, separated by commas.")
    ] = None,
    categorical: Annotated[
        str | None, typer.Option(help="CSV, TSV, Parquet: the categorical features, separated by commas.")
    ] = None,
    unlabelled: Annotated[float | None, typer.Option(help="The label that means 'not labelled'.")] = None,
    normalize: Annotated[str | None, typer.Option(help="Scale features within queries: sum, zscore or minmax.")] = None,
    max_bytes: Annotated[
        int | None, typer.Option(help="Maximum memory for the data in bytes; by default half of the free memory.")
    ] = None,
) -> RankingData:
    """Read files with the options of the command line, and record in the data which columns the options name."""
    options = {name: value for name, value in locals().items() if name != "sources"}

    from podium.binned import is_binned
    from podium.data import read

    if any(map(is_binned, sources)):
        return _open_binned(sources, options)
    data = read(_files(sources), **_arguments(options))
    return data.with_reading(columns={name: options[name] for name in _COLUMNS if options[name] is not None})


_SIGNATURE = inspect.signature(_read, eval_str=True, locals={"RankingData": Any})  # typed only, not imported
_READING = [p for p in _SIGNATURE.parameters.values() if p.kind is p.KEYWORD_ONLY]
for _argument in _READING:
    get_args(_argument.annotation)[1].rich_help_panel = "Reading data"
_DEFAULTS = {p.name: p.default for p in _READING}


def bin_sources(reader: Reader, sources: list[str], folder: Path, **options: Any) -> BinnedFiles:
    """Bin files with the options of a reader; `options` are arguments of `podium.bin_files`."""
    from podium.binned import bin_files

    columns = {name: reader.keywords[name] for name in _COLUMNS if reader.keywords[name] is not None}
    return bin_files(_files(sources), folder, **_arguments(reader.keywords), columns=columns, **options)


def _open_binned(sources: list[str], options: dict[str, Any]) -> RankingData:
    """Open a folder of binned data; raise if it was binned with other options."""
    from podium.binned import open_binned

    if len(sources) > 1:
        raise DataError("a folder of binned data must be the only input: bin all files into one folder")
    data = open_binned(sources[0])
    binned_with = {**data.reading, **data.reading.get("columns", {})}
    for name in (*_OPTIONS, *_COLUMNS):
        value = options[name]
        if value is not None and value != binned_with.get(name):
            raise DataError(
                f"{sources[0]} was not binned with --{name.replace('_', '-')} {value}: omit the option, or bin the "
                "files again with it"
            )
    return data


def read_in_blocks(reader: Reader, sources: str | list[str], **options: Any) -> Iterator[RankingData]:
    """Yield the documents of files in blocks; `options` are arguments of `podium.read_blocks`."""
    from podium.data import read_blocks

    files = _files([sources] if isinstance(sources, str) else sources)
    return read_blocks(files, **_arguments(reader.keywords), **options)


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Translate options of the command line into arguments of `podium.read`."""
    labels: dict[str, str] = {}
    for entry in options["labels"] or ():
        name, equals, column = entry.partition("=")
        if not (name and equals and column):
            raise typer.BadParameter(f"--labels must be NAME=COLUMN, but got {entry!r}")
        labels[name] = column
    categorical, features, first_index = options["categorical"], options["features"], options["first_index"]
    return {
        "format": options["input_format"],
        "absent": options["absent"] or "zero",
        "first_index": 1 if first_index is None else first_index,
        "qid": options["qid"],
        "relevance": options["label"],
        "labels": labels,
        "feature_names": features.split(",") if features else None,
        "categorical": categorical.split(",") if isinstance(categorical, str) else categorical or (),
        "unlabelled": options["unlabelled"],
        "normalize": options["normalize"],
        "max_bytes": options["max_bytes"],
    }


def _files(sources: list[str]) -> list[Any]:
    return [_standard_input() if source == "-" else source for source in sources]


def _standard_input() -> Any:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("cannot read from -: standard input is closed")
    return sys.stdin.buffer


# Options of reading that a model file may contain, with a check of each value, because a file may be malicious.
_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "absent": lambda value: value in get_args(Absent),
    "first_index": lambda value: type(value) is int,
    "normalize": lambda value: value is None or isinstance(value, str),
}
_COLUMNS: dict[str, Callable[[Any], bool]] = {
    "qid": lambda value: isinstance(value, str),
    "label": lambda value: isinstance(value, str),
    "labels": lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    "features": lambda value: isinstance(value, str),
    "unlabelled": lambda value: isinstance(value, int | float),
}


def _checked(stored: Any, checks: dict[str, Callable[[Any], bool]], name: str) -> dict[str, Any]:
    """Return the options in `stored`, which comes from a model file; raise for values that no command writes."""
    options = {option: stored[option] for option in checks if option in stored} if isinstance(stored, dict) else stored
    if not isinstance(options, dict) or not all(checks[option](value) for option, value in options.items()):
        raise FileFormatError(name, f"the stored options for reading data are invalid: {options!r:.60}")
    return options


def for_model(reader: Reader, model: Model, name: str) -> Reader:
    """Return a reader that reads data in the same way as the model's training data; raise if options contradict it."""
    stored, options = _checked(model.reading, _OPTIONS, name), dict(reader.keywords)
    for option in _OPTIONS:
        value = options[option]
        is_known = option in stored or (option == "normalize" and "reading" in model.info)
        if value is not None and is_known and value != stored.get(option):
            flag = f"--{option.replace('_', '-')}"
            trained = f"with {flag} {stored[option]}" if stored.get(option) is not None else f"without {flag}"
            raise DataError(
                f"{flag} {value} contradicts the model {name}, whose training data was read {trained}: omit the option"
            )
        options[option] = stored.get(option, value)
    return with_columns(partial(_read, **options), model, name)


def as_trained(model: Model, name: str) -> Reader:
    """Return a reader that reads data in the same way as the model's training data."""
    return for_model(partial(_read, **_DEFAULTS), model, name)


def require_same_reading(first: Model, second: Model, names: tuple[str, str]) -> None:
    """Raise if two models need one file to be read in different ways."""
    if "reading" not in first.info or "reading" not in second.info:
        return
    for option in _OPTIONS:
        values = first.reading.get(option), second.reading.get(option)
        if values[0] != values[1] and (option == "normalize" or None not in values):
            raise DataError(
                f"{names[0]} and {names[1]} were trained on data read differently ({option.replace('_', '-')} "
                f"{values[0]} and {values[1]}): train both with the same reading options"
            )


def with_columns(reader: Reader, model: Model, name: str) -> Reader:
    """Return a reader with a model's columns, categories and first index, unless the command line sets them."""
    options = dict(reader.keywords)
    if options["first_index"] is None:
        options["first_index"] = _checked(model.reading, _OPTIONS, name).get("first_index")
    for option, value in _checked(model.reading.get("columns", {}), _COLUMNS, name).items():
        if options[option] is None:
            options[option] = value
    names = model.feature_names
    if options["categorical"] is None and names is not None and model.encoding.categories:
        options["categorical"] = [names[feature] for feature in model.encoding.categories]
    return partial(_read, **options)


def configured(reader: Reader, table: Any) -> Reader:
    """Return a reader with the options of a config's table [reading], unless the command line sets them."""
    if not isinstance(table, dict):
        raise DataError(f"[reading] must be a table of options, but got {table!r}")
    labels = table.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(entry, str) for entry in labels):
        raise DataError(f"[reading]: labels must be a list such as ['clicks=clicked'], but got {labels!r}")
    unknown = set(table) - set(_DEFAULTS)
    if unknown:
        raise DataError(f"[reading] has no option {min(unknown)!r}; choose from {', '.join(sorted(_DEFAULTS))}")
    for name, kind in (("absent", Absent), ("input_format", DataFormat)):
        if name in table and table[name] not in get_args(kind):
            raise DataError(f"[reading]: {name} must be one of {', '.join(get_args(kind))}, but got {table[name]!r}")
    not_set = {name: value for name, value in table.items() if reader.keywords[name] == _DEFAULTS[name]}
    return partial(_read, **(reader.keywords | not_set))


def non_default_options(reader: Reader) -> dict[str, Any]:
    """Return the options that differ from their defaults, for a config file."""
    return {name: value for name, value in reader.keywords.items() if value != _DEFAULTS[name] and value is not None}


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading data to a command, which gets a `reader` that applies them."""

    def wrapped(**values: Any) -> None:
        options = {name: values.pop(name) for name in _DEFAULTS}
        command(reader=partial(_read, **options), **values)

    return as_command(wrapped, command, "reader", _READING)
