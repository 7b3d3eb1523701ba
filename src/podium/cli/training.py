"""The commands that train, score and look into models."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, chosen_options, configured, for_model, reads_data
from podium.cli.runs import RunFolder

Config = Annotated[
    Path | None, typer.Option(help="TOML: data, valid, model, its parameters, and [reading]; flags override it.")
]

NETS = ("ranknet", "lambdarank")
LARGEST_CONFIG = 1 << 20  # bytes
LINES = 50  # trees or epochs from one line to the next, where no bar can be shown


@reads_data
def train(
    reader: Reader,
    data: Annotated[list[str] | None, typer.Argument(help="Training files, read as one; or named in --config.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The run's folder: model, history, config.")] = Path(
        "run"
    ),
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, read as one.")] = None,
    config: Config = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="lambdamart (the default), ranknet-trees, mart, mcrank, linear, committee, ranknet, lambdarank."
        ),
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="Such as 'lambda(err)' or 'anneal(lambda(ndcg), local(ndcg@3))'.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="newton, gradient (without curvature), line-search.")] = None,
    submodel: Annotated[str | None, typer.Option(help="A model file to go on from.")] = None,
    submodel_scale: Annotated[
        str | None, typer.Option(help="What its scores are multiplied by: fit (the default), or a number.")
    ] = None,
    measure: Annotated[str | None, typer.Option(help="Such as ndcg@10, err, 'ndcg@3>cndcg@3~0.002'.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Trees, at most.")] = None,
    n_iterations: Annotated[int | None, typer.Option(help="Steps of a linear model, at most.")] = None,
    n_leaves: Annotated[int | None, typer.Option(help="Leaves of a tree, at most.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Share of each step that is taken.")] = None,
    min_documents_in_leaf: Annotated[int | None, typer.Option(help="Exactly counted.")] = None,
    max_depth: Annotated[int | None, typer.Option(help="Of a tree.")] = None,
    l2: Annotated[float | None, typer.Option(help="Added to the curvature of a leaf.")] = None,
    max_delta_step: Annotated[float | None, typer.Option(help="The largest value of a leaf, before the rate.")] = None,
    split: Annotated[str | None, typer.Option(help="newton or least-squares.")] = None,
    document_fraction: Annotated[float | None, typer.Option(help="Documents that each tree sees.")] = None,
    query_fraction: Annotated[float | None, typer.Option(help="Queries that each tree sees.")] = None,
    feature_fraction: Annotated[float | None, typer.Option(help="Features that each tree sees.")] = None,
    split_fraction: Annotated[float | None, typer.Option(help="Documents on which splits are sought.")] = None,
    truncation: Annotated[int | None, typer.Option(help="Rank at which pairs cease to count.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Steepness of the pairs' sigmoid.")] = None,
    normalize_lambda: Annotated[bool | None, typer.Option(help="Scale λ within each query.")] = None,
    expects: Annotated[str | None, typer.Option(help="McRank: relevance or gain.")] = None,
    max_bins: Annotated[int | None, typer.Option(help="Of each feature, 2 to 255.")] = None,
    patience: Annotated[int | None, typer.Option(help="Trees without a better one before stopping.")] = None,
    random_state: Annotated[int | None, typer.Option(help="Seed of sampling.")] = None,
    n_threads: Annotated[int | None, typer.Option(help="All cores by default; the model is the same.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Units of a net's hidden layer.")] = None,
    inputs: Annotated[str | None, typer.Option(help="Scale of a net's inputs: standard, log, quantile, none.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="Of a net: adam or sgd.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of a net, at most.")] = None,
    batch_queries: Annotated[int | None, typer.Option(help="Queries that a step of a net sees.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Keep the trees, or a net, every so many; by default about every 30 seconds.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run, be it finished or not.")] = False,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", "--metric", help="A measure to watch beside --measure; repeatable.")
    ] = None,
    verbose: Annotated[
        int | None, typer.Option("--verbose", "-v", help="A line every so many trees or epochs; 0 for silence.")
    ] = None,
) -> None:
    """Train a model. The same command goes on with a run that was stopped or killed."""
    flags = {
        "model": model, "objective": objective, "step": step, "submodel": submodel,
        "submodel_scale": _scale(submodel_scale), "max_delta_step": max_delta_step,
        "n_iterations": n_iterations, "expects": expects, "measure": measure, "n_trees": n_trees,
        "n_leaves": n_leaves, "learning_rate": learning_rate,
        "min_documents_in_leaf": min_documents_in_leaf, "max_depth": max_depth, "l2": l2, "split": split,
        "document_fraction": document_fraction, "query_fraction": query_fraction,
        "feature_fraction": feature_fraction, "split_fraction": split_fraction, "truncation": truncation,
        "sigma": sigma,
        "normalize": normalize_lambda, "max_bins": max_bins, "patience": patience, "random_state": random_state,
        "n_threads": n_threads, "hidden": hidden, "inputs": inputs, "optimizer": optimizer, "epochs": epochs,
        "batch_queries": batch_queries, "metrics": metrics or None, "verbose": verbose,
    }  # fmt: skip
    from podium.boosting import Checkpoint
    from podium.core.files import write_text
    from podium.errors import DataError

    chosen = _from_config(config) | {name: value for name, value in flags.items() if value is not None}
    reader = configured(reader, _reading(chosen.pop("reading", {})))
    files, valid_files = (_files(chosen.pop(name, None), given) for name, given in (("data", data), ("valid", valid)))
    if not files:
        raise typer.BadParameter("name the training files, on the command line or as data = [...] in --config")
    name = chosen.pop("model", "lambdamart")
    ranker = _ranker(name, chosen)
    shown = ranker.get_params()
    if shown.pop("verbose") is None and not sys.stderr.isatty():
        ranker.set_params(verbose=1 if name == "committee" else LINES)
    run = RunFolder(output)
    run.require_unfinished(overwrite)
    if ranker.get_params().get("submodel") == str(run.model):
        raise DataError(f"{run.model} cannot be the submodel and be replaced: name another folder with --output")
    options: dict[str, Any] = {}
    if name not in ("linear", "committee"):
        options["checkpoint"] = Checkpoint(run.checkpoint, checkpoint_every)
    elif checkpoint_every is not None:
        raise DataError(f"{name} models have no checkpoints")
    documents = reader(files)
    options["valid"] = reader(valid_files) if valid_files else None
    run.begin(overwrite)
    reading = chosen_options(reader)
    effective = _toml({"data": files, "valid": valid_files, "model": name, **shown})
    with run.at_work(effective + ("\n[reading]\n" + _toml(reading) if reading else "")):
        ranker.fit(documents, **options)
    write_text(run.history, json.dumps(ranker.history_, indent=1) + "\n")
    ranker.save(run.model)
    run.finish()
    chosen = {key: values[ranker.best_iteration_ or 0] for key, values in ranker.history_.items()}
    if ranker.best_iteration_ == -1:  # no tree is better than the submodel alone
        chosen = ranker.submodel_means_
    best = "".join(f", {key} {value:.4f}" for key, value in chosen.items())
    size = f"{ranker.model_!r}" if name in ("linear", "mcrank", "committee", *NETS) else f"{ranker.n_trees_} trees"
    typer.echo(f"{run.model}: {size}{best}")


def _scale(text: str | None) -> float | str | None:
    """The scale of a submodel: a number where it is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _ranker(name: str, chosen: dict[str, Any]) -> Any:
    """The estimator of a name, with its parameters."""
    from podium.core.parameters import unknown_parameter
    from podium.core.validation import did_you_mean
    from podium.errors import DataError
    from podium.estimators import (
        MART,
        Committee,
        LambdaMART,
        LambdaRank,
        LinearRanker,
        McRank,
        RankNet,
        RankNetTrees,
    )  # fmt: skip

    known = {
        "lambdamart": LambdaMART, "ranknet-trees": RankNetTrees, "mart": MART, "mcrank": McRank, "linear": LinearRanker,
        "committee": Committee, "ranknet": RankNet, "lambdarank": LambdaRank,
    }  # fmt: skip
    if not isinstance(name, str) or name not in known:
        near = did_you_mean(name, known) if isinstance(name, str) else ""
        raise DataError(f"there is no model {name!r}{near}; there are {', '.join(known)}")
    options = known[name]().get_params()
    for option in chosen:
        if option not in options:
            raise unknown_parameter(name, option, options)
    return known[name](**chosen)


