"""How much of the ranking changes from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.reports.charts import Chart, import_altair, themed
from podium.reports.iterations import lines_by_iteration

if TYPE_CHECKING:
    from podium.diagnostics import RankChanges


def rank_changes_chart(changes: RankChanges) -> Chart:
    """Ranks with another document than at the look before, of all and of the first ([S] fig. 4).

    Example:
        >>> import numpy as np
        >>> from podium.diagnostics import RankChanges
        >>> from podium.reports.rank_changes import rank_changes_chart
        >>> changes = RankChanges(np.arange(2), 3, np.array([np.nan, 0.4]), np.array([np.nan, 0.1]))
        >>> rank_changes_chart(changes).to_dict()["title"]["text"]
        'Ranks that changed: 40.0% of all and 10.0% of the top 3 in the last round'

    """
    lines = lines_by_iteration(changes.iterations, changes.columns(), "ranks with another document")
    shares = f"{changes.everywhere[-1]:.1%} of all and {changes.top[-1]:.1%} of the top {changes.k}"
    title = import_altair().TitleParams(f"Ranks that changed: {shares} in the last round")
    return themed(lines.properties(title=title))
