"""The commands, and what becomes of errors on the command line."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated

import typer

from podium import __version__
from podium.cli import combining, data, evaluation, training, warming
from podium.errors import PodiumError, PodiumWarning

app = typer.Typer(
    name="podium",
    help="Learning to rank. Give --help after a command to see what it takes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(data.generate)
app.command()(data.describe)
app.command()(data.convert)
app.command()(evaluation.evaluate)
app.command()(evaluation.compare)
app.command()(training.train)
app.command()(training.score)
app.command()(training.inspect)
app.command()(combining.combine)
app.command()(combining.adapt)
app.command()(combining.committee)
app.command()(warming.warmup)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"podium {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learning to rank. Give --help after a command to see what it takes."""


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, PodiumWarning):
        print(f"podium: warning: {message}", file=sys.stderr)


def main() -> None:
    """Run a command; the exit code is 0 if it went well, 1 for an error, 2 for wrong usage."""
    warnings.showwarning = _show_warning
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # it may stand behind a command, too
    try:
        app()
    except (PodiumError, MemoryError, OSError) as error:
        _complain(error, debug)
    except KeyboardInterrupt:
        sys.exit(130)


def _complain(error: BaseException, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    print(f"podium: error: {error or type(error).__name__}", file=sys.stderr)
    sys.exit(1)
