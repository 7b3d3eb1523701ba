"""Numbers for Prometheus; those of all workers are summed where the supervisor gave them a folder."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from podium.serving.settings import COUNTS_FOLDER

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """What is counted and timed.

    Attributes:
        requests: by path and status.
        seconds: from the first byte of a request that was read to the last of its answer, by path.
        scoring_seconds: in the scoring of models, by model; its sum over that of `seconds` is the share.
        documents: that were ranked, by model.
        shadow: rankings compared with those of the shadow model, and those that differ in their top documents.
        model_changes: models that were loaded while the service runs.
        in_flight: requests that are being answered.

    """

    def __init__(self) -> None:
        own = CollectorRegistry()
        self.requests = Counter("podium_requests", "Requests, by path and status.", ["path", "status"], registry=own)
        self.seconds = Histogram("podium_request_seconds", "Time of requests.", ["path"], buckets=SECONDS, registry=own)
        self.scoring_seconds = Histogram(
            "podium_scoring_seconds", "Time of scoring, of one query.", ["model"], buckets=SECONDS, registry=own
        )
        self.documents = Counter("podium_documents", "Documents ranked.", ["model"], registry=own)
        self.shadow = Counter(
            "podium_shadow_rankings", "Rankings compared with the shadow model's.", ["model", "differs"], registry=own
        )
        self.model_changes = Counter("podium_model_changes", "Models loaded since the start.", registry=own)
        self.in_flight = Gauge(
            "podium_requests_in_flight", "Requests being answered.", registry=own, multiprocess_mode="livesum"
        )
        self._own = own

    def text(self) -> bytes:
        """All numbers as Prometheus reads them."""
        if COUNTS_FOLDER not in os.environ:
            return generate_latest(self._own)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
