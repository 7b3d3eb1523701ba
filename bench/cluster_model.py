"""The cost model of training on a cluster, drawn for up to a thousand workers and a billion documents.

`bench.distributed` fits the constants on two workers of one machine; here they are extrapolated. The figures are
predictions: we had no cluster of this size to check them.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

from bench.harness import RESULTS, Report

WORKERS = 2  # of the runs that the constants are fitted to
SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
N_WORKERS, N_DOCUMENTS, N_FEATURES = 100, 10**9, 136
FAN_IN = 8  # of the tree reduction: from how many workers one receives histograms
LATENCY = 0.0002  # seconds that the network adds to a round trip
SECONDS_OF_BYTE = 0.8e-9  # on a network of 10 Gbit/s
BYTES_OF_DOCUMENT = 2 * N_FEATURES + 100  # of a worker's memory: bins, scores, gradients, hashes and orders


class Constants(NamedTuple):
    """The constants of the model, in seconds and bytes.

    Attributes:
        of_document: seconds of a worker per document and tree.
        of_trip: seconds of a round trip to two workers, with its bytes.
        trips: round trips of a tree.
        bytes_of_trip: bytes that each worker sends in a round trip.
        call: seconds of an empty call to two workers.
        of_worker: seconds that an empty call takes longer for each further worker.
        byte: seconds in which each of two workers sends a byte at the same time.
        client: seconds in which the client compares the hashes of all queries of the extrapolation.

    """

    of_document: float
    of_trip: float
    trips: float
    bytes_of_trip: float
    call: float
    of_worker: float
    byte: float
    client: float


def fitted(rows: list[dict[str, float]], largest: dict[str, float]) -> Constants:
    """Return the constants that fit the seconds per tree of some runs best, and those that the largest one measured."""
    table = np.array([[row["documents"] / WORKERS, row["trips"]] for row in rows])
    seconds = np.array([row["tree"] for row in rows])
    weights = 1.0 / seconds  # relative errors count
    (of_document, of_trip), *_ = np.linalg.lstsq(table * weights[:, None], seconds * weights, rcond=None)
    return Constants(
        float(of_document), float(of_trip), largest["trips"], largest["bytes"] / WORKERS / largest["trips"],
        largest["call"], max(0.0, largest["call"] - largest["call_of_one"]), largest["byte"], largest["client"],
    )  # fmt: skip


def predicted(row: dict[str, float], constants: Constants, delay: float) -> float:
    """Return the seconds of a tree on two workers."""
    return constants.of_document * row["documents"] / WORKERS + row["trips"] * (constants.of_trip + delay)


def extrapolated(constants: Constants, n_workers: int, n_documents: float = N_DOCUMENTS) -> dict[str, float]:
    """Return the seconds of a tree on a cluster.

    `documents` is the work of a worker. `client` is the time of all round trips if the client asks all workers and adds
    their answers, `reduction` their time if each worker asked `FAN_IN` others and added their answers.
    """
    of_byte = max(constants.byte / WORKERS, SECONDS_OF_BYTE)  # of a receiver; the network may be slower than loopback
    alone = constants.of_trip - WORKERS * (constants.of_worker + constants.bytes_of_trip * constants.byte / WORKERS)
    alone = max(alone, 0.0) + LATENCY

    def trip(n_senders: int) -> float:
        return alone + n_senders * (constants.of_worker + constants.bytes_of_trip * of_byte)

    levels = max(1, math.ceil(math.log(n_workers, FAN_IN) - 1e-9))
    return {
        "documents": constants.of_document * n_documents / n_workers,
        "client": constants.trips * trip(n_workers),
        "reduction": constants.trips * min(trip(n_workers), levels * trip(min(FAN_IN, n_workers))),
    }


def rows_of(constants: Constants) -> list[dict[str, Any]]:
    """Return a row for each number of workers."""
    rows = []
    for n in SIZES:
        of = extrapolated(constants, n)
        rows.append({
            "workers": n, "work on documents, ms": f"{1e3 * of['documents']:.0f}",
            "a tree, the client adds histograms, ms": f"{1e3 * (of['documents'] + of['client']):.0f}",
            "a tree, workers add histograms, ms": f"{1e3 * (of['documents'] + of['reduction']):.0f}",
            "memory of a worker, GB": f"{N_DOCUMENTS * BYTES_OF_DOCUMENT / n / 1e9:.1f}",
        })  # fmt: skip
    return rows


def run() -> Report:
    """Draw the model with the constants of the last `bench distributed`."""
    content = json.loads((RESULTS / "distributed.json").read_text(encoding="utf-8"))
    constants = Constants(**content["constants"])
    of, two = extrapolated(constants, N_WORKERS), extrapolated(constants, WORKERS)
    best = min(range(1, 10_001), key=lambda n: sum(extrapolated(constants, n)[k] for k in ("documents", "client")))
    received = N_WORKERS * constants.trips * constants.bytes_of_trip
    return Report(
        "cluster_model", "Cost model: 1,000,000,000 documents", rows_of(constants),
        [
            f"{N_DOCUMENTS:,} documents, {N_FEATURES} features, 31 leaves; a network of 10 Gbit/s that adds "
            f"{1e3 * LATENCY:g} ms to a call. Extrapolated from two workers of one machine (distributed.md), one "
            "thread each; the largest run had two million documents.",
            f"The client is the first bottleneck. With {N_WORKERS} workers it receives {received / 1e6:,.0f} MB per "
            f"tree, and round trips take {1e3 * of['client']:.0f} ms, "
            f"{of['client'] / (of['documents'] + of['client']):.0%} of the tree, instead of {1e3 * two['client']:.0f} "
            f"ms with two workers. With more than {best} workers a tree takes longer. If each worker added the "
            f"histograms of {FAN_IN} others, round trips would take {1e3 * of['reduction']:.0f} ms.",
            f"Before the first tree, the client compares a hash of each query: {constants.client:.1f} s for "
            f"{N_DOCUMENTS // 120:,} queries, with any number of workers.",
        ],
    )  # fmt: skip
