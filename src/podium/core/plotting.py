"""Find the chart of a result by name.

Results are defined in lower layers than `podium.reports`, so their `plot` methods import the chart when it is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CHARTS = {
    "comparison_charts": ("comparison", "folds", "path"),
    "feature_charts": ("document", "explanation_comparison", "importance", "pair", "partial_dependence", "query"),
    "query_charts": ("calibration", "lambda_arrows", "queries", "top_labels"),
    "training_charts": (
        "agreement", "history", "lambda_shares", "line_search", "optimality", "rank_changes", "tuning",
    ),
}  # fmt: skip
_MODULES = {chart: module for module, charts in _CHARTS.items() for chart in charts}


def draw(chart: str, *arguments: Any, **options: Any) -> Any:
    """Draw the named chart of a result and return it (needs the extra `report`)."""
    return getattr(import_module(f"podium.reports.{_MODULES[chart]}"), f"{chart}_chart")(*arguments, **options)
