"""Click features and their texts, such as `rate(click, by=document)` or `count(impression, by=query, window=30d)`.

A feature is computed from counters, which `podium.clicks.replay` maintains.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from podium.clicks.times import PER_SECOND
from podium.core.array_types import Floats
from podium.core.parameters import Parameter, check_parameters, number, parameters
from podium.errors import DataError
from podium.features.feature import parse_call, shown_value

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LONGEST = 100 * 366 * SECONDS["d"]
N_BUCKETS = 32  # per window, and per decay: 8 half-lives of 4 buckets
PER_HALF_LIFE = 4
# 2^(−k/4), correctly rounded, because power functions differ between platforms
ROOTS = (1.0, 0.8408964152537145, 0.7071067811865476, 0.5946035575013605)
COUNT, TOTAL, LATEST = range(3)  # kinds of counters: the number of events, the sum of amounts, the time of the last
ALL = "all"
WORD = re.compile(r"[\w./-]+")

BY = Parameter[str](
    "by", str, "document", help="the scope: `document`, `query`, `user`, `session`, `all`, a field of the document, "
    "or several of them, as in `query+document`",
)  # fmt: skip
WINDOW = Parameter[str](
    "window", str, "", help="only count events of this time span, such as `30d`, `12h`, `90m` or `45s`"
)
HALF_LIFE = Parameter[str]("half_life", str, "", help="weight events by age: after this time span an event counts half")
PER = Parameter[str]("per", str, "impression", help="the event that a rate divides by")
SMOOTHING = number("smoothing", 0.0, least=0.0, help="the number of events at the overall rate to add to each scope")


class Counter(NamedTuple):
    """Integers by scope, in buckets of time.

    Attributes:
        event: the kind of event to count.
        by: the sorted names whose values form the key of a scope; empty for a single scope.
        keeps: COUNT, TOTAL or LATEST.
        width: the length of a bucket in microseconds; 0 for one bucket for all time.
        fades: whether older buckets weigh less.

    """

    event: str
    by: tuple[str, ...]
    keeps: int = COUNT
    width: int = 0
    fades: bool = False

    @property
    def weights(self) -> Floats:
        """The weight of each bucket, the newest first."""
        if not self.width:
            return np.ones(1)
        if not self.fades:
            return np.ones(N_BUCKETS)
        return np.array([ROOTS[j % PER_HALF_LIFE] * 0.5 ** (j // PER_HALF_LIFE) for j in range(N_BUCKETS)])


@dataclass(frozen=True)
class ClickFeature(ABC):
    """A number for each shown document, computed from events before it was shown.

    Attributes:
        name: the name of the feature in texts.
        takes_event: whether the first argument is an event.

    Example:
        >>> feature = parse("rate(click, by=query+document, window=30d)")
        >>> type(feature).__name__, feature.scope
        ('Rate', ('document', 'query'))

    """

    event: str = ""
    _: KW_ONLY
    by: str = BY()

    name: ClassVar[str] = ""
    takes_event: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.takes_event != bool(self.event):
            expected = "requires an event as first argument, for example click" if self.takes_event else "has no event"
            raise DataError(f"{self.name} {expected}")
        names = self.by.split("+")
        for name in [self.event] * self.takes_event + names:
            if not WORD.fullmatch(name):
                raise DataError(f"names must consist of letters, digits, '_', '.', '/' and '-', but got {name!r}")
        if len(set(names)) < len(names) or (ALL in names and self.by != ALL):
            raise DataError(f"by={self.by} must not repeat a name or combine 'all' with others")
        if self.span("window") and self.span("half_life"):
            raise DataError("pass either window or half_life, not both")

    def __str__(self) -> str:
        entries = [self.event] * self.takes_event
        for name, parameter in parameters(self).items():
            value = getattr(self, name)
            if name == "by" or value != parameter.default:
                entries.append(f"{name}={value if isinstance(value, str) else shown_value(value)}")
        return f"{self.name}({', '.join(entries)})"

    def span(self, name: str) -> int:
        """Return a time span in microseconds, 0 if it is not set."""
        text = getattr(self, name, "")
        if not text:
            return 0
        match = re.fullmatch(r"(\d{1,9})([smhdw])", text)
        seconds = int(match[1]) * SECONDS[match[2]] if match else 0
        if not 0 < seconds <= LONGEST:
            raise DataError(f"{name} must be a time span such as 30d, 12h, 90m or 45s, but got {text!r}")
        return seconds * PER_SECOND

    @property
    def scope(self) -> tuple[str, ...]:
        """The sorted names whose values form the key; query+document equals document+query."""
        return () if self.by == ALL else tuple(sorted(self.by.split("+")))

    def counter(self, event: str, keeps: int = COUNT, scope: tuple[str, ...] | None = None) -> Counter:
        """Return a counter of an event in the window or with the half-life of this feature."""
        window, half_life = self.span("window"), self.span("half_life")
        width = window // N_BUCKETS or half_life // PER_HALF_LIFE
        return Counter(event, self.scope if scope is None else scope, keeps, width, half_life > 0)

    @property
    @abstractmethod
    def counters(self) -> tuple[Counter, ...]:
        """The counters that the feature is computed from."""

    @abstractmethod
    def values(self, *counts: Floats) -> Floats:
        """Return the feature from its counters, which are NaN for an unknown scope."""


@dataclass(frozen=True)
class Count(ClickFeature):
    """The number of events."""

    _: KW_ONLY
    window: str = WINDOW()
    half_life: str = HALF_LIFE()
    name = "count"

    @property
    def counters(self) -> tuple[Counter, ...]:
        return (self.counter(self.event),)

    def values(self, *counts: Floats) -> Floats:
        return counts[0]


@dataclass(frozen=True)
class Rate(ClickFeature):
    """Events per other event, by default clicks per impression; NaN if there is none to divide by."""

    _: KW_ONLY
    per: str = PER()
    window: str = WINDOW()
    half_life: str = HALF_LIFE()
    smoothing: float = SMOOTHING()
    name = "rate"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not WORD.fullmatch(self.per):
            raise DataError(f"per={self.per!r} is not an event")

    @property
    def counters(self) -> tuple[Counter, ...]:
        overall = (self.counter(self.event, scope=()), self.counter(self.per, scope=())) if self.smoothing else ()
        return (self.counter(self.event), self.counter(self.per), *overall)

    def values(self, *counts: Floats) -> Floats:
        """Return (events + s · overall rate) / (others + s), with s the smoothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if not self.smoothing:
                return np.where(counts[1] > 0, counts[0] / counts[1], np.nan)
            overall = np.where(counts[3] > 0, counts[2] / counts[3], np.nan)
            return np.asarray((counts[0] + self.smoothing * overall) / (counts[1] + self.smoothing))


