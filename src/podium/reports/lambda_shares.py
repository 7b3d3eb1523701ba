"""Where the λ of good documents come from, by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podium.reports.charts import Chart, chart_of, import_altair, themed
from podium.reports.iterations import lines_by_iteration

if TYPE_CHECKING:
    from podium.diagnostics import LambdaShares

WIDTH = 330


def lambda_shares_chart(shares: LambdaShares, of: str | None = None) -> Chart:
    """Left the shares of Σ|λ|, right those of the net λ ([S] fig. 3(a)); bars where there is one iteration only.

    Args:
        shares: what was seen.
        of: what to call the documents whose λ these are; their labels by default.

    Example:
        >>> import numpy as np
        >>> from podium.diagnostics import LambdaShares
        >>> from podium.reports.lambda_shares import lambda_shares_chart
        >>> values = np.array([[0.9, 0.1], [0.8, 0.2]])
        >>> shares = LambdaShares(np.arange(2), (1.0,), np.array([0.0, 1.0]), values, values)
        >>> len(lambda_shares_chart(shares).to_dict()["hconcat"])
        2

    """
    alt = import_altair()
    panels = [_panel(shares, values, name) for name, values in (("Σ|λ|", shares.absolute), ("net λ", shares.net))]
    documents = of or f"Documents with label {' or '.join(f'{label:g}' for label in shares.of_labels)}"
    title = alt.TitleParams(f"{documents}: what their λ come from")
    return themed(alt.hconcat(*panels).properties(title=title))


def _panel(shares: LambdaShares, values: NDArray[np.float64], name: str) -> Chart:
    alt = import_altair()
    title, labels = f"share of {name}", [f"{label:g}" for label in shares.labels]
    if len(shares.iterations) > 1:
        columns = {label: values[:, c] for c, label in enumerate(labels)}
        lines = lines_by_iteration(shares.iterations, columns, title, legend="other's label")
        return lines.properties(width=WIDTH)
    rows = [{"label": label, "share": float(values[0, c])} for c, label in enumerate(labels)]
    bars = chart_of(rows).mark_bar().encode(
        x=alt.X("label:O", title="other's label", sort=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("share:Q", title=title, axis=alt.Axis(format="%")),
        tooltip=["label:O", alt.Tooltip("share:Q", format=".1%")],
    )  # fmt: skip
    return bars.properties(width=WIDTH)
