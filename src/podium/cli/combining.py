"""The commands that combine and adapt models, and the one for whoever wants the best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.reading import Reader, for_model, reads_data, require_alike


@reads_data
def combine(
    reader: Reader,
    a: Annotated[Path, typer.Argument(help="A model file.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    data: Annotated[list[str], typer.Argument(help="Files with labels, read as one: validation queries.")],
    measure: Annotated[str, typer.Option("--measure", "-m", help="Such as ndcg@10, err, ap.")] = "ndcg@10",
    lower: Annotated[float, typer.Option(help="α at least.")] = 0.0,
    upper: Annotated[float, typer.Option(help="α at most.")] = 1.0,
    ties: Annotated[str, typer.Option(help="expected, stable, jitter, or the name of a feature.")] = "expected",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the combined model here.")] = None,
) -> None:
    """Find the α for which (1 − α) a + α b is best, of all α there are."""
    from podium.models import combine as best
    from podium.models import load, save

    first, second = load(a), load(b)
    require_alike(first, second, (str(a), str(b)))
    documents = for_model(for_model(reader, first, str(a)), second, str(b))(data)
    found = best(first, second, documents, measure, bounds=(lower, upper), ties=ties)
    typer.echo(found)
    if output is not None and found.scorer is not None:
        save(found.scorer, output)
        typer.echo(f"{output}: {found.scorer.weights[0]:.4g} · {a} + {found.scorer.weights[1]:.4g} · {b}")


@reads_data
def adapt(
    reader: Reader,
    background: Annotated[Path, typer.Argument(help="The model file of the background model.")],
    data: Annotated[list[str], typer.Argument(help="The domain's training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; a fifth of the data else.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Files to compare on; the validation queries else.")] = None,
    other: Annotated[list[Path] | None, typer.Option(help="More models to compare and interpolate with.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Such as ndcg@10, err, ap.")] = "ndcg@10",
    n_trees: Annotated[int, typer.Option(help="Trees, at most.")] = 500,
    n_leaves: Annotated[int, typer.Option(help="Leaves of a tree, at most.")] = 20,
    random_state: Annotated[int, typer.Option(help="Seed of sampling.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the adapted model here.")] = None,
) -> None:
    """Adapt a model to a domain, beside the background, an in-domain and an interpolated model."""
    from podium.estimators import adapt as adapted_to
    from podium.models import load

    model, others = load(background), {str(path): load(path) for path in other or []}
    for name, scorer in others.items():
        require_alike(model, scorer, (str(background), name))

    def read(files: list[str] | None) -> Any:
        return for_model(reader, model, str(background))(files) if files else None

    found = adapted_to(
        model, read(data), valid=read(valid), test=read(test), others=others,
        measure=measure, n_trees=n_trees, n_leaves=n_leaves, random_state=random_state,
    )  # fmt: skip
    typer.echo(found)
    if output is not None:
        found.adapted.save(output)
        typer.echo(f"{output}: {found.adapted.n_trees_} trees on top of {background}")


@reads_data
def committee(
    reader: Reader,
    data: Annotated[list[str], typer.Argument(help="Training files, read as one.")],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files; a fifth of the queries else.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Such as ndcg@10, err, ap.")] = "ndcg@10",
    time_budget: Annotated[float | None, typer.Option(help="Seconds after which no member is begun.")] = None,
    random_state: Annotated[int, typer.Option(help="Seed of sampling.")] = 0,
    n_threads: Annotated[int | None, typer.Option(help="All cores by default.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")] = Path(
        "committee.podium"
    ),
) -> None:
    """Just give me the best model: several objectives, bagged and weighed, in one ensemble of trees."""
    from podium.estimators import Committee

    documents = reader(data)
    model = Committee(measure, time_budget=time_budget, random_state=random_state, n_threads=n_threads)
    model.fit(documents, valid=reader(valid) if valid else None)
    for name, value in model.values_.items():
        typer.echo(f"{value:.4f}  {name}")
    model.save(output)
    typer.echo(f"{output}: {model.n_trees_} trees of {len(model.members_)} members")
