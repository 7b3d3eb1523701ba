"""Run experiments, keep what they found, and say what holds."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from podium import __version__
from podium.core.files import write_text
from podium.core.validation import require_whole, to_path
from podium.errors import DataError, FileFormatError, MissingExtraError
from podium.reproduce.claims import decide
from podium.reproduce.experiment import Outcome
from podium.reproduce.experiments import EXPERIMENTS, experiment
from podium.reproduce.work import Work

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch")
RESULTS, STEPS = "results", "steps"  # folders in the output folder


@dataclass(frozen=True)
class Result:
    """One experiment's outcome, with what must be known to repeat it.

    Attributes:
        name: of the experiment.
        outcome: what it found.
        facts: seeds, size, versions, machine, seconds.

    """

    name: str
    outcome: Outcome
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        about = experiment(self.name)
        return {
            "experiment": self.name, "title": about.title, "place": about.place, "says": about.says,
            "cuts": about.cuts, **self.facts, **self.outcome.to_dict(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Result:
        """Back from JSON."""
        of_outcome = ("settings", "data", "claims", "tables", "figures")
        of_experiment = ("experiment", "title", "place", "says", "cuts")
        facts = {name: v for name, v in values.items() if name not in (*of_outcome, *of_experiment)}
        return cls(values["experiment"], Outcome.from_dict(values), facts)


def reproduce(
    names: Sequence[str] = (),
    folder: str | os.PathLike[str] = "reproduction",
    *,
    quick: bool = False,
    seeds: int = 3,
    data: Sequence[str | os.PathLike[str]] = (),
    report: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> list[Result]:
    """Run experiments of the papers, all by default. A run that was stopped goes on where it was.

    Args:
        names: of experiments, see `podium.reproduce.EXPERIMENTS`.
        folder: gets `results/NAME.json`, `steps/` (what a run that is stopped goes on from), `index.md` and pictures.
        quick: smaller data and fewer trees; all experiments together take under five minutes on two cores.
        seeds: how many; each draws data and models of its own.
        data: folders of MSLR-WEB, Yahoo or Istella data, to use in place of artificial web data.
        report: gets a line for each step.

    Returns:
        The results, in the order of the names.

    Example:
        >>> from podium.reproduce import EXPERIMENTS, reproduce
        >>> EXPERIMENTS["accuracy"]
        '[W] table 1: LambdaRank, McRank, LambdaMART and a single feature'
        >>> results = reproduce(["accuracy"], "reproduction", quick=True)                         # doctest: +SKIP

    """
    require_whole("seeds", seeds, least=3)
    chosen, root = list(names) or list(EXPERIMENTS), to_path(folder)
    for name in chosen:
        experiment(name)  # a misspelt name is refused before hours of work
    for name in chosen:
        _run_one(name, root, quick, range(seeds), data, report)
    results = read_results(root)
    _write_verdicts(root, results)
    return [result for result in read_results(root) if result.name in chosen]


def _run_one(
    name: str, root: Path, quick: bool, seeds: Sequence[int], data: Sequence[Any], report: Callable[[str], None]
) -> None:
    """Run an experiment, unless it was run like this before."""
    about = experiment(name)
    settings = {"quick": quick, "seeds": list(seeds), "data_folders": [Path(f).resolve().name for f in data]}
    fingerprint = _fingerprint(about.run, settings)
    file = root / RESULTS / f"{name}.json"
    if file.exists() and _read(file).facts.get("fingerprint") == fingerprint:
        report(f"{name}: done before")
        return
    report(f"{name}: {about.place}, {about.title}")
    started = time.perf_counter()
    work = Work(
        root / STEPS / name, seeds=seeds, quick=quick, data=data, fingerprint=fingerprint,
        report=lambda step: report(f"{name}: {step}"),
    )  # fmt: skip
    try:
        outcome = about.run(work)
    except MissingExtraError as missing:
        report(f"{name}: left out, {missing}")
        return
    seconds = round(time.perf_counter() - started, 1)
    facts = {**settings, "fingerprint": fingerprint, "seconds": seconds, **_machine()}
    _write(root, Result(name, outcome, facts))


def _fingerprint(run: Callable[[Work], Outcome], settings: dict[str, Any]) -> str:
    """A hash of the experiment's own code and settings: what they give is kept as long as they stay."""
    source = Path(inspect.getfile(run)).read_bytes()
    return hashlib.blake2b(source + json.dumps(settings).encode() + __version__.encode(), digest_size=8).hexdigest()


def _machine() -> dict[str, Any]:
    """What times depend on."""
    processor, info = platform.processor(), Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        processor = next((line.split(":")[1].strip() for line in lines if "model name" in line), processor)
    versions = {"podium": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "machine": {"processor": processor, "cores": os.cpu_count()}}


def read_results(folder: str | os.PathLike[str]) -> list[Result]:
    """The results in a folder, in the order of the experiments."""
    root = to_path(folder) / RESULTS
    return [_read(root / f"{name}.json") for name in EXPERIMENTS if (root / f"{name}.json").exists()]


def _read(file: Path) -> Result:
    try:
        return Result.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(file, f"is no result of podium reproduce ({error}); remove it to run again") from error


def _write(root: Path, result: Result) -> None:
    file = root / RESULTS / f"{result.name}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(root, f"cannot hold results: {error.strerror or error}") from error
    write_text(file, json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n")


def _write_verdicts(root: Path, results: Sequence[Result]) -> None:
    """Decide all claims together, and write those results whose verdicts changed."""
    sizes = {result.facts["quick"] for result in results}
    if len(sizes) > 1:
        raise DataError(f"{root} has results of quick and of full runs: give each kind a folder of its own")
    decided = iter(decide([claim for result in results for claim in result.outcome.claims]))
    for result in results:
        claims = [next(decided) for _ in result.outcome.claims]
        _write(root, replace(result, outcome=replace(result.outcome, claims=claims)))