def _from_config(path: Path | None) -> dict[str, Any]:
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


def _reading(given: Any) -> dict[str, Any]:
    """The table [reading] of a config."""
    from podium.errors import DataError

    if not isinstance(given, dict):
        raise DataError(f"[reading] must be a table of options, not {given!r}")
    labels = given.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(entry, str) for entry in labels):
        raise DataError(f"[reading]: labels must be a list such as ['clicks=clicked'], not {labels!r}")
    return given


def _files(configured: Any, given: list[str] | None) -> list[str]:
    """Files named on the command line, or else in the config, as one name or a list."""
    if given:
        return given
    names = [configured] if isinstance(configured, str) else configured or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise typer.BadParameter(f"files in --config are given by name, not as {configured!r}")
    return names


def _toml(parameters: dict[str, Any]) -> str:
    """Parameters that are numbers, words or flags; those that are not set are left out."""
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


@reads_data
def score(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[list[str], typer.Argument(help="Files to score, read as one.")],
    reader: Reader,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output else.")] = None,
    trec: Annotated[str | None, typer.Option(help="Write a TREC run of this name instead of plain scores.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Only the first trees.")] = None,
) -> None:
    """Score documents: one number per line in the order of the rows, or a TREC run."""
    from podium.core.files import replacing
    from podium.errors import DataError
    from podium.models import ClassEnsemble, Ensemble, load

    scorer = load(model)
    documents = for_model(reader, scorer, str(model))(data)
    if n_trees is not None and not isinstance(scorer, Ensemble | ClassEnsemble):
        raise DataError(f"{model}: {scorer!r} has no trees to be cut")
    options: dict[str, Any] = {} if n_trees is None else {"n_trees": n_trees}
    scores = scorer.predict(documents, **options)
    if trec is not None:
        from podium.evaluation import write_run

        if output is None:
            raise DataError("--trec writes a file: name it with --output")
        write_run(documents, scores, output, trec)
        return
    text = "".join(f"{value!r}\n" for value in scores.tolist())
    if output is None:
        typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary:
            temporary.write_text(text, encoding="utf-8")


