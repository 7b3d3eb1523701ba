"""Small logs, and click models by enumeration of all hidden states."""

import itertools
import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from podium.clicks import ClickLog


class Session(NamedTuple):
    query: str
    documents: tuple[str, ...]
    clicks: tuple[bool, ...]

    @property
    def pairs(self):
        return [(self.query, document) for document in self.documents]

    @property
    def last(self):
        """The last click, -1 for none."""
        return max((k for k, click in enumerate(self.clicks) if click), default=-1)


def log_of(sessions):
    rows = [
        (f"{number:06}", session.query, document, place + 1, click)
        for number, session in enumerate(sessions)
        for place, (document, click) in enumerate(zip(session.documents, session.clicks, strict=True))
    ]
    impression, query, document, position, clicked = zip(*rows, strict=True)
    return ClickLog.from_arrays(
        impression=impression, query=query, document=document, position=position, clicked=clicked
    )


@st.composite
def sessions(draw, longest=3, most=8, least=1):
    result = []
    for _ in range(draw(st.integers(least, most))):
        n = draw(st.integers(1, longest))
        documents = draw(st.permutations("abcd"))[:n]
        clicks = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        result.append(Session(draw(st.sampled_from("qr")), tuple(documents), tuple(clicks)))
    return result


def random_sessions(n, n_documents=4, longest=3, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"d{k}" for k in range(n_documents)]
    result = []
    for _ in range(n):
        documents = rng.permutation(names)[:longest].tolist()
        result.append(Session(f"q{rng.integers(2)}", tuple(documents), tuple((rng.random(longest) < 0.35).tolist())))
    return result


class Chain:
    """DBN, with the cascade, dependent clicks and the simplified DBN as special cases, by enumeration."""

    def __init__(self, attraction, stopping, continuation):
        self.attraction, self.stopping, self.continuation = attraction, stopping, continuation

    def states(self, session):
        """All outcomes: their probability, and examination, click and satisfaction of each row."""
        draws = list(itertools.product((0, 1), repeat=3))
        for outcome in itertools.product(draws, repeat=len(session.documents)):
            chance, examined, rows = 1.0, 1, []
            for place, (attracts, stops, goes_on) in enumerate(outcome):
                for event, parameter in (
                    (attracts, self.attraction[session.pairs[place]]), (stops, self.stopping(session, place)),
                    (goes_on, self.continuation),
                ):  # fmt: skip
                    chance *= parameter if event else 1 - parameter
                click = examined * attracts
                rows.append((examined, click, click * stops))
                examined = examined * (1 - click * stops) * goes_on
            if chance:
                yield chance, rows


class Browsing:
    """The position-based and the user browsing model by enumeration."""

    def __init__(self, attraction, gamma):
        self.attraction, self.gamma = attraction, gamma

    def states(self, session):
        draws = list(itertools.product((0, 1), repeat=2))
        for outcome in itertools.product(draws, repeat=len(session.documents)):
            chance, last, rows = 1.0, 0, []
            for place, (attracts, examined) in enumerate(outcome):
                gamma, alpha = self.gamma(place + 1, last), self.attraction[session.pairs[place]]
                chance *= (alpha if attracts else 1 - alpha) * (gamma if examined else 1 - gamma)
                if attracts and examined:
                    last = place + 1
                rows.append((examined, examined * attracts, 0))
            if chance:
                yield chance, rows


def matching(model, session, upto=None):
    """The states that agree with the clicks of the first rows."""
    for chance, rows in model.states(session):
        if all(row[1] == click for row, click in zip(rows[:upto], session.clicks, strict=False)):
            yield chance, rows


def likelihood(model, session):
    return sum(chance for chance, _ in matching(model, session))


def expectation(model, session, event, upto=None):
    """E[event(rows) | clicks of the first rows]."""
    states = list(matching(model, session, upto))
    return sum(chance * event(rows) for chance, rows in states) / sum(chance for chance, _ in states)


def examination(model, session, given_clicks):
    return [
        expectation(model, session, lambda rows, k=k: rows[k][0], k if given_clicks else 0)
        for k in range(len(session.documents))
    ]


def counts(sessions, first_only=False):
    """Clicks and rows at or above the last click of each pair, and the mean attractiveness of the prior."""
    clicks, seen = defaultdict(int), defaultdict(int)
    for session in sessions:
        last = session.last
        if first_only and last >= 0:
            last = session.clicks.index(True)
        for place in range(last + 1 if last >= 0 else len(session.documents)):
            seen[session.pairs[place]] += 1
            clicks[session.pairs[place]] += session.clicks[place]
    return clicks, seen, (1 + sum(clicks.values())) / (2 + sum(seen.values()))


def attraction_of(sessions, smoothing, first_only=False):
    clicks, seen, mean = counts(sessions, first_only)
    pairs = {pair for session in sessions for pair in session.pairs}
    return {pair: (smoothing * mean + clicks[pair]) / (smoothing + seen[pair]) for pair in pairs}


def beta_log(prior, value):
    """ln of a Beta density up to a constant, from its imaginary successes and failures."""
    successes, failures = prior
    return sum(n * math.log(x) for n, x in ((successes, value), (failures, 1 - value)) if n)
