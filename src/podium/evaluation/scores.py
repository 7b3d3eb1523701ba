"""Scores from files."""

from __future__ import annotations

import math
import os

import numpy as np

from podium.core.array_types import Floats
from podium.errors import FileFormatError
from podium.evaluation.trec import Run, read_run, text_lines


def read_scores(path: str | os.PathLike[str]) -> Floats | Run:
    """Scores from a file: one number on each line, in the order of the data's rows, or a TREC run."""
    lines = text_lines(path)
    while lines and not lines[-1].strip():
        lines.pop()
    if lines and len(lines[0].split()) == 6:
        return read_run(path)
    scores = np.empty(len(lines))
    for k, line in enumerate(lines):
        try:
            scores[k] = float(line)
        except ValueError:
            scores[k] = math.nan
        if math.isnan(scores[k]):
            raise FileFormatError(
                os.fspath(path), f"expected a score (or a TREC run), but found {line.strip()[:40]!r}", line=k + 1
            )
    return scores
