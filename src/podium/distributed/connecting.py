"""A cluster by its address, or one of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from podium.core.threads import thread_count
from podium.distributed.dask_engine import import_distributed
from podium.errors import DataError, PodiumError

SECONDS_TO_CONNECT = 30.0


@contextmanager
def connected(cluster: str) -> Iterator[Any]:
    """A client of a cluster: the address of a scheduler, or `local:N` for N workers on this machine, which end with it.

    >>> with connected("nowhere") as client:
    ...     pass
    Traceback (most recent call last):
    podium.errors.DataError: a cluster is tcp://HOST:PORT, the address of a Dask scheduler, or local:N, not 'nowhere'
    """
    local = re.fullmatch(r"local:([1-9]\d{0,3})", cluster)
    if local is None and not re.match(r"[a-z]+://.", cluster):
        raise DataError(f"a cluster is tcp://HOST:PORT, the address of a Dask scheduler, or local:N, not {cluster!r}")
    distributed = import_distributed()
    if local is None:
        try:
            client = distributed.Client(cluster, timeout=SECONDS_TO_CONNECT)
        except Exception as error:  # Dask raises errors of many kinds for addresses that it cannot use
            hint = "; set up TLS in Dask's configuration, distributed.comm.tls" if cluster.startswith("tls:") else ""
            raise PodiumError(f"there is no Dask scheduler at {cluster}: {error}{hint}") from error
        with client:
            yield client
        return
    n_workers = int(local[1])
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=max(1, thread_count(None) // n_workers), dashboard_address=None
        ) as here,
        distributed.Client(here) as client,
    ):
        yield client
