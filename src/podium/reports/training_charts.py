"""Charts of training: history, tuning, records of observers by round, and how close training came to an optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.errors import DataError
from podium.reports.charts import HEIGHT, Chart, alt, chart_of, in_column, names_axis, points_to_draw, themed, tooltips

if TYPE_CHECKING:
    from podium.diagnostics import Agreement, LambdaShares, LineSearchWeights, Optimality, RankChanges
    from podium.tuning import Tuning


FEW = 30  # maximum number of values for which the line has points


def lines_by_iteration(
    iterations: Ints, columns: Mapping[str, Floats], title: str, *, legend: str | None = None, is_share: bool = True
) -> Chart:
    """Return a line for each column, without a theme, skipping NaN.

    Args:
        iterations: the iterations of the rows.
        columns: the values by their name in the legend.
        title: the title of the vertical axis.
        legend: the title of the legend.
        is_share: whether to show values in percent.

    """
    rows = []
    for name, column in columns.items():
        known = np.flatnonzero(~np.isnan(column))
        for k in known[points_to_draw(column[known])]:
            rows.append({"iteration": int(iterations[k]) + 1, "name": name, "value": float(column[k])})
    shown = ".1%" if is_share else ".4g"
    colour = alt.Color(
        "name:N", title=legend, scale=alt.Scale(domain=list(columns)), sort=list(columns),
        legend=alt.Legend() if len(columns) > 1 else None,
    )  # fmt: skip
    axis = alt.Axis(tickMinStep=1, format="d")
    few = len({row["iteration"] for row in rows}) <= FEW
    return (
        chart_of(rows)
        .mark_line(point={"size": 30} if few else False)
        .encode(
            x=alt.X("iteration:Q", title="round", axis=axis, scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title=title, axis=alt.Axis(format="%") if is_share else alt.Axis()),
            color=colour,
            tooltip=[alt.Tooltip("name:N", title=legend or "of"), alt.Tooltip("iteration:Q", title="round"),
                     alt.Tooltip("value:Q", format=shown)],
        )
        .properties(height=HEIGHT)
    )  # fmt: skip


def history_chart(
    history: Mapping[str, Sequence[float]],
    best_iteration: int | None = None,
    before: Mapping[str, float] | None = None,
) -> Chart:
    """Return a panel for each measure with a line for each data set, and mark the best round.

    Args:
        history: the means after each round by `set/measure`; the first one chose the best round.
        best_iteration: the best round, from 0; −1 for the state before the first round.
        before: the means before the first round, if they are known.

    """
    lines = {name: _with_first(values, (before or {}).get(name)) for name, values in history.items()}
    lines = {name: line for name, line in lines.items() if line[0]}
    if not lines:
        raise DataError(
            "cannot plot the history: nothing was measured during training. Pass validation data with fit(…, valid=…) "
            "or podium train --valid"
        )
    best = None if best_iteration is None else best_iteration + 1
    measures = list(dict.fromkeys(_parts(name)[1] for name in lines))
    sets = list(dict.fromkeys(_parts(name)[0] for name in lines))
    height = HEIGHT if len(measures) == 1 else 160
    panels = [_history_panel(lines, measure, sets, best, height) for measure in measures]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels).resolve_scale(x="shared", color="shared")
    first = next(iter(lines))
    n_rounds = max(rounds[-1] for rounds, _ in lines.values())
    return themed(chart.properties(title=_title(first, lines[first], best, n_rounds)))


def _with_first(values: Sequence[float], before: float | None) -> tuple[list[int], list[float]]:
    """Return the rounds, counted from 1, and the means after them; round 0 is before training."""
    by_round = [(k, value) for k, value in enumerate(values, 1) if not math.isnan(value)]  # observers may skip rounds
    if before is not None:
        by_round.insert(0, (0, before))
    return [k for k, _ in by_round], [value for _, value in by_round]


def _parts(name: str) -> tuple[str, str]:
    """Return the data set and the measure of a name."""
    data_set, slash, measure = name.partition("/")
    return (data_set, measure) if slash else ("", name)


def _title(name: str, line: tuple[list[int], list[float]], best: int | None, n_rounds: int) -> str:
    rounds, values = line
    if best is None or best not in rounds:
        return f"{name} {values[-1]:.4f} after {n_rounds} round{'s' * (n_rounds > 1)}"
    value = values[rounds.index(best)]
    return f"{name} {value:.4f} " + (f"after round {best} of {n_rounds}" if best else "before the first round")


def _history_panel(
    lines: dict[str, tuple[list[int], list[float]]], measure: str, sets: list[str], best: int | None, height: int
) -> Chart:
    """Return the lines of one measure."""
    rows: list[dict[str, Any]] = []
    for name, (rounds, values) in lines.items():
        if _parts(name)[1] == measure:
            points = set(points_to_draw(np.array(values)).tolist())
            if best in rounds:
                points.add(rounds.index(best))
            rows += [{"round": rounds[k], "set": _parts(name)[0], "value": values[k]} for k in sorted(points)]
    x = alt.X(
        "round:Q", title="round", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(zero=False, nice=False)
    )
    y = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("set:N", title="data"), "round:Q", alt.Tooltip("value:Q", format=".4f", title=measure)]
    colour = alt.Color(
        "set:N", title=None, scale=alt.Scale(domain=sets), legend=alt.Legend() if len(sets) > 1 else None
    )
    few = len({row["round"] for row in rows}) <= FEW
    line = chart_of(rows).mark_line(point={"size": 30} if few else False).encode(x, y, colour, tooltip=tooltip)
    at_best = [row for row in rows if row["round"] == best]
    if not at_best:
        return line.properties(height=height)
    rule = chart_of(at_best[:1]).mark_rule(style="quiet").encode(x=x)
    points = chart_of(at_best).mark_point(size=70).encode(x, y, colour, tooltip=tooltip)
    return alt.layer(rule, line, points).properties(height=height)


def speed_chart(points: Sequence[tuple[float, float, float, float]], measure: str) -> Chart:
    """Return a measure by the number of trees, with 95% intervals.

    Args:
        points: the number of trees, the mean, and the ends of its interval.
        measure: the name of the measure.

    """
    rows = [{"trees": n, "mean": mean, "low": low, "high": high} for n, mean, low, high in points]
    x = alt.X("trees:Q", title="number of trees (time to score)", scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(format="~s", labelOverlap=True, tickCount=6))  # fmt: skip
    scale = alt.Scale(zero=False)
    tooltip = ["trees:Q", *tooltips("mean", "low", "high")]
    line = chart_of(rows).mark_line(point={"size": 40}).encode(
        x=x, y=alt.Y("mean:Q", title=measure, scale=scale), tooltip=tooltip
    )  # fmt: skip
    layers = [line]
    if np.isfinite([(low, high) for *_, low, high in points]).all():
        band = chart_of(rows).mark_area(opacity=0.2).encode(
            x=x, y=alt.Y("low:Q", title=measure, scale=scale), y2="high:Q", tooltip=tooltip
        )  # fmt: skip
        layers.insert(0, band)
    return themed(alt.layer(*layers).properties(height=HEIGHT, title=f"{measure} by number of trees"))


PARAMETER_ROW = 22  # pixels per parameter


def tuning_chart(tuning: Tuning) -> Chart:
    """Return the first measure of each trial and the best so far, above the importance of each parameter."""
    measure = next(iter(tuning.best.means))
    panels = [_trials(tuning, measure), *([_parameter_importance(tuning, measure)] if tuning.importance else [])]
    return themed(in_column(panels).properties(title=f"{len(tuning.trials):,} trials"))


def _trials(tuning: Tuning, measure: str) -> Chart:
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


def _parameter_importance(tuning: Tuning, measure: str) -> Chart:
    rows = [{"parameter": name, "share": share} for name, share in tuning.importance.items()]
    x = alt.X("share:Q", title=f"share of the spread of {measure}", axis=alt.Axis(format="%"))
    tooltip = ["parameter:N", alt.Tooltip("share:Q", format=".1%")]
    bars = chart_of(rows).mark_bar(height={"band": 0.7}).encode(x=x, y=names_axis("parameter"), tooltip=tooltip)
    return bars.properties(height=PARAMETER_ROW * len(rows))


def agreement_chart(agreement: Agreement) -> Chart:
    """Return the share of documents that both objectives move in the same direction ([S] fig. 2)."""
    known = {name: column for name, column in agreement.columns().items() if not np.isnan(column).all()}
    lines = lines_by_iteration(agreement.iterations, known, "documents")
    lines.encoding.y.scale = alt.Scale(zero=False)
    return themed(lines.properties(title=f"Agreement with {agreement.other}"))


def rank_changes_chart(changes: RankChanges) -> Chart:
    """Return the share of ranks whose document changed, over all ranks and the top ([S] fig. 4)."""
    lines = lines_by_iteration(changes.iterations, changes.columns(), "ranks with another document")
    shares = f"{changes.everywhere[-1]:.1%} of all and {changes.top[-1]:.1%} of the top {changes.k}"
    return themed(lines.properties(title=f"Ranks that changed: {shares} in the last round"))


def line_search_chart(weights: LineSearchWeights) -> Chart:
    """Return α by tree, with a line at 1, which leaves a tree unchanged ([W] fig. 4)."""
    lines = lines_by_iteration(weights.iterations, weights.columns(), "α, weight of the tree", is_share=False)
    one = chart_of([{"value": 1.0}]).mark_rule(style="quiet").encode(y="value:Q")
    n, median = len(weights.weights), float(np.median(weights.weights))
    title = f"Weights of {n} tree{'s' * (n > 1)}: median {median:.3g}"
    return themed(alt.layer(one, lines).properties(title=title))


SHARES_WIDTH = 330


def lambda_shares_chart(shares: LambdaShares, of: str | None = None) -> Chart:
    """Return the shares of Σ|λ| (left) and of the net λ (right) ([S] fig. 3(a)), as bars for a single iteration.

    Args:
        shares: the recorded shares.
        of: the name of the documents that the λ belong to; their labels by default.

    """
    panels = [
        _shares_panel(shares, values, name) for name, values in (("Σ|λ|", shares.absolute), ("net λ", shares.net))
    ]
    documents = of or f"Documents with label {' or '.join(f'{label:g}' for label in shares.of_labels)}"
    return themed(alt.hconcat(*panels).properties(title=f"{documents}: where their λ come from"))


def _shares_panel(shares: LambdaShares, values: Floats, name: str) -> Chart:
    title, labels = f"share of {name}", [f"{label:g}" for label in shares.labels]
    if len(shares.iterations) > 1:
        columns = {label: values[:, c] for c, label in enumerate(labels)}
        lines = lines_by_iteration(shares.iterations, columns, title, legend="other's label")
        return lines.properties(width=SHARES_WIDTH)
    rows = [{"label": label, "share": float(values[0, c])} for c, label in enumerate(labels)]
    bars = chart_of(rows).mark_bar().encode(
        x=alt.X("label:O", title="other's label", sort=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("share:Q", title=title, axis=alt.Axis(format="%")),
        tooltip=["label:O", alt.Tooltip("share:Q", format=".1%")],
    )  # fmt: skip
    return bars.properties(width=SHARES_WIDTH)


PANEL_WIDTH = 360
MOST_DIRECTIONS = 500  # points drawn for each step; the shares above them include all directions


def optimality_chart(optimality: Optimality) -> Chart:
    """Return the change of the measure in each direction by step (left), and around single weights (right)."""
    return themed(
        alt.hconcat(_direction_panel(optimality), _weight_panel(optimality))
        if len(optimality.curves)
        else _direction_panel(optimality)
    )


def _direction_panel(optimality: Optimality) -> Chart:
    rows = [
        {"step": f"{step:g}", "change": change}
        for step, changes in zip(optimality.steps, optimality.changes, strict=True)
        for change in changes[:MOST_DIRECTIONS].tolist()
    ]
    shares = [
        {"step": f"{step:g}", "share": share, "label": f"{share:.0%} fall"}
        for step, share in zip(optimality.steps, optimality.falling_share.tolist(), strict=True)
    ]
    x = alt.X("step:O", sort=None, title="step, as a share of |w|", axis=alt.Axis(labelAngle=0))
    y = alt.Y("change:Q", title=f"change in {optimality.measure}")
    points = chart_of(rows).mark_tick(opacity=0.35, width={"band": 0.5}, thickness=1.5).encode(
        x, y, tooltip=[alt.Tooltip("change:Q", format="+.4f")]
    )  # fmt: skip
    zero = chart_of([{"change": 0.0}]).mark_rule(style="zero").encode(y="change:Q")
    words = chart_of(shares).mark_text(style="words", baseline="bottom").encode(x=x, y=alt.value(-4), text="label:N")
    title = alt.TitleParams(f"{optimality.changes.shape[1]} random directions", offset=15)  # above the words
    return alt.layer(zero, points, words).properties(width=PANEL_WIDTH, title=title)


def _weight_panel(optimality: Optimality) -> Chart:
    rows = [
        {"weight": weight, "move": move, "value": value}
        for weight, curve in zip(optimality.weights.tolist(), optimality.curves.tolist(), strict=True)
        for move, value in zip(optimality.moves.tolist(), curve, strict=True)
    ]
    x = alt.X("move:Q", title="move of one weight, as a share of |w|")
    y = alt.Y("value:Q", title=optimality.measure, scale=alt.Scale(zero=False))
    lines = chart_of(rows).mark_line(strokeWidth=1.2, opacity=0.8).encode(
        x, y, detail="weight:N", tooltip=["weight:N", "move:Q", alt.Tooltip("value:Q", format=".4f")]
    )  # fmt: skip
    zero = chart_of([{"move": 0.0}]).mark_rule(style="quiet").encode(x="move:Q")
    n = len(optimality.curves)
    title = alt.TitleParams(f"{n} single weight{'s' * (n > 1)}", offset=26)
    return alt.layer(zero, lines).properties(width=PANEL_WIDTH, title=title)
