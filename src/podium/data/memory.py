"""A limit on what readers hold in memory: a stream that never ends is stopped before the machine is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podium.core.validation import require_whole
from podium.errors import FileFormatError

SHARE = 0.5  # of the memory that is free, for one reading
ROW_BYTES = 128  # what a row takes in addition to its features while it is read: its id, its label, its place
_UNKNOWN = 1 << 34  # if the system does not say
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


class Budget:
    """The bytes that one call of `read` may hold; text and the arrays made of it take turns, so each has it all."""

    def __init__(self, max_bytes: int | None = None) -> None:
        require_whole("max_bytes", max_bytes, 1, optional=True, most=2**63 - 1)
        self.limit = int(SHARE * free_bytes()) if max_bytes is None else int(max_bytes)
        self._chosen = max_bytes is not None
        self._held = {"text": 0, "data": 0, "query ids": 0}
        self._lock = threading.Lock()

    def left(self, what: str) -> int:
        """The bytes of a kind that may still be held."""
        return max(0, self.limit - self._held[what])

    def release(self) -> None:
        """Count text and data from 0 again: what was held is let go. Query ids are kept from block to block."""
        with self._lock:
            self._held |= {"text": 0, "data": 0}

    def hold(self, what: str, size: int, name: str) -> None:
        """Count bytes of text, data or query ids that come from the file `name`; an error beyond the limit."""
        with self._lock:
            self._held[what] += size
            held = self._held[what]
        if held > self.limit:
            reason = "max_bytes" if self._chosen else f"{SHARE:.0%} of the free memory; max_bytes=… sets another limit"
            raise FileFormatError(
                name,
                f"holds over {_readable(self.limit)} of {what} in memory, which is the limit ({reason}); "
                "read fewer files at once, or look whether the stream or a line of it never ends",
            )


def free_bytes() -> int:
    """The memory that this process may still take: of the machine, and of the control groups it runs in."""
    limits = [*_of_machine(), *_of_groups()]
    return max(1, min(limits)) if limits else _UNKNOWN


def _of_machine() -> Iterator[int]:
    try:
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError, IndexError):
        pass
    with suppress(AttributeError, OSError, ValueError):  # Windows
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[int]:
    """What the limits of the control groups, version 1 and 2, leave; a container sees its own as the root."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers in ("", "memory"):
            root = _GROUPS / controllers
            limit, usage = ("memory.max", "memory.current") if not controllers else (
                "memory.limit_in_bytes", "memory.usage_in_bytes",
            )  # fmt: skip
            group = root / path.lstrip("/")
            for folder in {root, group, *(parent for parent in group.parents if parent.is_relative_to(root))}:
                try:
                    used = int((folder / usage).read_text()) - _cache(folder / "memory.stat")
                    yield int((folder / limit).read_text()) - used
                except (OSError, ValueError):  # no such group here, or no limit ("max")
                    continue


def _cache(statistics: Path) -> int:
    """What the system would give back: copies of files."""
    names = ("active_file", "inactive_file")
    counts = dict(line.split() for line in statistics.read_text().splitlines())
    return sum(int(counts.get(f"total_{name}", counts.get(name, 0))) for name in names)


def _readable(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
