"""The weight of each tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.reports.charts import Chart, chart_of, import_altair, themed
from podium.reports.iterations import lines_by_iteration

if TYPE_CHECKING:
    from podium.diagnostics import LineSearchWeights


def line_search_chart(weights: LineSearchWeights) -> Chart:
    """α by tree, with the 1 of a tree that is taken as it is ([W] fig. 4).

    Example:
        >>> import numpy as np
        >>> from podium.diagnostics import LineSearchWeights
        >>> from podium.reports.line_search_weights import line_search_chart
        >>> line_search_chart(LineSearchWeights(np.arange(3), np.array([1.0, 0.5, 2.0]))).to_dict()["title"]["text"]
        'Weights of 3 trees: median 1'

    """
    lines = lines_by_iteration(weights.iterations, weights.columns(), "α, weight of the tree", is_share=False)
    one = chart_of([{"value": 1.0}]).mark_rule(style="quiet").encode(y="value:Q")
    alt = import_altair()
    n, median = len(weights.weights), float(np.median(weights.weights))
    title = alt.TitleParams(f"Weights of {n} tree{'s' * (n > 1)}: median {median:.3g}")
    return themed(alt.layer(one, lines).properties(title=title))
