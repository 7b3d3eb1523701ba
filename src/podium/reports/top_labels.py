"""Labels at the top of the ranking, by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, themed, thinned
from podium.reports.label_colours import label_colour

if TYPE_CHECKING:
    from podium.diagnostics import TopLabels


def top_labels_chart(top: TopLabels) -> Chart:
    """The share of each label among the first documents, one upon the other ([S] fig. 3(b)).

    Example:
        >>> import numpy as np
        >>> from podium.diagnostics import TopLabels
        >>> from podium.reports.top_labels import top_labels_chart
        >>> shares = np.array([[0.7, 0.3], [0.4, 0.6]])
        >>> top_labels_chart(TopLabels(np.arange(2), 3, np.array([0.0, 1.0]), shares)).to_dict()["title"]["text"]
        'Labels of the top 3 documents'

    """
    alt = import_altair()
    labels = top.labels.tolist()
    kept = np.unique(np.concatenate([thinned(column, 400) for column in top.shares.T]))
    rows = [
        {"round": int(top.iterations[k]) + 1, "label": label, "place": -c, "share": float(top.shares[k, c])}
        for k in kept
        for c, label in enumerate(labels)
    ]
    chart = chart_of(rows).mark_area().encode(
        x=alt.X("round:Q", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("share:Q", title="documents", stack="zero", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=label_colour(labels),
        detail="label:N",
        order=alt.Order("place:Q"),
        tooltip=["label:Q", "round:Q", alt.Tooltip("share:Q", format=".1%")],
    )  # fmt: skip
    title = alt.TitleParams(f"Labels of the top {top.k} documents")
    return themed(chart.properties(height=HEIGHT, title=title))
