"""The table of commands, and the exit after an error or a signal."""

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

# Every command with the first sentence of its help. Each name is a function or a Typer group in its module, which is
# imported only when the command runs, so that `podium --help` stays fast.
COMMANDS = {
    "generate": "Generate artificial ranking data; the same seed gives the same data on every machine.",
    "describe": "Summarize ranking data and point out likely mistakes in it.",
    "convert": "Convert ranking data from one format to another, merging several files into one.",
    "clicks": "Check click logs, and turn them into labels and features.",
    "bin": "Bin files that are too large for memory into a folder that podium train reads instead.",
    "train": "Train a model: podium train MODEL DATA…, or podium train DATA… for the default, ranker.",
    "tune": "Search for the parameters of a model that maximize a measure.",
    "score": "Score documents: write one score per line in the order of the rows, or a TREC run.",
    "inspect": "Show what a model file contains: its parameters, most important features and trees.",
    "explain": "Explain scores: what each feature contributes, why A ranks above B, how two models differ.",
    "plot": "Plot the measures of a training run by round, and mark the best round.",
    "report": "Write a report on a training run as a single HTML page that works offline.",
    "evaluate": "Evaluate a ranking: means with 95% confidence intervals, or a value for each query.",
    "compare": "Compare rankings query by query: t-test, randomization test, Holm's correction, equivalence.",
    "combine": "Find the exact α for which (1 − α) a + α b ranks best, or fuse TREC runs.",
    "adapt": "Adapt a model to a new domain.",
    "refit": "Recompute the leaf values of a model from other data, and keep its splits.",
    "committee": "Train the best model without tuning: bagged, weighted trees of several objectives in one ensemble.",
    "import": "Convert another tool's model to a Podium model.",
    "export": "Export a model to another system, such as LightGBM, XGBoost, Solr or Elasticsearch.",
    "formats": "List the model formats and what each one cannot store.",
    "index": "Build, change and describe an index of documents for search and features.",
    "search": "Search an index with BM25, or a search pipeline with its model.",
    "features": "Compute, list, explain and export features of queries and documents.",
    "pipeline": "Train a search pipeline: an index, features and a model in one folder.",
    "serve": "Serve models over HTTP: POST /rank, GET /models, /health, /ready, /metrics and /openapi.json.",
    "info": "Show versions, processor, extras and the kernel cache, for bug reports.",
    "warmup": "Compile all kernels into the cache, for container images or right after installation.",
}

# Modules that define several commands; every other command is defined in the module of the same name.
_SHARED_MODULES = {
    "data_commands": ("generate", "describe", "convert", "bin"),
    "training_commands": ("tune", "combine", "adapt", "refit", "committee"),
    "model_commands": ("inspect", "import", "export", "formats"),
    "evaluation_commands": ("evaluate", "compare"),
    "explaining_commands": ("explain", "plot", "report"),
    "scoring_commands": ("score", "serve"),
    "index_commands": ("index", "search"),
    "feature_commands": ("features", "pipeline"),
}
_MODULES = {name: module for module, names in _SHARED_MODULES.items() for name in names}


class FlagsWithoutType:
    """Shows no type for flags in `--help`, because they take no value; typer shows `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Group(FlagsWithoutType, TyperGroup):
    """A group of commands."""


class Commands(Group):
    """The group of all commands: listed from `COMMANDS`, imported only when called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=summary) for name, summary in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the called command with its options, importing its module."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and command is not None:
            command = load_command(name)
        return name, command, rest


def load_command(name: str) -> Any:
    """Import a command's module and return the command with its options and examples."""
    from podium.cli.examples import EXAMPLES, as_epilog
    from podium.cli.options import Command

    is_reserved = iskeyword(name) or hasattr(builtins, name)
    python_name = f"{name}_" if is_reserved else name  # `podium import` is the function `import_`
    command = getattr(import_module(f"podium.cli.{_MODULES.get(name, python_name)}"), python_name)
    if isinstance(command, typer.Typer):
        loaded: Any = typer.main.get_group(command)
    else:
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name, cls=Command)(command)
        loaded = typer.main.get_command(single)
    loaded.name, loaded.epilog = name, as_epilog(EXAMPLES[name])
    return loaded


app = typer.Typer(
    name="podium",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"podium {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learning to rank. Use podium COMMAND --help for a command's options and examples."""


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, PodiumWarning):
        print(f"podium: warning: {message}", file=sys.stderr)


def main() -> None:
    """Run a command. Exit with 0 on success, 1 after an error, 2 after wrong usage, and 128 + n after signal n."""
    warnings.showwarning = _show_warning
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]  # accepted before and after a command
    _repair_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores signals: leave it that way
            signal.signal(number, _stop)
    try:
        try:
            app()
        finally:
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()  # raises if the disk is full
    except Stopped as stop:
        sys.exit(128 + stop.number)
    except BrokenPipeError:  # the reader of our output, such as head, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except Exception as error:
        _exit_with_error(error, debug)


_STOPS: list[float] = []  # times of signals
SECONDS_TO_WRITE = 5.0  # seconds to ignore further signals after one, so that results can be written


def _stop(number: int, _: FrameType | None) -> None:
    """Stop the command, unless an earlier signal is already stopping it."""
    now = time.monotonic()
    if not _STOPS or now - _STOPS[-1] > SECONDS_TO_WRITE:
        _STOPS.append(now)
        raise Stopped(number)


def _repair_streams() -> None:
    """Replace closed standard streams, and escape characters that the streams' encoding lacks."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file we open would get this descriptor
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")
    if sys.stdout is None:
        _exit_with_error(DataError("standard output is closed: redirect it to /dev/null if you do not need it"), False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _exit_with_error(error: BaseException, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    message = str(error) or type(error).__name__
    if not isinstance(error, PodiumError | OSError | MemoryError):
        hint = "" if debug else "; please report it with the traceback that --debug shows"
        message = f"unexpected {type(error).__name__}: {message}{hint}"
    print(f"podium: error: {message}", file=sys.stderr)
    sys.exit(1)
