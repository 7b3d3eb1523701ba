"""Config files of training runs: what `--config` reads, and what a run's folder keeps."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import typer

LARGEST_CONFIG = 1 << 20  # bytes


def read_config(path: Path | None) -> dict[str, Any]:
    """The content of a config file; nothing where none is named."""
    if path is None:
        return {}
    from podium.errors import FileFormatError

    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_CONFIG + 1)
        if len(content) > LARGEST_CONFIG:  # perhaps a stream without an end
            raise FileFormatError(path, f"is no TOML file: it has over {LARGEST_CONFIG >> 20} MB")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise FileFormatError(path, f"cannot be opened: {error.strerror}") from error
    except RecursionError as error:
        raise FileFormatError(path, "has too many brackets within brackets") from error
    except ValueError as error:  # TOML's errors, bytes that are no text, numbers of thousands of digits
        raise FileFormatError(path, f"is no TOML file: {error}") from error


def reading_options(table: Any) -> dict[str, Any]:
    """The table [reading] of a config."""
    from podium.errors import DataError

    if not isinstance(table, dict):
        raise DataError(f"[reading] must be a table of options, not {table!r}")
    labels = table.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(entry, str) for entry in labels):
        raise DataError(f"[reading]: labels must be a list such as ['clicks=clicked'], not {labels!r}")
    return table


def files_of(configured: Any, named: list[str] | None) -> list[str]:
    """Files named on the command line, or else in the config, as one name or a list."""
    if named:
        return named
    names = [configured] if isinstance(configured, str) else configured or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise typer.BadParameter(f"files in --config are given by name, not as {configured!r}")
    return names


def to_toml(parameters: dict[str, Any]) -> str:
    """Parameters as TOML: numbers, words and flags; those that are not set are left out."""
    lines = []
    for name, value in parameters.items():
        if isinstance(value, bool):
            lines.append(f"{name} = {str(value).lower()}")
        elif isinstance(value, int | float):
            lines.append(f"{name} = {value!r}")
        elif isinstance(value, list):
            lines += [f"{name} = {json.dumps(value)}"] if value else []
        elif value is not None and value != ():
            lines.append(f"{name} = {json.dumps(_text(value))}")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    """A parameter as text that is read back: objectives by their grammar, measures by their names."""
    from podium.objectives import Objective, describe

    return describe(value) if isinstance(value, Objective) else str(value)
