"""`podium train`: a subcommand for each model, with an option for each of its parameters."""

from __future__ import annotations

import inspect
import json
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from podium.cli.app import Group
from podium.cli.examples import as_epilog, examples_of_model
from podium.cli.options import Command, with_parameters
from podium.cli.reading import Reader, configured, non_default_options, reads_data
from podium.cli.runs import RunFolder, config_text, files_of, read_config
from podium.core.files import write_text
from podium.core.parameters import parameters, unknown_parameter
from podium.core.validation import did_you_mean
from podium.distributed.clusters import CLUSTERS, ESTIMATORS, cluster_at, connected
from podium.errors import DataError
from podium.estimators.parameters import MODELS

DEFAULT_MODEL = "ranker"
LINES = 50  # trees or epochs per line of progress if there is no terminal for a progress bar


class ModelCommand(Command):
    """The command that trains one kind of model."""

    def add_hint(self, error: Any, flag: str) -> None:
        """Name the models that have the option."""
        others = [
            name
            for name, model in MODELS.items()
            if any(parameter.flag == flag for parameter in parameters(model.parameters).values())
        ]
        if others and self.name not in others:
            error.message = f"{self.name} has no option {flag}; these models have it: {', '.join(others)}"
            error.possibilities = ()


class Models(Group):
    """The group of models. If the command line names none, the config's model or the default is trained."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the model before the other arguments if it is missing."""
        if ctx.resilient_parsing and not args:
            return list(super().parse_args(ctx, args))
        if not (args and args[0] in ("--help", *MODELS)):
            args = [self._unnamed_model(ctx, args), *args]
        return list(super().parse_args(ctx, args))

    def _unnamed_model(self, ctx: Any, args: list[str]) -> str:
        """Return the model of the config or the default; keep the config in the context to read it only once."""
        if (name := _value_of("--model", args)) is not None:
            require_model(name)
            raise DataError(f"there is no option --model: write podium train {name} DATA…")
        first = args[0] if args else "-"
        near = "" if first.startswith("-") else did_you_mean(first, MODELS)
        if near and not Path(first).exists():
            raise DataError(f"{first!r} is neither a model nor a file{near}")
        config = _value_of("--config", args)
        ctx.obj = read_config(Path(config)) if config else None
        name = (ctx.obj or {}).get("model", DEFAULT_MODEL)
        require_model(name)
        return str(name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the models in the order of `MODELS`."""
        return list(MODELS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a model as `--help` lists it, without its options."""
        return TyperCommand(cmd_name, help=summary_of(cmd_name)) if cmd_name in MODELS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str, Any, list[str]]:
        """Return the command of the called model with its options."""
        return args[0], command_for(args[0]), args[1:]


def _value_of(flag: str, args: list[str]) -> str | None:
    """Return the last value of an option, written as `--flag value` or `--flag=value`."""
    values = [word.partition("=")[2] for word in args if word.startswith(f"{flag}=")]
    values += ["".join(args[k + 1 : k + 2]) for k, word in enumerate(args) if word == flag]
    return values[-1] if values else None


train = typer.Typer(
    cls=Models,
    help="Train a model: podium train MODEL DATA…, or podium train DATA… for the default, ranker. Use podium train "
    "MODEL --help for a model's options. To resume a run that was stopped, run the same command again.",
    subcommand_metavar="[MODEL] DATA...",
)


def require_model(name: object) -> None:
    """Raise if there is no model with this name."""
    if not isinstance(name, str) or name not in MODELS:
        near = did_you_mean(name, MODELS) if isinstance(name, str) else ""
        raise DataError(f"there is no model {name!r}{near}; choose from {', '.join(MODELS)}")


def summary_of(name: str) -> str:
    """Return a one-line description of a model."""
    return (MODELS[name].parameters.__doc__ or "").partition("\n")[0]


def command_for(name: str) -> Any:
    """Return the command that trains a model."""
    model = MODELS[name]

    def run(
        ctx: typer.Context,
        reader: Reader,
        settings: dict[str, Any],
        data: Annotated[
            list[str] | None, typer.Argument(help="Training files, read as one data set, unless --config names them.")
        ] = None,
        output: Annotated[
            Path, typer.Option("--output", "-o", help="The folder to write: model, history, config.")
        ] = Path("run"),
        valid: Annotated[
            list[str] | None, typer.Option(help="Validation files, read as one data set. Repeatable.")
        ] = None,
        config: Annotated[
            Path | None,
            typer.Option(
                help="TOML file with data, valid, model, parameters and a table of reading options. Options of the "
                "command line override it."
            ),
        ] = None,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")] = False,
        checkpoint_every: Annotated[
            int | None, typer.Option(help="Rounds between checkpoints; by default, about one every 30 seconds.")
        ] = None,
        cluster: Annotated[
            str | None,
            typer.Option(
                help="Train on a cluster: tcp://… or local:N for Dask, ray or ray://… for Ray, spark://… or local[N] "
                "for Spark."
            ),
        ] = None,
        watch: Annotated[
            bool, typer.Option("--watch", help="Plot the validation measure in the terminal during training.")
        ] = False,
    ) -> None:
        settings = (read_config(config) if ctx.obj is None else ctx.obj) | settings
        settings.pop("model", None)
        reader = configured(reader, settings.pop("reading", {}))
        files, valid_files = files_of(settings.pop("data", None), data), files_of(settings.pop("valid", None), valid)
        if not files:
            raise typer.BadParameter("no training files: name them on the command line, or as data = [...] in --config")
        training = Training(name, settings, RunFolder(output), checkpoint_every, cluster)
        if watch:
            training.watch(has_validation=bool(valid_files))
        training.run(reader, files, valid_files, overwrite)

    absent = {
        "checkpoint_every": not model.has_checkpoints,
        "watch": not model.has_rounds,
        "cluster": model.estimator not in ESTIMATORS,
    }
    if any(absent.values()):
        signature = inspect.signature(run, eval_str=True)
        arguments = [p for p in signature.parameters.values() if not absent.get(p.name, False)]
        run.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    make = app.command(name, cls=ModelCommand, help=summary_of(name), epilog=as_epilog(examples_of_model(name)))
    make(reads_data(with_parameters(model.parameters)(run)))
    return typer.main.get_command(app)


