"""Evaluation of rankings: per-query values, confidence intervals, significance tests and TREC files."""

from podium.evaluation.comparing import Comparison, compare
from podium.evaluation.evaluating import Evaluation, evaluate
from podium.evaluation.fusion import fuse
from podium.evaluation.trec import Qrels, Run, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Comparison", "Evaluation", "Qrels", "Run", "compare", "evaluate", "fuse", "read_qrels", "read_run",
    "write_qrels", "write_run",
]  # fmt: skip
