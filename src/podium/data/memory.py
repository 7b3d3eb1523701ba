"""A memory limit for readers, so that an endless stream raises an error before the machine runs out of memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podium.core.validation import require_whole
from podium.errors import FileFormatError

SHARE = 0.5  # of the free memory, for one call of `read`
ROW_BYTES = 128  # of a row's id, label and place while it is read, in addition to its features
_UNKNOWN = 1 << 34  # assumed free memory if the system does not report it
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


class Budget:
    """The memory limit of `read`, for text and for arrays separately: they are not needed at the same time."""

    def __init__(self, max_bytes: int | None = None) -> None:
        require_whole("max_bytes", max_bytes, 1, optional=True, most=2**63 - 1)
        self.limit = int(SHARE * free_bytes()) if max_bytes is None else int(max_bytes)
        self._is_explicit = max_bytes is not None
        self._held = {"text": 0, "data": 0, "query ids": 0}
        self._lock = threading.Lock()

    def remaining(self, what: str) -> int:
        """Return how many more bytes of text, data or query ids fit within the limit."""
        return max(0, self.limit - self._held[what])

    def release(self) -> None:
        """Reset the counts of text and data, after they are freed. Query ids are kept from block to block."""
        with self._lock:
            self._held |= {"text": 0, "data": 0}

    def hold(self, what: str, size: int, name: str) -> None:
        """Add bytes of text, data or query ids of the file `name`; raise if they exceed the limit."""
        with self._lock:
            self._held[what] += size
            held = self._held[what]
        if held > self.limit:
            default = f"{SHARE:.0%} of the free memory; pass max_bytes=… to change it"
            reason = "max_bytes" if self._is_explicit else default
            raise FileFormatError(
                name,
                f"needs more than {_readable(self.limit)} of memory for its {what}, which is the limit ({reason}): "
                "read fewer files at once, and check that neither the stream nor a line of it is endless",
            )


def free_bytes() -> int:
    """Return the memory available to this process, on the machine and in its control groups."""
    limits = [*_limits_of_machine(), *_limits_of_control_groups()]
    return max(1, min(limits)) if limits else _UNKNOWN


def _limits_of_machine() -> Iterator[int]:
    try:
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError, IndexError):
        pass
    with suppress(AttributeError, OSError, ValueError):  # Windows
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limits_of_control_groups() -> Iterator[int]:
    """Return the memory that the limits of control groups (versions 1 and 2) leave; a container is its own root."""
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
                    used = int((folder / usage).read_text()) - _page_cache(folder / "memory.stat")
                    yield int((folder / limit).read_text()) - used
                except (OSError, ValueError):  # the group does not exist, or has no limit ("max")
                    continue


def _page_cache(statistics: Path) -> int:
    """Return the memory of the page cache, which the system can reclaim."""
    names = ("active_file", "inactive_file")
    counts = dict(line.split() for line in statistics.read_text().splitlines())
    return sum(int(counts.get(f"total_{name}", counts.get(name, 0))) for name in names)


def _readable(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
