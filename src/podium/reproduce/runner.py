"""Run experiments, keep what they found, and say what holds."""

from __future__ import annotations

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
from podium.reproduce.experiments import EXPERIMENTS, check_name, experiment
from podium.reproduce.fingerprints import fingerprint
from podium.reproduce.sources import folder_sources
from podium.reproduce.work import Work

FIRST_SEED = 10  # settings were chosen with the seeds before it, whose data no result is measured on
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch")
RESULTS, STEPS = "results", "steps"  # folders in the output folder
ABOUT = ("title", "place", "says", "cuts")
FACTS = ("quick", "seeds", "data_folders", "fingerprint", "inputs", "seconds", "versions", "machine")


@dataclass(frozen=True)
class Result:
    """One experiment's outcome, with what must be known to repeat it.

    Attributes:
        name: of the experiment.
        about: its title, place, what the papers say, and how it is smaller.
        outcome: what it found.
        facts: seeds, size, versions, machine, seconds.

    """

    name: str
    about: dict[str, str]
    outcome: Outcome
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"experiment": self.name, **self.about, **self.facts, **self.outcome.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Result:
        """Back from JSON."""
        about, facts = ({name: values[name] for name in names} for names in (ABOUT, FACTS))
        return cls(values["experiment"], about, Outcome.from_dict(values), facts)


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
        folder: gets `results/NAME.json`, and `steps/` (what a run that is stopped goes on from).
            `podium.reproduce.page.write_page` makes a page with pictures of them.
        quick: smaller data and fewer trees; all experiments together take under five minutes on two cores.
        seeds: how many; each draws data and models of its own.
        data: folders of MSLR-WEB, Yahoo or Istella data, to use in place of artificial web data.
        report: gets a line for each step.

    Returns:
        The results, in the order of the names. One whose data or package is missing has no claims and says why.

    Example:
        >>> from podium.reproduce import EXPERIMENTS, reproduce
        >>> EXPERIMENTS["accuracy"]
        '[W] table 1: LambdaRank, McRank, LambdaMART and a single feature'
        >>> results = reproduce(["accuracy"], "reproduction", quick=True)                         # doctest: +SKIP

    """
    require_whole("seeds", seeds, least=3)
    given = [names] if isinstance(names, str) else list(names)
    chosen, root = list(dict.fromkeys(given)) or list(EXPERIMENTS), to_path(folder)
    for name in chosen:  # what cannot work is refused before hours of it
        check_name(name)
    folder_sources(data)
    if any(result.facts["quick"] != quick for result in read_results(root)):
        raise DataError(f"{root} has results of quick and of full runs: give each kind a folder of its own")
    for name in chosen:
        _run_one(name, root, quick, range(FIRST_SEED, FIRST_SEED + seeds), data, report)
        _write_verdicts(root)
    by_name = {result.name: result for result in read_results(root)}
    return [by_name[name] for name in chosen]


def _run_one(
    name: str, root: Path, quick: bool, seeds: Sequence[int], data: Sequence[Any], report: Callable[[str], None]
) -> None:
    """Run an experiment, unless it was run like this before."""
    settings = {"quick": quick, "seeds": list(seeds)}
    code = fingerprint(name, settings)
    work = Work(
        root / STEPS / name, seeds=seeds, quick=quick, data=data, fingerprint=code,
        report=lambda step: report(f"{name}: {step}"),
    )  # fmt: skip
    file = root / RESULTS / f"{name}.json"
    if file.exists() and _is_of_now(_read(file), work):
        report(f"{name}: done before")
        return
    report(f"{name}: {EXPERIMENTS[name]}")
    started = time.perf_counter()
    about = {"title": EXPERIMENTS[name], "place": "", "says": "", "cuts": ""}
    try:
        found = experiment(name)
        about = {field: getattr(found, field) for field in ABOUT}
        outcome = found.run(work)
    except MissingExtraError as missing:
        outcome = Outcome([], nothing_because=str(missing))
    if outcome.nothing_because:
        report(f"{name}: left out, {outcome.nothing_because}")
    seconds = round(time.perf_counter() - started + work.seconds_before, 1)
    facts = {
        **settings, "data_folders": [Path(f).resolve().name for f in data if "web" in work.inputs],
        "fingerprint": code, "inputs": work.inputs, "seconds": seconds, **_machine(),
    }  # fmt: skip
    _write(root, Result(name, about, outcome, facts))


def _is_of_now(result: Result, work: Work) -> bool:
    """Whether a run would give the same again: of this code, these settings and these files, and not left out."""
    inputs = result.facts["inputs"]
    same_files = inputs == {kind: work.state_of(kind) for kind in inputs}
    return same_files and result.facts["fingerprint"] == work.fingerprint and not result.outcome.nothing_because


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
        result = Result.from_dict(json.loads(file.read_text(encoding="utf-8")))
        if result.name != file.stem:
            raise ValueError(f"it is one of {result.name}")
    except OSError as error:
        raise FileFormatError(file, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"there is no {error}" if isinstance(error, KeyError) else error
        raise FileFormatError(file, f"is no result of podium reproduce ({problem}); remove it to run again") from error
    return result


def _write(root: Path, result: Result) -> None:
    file = root / RESULTS / f"{result.name}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(root, f"cannot hold results: {error.strerror or error}") from error
    write_text(file, json.dumps(result.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _write_verdicts(root: Path) -> None:
    """Decide the claims of all results that there are, and write those whose verdicts changed."""
    results = read_results(root)
    decided = iter(decide([claim for result in results for claim in result.outcome.claims]))
    for result in results:
        claims = [next(decided) for _ in result.outcome.claims]
        changed = replace(result, outcome=replace(result.outcome, claims=claims))
        if changed.to_dict() != result.to_dict():
            _write(root, changed)
