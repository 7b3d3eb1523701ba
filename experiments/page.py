"""The page of all results: what holds, why the rest does not, with tables and pictures."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from experiments.claims import DOES_NOT_HOLD, HOLDS, LEVEL, NOT_DECIDED, PAPERS, Claim, Decided, decide
from experiments.figures import chart_of
from experiments.runner import QUICK_SEEDS, SEEDS, Result, experiment, read_results
from experiments.work import words_of
from podium.core.files import write_text
from podium.core.validation import to_path
from podium.errors import MissingExtraError
from podium.evaluation.tables import Table
from podium.reports.charts import save_chart

INTRODUCTION = f"""\
# The papers, repeated

This page repeats the experiments of the papers and says of each claim whether it *holds*, *does not hold* or is *not
decided*. `python -m experiments` runs them in a checkout of Podium.

**How claims are decided.** Each seed draws new training, validation and test data and trains every model again. Tests
are t-tests over the numbers of the seeds, so they cover the randomness of training as well as that of queries. With
random seeds and queries, and the same number of queries in each seed, this is the exact test of the mixed model. On
MQ2008 and OHSUMED all seeds share one set of queries, so the variance over queries is added.

- "Better" means a difference above 0, or above a stated lead.
- "No worse" means a difference above −m, for a stated margin m.
- "Equally good" means a difference between −m and m (TOST).

Each direction is tested at {LEVEL:.1%}, with p-values corrected by Holm for all claims of the same paper on this page.
A claim that something is *always* so is not tested: one exception refutes it.

The reasons are built from the numbers of the same run. Settings were chosen with other seeds than those of the
results. The papers' web data is not public, so artificial data replaces it. Pass your own web data with `--data`.

**How to run them.** `make reproduce` runs everything with {SEEDS} seeds in one to two hours on 2 cores, and writes this
page from `results/`. With `--quick` everything takes about five minutes once kernels are compiled, on smaller data and
with {QUICK_SEEDS} seeds, which decide little. `python -m experiments arrows --quick` repeats one experiment with its
figures in less than a minute, and writes a page like this one to the folder `reproduction`.
`python -m experiments --list` lists all experiments. Those with nets are left out if the extra `neural` (torch) is
missing.
"""


def write_page(folder: str | os.PathLike[str]) -> Path:
    """Write `index.md` and its pictures from the results in a folder; return the path of the page."""
    root = to_path(folder)
    decided = decided_results(root)
    parts = [INTRODUCTION, _summary(decided)]
    parts += [_section(root, result, claims) for result, claims in decided]
    page = root / "index.md"
    write_text(page, "\n".join(parts))
    return page


def decided_results(folder: str | os.PathLike[str]) -> list[tuple[Result, list[Decided]]]:
    """Return the results in a folder with their claims decided; all claims of a paper are corrected together."""
    results = read_results(folder)
    claims = iter(decide([claim for result in results for claim in result.outcome.claims]))
    return [(result, [next(claims) for _ in result.outcome.claims]) for result in results]


def _summary(decided: list[tuple[Result, list[Decided]]]) -> str:
    """Return how many claims of each paper hold, and the claims themselves."""
    verdicts = (HOLDS, DOES_NOT_HOLD, NOT_DECIDED)
    found = [(one.claim.paper, one.verdict) for _, claims in decided for one in claims]
    counts = [[title, *(found.count((paper, verdict)) for verdict in verdicts)] for paper, title in PAPERS.items()]
    rows = [
        [f"[{result.name}](#{result.name})", one.claim.place, one.claim.text, f"**{one.verdict}**"]
        for result, claims in decided
        for one in claims
    ]
    tables = [Table(["paper", *verdicts], counts), Table(["experiment", "place", "claim", "verdict"], rows)]
    return "\n\n".join(table.render("markdown") for table in tables) + "\n"


def _section(root: Path, result: Result, claims: list[Decided]) -> str:
    """Return the section of one experiment."""
    about, outcome = experiment(result.name), result.outcome
    lines = [f"## {result.name}", "", f"**{_sentence(about.title)}** *{about.place}.* {about.says}", ""]
    if outcome.nothing_because:
        return "\n".join([*lines, f"Left out: {outcome.nothing_because}.", ""])
    lines += [*_facts(result, about.cuts), *(f"{_claim(one)}\n" for one in claims)]
    for title, table in outcome.tables.items():
        lines += [title, "", table.render("markdown"), ""]
    for figure in outcome.figures:
        name = f"{result.name}-{words_of(figure.name)}.svg"
        try:
            save_chart(chart_of(figure), root / name)
        except MissingExtraError as missing:
            lines += [f"{figure.title}: not drawn, {missing}", ""]
        else:
            lines += [f"![{figure.title}]({name})", ""]
    return "\n".join(lines)


def _facts(result: Result, cuts: str) -> list[str]:
    """Return what is needed to repeat an experiment, and how long it took."""
    outcome, facts = result.outcome, result.facts
    parts = [
        f"Data: {'; '.join(outcome.data)}" if outcome.data else "", f"Seeds: {_listed(facts['seeds'])}",
        "; ".join(f"{name}: {_listed(value)}" for name, value in outcome.settings.items()), cuts,
    ]  # fmt: skip
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return [
        " ".join(_sentence(part) for part in parts if part), "",
        f"{facts['seconds']:.0f} s on {facts['machine']['cores']} cores, {facts['machine']['processor']}; {versions}.",
        "",
    ]  # fmt: skip


def _sentence(text: str) -> str:
    """Return a text with a full stop at its end."""
    return text if text.endswith((".", "?")) else f"{text}."


def _listed(value: Any) -> str:
    """Return a setting in words: lists within lists, and values by name, in brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_bracketed(part)}" for name, part in value.items())
    return ", ".join(map(_bracketed, value)) if isinstance(value, list) else str(value)


def _bracketed(part: Any) -> str:
    return f"({_listed(part)})" if isinstance(part, list | dict) else str(part)


def _claim(one: Decided) -> str:
    claim = one.claim
    measured = f"- **{one.verdict}**: {claim.text}. *{claim.place}.* {_test(claim)}"
    if claim.kind != "always" and claim.weakest.error[0] == 0:
        measured += "; all seeds are equal"
    elif claim.kind != "always":
        measured += f"; p (Holm) {_probability(one.p)}"
        if one.verdict != HOLDS:
            measured += f", of the opposite {_probability(one.p_against)}"
    return f"{measured}. {one.reason}".strip()


def _test(claim: Claim) -> str:
    """Return what was tested on which numbers."""
    part = claim.weakest
    if claim.kind == "always":
        return f"{_capital(part.name)}: {claim.exceptions:,} of {claim.bound:,.0f}"
    asked = f"within ±{claim.bound:g}" if claim.kind == "within" else f"{claim.kind} {claim.bound:g}"
    number = f"{claim.parts.index(part) + 1} of {len(claim.parts)}, the weakest: " if len(claim.parts) > 1 else ""
    low, high = part.interval
    by_seed = ", ".join(f"{value:+.4f}" for value in part.by_seed)
    return (
        f"{number}{_capital(part.name)} {asked}: {part.estimate:+.4f}, 95% interval {low:+.4f} to {high:+.4f}; "
        f"by seed {by_seed}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:2].islower() and "@" not in text.split(maxsplit=1)[0] else text


def _probability(p: float) -> str:
    return "was not computed" if math.isnan(p) else "< 1e-16" if p < 1e-16 else f"= {p:.2g}"
