"""Run experiments, and store what they measured."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import podium
from experiments.claims import Claim
from experiments.work import Work, folder_sources, plain, short_hash, write_json
from podium.core.validation import did_you_mean, require_whole, to_path
from podium.errors import DataError, FileFormatError, MissingExtraError
from podium.evaluation.tables import Table

# In the order of the papers. The file of this name in `papers/` defines the experiment as `EXPERIMENT`.
EXPERIMENTS = (
    "accuracy", "trees", "adaptation", "line_search",  # [W]
    "factored_ranknet", "arrows", "optimality", "sigma", "balanced", "combination",  # [B]
    "graded", "agreement", "annealing", "truncation",  # [S]
    "leaf_search", "unlabelled", "measures", "label_noise", "real_data", "clicks",  # beyond the papers
)  # fmt: skip
FIRST_SEED = 10  # settings were chosen with earlier seeds, on whose data no result is measured
SEEDS, QUICK_SEEDS = 10, 3  # by default
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch")
RESULTS, STEPS = "results", "steps"  # folders in the output folder


@dataclass(frozen=True)
class Figure:
    """Data of a picture: `lines` or `points` over x, or the `arrows` of [B] fig. 1.

    Attributes:
        name: the name of the file, unique within the experiment.
        title: the title above the picture, with the paper's figure if there is one.
        x, y: titles of the axes.
        rows: the data in long form: `series`, `x`, `y` and, if known, `low`, `high` and `panel` of lines and points;
            `rank`, `label` and `score` of one list for arrows.
        kind: lines, points or arrows.
        log: which axes are logarithmic: `x`, `y`, `xy` or none.

    """

    name: str
    title: str
    x: str
    y: str
    rows: list[dict[str, Any]]
    kind: str = "lines"
    log: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of the measurements of an experiment.

    Attributes:
        claims: the claims, with the numbers that decide them.
        tables: the tables by title.
        figures: the data of pictures.
        settings: everything but the code that is needed to repeat it.
        data: the names of the data.
        nothing_because: why there is no result, if the experiment could not run; the next run tries it again.

    """

    claims: list[Claim]
    tables: dict[str, Table] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    nothing_because: str = ""


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes:
        title: the subject.
        place: the place in the papers, such as `[W] table 1`.
        says: what the papers say, in one or two sentences.
        cuts: how the experiment is smaller than the papers', and other differences.
        run: runs the experiment.

    """

    title: str
    place: str
    says: str
    cuts: str
    run: Callable[[Work], Outcome]


@dataclass(frozen=True)
class Result:
    """One experiment's outcome, with what is needed to repeat it.

    Attributes:
        name: the name of the experiment.
        outcome: what it measured.
        facts: seeds, size, versions, machine, seconds.

    """

    name: str
    outcome: Outcome
    facts: dict[str, Any]


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in EXPERIMENTS:
        near = did_you_mean(name, EXPERIMENTS)
        raise DataError(f"there is no experiment {name!r}{near}; there are {', '.join(EXPERIMENTS)}")
    selected: Experiment = import_module(f"experiments.papers.{name}").EXPERIMENT
    return selected


def reproduce(
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] = "reproduction",
    *,
    quick: bool = False,
    seeds: int | None = None,
    data: Sequence[str | os.PathLike[str]] = (),
    report: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> list[Result]:
    """Run experiments of the papers, all by default. A stopped run resumes where it was.

    Args:
        names: names of experiments, see `EXPERIMENTS`.
        folder: the folder for `results/NAME.json`, and `steps/`, from which a stopped run resumes.
            `experiments.page.write_page` writes a page with pictures of the results.
        quick: use smaller data and fewer trees.
        seeds: the number of seeds, each with its own data and models. 10 by default, 3 in a quick run.
        data: folders of MSLR-WEB, Yahoo or Istella data, to use in place of artificial web data.
        report: receives a line for each step.

    Returns:
        The results, in the order of the names. One whose data or package is missing has no claims and says why.

    """
    n_seeds = (QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds
    require_whole("seeds", n_seeds, least=3)
    selected, root = list(dict.fromkeys(names)) or list(EXPERIMENTS), to_path(folder)
    for name in selected:  # refuse invalid names and folders before hours of work
        experiment(name)
    folder_sources(data)
    if any(result.facts["quick"] != quick for result in read_results(root)):
        raise DataError(f"{root} has results of quick or of full runs: use a separate folder for each kind")
    for name in selected:
        _run_one(name, root, quick, range(FIRST_SEED, FIRST_SEED + n_seeds), data, report)
    by_name = {result.name: result for result in read_results(root)}
    return [by_name[name] for name in selected]


def _run_one(
    name: str, root: Path, quick: bool, seeds: Sequence[int], data: Sequence[Any], report: Callable[[str], None]
) -> None:
    """Run an experiment, unless a result of the same run exists."""
    settings = {"quick": quick, "seeds": list(seeds)}
    code = short_hash(repr([quick, _sources(name)]))  # steps are kept by seed, so that more seeds may be added
    work = Work(
        root / STEPS / name, seeds=seeds, quick=quick, data=data, fingerprint=code,
        report=lambda text: report(f"{name}: {text}"),
    )  # fmt: skip
    file = root / RESULTS / f"{name}.json"
    if file.exists() and _is_current(read_result(file), work):
        report(f"{name}: done before")
        return
    started = time.perf_counter()
    try:
        outcome = experiment(name).run(work)
    except MissingExtraError as missing:
        outcome = Outcome([], nothing_because=str(missing))
    if outcome.nothing_because:
        report(f"{name}: left out, {outcome.nothing_because}")
    facts = {
        **settings, "data_folders": [Path(f).resolve().name for f in data if "web" in work.inputs],
        "fingerprint": code, "inputs": work.inputs,
        "seconds": round(time.perf_counter() - started + work.seconds_before, 1), **_machine(),
    }  # fmt: skip
    write_json(file, {"experiment": name, **facts, **plain(asdict(outcome))}, indent=1)


def _is_current(result: Result, work: Work) -> bool:
    """Return whether a result is complete and comes from this code, these seeds and these files."""
    facts, inputs = result.facts, result.facts["inputs"]
    same_files = inputs == {kind: work.state_of(kind) for kind in inputs}
    same_run = (facts["fingerprint"], facts["seeds"]) == (work.fingerprint, list(work.seeds))
    return same_files and same_run and not result.outcome.nothing_because


@cache
def _sources(name: str) -> list[tuple[str, str]]:
    """Return a hash of each file that a result may depend on, as it was when the run began."""
    package, here = Path(podium.__file__).parent, Path(__file__).parent
    shared = [here / part for part in ("claims.py", "work.py", "papers/common.py", f"papers/{name}.py")]
    return [
        (file.name, short_hash(file.read_text(encoding="utf-8"))) for file in sorted([*package.rglob("*.py"), *shared])
    ]


def _machine() -> dict[str, Any]:
    """Return the machine and the versions, on which times depend."""
    processor, info = platform.processor(), Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":")[1].strip() for line in lines if "model name" in line), processor)
    versions = {"podium": podium.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "machine": {"processor": processor, "cores": os.cpu_count()}}


def read_results(folder: str | os.PathLike[str]) -> list[Result]:
    """Return the results in a folder, in the order of the experiments."""
    root = to_path(folder) / RESULTS
    return [read_result(root / f"{name}.json") for name in EXPERIMENTS if (root / f"{name}.json").exists()]


def read_result(file: Path) -> Result:
    """Return the result in a file."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        claims = [Claim.from_dict(claim) for claim in values["claims"]]
        tables = {title: Table(**table) for title, table in values["tables"].items()}
        figures = [Figure(**figure) for figure in values["figures"]]
        rest = {name: values[name] for name in ("settings", "data", "nothing_because")}
        facts = {name: values[name] for name in ("quick", "seeds", "data_folders", "fingerprint", "inputs", "seconds",
                                                 "versions", "machine")}  # fmt: skip
    except OSError as error:
        raise FileFormatError(file, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(file, f"is not a result of an experiment ({error}); remove it to run again") from error
    return Result(file.stem, Outcome(claims, tables, figures, **rest), facts)
