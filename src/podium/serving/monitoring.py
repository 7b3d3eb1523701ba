"""The log, as lines of JSON, and the metrics for Prometheus."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import os
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

COUNTS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the folder of the workers' metrics; prometheus_client reads it on import
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_LOGGER = logging.getLogger("podium.serving")


class JsonLines(logging.Formatter):
    """Formats records as lines of JSON. Of an exception, a line has the type and the place, but not the message.

    >>> record = {"msg": "ready", "levelname": "INFO", "created": 0.0, "facts": {"pid": 7}}
    >>> JsonLines().format(logging.makeLogRecord(record))
    '{"time":"1970-01-01T00:00:00.000+00:00","level":"info","event":"ready","pid":7}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line; records of other libraries are events named `log`."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower()}
        facts = getattr(record, "facts", None)
        if facts is None:
            line |= {"event": "log", "source": record.name, "text": record.getMessage()}
        else:
            line |= {"event": record.getMessage(), **facts}
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"kind": type(record.exc_info[1]).__name__, "place": _place(record.exc_info[2])}
        return json.dumps(line, separators=(",", ":"), default=str)  # also handles names that are not UTF-8


class PlainText(io.TextIOBase):
    """A replacement for standard error that turns everything printed there into lines of JSON.

    Attributes:
        stream: the standard error that the log is written to.

    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        """Log each line that is not blank."""
        for line in text.splitlines():
            if line.strip():
                log("stderr", text=line)
        return len(text)


def _handler() -> logging.Handler:
    return logging.StreamHandler(sys.stderr.stream if isinstance(sys.stderr, PlainText) else sys.stderr)


LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"stderr": {"()": _handler, "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"podium.serving": {"level": "INFO"}, "uvicorn.error": {"level": "INFO"}},
}


def set_up_log() -> None:
    """Write everything that this process logs or prints to standard error as lines of JSON."""
    logging.config.dictConfig(LOG_CONFIG)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # otherwise an error of writing the log would be logged again, without end
    if not isinstance(sys.stderr, PlainText):
        sys.stderr = PlainText(sys.stderr)


def log(event: str, level: str = "info", *, error: BaseException | None = None, **facts: Any) -> None:
    """Log an event; omit facts that are None."""
    facts = {name: fact for name, fact in facts.items() if fact is not None}
    _LOGGER.log(logging.getLevelNamesMapping()[level.upper()], event, exc_info=error, extra={"facts": facts})


def _place(trace: TracebackType | None) -> str:
    """Return the file and line where an exception was raised."""
    place = ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}", trace.tb_next
    return place


class Metrics:
    """The metrics of the service, summed over all workers."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "podium_requests", "Requests by path and status.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "podium_request_seconds", "Time from the head of a request to the end of its response.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.scoring_seconds = Histogram(
            "podium_scoring_seconds", "Time to score one query.", ["model"], buckets=SECONDS, registry=registry
        )
        self.documents = Counter("podium_documents", "Documents ranked.", ["model"], registry=registry)
        self.shadow = Counter(
            "podium_shadow_rankings", "Rankings compared with the shadow model, by whether the top documents differ.",
            ["model", "differs"], registry=registry,
        )  # fmt: skip
        self.model_changes = Counter("podium_model_changes", "Models loaded since the start.", registry=registry)
        self.in_flight = Gauge(
            "podium_requests_in_flight", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        if COUNTS_FOLDER not in os.environ:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
        return generate_latest(all_workers)
