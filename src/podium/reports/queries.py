"""How the values of a measure are spread over queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.errors import DataError
from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.evaluation import Evaluation

BINS = 20


def queries_chart(evaluation: Evaluation) -> Chart:
    """A histogram of each measure over the queries, with the mean and its 95% interval.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> from podium.reports.queries import queries_chart
        >>> queries_chart(podium.evaluate(data, data.relevance, "ndcg")).to_dict()["title"]["text"]
        'ndcg: mean 1.0000 (95% from 1.0000 to 1.0000), 20 queries'

    """
    known = {name: values[~np.isnan(values)] for name, values in evaluation.values.items()}
    known = {name: values for name, values in known.items() if len(values)}
    if not known:
        raise DataError("there is nothing to plot: every query was skipped by every measure")
    height = HEIGHT if len(known) == 1 else 160
    panels = [_panel(evaluation, name, values, height) for name, values in known.items()]
    return themed(panels[0] if len(panels) == 1 else import_altair().vconcat(*panels))


def _panel(evaluation: Evaluation, name: str, values: Any, height: int) -> Chart:
    alt = import_altair()
    low, high = (0.0, 1.0) if values.min() >= 0 and values.max() <= 1 else (values.min(), values.max())
    counts, edges = np.histogram(values, BINS, (low, high))
    rows = [{"from": edges[k], "to": edges[k + 1], "queries": counts[k]} for k in range(BINS)]
    tooltip = [alt.Tooltip("from:Q", format=".3f"), alt.Tooltip("to:Q", format=".3f"), "queries:Q"]
    x = alt.X("from:Q", bin="binned", title=name, scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False))
    bars = chart_of(rows).mark_bar(binSpacing=1).encode(
        x=x, x2="to:Q", y=alt.Y("queries:Q", title="queries", axis=alt.Axis(tickMinStep=1)), tooltip=tooltip,
    )  # fmt: skip
    value, (below, above) = evaluation.means[name], evaluation.intervals[name]
    mean_row = {"mean": value, "low": below, "high": above}
    shown = [alt.Tooltip(f"{key}:Q", format=".4f") for key in mean_row]
    layers = [bars]
    if np.isfinite([below, above]).all():
        band = chart_of([mean_row]).mark_rect(style="band").encode(x="low:Q", x2="high:Q", tooltip=shown)
        layers.append(band)
    layers.append(chart_of([mean_row]).mark_rule(style="interval").encode(x="mean:Q", tooltip=shown))
    interval = f" (95% from {below:.4f} to {above:.4f})" if np.isfinite([below, above]).all() else ""
    n = len(values)
    title = f"{name}: mean {value:.4f}{interval}, {n:,} quer{'y' if n == 1 else 'ies'}"
    return alt.layer(*layers).properties(height=height, title=alt.TitleParams(title))
