"""Podium's errors and warnings. Every message states what is wrong, what was expected and what to do."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

__all__ = [
    "DataError", "FileFormatError", "MissingExtraError", "ParameterError", "PodiumError", "PodiumWarning",
]  # fmt: skip

HEAD, TAIL = 1500, 400  # characters to keep of a long message


def _shortened(arguments: tuple[object, ...]) -> tuple[object, ...]:
    """Cut the middle out of very long messages, because names and fields that they quote may have any length."""
    return tuple(
        f"{text[:HEAD]} … {text[-TAIL:]}" if isinstance(text, str) and len(text) > HEAD + TAIL + 3 else text
        for text in arguments
    )


class PodiumError(Exception):
    """The base class of all errors that Podium raises on purpose."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*_shortened(arguments))


class DataError(PodiumError, ValueError):
    """Data or the value of a parameter is invalid."""


class ParameterError(DataError, TypeError):
    """A parameter of this name does not exist."""


class FileFormatError(DataError):
    """A file cannot be read; the error has the position of the problem.

    Attributes:
        path: the file, as the caller named it.
        line: the line, counted from 1; None if the problem is not in a single line.
        column: the character within the line, counted from 1; None if unknown.
        problem: the message without the position.

    """

    def __init__(self, path: str | Path, problem: str, *, line: int | None = None, column: int | None = None) -> None:
        place = str(path)
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column {column}"
        super().__init__(f"{place}: {problem}")
        self.path, self.problem, self.line, self.column = str(path), problem, line, column

    def __reduce__(self) -> tuple[object, ...]:
        return partial(FileFormatError, line=self.line, column=self.column), (self.path, self.problem)


class MissingExtraError(PodiumError, ImportError):
    """A package that one of Podium's extras installs is missing."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed. Install Podium's extra {extra!r}: "
            f"pip install '.[{extra}]' in a checkout, or pip install 'podium[{extra}] @ file:///path/to/podium.whl'"
        )
        self.package, self.extra, self.purpose = package, extra, purpose

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.package, self.extra, self.purpose)


class PodiumWarning(UserWarning):
    """A warning about something that is valid, but often a mistake."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*_shortened(arguments))


def warn(message: str, stacklevel: int = 2) -> None:
    """Issue a `PodiumWarning`; `stacklevel` counts callers as in `warnings.warn`."""
    warnings.warn(message, PodiumWarning, stacklevel + 1)