@dataclass(frozen=True)
class Recency(ClickFeature):
    """Seconds since the last event; NaN if there was none."""

    name = "recency"

    @property
    def counters(self) -> tuple[Counter, ...]:
        return (self.counter(self.event, LATEST),)

    def values(self, *counts: Floats) -> Floats:
        return counts[0] / PER_SECOND


@dataclass(frozen=True)
class Dwell(ClickFeature):
    """The mean time in seconds that users spent on a clicked document, known only once they have left it."""

    _: KW_ONLY
    window: str = WINDOW()
    half_life: str = HALF_LIFE()
    name = "dwell"
    takes_event = False

    @property
    def counters(self) -> tuple[Counter, ...]:
        return self.counter("dwell", TOTAL), self.counter("dwell")

    def values(self, *counts: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(counts[1] > 0, counts[0] / counts[1] / 1000.0, np.nan)


FEATURES: dict[str, type[ClickFeature]] = {cls.name: cls for cls in (Rate, Count, Recency, Dwell)}


def parse(text: str) -> ClickFeature:
    """Parse a click feature from text.

    Example:
        >>> str(parse("rate(click,by=query+document , half_life=7d)"))
        'rate(click, by=query+document, half_life=7d)'

    """
    example = "text such as rate(click, by=document)"
    cls, names, weights, settings = parse_call(text, FEATURES, "click feature", example)
    if len(names) > 1 or any(weight != 1.0 for weight in weights):
        raise DataError(f"{text!r}: {cls.name} accepts one event and parameters such as by=document")
    try:
        return cls(*names, **settings)  # type: ignore[no-any-return]
    except DataError as error:
        raise DataError(f"{text!r}: {error}") from None


def parse_all(texts: Sequence[str | ClickFeature]) -> tuple[ClickFeature, ...]:
    """Parse several features; raise if there is none, or one occurs twice."""
    if isinstance(texts, str):
        raise DataError(f"features must be a list, but got the text {texts!r}")
    features = tuple(text if isinstance(text, ClickFeature) else parse(text) for text in texts)
    if not features:
        raise DataError("pass at least one feature, for example rate(click, by=document)")
    names = list(map(str, features))
    if len(set(names)) < len(names):
        raise DataError(f"the feature {next(name for name in names if names.count(name) > 1)} occurs twice")
    return features
