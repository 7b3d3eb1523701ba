"""Checks of click logs, including features that use the future."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from podium.clicks.assembling import number_rows
from podium.clicks.log import ClickLog
from podium.clicks.replay import combined, hashes_of
from podium.clicks.times import LONGEST_VISIT, PER_SECOND
from podium.core.array_types import Bools, Floats, Ints
from podium.errors import DataError

MINUTE, HOUR, DAY = (seconds * PER_SECOND for seconds in (60, 3600, 86400))
SAME = 0.98  # two columns with at least this rank correlation count as the same statistic
SAMPLE = 20_000  # rows to compare features on
SCOPES = (("document",), ("query",), ("document", "query"), ("user",), ("session",))


@dataclass(frozen=True)
class Finding:
    """A likely mistake in a log.

    Attributes:
        kind: the kind of mistake, for example `"bots"`.
        count: how often it occurs.
        message: a description and the remedy.

    """

    kind: str
    count: int
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def check(log: ClickLog, features: Mapping[str, Any] | None, clicks_per_minute: int) -> tuple[Finding, ...]:
    """Return all findings; see `ClickLog.check`."""
    findings = [*_notes(log), *_times(log), *_dwell(log), *_positions(log), *_repeats(log)]
    findings += _bots(log, clicks_per_minute)
    if features:
        findings += _leaks(log, {name: np.asarray(values, np.float64) for name, values in features.items()})
    return tuple(findings)


def _notes(log: ClickLog) -> Iterator[Finding]:
    units, starts = log.notes.time_units, log.notes.first_positions
    if len(units) > 1:
        listed = ", ".join(f"{count:,} {unit}" for unit, count in units.most_common())
        yield Finding("time units", sum(units.values()), f"times have several formats: {listed}. Numbers were "
                      "converted according to their size; pass time_unit=… if that is wrong")  # fmt: skip
    if len(starts) > 1:
        yield Finding("positions", starts[0], f"the positions of {starts[0]:,} shown documents count from 0, those of "
                      f"{starts[1]:,} from 1. All now count from 1; if not, pass positions_from=…")  # fmt: skip
    elif 0 in starts:
        yield Finding("positions", starts[0], "positions count from 0; they were converted to count from 1")
    for problem, (count, place) in log.notes.problems.items():
        yield Finding("events", count, f"{problem}: {count:,} in all, first at {place}. They are ignored")


def _counted(kind: str, count: Any, text: str) -> Iterator[Finding]:
    """Yield a finding whose message begins with its count, unless the count is 0."""
    if count:
        yield Finding(kind, int(count), f"{count:,} {text}")


def _times(log: ClickLog) -> Iterator[Finding]:
    if not log.has_times:
        yield Finding("time", log.n_impressions, "the log has no times, so features cannot be computed by replay")
        return
    delay = (log.click_time - log.times[log.impression])[log.clicked]
    yield from _counted("time", (delay < 0).sum(), "clicks are earlier than their impression")
    yield from _counted("time", (delay > DAY).sum(), "clicks are more than a day later than their impression")
    steps = np.diff(log.times)
    yield from _counted(
        "ties", (steps == 0).sum(), f"of {log.n_impressions:,} impressions have the same time as another one; features "
        "at a time do not include events of the same time",
    )  # fmt: skip
    usual_step = float(np.quantile(steps, 0.99)) if len(steps) else 0.0
    gaps = np.flatnonzero(steps >= max(HOUR, 20 * usual_step))
    if len(gaps):
        longest = int(gaps[np.argmax(steps[gaps])])
        start = np.datetime_as_string(np.datetime64(int(log.times[longest]), "us"), "s")
        hours = f"{steps[longest] / HOUR:.1f}"
        yield from _counted(
            "gaps", len(gaps), f"gaps without impressions; the longest lasts {hours} hours from {start}Z"
        )


def _dwell(log: ClickLog) -> Iterator[Finding]:
    yield from _counted(
        "dwell", (log.dwell > LONGEST_VISIT).sum(), "dwell times are longer than a day, as if users never came back. "
        "Labels treat them as the longest visits, and features ignore them",
    )  # fmt: skip


def _positions(log: ClickLog) -> Iterator[Finding]:
    if not len(log):
        return
    is_tied = (log.impression[1:] == log.impression[:-1]) & (log.position[1:] == log.position[:-1])
    yield from _counted(
        "positions", is_tied.sum(), "documents have the same position as another one of the same impression"
    )
    skips = log.position[log.starts[1:] - 1] > np.diff(log.starts)
    yield from _counted(
        "positions", skips.sum(), "impressions skip positions: the documents shown there are not in the log"
    )


def _repeats(log: ClickLog) -> Iterator[Finding]:
    """Yield a finding for impressions with the same time, query, user, session and documents as another one."""
    if not log.has_times:
        return
    shown = combined([log.document.astype(np.uint64) + np.uint64(1), log.position.astype(np.uint64)], len(log))
    documents = np.add.reduceat(shown, log.starts[:-1]) if len(log) else np.empty(0)
    distinct = int(number_rows(log.times, log.query, log.user, log.session, documents).max(initial=-1)) + 1
    yield from _counted(
        "repeats",
        log.n_impressions - distinct,
        "impressions repeat another one exactly: the log may contain events twice",
    )


def _bots(log: ClickLog, clicks_per_minute: int) -> Iterator[Finding]:
    """Yield a finding for users, or sessions if users are unknown, with many clicks within a minute."""
    rows = np.flatnonzero(log.clicked)
    for kind, codes, names in (("user", log.user, log.users), ("session", log.session, log.sessions)):
        clicker = codes[log.impression[rows]]
        times = log.click_time[rows[clicker >= 0]]
        clicker = clicker[clicker >= 0]
        if not len(clicker):
            continue
        order = np.lexsort((times, clicker))
        clicker, times = clicker[order], times[order]
        n = clicks_per_minute  # compare each click with the n-th one after it
        is_fast = (clicker[n:] == clicker[:-n]) & (times[n:] - times[:-n] < MINUTE)
        bots = np.unique(clicker[n:][is_fast])
        if len(bots):
            clicks = int(np.isin(clicker, bots).sum())
            yield Finding("bots", len(bots), f"{len(bots):,} {kind}s click more than {n} times within a minute, "
                          f"{clicks:,} clicks in all, for example {names[bots[0]]!r}: remove them")  # fmt: skip
        return


def _leaks(log: ClickLog, columns: Mapping[str, Floats]) -> Iterator[Finding]:
    """Yield a finding for each feature that contains clicks of the future.

    Each feature is compared with click statistics of the past, of past and present, and of the whole log. If it equals
    one of the last two, up to a monotone function, but not the first, it contains clicks that had not happened yet.
    """
    for name, values in columns.items():
        if values.shape != (len(log),):
            raise DataError(f"{name} must have one value for each of the {len(log)} rows, but has shape {values.shape}")
    if not log.has_times:
        raise DataError("the log has no times, which are needed to check whether a feature uses the future")
    rows = np.unique(np.linspace(0, len(log) - 1, min(len(log), SAMPLE)).astype(np.int64))
    clicked = log.clicked[rows]
    worst = dict.fromkeys(columns, (0.0, ""))
    for scope in SCOPES:
        key = _scope_keys(log, scope)
        if key is None:
            continue
        for statistic, versions in _statistics(log, key):
            past, present, whole = (version[rows] for version in versions)
            for name, values in columns.items():
                with_past = _correlation(values[rows], past)
                with_present = _correlation(values[rows], present)
                with_whole = _correlation(values[rows], whole)
                if with_whole >= SAME and with_whole > with_past + (1 - with_whole) + 1e-3:
                    correlation, alone = with_whole, f"with the past alone {with_past:.4f}"
                    period = f"over the whole log (rank correlation {with_whole:.4f}; {alone})"
                elif (
                    with_present >= SAME and with_present > with_past and _knows_own_click(values[rows], past, clicked)
                ):
                    correlation = with_present
                    period = "including clicks of the same moment, which reveal the row's own click"
                else:
                    continue
                if correlation > worst[name][0]:
                    worst[name] = (correlation, f"the {statistic} by {'+'.join(scope)} {period}")
    for name, (_, text) in worst.items():
        if text:
            yield Finding(
                "leak", len(log), f"{name!r} is {text}. It contains clicks that had not happened yet: compute it with "
                "log.features, which only uses earlier events",
            )  # fmt: skip


def _scope_keys(log: ClickLog, scope: tuple[str, ...]) -> Ints | None:
    """Return the number of each row's key, or None if the log does not have the scope."""
    parts = []
    for name in scope:
        codes = log.document if name == "document" else getattr(log, name)[log.impression]
        if (codes < 0).any() or (name == "query" and len(log.queries) == 1):
            return None
        parts.append(hashes_of(getattr(log, {"query": "queries"}.get(name, f"{name}s")))[codes])
    return number_rows(combined(parts, len(log)))


