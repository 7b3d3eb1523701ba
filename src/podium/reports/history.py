"""What was measured after each round of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.reports.charts import HEIGHT, Chart, chart_of, import_altair, themed, thinned


def history_chart(
    history: Mapping[str, Sequence[float]],
    best_iteration: int | None = None,
    before: Mapping[str, float] | None = None,
) -> Chart:
    """A panel for each measure, a line for each data set; the best round is marked.

    Args:
        history: means after each round, by `set/measure`; the first of them picked the best round.
        best_iteration: the best round, from 0; −1 for what was there before the first.
        before: means before the first round, where there were any.

    Example:
        >>> from podium.reports.history import history_chart
        >>> chart = history_chart({"valid/ndcg@10": [0.4, 0.6, 0.5]}, best_iteration=1)
        >>> chart.to_dict()["title"]["text"]
        'valid/ndcg@10 0.6000 after round 2 of 3'

    """
    lines = {name: _with_first(values, (before or {}).get(name)) for name, values in history.items()}
    lines = {name: line for name, line in lines.items() if line[0]}
    if not lines:
        raise DataError(
            "there is no history to plot: nothing was measured during training. Give validation data: fit(…, valid=…), "
            "or podium train --valid"
        )
    best = None if best_iteration is None else best_iteration + 1
    measures = list(dict.fromkeys(_parts(name)[1] for name in lines))
    sets = list(dict.fromkeys(_parts(name)[0] for name in lines))
    height = HEIGHT if len(measures) == 1 else 160
    panels = [_panel(lines, measure, sets, best, height) for measure in measures]
    alt = import_altair()
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels).resolve_scale(x="shared", color="shared")
    first = next(iter(lines))
    n_rounds = max(rounds[-1] for rounds, _ in lines.values())
    return themed(chart.properties(title=alt.TitleParams(_title(first, lines[first], best, n_rounds))))


def _with_first(values: Sequence[float], before: float | None) -> tuple[list[int], list[float]]:
    """Rounds, counted from 1, and the means after them; round 0 is before training."""
    by_round = [
        (k, value) for k, value in enumerate(values, 1) if not math.isnan(value)
    ]  # observers may leave some out
    if before is not None:
        by_round.insert(0, (0, before))
    return [k for k, _ in by_round], [value for _, value in by_round]


def _parts(name: str) -> tuple[str, str]:
    """The data set and the measure of a name."""
    data_set, slash, measure = name.partition("/")
    return (data_set, measure) if slash else ("", name)


def _title(name: str, line: tuple[list[int], list[float]], best: int | None, n_rounds: int) -> str:
    rounds, values = line
    if best is None or best not in rounds:
        return f"{name} {values[-1]:.4f} after {n_rounds} round{'s' * (n_rounds > 1)}"
    value = values[rounds.index(best)]
    return f"{name} {value:.4f} " + (f"after round {best} of {n_rounds}" if best else "before the first round")


def _panel(
    lines: dict[str, tuple[list[int], list[float]]], measure: str, sets: list[str], best: int | None, height: int
) -> Chart:
    """The lines of one measure."""
    alt = import_altair()
    rows: list[dict[str, Any]] = []
    for name, (rounds, values) in lines.items():
        if _parts(name)[1] == measure:
            kept = set(thinned(np.array(values)).tolist()) | ({rounds.index(best)} if best in rounds else set())
            rows += [{"round": rounds[k], "set": _parts(name)[0], "value": values[k]} for k in sorted(kept)]
    x = alt.X(
        "round:Q", title="round", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(zero=False, nice=False)
    )
    y = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("set:N", title="data"), "round:Q", alt.Tooltip("value:Q", format=".4f", title=measure)]
    colour = alt.Color(
        "set:N", title=None, scale=alt.Scale(domain=sets), legend=alt.Legend() if len(sets) > 1 else None
    )
    few = len({row["round"] for row in rows}) <= 30
    line = chart_of(rows).mark_line(point={"size": 30} if few else False).encode(x, y, colour, tooltip=tooltip)
    at_best = [row for row in rows if row["round"] == best]
    if not at_best:
        return line.properties(height=height)
    rule = chart_of(at_best[:1]).mark_rule(style="quiet").encode(x=x)
    points = chart_of(at_best).mark_point(size=70).encode(x, y, colour, tooltip=tooltip)
    return alt.layer(rule, line, points).properties(height=height)
