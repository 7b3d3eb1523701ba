"""Expectation maximisation on threads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from podium.core.array_types import Floats
from podium.core.threads import n_threads_for
from podium.core.validation import require_number, require_whole
from podium.errors import PodiumWarning

Parameters = tuple[Floats, ...]


def check_em(max_steps: int, tolerance: float) -> None:
    """Raise if a parameter of EM is out of range."""
    require_whole("max_steps", max_steps, 1)
    require_number("tolerance", tolerance, least=0)


def run_em(
    step: Callable[..., Parameters], parameters: Parameters, max_steps: int, tolerance: float
) -> tuple[Parameters, int]:
    """Repeat a step until no parameter changes by more than the tolerance; return parameters and number of steps."""
    for n_steps in range(1, max_steps + 1):
        new = step(*parameters)
        change = max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(new, parameters, strict=True))
        parameters = new
        if change <= tolerance:
            return parameters, n_steps
    warnings.warn(
        f"EM stopped after max_steps={max_steps} although a parameter still changed by {change:.2g}: pass a larger "
        f"max_steps, or a tolerance above {tolerance:g}", PodiumWarning, stacklevel=2,
    )  # fmt: skip
    return parameters, max_steps


def range_per_thread(n: int) -> list[tuple[int, int]]:
    """Cut 0 … n into one range per thread, because each range needs sums of all parameters."""
    parts = n_threads_for(n)
    return list(pairwise(n * k // parts for k in range(parts + 1)))
