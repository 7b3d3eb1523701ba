"""A search for parameters: how it went, and what mattered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.reports.charts import Chart, chart_of, import_altair, themed

if TYPE_CHECKING:
    from podium.tuning import Tuning

ROW = 22  # pixels from one parameter to the next


def tuning_chart(tuning: Tuning) -> Chart:
    """The first measure of each trial with the best so far; below it the share of each parameter in the spread.

    Example:
        >>> import podium
        >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
        >>> tuning = podium.tune(podium.LambdaMART(5), train, valid=valid, space={"n_leaves": (2, 8)}, n_trials=2)
        >>> from podium.reports.tuning import tuning_chart
        >>> tuning_chart(tuning).to_dict()["title"]["text"]
        '2 trials'

    """
    alt = import_altair()
    measure = next(iter(tuning.best.means))
    title = alt.TitleParams(f"{len(tuning.trials):,} trials")
    trials = _trials(tuning, measure)
    if not tuning.importance:
        return themed(trials.properties(title=title))
    return themed(alt.vconcat(trials, _importance(tuning, measure)).properties(title=title))


def _trials(tuning: Tuning, measure: str) -> Chart:
    alt = import_altair()
    best = float("-inf")
    rows: list[dict[str, Any]] = []
    for trial in tuning.trials:
        value = trial.means[measure]
        best = max(best, value) if trial.state == "complete" else best
        rows.append({"trial": trial.number, "value": value, "best": best, "state": trial.state})
    scale = alt.Scale(zero=False)
    x = alt.X("trial:Q", title="trial", axis=alt.Axis(format="d", tickMinStep=1))
    points = chart_of(rows).mark_point(size=50).encode(
        x=x, y=alt.Y("value:Q", title=measure, scale=scale),
        color=alt.Color("state:N", title=None, scale=alt.Scale(domain=["complete", "pruned"])),
        shape=alt.Shape("state:N", title=None, scale=alt.Scale(domain=["complete", "pruned"])),
        tooltip=["trial:Q", "state:N", alt.Tooltip("value:Q", format=".4f", title=measure)],
    )  # fmt: skip
    known = [row for row in rows if row["best"] > float("-inf")]
    line = chart_of(known).mark_line(interpolate="step-after").encode(
        x=x, y=alt.Y("best:Q", title=measure, scale=scale),
    )  # fmt: skip
    return alt.layer(line, points)


def _importance(tuning: Tuning, measure: str) -> Chart:
    alt = import_altair()
    rows = [{"parameter": name, "share": share} for name, share in tuning.importance.items()]
    x = alt.X("share:Q", title=f"share of the spread of {measure}", axis=alt.Axis(format="%"))
    y = alt.Y("parameter:N", sort=None, title=None, axis=alt.Axis(tickSize=0, domain=False))
    tooltip = ["parameter:N", alt.Tooltip("share:Q", format=".1%")]
    bars = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=y, tooltip=tooltip)
    return bars.properties(height=ROW * len(rows))
