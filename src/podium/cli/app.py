"""The table of commands, and how errors and signals end a command."""

from __future__ import annotations

import builtins
import io
import os
import signal
import sys
import time
import traceback
import warnings
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from podium import __version__
from podium.core.interrupts import Stopped
from podium.errors import DataError, PodiumError, PodiumWarning

# Every command, with the first sentence of its help. The module that defines it has a function, or a group of commands,
# of this name; it is loaded when the command is called, so that `podium --help` stays quick.
COMMANDS = {
    "generate": "Make artificial ranking data: the same seed gives the same data everywhere.",
    "describe": "Say what is in ranking data, and what looks like a mistake.",
    "convert": "Convert ranking data from one format to another; several files become one.",
    "clicks": "Turn click logs into labels and features: generate, check, labels, features, bias.",
    "bin": "Bin files that are larger than memory into a folder, which podium train takes in place of them.",
    "train": "Train a model: podium train MODEL DATA…, or podium train DATA… for ranker.",
    "tune": "Search the parameters of a model for a measure.",
    "score": "Score documents: one number per line in the order of the rows, or a TREC run.",
    "inspect": "Say what is in a model file: its parameters, its most important features, its trees.",
    "explain": "Say why: what each feature adds to scores, why A is above B, what moves between two models.",
    "plot": "Draw what was measured after each round of a training run, with the best round.",
    "report": "Write all that is known of a run as one HTML page, which works without a network.",
    "evaluate": "Measure a ranking: means with 95% intervals, or a value for each query.",
    "compare": "Compare rankings query by query: t-test, randomisation test, Holm's correction, equivalence.",
    "combine": "Find the α for which (1 − α) a + α b is best, of all α there are; or fuse TREC runs.",
    "adapt": "Adapt a model to a domain; compare with the background, an in-domain and an interpolated model.",
    "committee": "Just give me the best model: several objectives, bagged and weighed, in one ensemble of trees.",
    "import": "Read a model of another tool, and write it as one of Podium's.",
    "export": "Write a model for another system: LightGBM, XGBoost, RankLib, Solr, Elasticsearch, …",
    "formats": "List the formats of models, and what each can carry.",
    "index": "Build an index of documents for search and features, and change it.",
    "search": "Search an index by BM25, or a pipeline by its model: the best documents with their scores.",
    "features": "Compute features of queries and documents, list them, explain and export them.",
    "pipeline": "Train a search pipeline: an index, features and a model in one folder.",
    "serve": "Serve models over HTTP: POST /rank, GET /models, /health, /ready, /metrics and /openapi.json.",
    "info": "Say what is installed here, for bug reports: versions, processor, extras, where kernels are kept.",
    "warmup": "Compile all kernels into the cache: for container images, or once after installation.",
}

# The commands of each module of several; every other command has a module of its name.
_SHARED_MODULES = {
    "data_commands": ("generate", "describe", "convert", "bin"),
    "training_commands": ("tune", "combine", "adapt", "committee"),
    "model_commands": ("inspect", "import", "export", "formats"),
    "evaluation_commands": ("evaluate", "compare"),
    "explaining_commands": ("explain", "plot", "report"),
    "scoring_commands": ("score", "serve"),
}
_MODULES = {name: module for module, names in _SHARED_MODULES.items() for name in names}


class Commands(TyperGroup):
    """List all commands by name and help, and load the one that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the command that was called, with its options."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if listed is not None and name else listed, rest


def load_command(name: str) -> Any:
    """Load a command with its options."""
    from podium.cli.examples import EXAMPLES, as_epilog
    from podium.cli.options import Command

    taken = iskeyword(name) or hasattr(builtins, name)
    python_name = f"{name}_" if taken else name  # podium import is the function import_
    command = getattr(import_module(f"podium.cli.{_MODULES.get(name, python_name)}"), python_name)
    if isinstance(command, typer.Typer):
        loaded: Any = typer.main.get_group(command)
    else:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name, cls=Command)(command)
        loaded = typer.main.get_command(alone)
    loaded.name, loaded.epilog = name, as_epilog(EXAMPLES[name])
    return loaded


app = typer.Typer(
    name="podium",
    cls=Commands,
    help="Learning to rank. Give --help after a command to see what it takes, and examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"podium {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learning to rank. Give --help after a command to see what it takes, and examples."""


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, PodiumWarning):
        print(f"podium: warning: {message}", file=sys.stderr)


def main() -> None:
    """Run a command; the exit code is 0 if it went well, 1 for an error, 2 for wrong usage, 128 + n for signal n."""
    warnings.showwarning = _show_warning
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # also after a command
    _repair_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _stop)
    try:
        try:
            app()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()  # raises if the disk is full
    except Stopped as stop:
        sys.exit(128 + stop.number)
    except BrokenPipeError:  # the reader of the output, such as head, is done
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except Exception as error:
        _complain(error, debug)


_STOPS: list[float] = []  # times of signals
CALM = 5.0  # seconds after a signal in which another one does not interrupt the writing of results


def _stop(number: int, _: FrameType | None) -> None:
    """Handle a signal: end the work."""
    now = time.monotonic()
    if not _STOPS or now - _STOPS[-1] > CALM:
        _STOPS.append(now)
        raise Stopped(number)


class _ClosedInput(io.StringIO):
    """Replaces a closed standard input; raises when it is read."""

    @property
    def buffer(self) -> Any:
        raise DataError("standard input is closed: there is nothing to read from -")


def _repair_streams() -> None:
    """Replace standard streams that are closed, and let them escape what their encoding cannot show."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # else the next file that is opened would get this descriptor
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")
    if sys.stdin is None:
        sys.stdin = _ClosedInput()
    if sys.stdout is None:
        _complain(DataError("standard output is closed; send it to /dev/null if you do not need it"), False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(error: BaseException, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    message = str(error) or type(error).__name__
    if not isinstance(error, PodiumError | OSError | MemoryError):
        hint = "" if debug else "; --debug shows where, and please report it"
        message = f"unexpected {type(error).__name__}: {message}{hint}"
    print(f"podium: error: {message}", file=sys.stderr)
    sys.exit(1)
