"""The kinds of clusters, and how one is chosen: by name, by data or by address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core.validation import did_you_mean
from podium.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from podium.distributed.engine import Engine


class ClusterKind(NamedTuple):
    """A kind of cluster, with the names of everything that belongs to it."""

    prefix: str  # of class names: `RayEngine` in `ray_engine`, and the estimators, such as `RayLambdaMART`
    library: str  # the module to import
    estimators: str  # the module that defines the estimators
    packages: tuple[str, ...]  # the libraries whose frames and data sets the cluster reads
    address: str  # a regular expression for the addresses that `podium train --cluster` accepts
    addresses: str  # a description of these addresses, for messages


ESTIMATORS = ("LambdaMART", "MART", "MARTClassifier", "McRank", "OrdinalMART", "RankNetTrees", "Ranker")
CLUSTERS = {
    "ray": ClusterKind(
        "Ray", "ray", "estimators", ("ray",), r"ray|auto|ray://.+",
        "ray, auto or ray://HOST:PORT for Ray",
    ),
    "spark": ClusterKind(
        "Spark", "pyspark.sql", "spark_estimators", ("pyspark",), r"spark://.+|local\[.+\]|yarn|k8s://.+",
        "spark://HOST:PORT, local[N], yarn or k8s://… for Spark",
    ),
    "dask": ClusterKind(
        "Dask", "distributed", "estimators", ("dask", "dask_expr"), r"local:[1-9]\d{0,3}|[a-z]+://.+",
        "tcp://HOST:PORT or local:N for Dask",
    ),
}  # fmt: skip


def import_library(cluster: str) -> Any:
    """Return the library of a kind of cluster, or raise an error that says how to install it."""
    kind = CLUSTERS[cluster]
    try:
        return import_module(kind.library)
    except ImportError:
        package = kind.library.partition(".")[0]
        raise MissingExtraError(package, cluster, f"training on a {kind.prefix} cluster") from None


def engine_class(name: str) -> type[Engine]:
    """Return the class of an engine by the name of its cluster.

    >>> engine_class("dask").__name__
    'DaskEngine'
    """
    if name not in CLUSTERS:
        raise DataError(f"engine must be {_names()}, not {name!r:.60}{did_you_mean(str(name), CLUSTERS)}")
    cls: type[Engine] = getattr(import_module(f"podium.distributed.{name}_engine"), f"{CLUSTERS[name].prefix}Engine")
    return cls


def cluster_for(X: Any) -> str:
    """Return the name of the cluster that documents are on, or that this process is connected to.

    Raises:
        DataError: if the documents are not on a cluster, and this process is not connected to exactly one.

    """
    package = type(X).__module__.partition(".")[0]
    for name, kind in CLUSTERS.items():
        if package in kind.packages:
            return name
    running = [name for name in CLUSTERS if engine_class(name).is_running()]
    if len(running) == 1:
        return running[0]
    if running:
        raise DataError(f"this process is connected to {' and '.join(running)}: pass engine={_names()} to choose one")
    raise DataError(
        f"any cluster can train on {type(X).__name__}: pass engine={_names()}, or connect to a cluster first"
    )


@contextmanager
def connected(address: str) -> Iterator[dict[str, Any]]:
    """Connect to the cluster at an address until the block ends, and yield the arguments of `fit` for it.

    >>> with connected("nowhere"):
    ...     pass
    Traceback (most recent call last):
    podium.errors.DataError: the cluster must be ray, auto or ray://HOST:PORT for Ray, ... but is 'nowhere'
    """
    with engine_class(cluster_at(address)).connected(address) as connection:
        yield connection


def cluster_at(address: str) -> str:
    """Return the name of the kind of cluster at an address."""
    for name, kind in CLUSTERS.items():
        if re.fullmatch(kind.address, address):
            return name
    *first, last = (kind.addresses for kind in CLUSTERS.values())
    raise DataError(f"the cluster must be {', '.join(first)}, or {last}, but is {address!r:.60}")


def _names() -> str:
    """Return the names of all kinds of clusters, for messages."""
    *first, last = map(repr, CLUSTERS)
    return f"{', '.join(first)} or {last}"