class Training:
    """One run of `podium train`."""

    def __init__(
        self, name: str, settings: dict[str, Any], folder: RunFolder, checkpoint_every: int | None, cluster: str | None
    ) -> None:
        import podium.estimators

        self.cluster = cluster
        self.name, self.folder, self.checkpoint_every = name, folder, checkpoint_every
        self.watcher: Any = None
        names = parameters(MODELS[name].parameters)
        for parameter in settings:
            if parameter not in names:
                raise unknown_parameter(name, parameter, names)
        if cluster is None:
            self.ranker = getattr(podium.estimators, MODELS[name].estimator)(**settings)
        else:
            from podium.distributed import estimators

            prefix = CLUSTERS[cluster_at(cluster)].prefix
            self.ranker = getattr(estimators, f"{prefix}{MODELS[name].estimator}")(**settings)
        self.parameters = self.ranker.get_params()
        if self.parameters.pop("verbose") is None and not sys.stderr.isatty():
            # Without rounds there are few steps, and each takes as long as many rounds of other models.
            self.ranker.set_params(verbose=LINES if MODELS[name].has_rounds else 1)

    def watch(self, has_validation: bool) -> None:
        """Plot the validation measure during training if there is a terminal."""
        from podium.reports.watching import Watch, can_draw

        if not has_validation and not self.ranker.measures_training_data:
            raise DataError("--watch needs validation data: add --valid FILE")
        if can_draw():
            rounds = next(
                self.parameters[name] for name in ("n_trees", "epochs", "n_iterations") if name in self.parameters
            )
            self.watcher = Watch(rounds)
            self.ranker.set_params(verbose=0)  # the plot replaces the progress bar

    def run(self, reader: Reader, files: list[str], valid_files: list[str], overwrite: bool) -> None:
        """Read the data, train, and write the run's folder."""
        folder, options = self.folder, self._fit_options(overwrite)
        if self.cluster is None:
            documents: Any = reader(files)
            options["valid"] = reader(valid_files) if valid_files else None
        else:  # the workers read the files
            documents = files
            options |= {"valid": valid_files or None, "reader": reader}
        folder.begin(overwrite)
        started, clock = datetime.now(UTC), time.monotonic()
        config = {"data": files, "valid": valid_files, "model": self.name, **self.parameters}
        with folder.running(config_text(config, non_default_options(reader))), ExitStack() as stack:
            if self.cluster is not None:
                options |= stack.enter_context(connected(self.cluster))
            if self.watcher is not None:
                options["observers"] = [stack.enter_context(self.watcher)]
            self.ranker.fit(documents, **options)
        write_text(folder.history, json.dumps(self.ranker.history_, indent=1) + "\n")
        folder.write_facts(started, time.monotonic() - clock)
        self.ranker.save(folder.model)
        folder.finish()
        typer.echo(f"{folder.model}: {self._result()}")

    def _fit_options(self, overwrite: bool) -> dict[str, Any]:
        """Return options for `fit`; raise if the run must not write to its folder."""
        from podium.boosting import Checkpoint

        self.folder.require_unfinished(overwrite)
        if self.parameters.get("submodel") == str(self.folder.model):
            raise DataError(
                f"{self.folder.model} is the submodel, so it cannot be replaced: choose another folder with --output"
            )
        if not MODELS[self.name].has_checkpoints:
            return {}
        return {"checkpoint": Checkpoint(self.folder.checkpoint, self.checkpoint_every)}

    def _result(self) -> str:
        """Return one line with the size of the model and the measures of its best round."""
        ranker = self.ranker
        best = -1 if ranker.best_iteration_ is None else ranker.best_iteration_  # the last without validation data
        means = {key: values[best] for key, values in ranker.history_.items()}
        if ranker.best_iteration_ == -1:  # no tree improves on the submodel
            means = ranker.submodel_means_
        is_one_ensemble = hasattr(ranker, "trees_") and ranker.trees_.n_trees == ranker.n_trees_
        size = f"{ranker.n_trees_} trees" if is_one_ensemble else repr(ranker.model_)
        return size + "".join(f", {key} {value:.4f}" for key, value in means.items())