def _statistics(log: ClickLog, key: Ints) -> Iterator[tuple[str, tuple[Floats, ...]]]:
    """Yield click rate and number of clicks: before each row's time, up to and including it, and over the whole log.

    Clicks count at the time of their impression here, because a leak need not know their exact time.
    """
    times = log.times[log.impression]
    moment = number_rows(key, times)  # sorted by key, then by time
    order = np.argsort(moment, kind="stable")
    keys, moments = key[order], moment[order]
    clicks = np.append(0, np.cumsum(log.clicked[order]))
    first = np.searchsorted(keys, key)
    ends = (
        np.searchsorted(moments, moment), np.searchsorted(moments, moment, "right"),
        np.searchsorted(keys, key, "right"),
    )  # fmt: skip
    past, present, whole = ((clicks[end] - clicks[first]).astype(np.float64) for end in ends)
    rates = (
        np.where(end > first, clicked / np.maximum(end - first, 1), np.nan)
        for end, clicked in zip(ends, (past, present, whole), strict=True)
    )
    yield "click rate", tuple(rates)
    yield "number of clicks", (past, present, whole)


def _knows_own_click(values: Floats, past: Floats, clicked: Bools) -> bool:
    """Return whether the difference of a feature from a statistic of the past correlates with the row's own click."""
    is_known = np.isfinite(values) & np.isfinite(past)
    surplus = rankdata(values[is_known]) - rankdata(past[is_known])
    return surplus.any() and _correlation(surplus, clicked[is_known].astype(np.float64)) > 0.3


def _correlation(a: Floats, b: Floats) -> float:
    """Return the absolute rank correlation of two columns where both are known; 0 if one is constant."""
    is_known = np.isfinite(a) & np.isfinite(b)
    if is_known.sum() < 10:
        return 0.0
    x, y = rankdata(a[is_known]), rankdata(b[is_known])
    if x.min() == x.max() or y.min() == y.max():
        return 0.0
    return abs(float(np.corrcoef(x, y)[0, 1]))
