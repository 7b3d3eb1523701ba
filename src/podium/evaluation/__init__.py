"""Evaluation that one can publish: per-query tables, intervals, significance, TREC files."""

from podium.evaluation.comparing import Comparison, compare
from podium.evaluation.evaluating import Evaluation, evaluate
from podium.evaluation.importance import permutation_importance
from podium.evaluation.optimality import Optimality, directions_needed, local_optimality
from podium.evaluation.trec import Qrels, Run, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Comparison", "Evaluation", "Optimality", "Qrels", "Run", "compare", "directions_needed", "evaluate",
    "local_optimality", "permutation_importance", "read_qrels", "read_run", "write_qrels", "write_run",
]  # fmt: skip
