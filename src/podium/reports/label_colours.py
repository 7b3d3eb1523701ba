"""Labels as colours, from little to much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.reports.charts import import_altair

MOST_IN_LEGEND = 8


def label_colour(labels: Sequence[float]) -> Any:
    """The colour of the field `label`: numbers on a ramp, each of them in the legend if they are few.

    Example:
        >>> from podium.reports.label_colours import label_colour
        >>> label_colour([0.0, 1.0, 4.0]).to_dict()["scale"]
        {'domain': [0.0, 4.0]}

    """
    alt = import_altair()
    lowest, highest = (min(labels), max(labels)) if labels else (0.0, 1.0)
    domain = [lowest, highest if highest > lowest else lowest + 1.0]
    legend = (
        alt.Legend(type="symbol", values=list(labels), format="~g") if len(labels) <= MOST_IN_LEGEND else alt.Legend()
    )
    return alt.Color("label:Q", title="label", scale=alt.Scale(domain=domain), legend=legend)