def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    trees: Annotated[bool, typer.Option("--trees", help="Show the trees.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Say what is in a model file: its parameters, its most important features, its trees."""
    from podium.errors import DataError
    from podium.models import ClassEnsemble, Ensemble, load

    scorer = load(model)
    of_trees = isinstance(scorer, Ensemble | ClassEnsemble)
    if trees:
        if not isinstance(scorer, Ensemble | ClassEnsemble):
            raise DataError(f"{model}: {scorer!r} has no trees")
        typer.echo(scorer.dump("json" if as_json else "text"))
        return
    gains = scorer.importance("gain")
    order = [int(k) for k in (-gains).argsort(kind="stable") if gains[k] > 0]
    if as_json:
        content = {
            "model": repr(scorer), "n_features": scorer.n_features, "digest": scorer.digest(),
            "parameters": scorer.info.get("parameters", {}),
            "gain": {scorer.label_of_feature(k): float(gains[k]) for k in order},
        }  # fmt: skip
        if isinstance(scorer, Ensemble | ClassEnsemble):
            content = {"n_trees": scorer.n_trees} | content
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{scorer}\ndigest {scorer.digest()}")
    parameters = scorer.info.get("parameters", {})
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        typer.echo(f"  {name} = {value}")
    typer.echo(f"most important features, by their share of the {'gain' if of_trees else 'weights'}:")
    for k in order[:20]:
        typer.echo(f"  {gains[k] / gains.sum():6.1%}  {scorer.label_of_feature(k)}")
