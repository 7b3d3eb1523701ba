"""The folder of a training run: what is in it, when it is finished, and how it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import typer


class RunFolder:
    """A folder with `model.podium` once the run is finished, and `checkpoint.podium` until then.

    `history.json`, `config.toml` and `run.json` (when, how long, which versions) stand beside them, and `history.svg`
    and `report.html` where they were made. All files appear whole or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model, self.checkpoint = folder / "model.podium", folder / "checkpoint.podium"
        self.history, self.config = folder / "history.json", folder / "config.toml"
        self.facts = folder / "run.json"
        self.picture, self.report = folder / "history.svg", folder / "report.html"

    def require_unfinished(self, overwrite: bool) -> None:
        """Refuse a folder whose run is finished."""
        from podium.errors import DataError

        if (self.model.exists() or self.model.is_symlink()) and not overwrite:
            raise DataError(
                f"{self.model} is there: the run is finished. Name another folder with --output, or replace it with "
                "--overwrite"
            )

    def begin(self, overwrite: bool) -> None:
        """Make the folder; what an earlier run left goes, but for the checkpoint that this one goes on from."""
        from podium.core.files import remove_leftovers
        from podium.errors import FileFormatError

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
        except (OSError, RuntimeError) as error:  # a RuntimeError: links that go in a circle
            reason = getattr(error, "strerror", None) or error
            raise FileFormatError(self.folder, f"cannot hold a run: {reason}") from error
        if self.checkpoint.exists():
            typer.echo(f"going on from {self.checkpoint}", err=True)

    def _lock(self) -> None:
        """Keep other runs out of the folder until this process ends; where the system has no such locks, do without."""
        from podium.errors import DataError

        try:
            import fcntl
        except ImportError:
            return
        self.locked = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self.locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{self.folder}: another run is at work there; name another folder with --output") from None

    @contextmanager
    def at_work(self, config: str) -> Iterator[None]:
        """Write the config of a run, and say what becomes of one that was told to stop."""
        from podium.core.files import write_text
        from podium.core.interrupts import Stopped
        from podium.errors import DataError

        before = self.config.read_text(encoding="utf-8") if self.config.is_file() else None
        write_text(self.config, config)
        try:
            yield
        except Stopped:
            self._say_stopped()
            raise
        except DataError:  # such as other settings than the checkpoint's, which must still be found
            if before is not None:
                write_text(self.config, before)
            raise

    def read_history(self) -> dict[str, list[float]]:
        """The history of a run; an error says why there is none."""
        from podium.errors import DataError, FileFormatError

        if not self.folder.is_dir():
            what = "it is a file" if self.folder.exists() else "there is no such folder"
            raise DataError(f"{self.folder}: {what}; name the folder of a run, as podium train --output has made it")
        if not self.history.exists():
            going_on = "the run is not finished, and the same podium train command goes on with it"
            why = going_on if self.checkpoint.exists() else "it is written when a run of podium train ends"
            raise DataError(f"{self.history} is not there: {why}")
        history = _read_json(self.history)
        if not _is_history(history):
            raise FileFormatError(self.history, "must hold lists of numbers by name, as podium train writes it")
        return dict(history)

    def write_facts(self, started: datetime, seconds: float) -> None:
        """Keep when a run was, how long it took, and with which versions."""
        from podium.core.files import write_text
        from podium.core.versions import versions

        facts = {"started": started.isoformat(timespec="seconds"), "seconds": f"{seconds:.1f}", **versions()}
        write_text(self.facts, json.dumps(facts, indent=1) + "\n")

    def read_facts(self) -> dict[str, str]:
        """What `write_facts` kept; nothing of runs before version 0.3."""
        from podium.errors import FileFormatError

        if not self.facts.exists():
            return {}
        facts = _read_json(self.facts)
        if not isinstance(facts, dict) or not all(isinstance(text, str) for text in facts.values()):
            raise FileFormatError(self.facts, "must hold texts by name, as podium train writes it")
        return {f"{name} (run)": text for name, text in facts.items()}

    def finish(self) -> None:
        """The model is there; the checkpoint has done its work."""
        self.checkpoint.unlink(missing_ok=True)

    def _say_stopped(self) -> None:
        """What becomes of a run that was told to stop."""
        if self.checkpoint.exists():
            typer.echo(f"podium: stopped; the same command goes on from {self.checkpoint}", err=True)
        else:
            typer.echo("podium: stopped; there was nothing to keep, the same command begins anew", err=True)


def _read_json(path: Path) -> Any:
    from podium.errors import FileFormatError

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise FileFormatError(path, f"cannot be read: {error}") from error


def _is_history(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(values, list) and all(isinstance(value, int | float) for value in values)
        for values in content.values()
    )
