"""The output folder of a training run, and the config files that `--config` reads and the folder keeps."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from podium.core.files import remove_leftovers, write_text
from podium.core.interrupts import Stopped
from podium.errors import DataError, FileFormatError


class RunFolder:
    """The output folder of a run.

    It holds `checkpoint.podium` while the run trains, and `model.podium` once it has finished. It also holds
    `history.json`, `config.toml` and `run.json` (start, duration and versions), and `history.svg` and `report.html` if
    the user asks for them. Each file is written atomically.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model, self.checkpoint = folder / "model.podium", folder / "checkpoint.podium"
        self.history, self.config = folder / "history.json", folder / "config.toml"
        self.facts = folder / "run.json"
        self.picture, self.report = folder / "history.svg", folder / "report.html"

    def require_unfinished(self, overwrite: bool) -> None:
        """Raise if the folder holds a finished run, unless it may be overwritten."""
        if (self.model.exists() or self.model.is_symlink()) and not overwrite:
            raise DataError(
                f"{self.model} exists, so this run has finished: choose another folder with --output, or replace it "
                "with --overwrite"
            )

    def begin(self, overwrite: bool) -> None:
        """Create and lock the folder, and remove leftovers of an earlier run.

        The checkpoint to resume from stays unless `overwrite` is set.
        """
        files = (
            self.model, self.history, self.config, self.facts, self.checkpoint, self.picture, self.report,
        )  # fmt: skip
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock()
            for file in files:
                remove_leftovers(file)
                if overwrite:
                    file.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: circular links
            reason = getattr(error, "strerror", None) or error
            raise FileFormatError(self.folder, f"cannot be used for a run: {reason}") from error
        if self.checkpoint.exists():
            typer.echo(f"resuming from {self.checkpoint}", err=True)

    def _lock(self) -> None:
        """Lock the folder against other runs until this process ends, if the system has file locks."""
        try:
            import fcntl
        except ImportError:
            return
        self.locked = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{self.folder} is in use by another run: choose another folder with --output") from None

    @contextmanager
    def running(self, config: str) -> Iterator[None]:
        """Write the config of a run; if a signal stops the run, print how to resume it."""
        previous = self.config.read_text(encoding="utf-8") if self.config.is_file() else None
        write_text(self.config, config)
        try:
            yield
        except Stopped:
            resume = f"run the same command to resume from {self.checkpoint}"
            restart = "there is no checkpoint yet, so the same command starts over"
            typer.echo(f"podium: stopped; {resume if self.checkpoint.exists() else restart}", err=True)
            raise
        except DataError:  # for example because the settings differ from the checkpoint's: restore its config
            if previous is not None:
                write_text(self.config, previous)
            raise

    def read_history(self) -> dict[str, list[float]]:
        """Return the history of a run; raise if there is none."""
        if not self.folder.is_dir():
            problem = "is a file" if self.folder.exists() else "does not exist"
            raise DataError(f"{self.folder} {problem}: pass the output folder of podium train")
        if not self.history.exists():
            unfinished = "the run has not finished; run the same podium train command to resume it"
            reason = unfinished if self.checkpoint.exists() else "podium train writes it when a run finishes"
            raise DataError(f"{self.history} does not exist: {reason}")
        history = _read_json(self.history)
        if not isinstance(history, dict) or not all(map(_is_list_of_numbers, history.values())):
            raise FileFormatError(self.history, "was not written by podium train: expected lists of numbers")
        return history

    def write_facts(self, started: datetime, seconds: float) -> None:
        """Record when a run started, how long it took, and the versions it used."""
        from podium.core.versions import versions

        facts = {"started": started.isoformat(timespec="seconds"), "seconds": f"{seconds:.1f}", **versions()}
        write_text(self.facts, json.dumps(facts, indent=1) + "\n")

    def read_facts(self) -> dict[str, str]:
        """Return what `write_facts` recorded; empty for runs before version 0.3."""
        if not self.facts.exists():
            return {}
        facts = _read_json(self.facts)
        if not isinstance(facts, dict) or not all(isinstance(text, str) for text in facts.values()):
            raise FileFormatError(self.facts, "was not written by podium train: expected strings by name")
        return {f"{name} (run)": text for name, text in facts.items()}

    def finish(self) -> None:
        """Remove the checkpoint, because the model is complete."""
        self.checkpoint.unlink(missing_ok=True)


def _is_list_of_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise FileFormatError(path, f"cannot be read: {error}") from error


LARGEST_CONFIG = 1 << 20  # bytes


def read_config(path: Path | None) -> dict[str, Any]:
    """Return the content of a config file; empty if none is named."""
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_CONFIG + 1)
        if len(content) > LARGEST_CONFIG:  # possibly an endless stream
            raise FileFormatError(path, f"is not a TOML file: it is larger than {LARGEST_CONFIG >> 20} MB")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise FileFormatError(path, f"cannot be opened: {error.strerror}") from error
    except RecursionError as error:
        raise FileFormatError(path, "is nested too deeply") from error
    except ValueError as error:  # invalid TOML, bytes that are not UTF-8, integers with thousands of digits
        raise FileFormatError(path, f"is not a TOML file: {error}") from error


def fixed_parameters(path: Path | None) -> dict[str, Any]:
    """Return the parameters of a model in a config file; empty if none is named."""
    return {
        name: value for name, value in read_config(path).items() if name not in ("data", "valid", "model", "reading")
    }


def files_of(configured: Any, named: list[str] | None) -> list[str]:
    """Return the files `named` on the command line, else those `configured`, which is one name or a list."""
    if named:
        return named
    names = [configured] if isinstance(configured, str) else configured or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise typer.BadParameter(f"files in --config must be a name or a list of names, but got {configured!r}")
    return names


def config_text(parameters: dict[str, Any], reading: dict[str, Any]) -> str:
    """Return the parameters that are set, and a table of the reading options if there are any, as TOML."""
    table = f"\n[reading]\n{_toml_lines(reading)}" if reading else ""
    return _toml_lines(parameters) + table


def _toml_lines(parameters: dict[str, Any]) -> str:
    from podium.objectives import Objective, describe

    lines = []
    for name, value in parameters.items():
        if isinstance(value, bool):
            lines.append(f"{name} = {str(value).lower()}")
        elif isinstance(value, int | float):
            lines.append(f"{name} = {value!r}")
        elif isinstance(value, list):
            lines += [f"{name} = {json.dumps(value)}"] if value else []
        elif value is not None and value != ():
            # `describe` returns an expression that podium train can parse again.
            text = describe(value) if isinstance(value, Objective) else str(value)
            lines.append(f"{name} = {json.dumps(text)}")
    return "\n".join(lines) + "\n"
