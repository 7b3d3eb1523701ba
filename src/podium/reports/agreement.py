"""Agreement of two objectives, by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.reports.charts import Chart, import_altair, themed
from podium.reports.iterations import lines_by_iteration

if TYPE_CHECKING:
    from podium.diagnostics import Agreement


def agreement_chart(agreement: Agreement) -> Chart:
    """The share of documents that both objectives move the same way ([S] fig. 2).

    Example:
        >>> import numpy as np
        >>> from podium.diagnostics import Agreement
        >>> from podium.reports.agreement import agreement_chart
        >>> agreement = Agreement(np.arange(2), "lambda(cndcg)", np.array([0.7, 0.6]), np.array([0.8, 0.9]))
        >>> agreement_chart(agreement).to_dict()["title"]["text"]
        'Agreement with lambda(cndcg)'

    """
    alt = import_altair()
    known = {name: column for name, column in agreement.columns().items() if not np.isnan(column).all()}
    lines = lines_by_iteration(agreement.iterations, known, "documents")
    lines.encoding.y.scale = alt.Scale(zero=False)
    return themed(lines.properties(title=alt.TitleParams(f"Agreement with {agreement.other}")))
