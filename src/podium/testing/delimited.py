"""A reader of delimited text that one can check by reading it."""

from __future__ import annotations

import csv
import io
import re

import numpy as np

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)


def read_delimited_slowly(text: str, delimiter: str, texts: frozenset[str]) -> dict[str, list[object]]:
    """The columns by name: text for those named in `texts`, numbers as float32 (empty is NaN) else.

    Raises:
        ValueError: where a line has another number of fields than the header, or a number is none.

    """
    lines = list(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True))
    header = [name.strip() for name in lines[0]]
    columns: dict[str, list[object]] = {name: [] for name in header}
    for line in lines[1:]:
        if not "".join(line).strip(" ") and len(line) <= 1:
            continue
        if len(line) != len(header):
            raise ValueError(f"{len(line)} fields instead of {len(header)}")
        for name, field in zip(header, line, strict=True):
            content = field.strip(" ")
            if name in texts:
                columns[name].append(content)
            elif not content:
                columns[name].append(np.float32(np.nan))
            elif _NUMBER.fullmatch(content):
                with np.errstate(over="ignore"):
                    columns[name].append(np.float32(float(content)))
            else:
                raise ValueError(f"{content!r} is not a number")
    return columns
