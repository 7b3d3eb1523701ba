"""Logs: a line of JSON for each event, on standard error; never what documents hold."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


def log(event: str, level: str = "info", **facts: Any) -> None:
    """Write one line; facts that are None are left out."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event}
    line |= {name: fact for name, fact in facts.items() if fact is not None}
    try:
        sys.stderr.write(_encoder.encode(line).decode() + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads the log any more: requests are answered all the same
        return
