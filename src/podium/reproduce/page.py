"""The page of all results: what holds, with tables and pictures. It is made from the results alone."""

from __future__ import annotations

import os
from pathlib import Path

from podium.core.files import write_text
from podium.core.validation import to_path
from podium.errors import MissingExtraError
from podium.evaluation.tables import Table
from podium.reports.charts import save_chart
from podium.reproduce.claims import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, Claim
from podium.reproduce.experiments import experiment
from podium.reproduce.figures import chart_of
from podium.reproduce.runner import Result, read_results

PAPERS = {
    "B": "Burges, From RankNet to LambdaRank to LambdaMART, 2010",
    "W": "Wu, Burges, Svore, Gao, Adapting Boosting for Information Retrieval Measures, 2010",
    "S": "Svore, Volkovs, Burges, Learning to Rank with Multiple Objective Functions, 2011",
    "beyond": "Beyond the papers",
}
INTRODUCTION = """\
# The papers, repeated

`podium reproduce` repeats the experiments of the papers and decides each claim by a test: *holds*, *does not hold* or
*not decided*. Tests are paired, over test queries; a query that several seeds measured counts once, with its mean.
"Better" is a two-sided t-test, "no worse" the lower of two one-sided tests against a stated margin, "equally good" both
of them (TOST). p-values are corrected by Holm for all claims of the same paper. A test over queries says nothing of
what other training data would give; the differences of each seed stand beside it. The papers' web data is not public:
artificial data stands in for it, or the user's own (`--data`). This page is made from `results/`, by

"""


def write_page(folder: str | os.PathLike[str]) -> Path:
    """Write `index.md` and its pictures from the results in a folder; the page's path."""
    root = to_path(folder)
    results = read_results(root)
    parts = [INTRODUCTION, f"```console\n$ {_command(results)}\n```\n", _summary(results)]
    parts += [_section(root, result) for result in results]
    page = root / "index.md"
    write_text(page, "\n".join(parts))
    return page


def _command(results: list[Result]) -> str:
    quick = " --quick" if any(result.facts["quick"] for result in results) else ""
    return f"podium reproduce{quick}"


def verdict_table(results: list[Result]) -> Table:
    """Each claim with its estimate, p and verdict."""
    rows = [
        [result.name, claim.place, claim.text, claim.estimate, claim.p_holm, claim.verdict]
        for result in results
        for claim in result.outcome.claims
    ]
    return Table(["experiment", "place", "claim", "estimate", "p (Holm)", "verdict"], rows)


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
    about, outcome, facts = experiment(result.name), result.outcome, result.facts
    settings = "; ".join(f"{name}: {value}" for name, value in outcome.settings.items())
    lines = [
        f"## {result.name}", "", f"**{about.title}** ({about.place}). {about.says}", "",
        f"Data: {'; '.join(outcome.data)}. Seeds: {', '.join(map(str, facts['seeds']))}. {settings}. {about.cuts}", "",
        f"{facts['seconds']:.0f} s on {facts['machine']['cores']} cores, {facts['machine']['processor']}; "
        + ", ".join(f"{name} {number}" for name, number in facts["versions"].items()) + ".", "",
    ]  # fmt: skip
    for claim in outcome.claims:
        lines += [_claim(claim), ""]
    for title, table in outcome.tables.items():
        lines += [title, "", table.render("markdown"), ""]
    for figure in outcome.figures:
        name = f"{result.name}-{figure.name}.svg"
        try:
            save_chart(chart_of(figure), root / name)
        except MissingExtraError as missing:
            lines += [f"{figure.title}: not drawn, {missing}", ""]
        else:
            lines += [f"![{figure.title}]({name})", ""]
    return "\n".join(lines)


def _claim(claim: Claim) -> str:
    low, high = claim.interval
    interval = "" if low != low else f", 95% interval {low:+.4f} to {high:+.4f}"
    seeds = f"; by seed {', '.join(f'{d:+.4f}' for d in claim.by_seed)}" if claim.by_seed else ""
    finding = f" {claim.finding}" if claim.finding and claim.verdict != HOLDS else ""
    return (
        f"- **{claim.verdict}**: {claim.text} ({claim.place}). {claim.test}: {claim.estimate:+.4f}{interval}, "
        f"p = {claim.p:.2g}, corrected {claim.p_holm:.2g}{seeds}.{finding}"
    )
