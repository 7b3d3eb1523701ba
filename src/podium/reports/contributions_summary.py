"""What the features add to the scores of many documents, a point for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.validation import require_whole
from podium.data.sparse import dense_block
from podium.errors import DataError
from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.explain import Explanation

ROW = 34  # pixels of a feature
BINS = 40  # along the scale: points in the same one are set above each other
MOST_POINTS = 250  # of a feature


def summary_chart(found: Explanation, top: int = 12) -> Chart:
    """A line of points for each of the most important features, from dark to light by the value of the feature.

    Args:
        found: contributions, best of some hundred documents; of more, evenly spaced ones are drawn.
        top: how many features.

    Example:
        >>> import podium
        >>> from podium.reports.contributions_summary import summary_chart
        >>> data = podium.artificial(20, features=4)
        >>> found = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data).explain(data)
        >>> summary_chart(found, top=2).to_dict()["title"]["text"]
        'What the first 2 of 4 features add to 1,000 scores'

    """
    require_whole("top", top, 1)
    if not found.values.size:
        raise DataError("there are no contributions to plot")
    alt = import_altair()
    order = np.argsort(-np.abs(found.values).mean(axis=0), kind="stable")[:top]
    rows: list[dict[str, Any]] = []
    for k in order.tolist():
        rows += _points(found, k)
    y = alt.Y("feature:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False, grid=True))
    points = chart_of(rows).mark_circle(size=16, opacity=0.85).encode(
        x=alt.X("contribution:Q", title="added to the score"), y=y,
        yOffset=alt.YOffset("place:Q", scale=alt.Scale(domain=[-1, 1])),
        color=alt.Color("share:Q", title="value of the feature, from low to high", scale=alt.Scale(domain=[0, 1]),
                        legend=alt.Legend(format="%", tickCount=2, gradientLength=120)),
        tooltip=["feature:N", "value:N", alt.Tooltip("contribution:Q", format="+.4g")],
    )  # fmt: skip
    n, n_features = len(found.values), found.values.shape[1]
    cut = f"the first {len(order)} of {n_features}" if n_features > len(order) else f"{n_features}"
    title = alt.TitleParams(f"What {cut} features add to {n:,} scores")
    return themed(points.properties(height=ROW * len(order), title=title))


def _points(found: Explanation, feature: int) -> list[dict[str, Any]]:
    """The documents of one feature: contribution, value, and a place beside the line where several meet."""
    n = len(found.values)
    chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(int))
    values = dense_block(found.features, chosen, np.float64)[:, feature]
    amounts = found.values[chosen, feature]
    shares, places = _shares(values), _places(amounts)
    encoding, name = found.encoding.categories.get(feature), found.names[feature]
    return [
        {"feature": name, "contribution": _short(amounts[k]), "place": round(places[k], 2),
         "share": None if np.isnan(shares[k]) else round(float(shares[k]), 3),
         "value": encoding[int(values[k])] if encoding is not None and not np.isnan(values[k]) else _text(values[k])}
        for k in range(len(chosen))
    ]  # fmt: skip


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which share of the values is lower, equal ones counted half; NaN where a value is missing."""
    present = np.sort(values[~np.isnan(values)])
    low, high = np.searchsorted(present, values), np.searchsorted(present, values, side="right")
    shares = (low + high) / (2 * max(1, len(present)))
    return np.where(np.isnan(values), np.nan, shares)


def _places(amounts: NDArray[np.float64]) -> list[float]:
    """Where each point stands across its line, −1 to 1: those of the same bin are spread to both sides."""
    width = float(np.ptp(amounts)) or 1.0
    bins = np.minimum(((amounts - amounts.min()) / width * BINS).astype(int), BINS - 1)
    most = max(8, int(np.bincount(bins).max()))
    counts: dict[int, int] = {}
    places = []
    for one in bins.tolist():
        k = counts[one] = counts.get(one, 0) + 1
        places.append((k // 2) * (1 if k % 2 else -1) * 2 / most)
    return places


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _text(value: float) -> str:
    return "missing" if np.isnan(value) else f"{value:.4g}"
