"""Examples at the end of each command's `--help`; they run in this order in one folder."""

from __future__ import annotations

EXAMPLES = {
    "generate": (
        "podium generate train.txt --queries 200 --features 10",
        "podium generate valid.txt --queries 100 --features 10 --part valid",
    ),
    "describe": ("podium describe train.txt",),
    "convert": ("podium convert train.txt train.parquet",),
    "clicks": (
        "podium clicks generate events.jsonl --rankings 500",
        "podium clicks labels events.jsonl --format metarank --kind coec -o labels.csv",
    ),
    "bin": ("podium bin train.txt train.bins", "podium bin valid.txt valid.bins --like train.bins"),
    "train": (
        "podium train train.txt --n-trees 50 -o ranker",
        "podium train lambdamart train.txt --valid valid.txt --patience 20 -o run",
    ),
    "tune": (
        "podium tune train.txt --model mart --valid valid.txt --trials 20 -o tuned",
        "podium tune train.txt --model mart --search n_leaves=7..63 --trials 9 -o leaves",
    ),
    "score": (
        "podium score run/model.podium valid.txt -o scores.txt",
        "podium score run/model.podium valid.txt --trec mine -o mine.run",
    ),
    "inspect": ("podium inspect run/model.podium",),
    "explain": (
        "podium explain run/model.podium valid.txt",
        "podium explain run/model.podium train.txt --query 1 --top 5",
    ),
    "plot": ("podium plot run --output curve.svg",),
    "report": ("podium report run --test valid.txt -o report.html",),
    "evaluate": (
        "podium evaluate valid.txt run/model.podium -m ndcg@10 -m err@10",
        "podium evaluate valid.txt feature:1 --per-query",
    ),
    "compare": ("podium compare valid.txt old=ranker/model.podium new=run/model.podium",),
    "combine": (
        "podium combine ranker/model.podium run/model.podium valid.txt -o both.podium",
        "podium combine mine.run mine.run --by rrf -o fused.run",
    ),
    "adapt": ("podium adapt run/model.podium valid.txt -o adapted.podium",),
    "refit": ("podium refit run/model.podium valid.txt -o newer.podium",),
    "committee": ("podium committee train.txt --valid valid.txt -o committee.podium",),
    "export": (
        "podium export run/model.podium model.txt --format lightgbm --check valid.txt",
        "podium export run/model.podium body.json --format elasticsearch-plugin",
    ),
    "import": ("podium import model.txt imported.podium",),
    "formats": ("podium formats",),
    "index": (
        "podium index build documents.jsonl docs.index --field title=english",
        "podium index describe docs.index",
    ),
    "search": ("podium search docs.index 'red shoes' -k 10",),
    "features": ("podium features list", "podium features explain docs.index 'red shoes' 1 -f 'bm25(title)'"),
    "pipeline": ("podium pipeline docs.index queries.tsv qrels.txt -o shop",),
    "serve": (
        "podium serve run/model.podium",
        "podium serve old=ranker/model.podium new=run/model.podium --split new=0.1",
    ),
    "info": ("podium info", "podium info --json"),
    "warmup": ("podium warmup",),
}


def examples_of_model(name: str) -> tuple[str, ...]:
    """Return the examples of `podium train MODEL`."""
    return (f"podium train {name} train.txt --valid valid.txt -o run",)


def as_epilog(examples: tuple[str, ...]) -> str:
    """Return examples as the epilog of a help text."""
    return "\n\n".join(["Example:" if len(examples) == 1 else "Examples:", *examples])
