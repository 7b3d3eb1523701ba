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


def _times(log: ClickLog) -> Iterator[Finding]:
    if not log.has_times:
        yield Finding("time", log.n_impressions, "the log has no times, so features cannot be computed by replay")
        return
    early = log.clicked & (log.click_time < log.times[log.impression])
    if early.any():
        yield Finding("time", int(early.sum()), f"{early.sum():,} clicks are earlier than their impression")
    late = log.clicked & (log.click_time > log.times[log.impression] + DAY)
    if late.any():
        yield Finding("time", int(late.sum()), f"{late.sum():,} clicks are more than a day later than their impression")
    steps = np.diff(log.times)
    shared = int((steps == 0).sum())
    if shared:
        yield Finding(
            "ties", shared, f"{shared:,} of {log.n_impressions:,} impressions have the same time as another one; "
            "features at a time do not include events of the same time",
        )  # fmt: skip
    usual = float(np.quantile(steps, 0.99)) if len(steps) else 0.0
    gaps = np.flatnonzero(steps >= max(HOUR, 20 * usual))
    if len(gaps):
        longest = int(gaps[np.argmax(steps[gaps])])
        start = np.datetime_as_string(np.datetime64(int(log.times[longest]), "us"), "s")
        yield Finding("gaps", len(gaps), f"{len(gaps):,} gaps without impressions; the longest lasts "
                      f"{steps[longest] / HOUR:.1f} hours from {start}Z")  # fmt: skip


def _dwell(log: ClickLog) -> Iterator[Finding]:
    n = int((log.dwell > LONGEST_VISIT).sum())
    if n:
        yield Finding("dwell", n, f"{n:,} dwell times are longer than a day, as if users never came back. Labels treat "
                      "them as the longest visits, features ignore them")  # fmt: skip


def _positions(log: ClickLog) -> Iterator[Finding]:
    if not len(log):
        return
    same = (log.impression[1:] == log.impression[:-1]) & (log.position[1:] == log.position[:-1])
    if same.any():
        yield Finding("positions", int(same.sum()), f"{same.sum():,} documents have the same position as another one "
                      "of the same impression")  # fmt: skip
    lasts = log.position[log.starts[1:] - 1]
    holes = int((lasts > np.diff(log.starts)).sum())
    if holes:
        yield Finding(
            "positions", holes, f"{holes:,} impressions skip positions: the documents shown there are not in the log"
        )


def _repeats(log: ClickLog) -> Iterator[Finding]:
    """Yield a finding for impressions with the same time, query, user, session and documents as another one."""
    if not log.has_times:
        return
    shown = combined([log.document.astype(np.uint64) + np.uint64(1), log.position.astype(np.uint64)], len(log))
    documents = np.add.reduceat(shown, log.starts[:-1]) if len(log) else np.empty(0)
    distinct = int(number_rows(log.times, log.query, log.user, log.session, documents).max(initial=-1)) + 1
    if distinct < log.n_impressions:
        n = log.n_impressions - distinct
        yield Finding("repeats", n, f"{n:,} impressions repeat another one exactly: the log may contain events twice")


def _bots(log: ClickLog, clicks_per_minute: int) -> Iterator[Finding]:
    """Yield a finding for users, or sessions if users are unknown, with many clicks within a minute."""
    rows = np.flatnonzero(log.clicked)
    for who, codes, names in (("user", log.user, log.users), ("session", log.session, log.sessions)):
        person = codes[log.impression[rows]]
        known = rows[person >= 0]
        if not len(known):
            continue
        person = person[person >= 0]
        order = np.lexsort((log.click_time[known], person))
        person, times = person[order], log.click_time[known][order]
        ahead = clicks_per_minute
        fast = (person[ahead:] == person[:-ahead]) & (times[ahead:] - times[:-ahead] < MINUTE)
        bots = np.unique(person[ahead:][fast])
        if len(bots):
            clicks = int(np.isin(person, bots).sum())
            yield Finding("bots", len(bots), f"{len(bots):,} {who}s click more than {clicks_per_minute} times within a "
                          f"minute, {clicks:,} clicks in all, for example {names[bots[0]]!r}: remove them")  # fmt: skip
        return


def _leaks(log: ClickLog, columns: Mapping[str, Floats]) -> Iterator[Finding]:
    """Compare features with click statistics of the past, of past and present, and of the whole log.

    A feature that equals one of the last two, up to a monotone function, but not the first, contains clicks that had
    not happened yet.
    """
    for name, values in columns.items():
        if values.shape != (len(log),):
            raise DataError(f"{name} must have one value for each of the {len(log)} rows, but has shape {values.shape}")
    if not log.has_times:
        raise DataError("the log has no times, which are needed to check whether a feature uses the future")
    rows = np.unique(np.linspace(0, len(log) - 1, min(len(log), SAMPLE)).astype(np.int64))
    worst = dict.fromkeys(columns, (0.0, ""))
    for scope in SCOPES:
        key = _scope_keys(log, scope)
        for statistic, versions in () if key is None else _statistics(log, key):
            past, present, whole = (version[rows] for version in versions)
            for name, values in columns.items():
                known = _correlation(values[rows], past)
                ahead = _correlation(values[rows], whole)
                now = _correlation(values[rows], present)
                words = ""
                if ahead >= SAME and ahead > known + (1 - ahead) + 1e-3:
                    words = f"over the whole log (rank correlation {ahead:.4f}; with the past alone {known:.4f})"
                elif now >= SAME and now > known and _knows_own_click(values[rows], past, log.clicked[rows]):
                    words, ahead = "including clicks of the same moment, which reveal the row's own click", now
                if words and ahead > worst[name][0]:
                    worst[name] = (ahead, f"the {statistic} by {'+'.join(scope)} {words}")
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


def _statistics(log: ClickLog, key: Ints) -> Iterator[tuple[str, tuple[Floats, Floats, Floats]]]:
    """Yield click rate and number of clicks: before each row's time, up to and including it, and over the whole log.

    Clicks count at the time of their impression here, because a leak need not know their exact time.
    """
    times = log.times[log.impression]
    moment = number_rows(key, times)
    order = np.argsort(moment, kind="stable")
    keys, moments = key[order], moment[order]
    clicks = np.append(0, np.cumsum(log.clicked[order]))
    first = np.searchsorted(keys, key)
    counts, rates = [], []
    for end in (
        np.searchsorted(moments, moment), np.searchsorted(moments, moment, "right"),
        np.searchsorted(keys, key, "right"),
    ):  # fmt: skip
        clicked, shown = (clicks[end] - clicks[first]).astype(np.float64), end - first
        counts.append(clicked)
        rates.append(np.where(shown > 0, clicked / np.maximum(shown, 1), np.nan))
    yield "click rate", (rates[0], rates[1], rates[2])
    yield "number of clicks", (counts[0], counts[1], counts[2])


def _knows_own_click(values: Floats, past: Floats, clicked: Bools) -> bool:
    """Return whether the difference of a feature from a statistic of the past correlates with the row's own click."""
    known = np.isfinite(values) & np.isfinite(past)
    surplus = rankdata(values[known]) - rankdata(past[known])
    return surplus.any() and _correlation(surplus, clicked[known].astype(np.float64)) > 0.3


def _correlation(a: Floats, b: Floats) -> float:
    """Return the absolute rank correlation of two columns where both are known; 0 if one is constant."""
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < 10:
        return 0.0
    x, y = rankdata(a[known]), rankdata(b[known])
    if x.min() == x.max() or y.min() == y.max():
        return 0.0
    return abs(float(np.corrcoef(x, y)[0, 1]))
