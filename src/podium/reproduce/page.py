"""The page of all results: what holds, with tables and pictures. It is made from the results alone."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from podium.core.files import write_text
from podium.core.validation import to_path
from podium.errors import MissingExtraError
from podium.evaluation.tables import Table
from podium.reports.charts import save_chart
from podium.reproduce.claims import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, PAPERS, Claim
from podium.reproduce.experiments import EXPERIMENTS
from podium.reproduce.figures import chart_of
from podium.reproduce.runner import Result, read_results
from podium.reproduce.work import words_of

INTRODUCTION = """\
# The papers, repeated

`podium reproduce` repeats the experiments of the papers and decides each claim by a test: *holds*, *does not hold* or
*not decided*. Tests are paired, over test queries; a query that several seeds measured counts once, with its mean.
"Better" is a two-sided t-test, "no worse" the lower of two one-sided tests against a stated margin, "equally good" both
of them (TOST). p-values are corrected by Holm for all claims of the same paper on this page. A test over queries says
nothing of what other training data would give; the differences of each seed stand beside it. Experiments were written,
and their settings chosen, with other seeds than those of the results. Where a claim does not hold or is not decided,
the reason that was found stands behind it; its numbers are mostly of those other seeds. The papers' web data is not
public: artificial data stands in for it, or the user's own (`--data`).

To repeat one of them with its figures, in less than a minute: `podium reproduce arrows --quick`. It writes a page like
this one to the folder `reproduction`. `podium reproduce --list` names all; without `--quick` they take some 40 minutes
on 2 cores. Experiments with nets are left out where the extra `neural` (torch) is missing.

This page is made from `results/`, by

"""


def write_page(folder: str | os.PathLike[str]) -> Path:
    """Write `index.md` and its pictures from the results in a folder; the page's path."""
    root = to_path(folder)
    results = read_results(root)
    commands = "\n".join(f"$ {command}" for command in _commands(results))
    parts = [INTRODUCTION, f"```text\n{commands}\n```\n", _summary(results)]
    parts += [_section(root, result) for result in results]
    page = root / "index.md"
    write_text(page, "\n".join(parts))
    return page


def _commands(results: list[Result]) -> list[str]:
    """What gave the results: a command for all that had the same settings."""
    names: dict[tuple[str, ...], list[str]] = {}
    data: list[str] = next((result.facts["data_folders"] for result in results if result.facts["data_folders"]), [])
    for result in results:
        facts, options = result.facts, []
        if facts["quick"]:
            options.append("--quick")
        if len(facts["seeds"]) != 3:
            options.append(f"--seeds {len(facts['seeds'])}")
        folders = facts["data_folders"] if "web" in facts["inputs"] else data  # others do not look at it
        options += [f"--data {folder}" for folder in folders]
        names.setdefault(tuple(options), []).append(result.name)
    return [
        " ".join(["podium reproduce", *([] if len(some) == len(EXPERIMENTS) else some), *options])
        for options, some in names.items()
    ]


def verdict_table(results: list[Result]) -> Table:
    """Each claim with its estimate, p and verdict."""
    rows = [
        [result.name, claim.place, claim.text, claim.estimate, claim.p_holm, claim.p_against_holm, claim.verdict]
        for result in results
        for claim in result.outcome.claims
    ]
    columns = ["experiment", "place", "claim", "estimate", "p (Holm)", "p (Holm) of the opposite", "verdict"]
    return Table(columns, rows)


def _summary(results: list[Result]) -> str:
    """How many claims of each paper hold, and the claims themselves."""
    claims = [claim for result in results for claim in result.outcome.claims]
    verdicts = (HOLDS, DOES_NOT_HOLD, NOT_DECIDED)
    counts = [
        [title, *(sum(claim.paper == paper and claim.verdict == verdict for claim in claims) for verdict in verdicts)]
        for paper, title in PAPERS.items()
    ]
    table = Table(["paper", *verdicts], counts).render("markdown")
    rows = [
        [f"[{result.name}](#{result.name})", claim.place, claim.text, f"**{claim.verdict}**"]
        for result in results
        for claim in result.outcome.claims
    ]
    return f"{table}\n\n{Table(['experiment', 'place', 'claim', 'verdict'], rows).render('markdown')}\n"


def _section(root: Path, result: Result) -> str:
    """One experiment."""
    about, outcome = result.about, result.outcome
    place = f" *{about['place']}.*" if about["place"] else ""
    lines = [f"## {result.name}", "", f"**{_sentence(about['title'])}**{place} {about['says']}".strip(), ""]
    if outcome.nothing_because:
        return "\n".join([*lines, f"Left out: {outcome.nothing_because}.", ""])
    lines += [*_facts(result), *(f"{_claim(claim)}\n" for claim in outcome.claims)]
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


def _facts(result: Result) -> list[str]:
    """What must be known to repeat it, and how long it took."""
    outcome, facts = result.outcome, result.facts
    parts = [
        f"Data: {'; '.join(outcome.data)}" if outcome.data else "", f"Seeds: {_listed(facts['seeds'])}",
        "; ".join(f"{name}: {_listed(value)}" for name, value in outcome.settings.items()), result.about["cuts"],
    ]  # fmt: skip
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return [
        " ".join(_sentence(part) for part in parts if part), "",
        f"{facts['seconds']:.0f} s on {facts['machine']['cores']} cores, {facts['machine']['processor']}; {versions}.",
        "",
    ]  # fmt: skip


def _sentence(text: str) -> str:
    """A text that ends as a sentence does."""
    return text if text.endswith((".", "?")) else f"{text}."


def _listed(value: Any) -> str:
    """A setting in words: lists within lists, and values by name, in brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_bracketed(part)}" for name, part in value.items())
    return ", ".join(map(_bracketed, value)) if isinstance(value, list) else str(value)


def _bracketed(part: Any) -> str:
    return f"({_listed(part)})" if isinstance(part, list | dict) else str(part)


def _claim(claim: Claim) -> str:
    low, high = claim.interval
    interval = "" if math.isnan(low) else f", 95% interval {low:+.4f} to {high:+.4f}"
    seeds = f"; by seed {', '.join(map(_signed, claim.by_seed))}" if claim.by_seed else ""
    finding = f" {claim.finding}" if claim.finding and claim.verdict != HOLDS else ""
    p = f"p {_probability(claim.p)}, corrected {_probability(claim.p_holm)}"
    if claim.verdict != HOLDS:
        p += f"; of the opposite p {_probability(claim.p_against)}, corrected {_probability(claim.p_against_holm)}"
    return (
        f"- **{claim.verdict}**: {claim.text}. *{claim.place}.* {claim.test}: {_signed(claim.estimate)}{interval}, "
        f"{p}{seeds}.{finding}"
    )


def _signed(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:+.4f}"


def _probability(p: float) -> str:
    return "was not computed" if math.isnan(p) else "< 1e-16" if p < 1e-16 else f"= {p:.2g}"
