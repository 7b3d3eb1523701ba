"""The documents of a run: the assignment of partitions to workers, and facts about all documents."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.settings import Boosting
from podium.data import RankingData
from podium.data.canonical import occurrences_in
from podium.data.schema import Schema
from podium.distributed.engine import Engine, Placement
from podium.distributed.holder import TRAIN
from podium.distributed.parts import TrainingPlan
from podium.distributed.sources import Partitions, Source, describe, gather_partitions, has_equal
from podium.errors import DataError
from podium.measures import Measure, as_selection, warn_of_powers
from podium.models.base import checked_sets, require_weight
from podium.trees.bin_matrix import FeatureLayout, lay_out
from podium.trees.binning import BinnedFeatures, Bins

log = logging.getLogger("podium")
NO_LIMIT = 1 << 20  # of threads


class ClusterDocuments:
    """Documents on the workers of an engine.

    Attributes:
        engine: the workers.
        n_threads: the maximum number of threads of each worker; None means all of its threads.
        sets: the partitions of each set; that of the training documents is `TRAIN`.
        assignment: the numbers of the partitions that each worker holds, by set.
        outlines: a few rows for each set, with the same features, labels and columns, for checking settings.
        n_documents: the number of training documents.

    """

    def __init__(self, engine: Engine, sources: Mapping[str, list[Source]], n_threads: int | None = None) -> None:
        self.engine, self.n_threads = engine, n_threads
        self.sets = _partitions(engine, sources)
        self.assignment: dict[str, dict[str, list[int]]] = {}
        self._numbers: dict[str, int] = {}
        self._not_ready: set[str] = set()  # workers whose partitions have changed
        self._keeps_weighted = False
        self.bins: Bins | None = None
        self.layout: FeatureLayout | None = None
        self._assign_to_locations()
        self.assign(engine.workers())
        self._place(self.assignment)
        facts = engine.call("facts")
        self.facts: dict[str, Any] = facts
        self.outlines = {name: _outline(part, facts[name]) for name, part in self.sets.items()}
        self.n_documents = int(facts[TRAIN]["documents"])

    # --- placement

    def _assign_to_locations(self) -> None:
        """Assign each partition to a worker that has it in memory, so that few have to move."""
        for name, part in self.sets.items():
            for k, worker in enumerate(self.engine.locate(part.sources)):
                if worker is not None:
                    held = self.assignment.setdefault(worker, {set_name: [] for set_name in self.sets})
                    held[name].append(k)

    def assign(self, workers: Mapping[str, int]) -> set[str]:
        """Assign each partition to a worker, and return the workers whose partitions have changed.

        A worker keeps its partitions, up to its share of the documents.
        """
        before = {worker: held for worker, held in self.assignment.items() if worker in workers}
        new = {worker: {name: list[int]() for name in self.sets} for worker in workers}
        for name, part in self.sets.items():
            loads = dict.fromkeys(workers, 0.0)  # documents per thread
            share = sum(part.sizes) / sum(workers.values())
            largest_first = sorted(range(len(part.sizes)), key=lambda k: (-part.sizes[k], k))
            owner = {k: worker for worker, held in before.items() for k in held[name]}
            unassigned = []
            for k in largest_first:
                worker = owner.get(k)
                is_full = worker is not None and loads[worker] + part.sizes[k] / workers[worker] > share * 1.1 + 1
                if worker is None or (is_full and loads[worker] > 0):
                    unassigned.append(k)
                else:
                    new[worker][name].append(k)
                    loads[worker] += part.sizes[k] / workers[worker]
            for k in unassigned:
                worker = min(loads, key=lambda w: (loads[w], w))
                new[worker][name].append(k)
                loads[worker] += part.sizes[k] / workers[worker]
            for held in new.values():
                held[name].sort()
        self.assignment = new
        return {worker for worker in workers if new[worker] != before.get(worker)}

    def _place(self, workers: Collection[str]) -> None:
        """Start the holders of some workers, and keep the others."""
        threads = self.engine.workers()
        placement = {}
        for worker in workers:
            number = self._numbers.setdefault(worker, len(self._numbers))
            held = self.assignment[worker].items()
            sets = {name: [(k, self.sets[name].sources[k]) for k in numbers] for name, numbers in held}
            n_threads = min(threads.get(worker, 1), self.n_threads or NO_LIMIT)
            placement[worker] = Placement(number, sets, n_threads)
        self.engine.place(placement, self.assignment.keys() - placement.keys())

    def place_again(self, plan: TrainingPlan) -> None:
        """Move partitions from workers that left and to workers that joined, and prepare these for training.

        If that fails because another worker leaves, the next attempt repeats it for all workers that are not ready.
        """
        self._not_ready |= self.assign(self.engine.workers()) | (self.assignment.keys() - self.engine.holders.keys())
        self._not_ready &= self.assignment.keys()
        self._place(self._not_ready)
        if self._keeps_weighted:
            self.engine.ask(dict.fromkeys(self._not_ready, (("keep_weighted", ()),)))
        self._set_query_keys()
        self.engine.ask(dict.fromkeys(self._not_ready, (("bin", (self.bins,)), ("bind", (plan, self.layout)))))
        self._not_ready = set()

    # --- before training

    def prepare(self, settings: Boosting) -> BinnedData:
        """Bin all documents, and return the binned data as the client sees it, without rows."""
        train = self.outlines[TRAIN]
        others = {name: outline for name, outline in self.outlines.items() if name != TRAIN}
        matched = checked_sets(train, others)
        measures = (*as_selection(settings.selection).measures, *settings.watched) if matched else ()
        for measure in (*settings.objective.all_measures(), *measures):
            require_known_facts(measure)
        warn_of_powers([*settings.objective.all_measures(), *measures], train, *matched.values())
        n_weighted = int(self.facts[TRAIN]["weighted"])
        require_weight(n_weighted)
        if settings.objective.pointwise and 0 < n_weighted < self.n_documents:
            self._keeps_weighted, self.n_documents = True, n_weighted
            self.engine.defer("keep_weighted")
        self._set_query_keys()
        self.bins = self.engine.run("find_bins", settings.max_bins, settings.categorical)
        counts, with_missing = self.engine.call("bin", self.bins)
        self.layout = lay_out(counts, self.n_documents, self.bins.counts)
        binned = BinnedFeatures(self.bins, 0, np.empty(0, np.uint8))
        binned.__dict__.update(layout=self.layout, features_with_missing=with_missing.tolist())
        log.info("binned %d × %d values on %d workers", self.n_documents, train.n_features, len(self.assignment))
        return BinnedData(train, matched, self.bins, binned, {})

    def _set_query_keys(self) -> None:
        """Number queries with equal features, in the order of their content, so that their random numbers differ."""
        sums = _by_set(self.engine.call("query_sums"))
        repeated = [name for name, by_worker in sums.items() if has_equal(np.concatenate(list(by_worker.values())))]
        occurrences: dict[tuple[int, str], Any] = {}
        if repeated:
            contents = _by_set(self.engine.call("query_contents"))
            for name in repeated:
                occurrences |= _occurrences(name, sums[name], contents[name])
        self.engine.call("set_query_keys", occurrences)


def _partitions(engine: Engine, sources: Mapping[str, list[Source]]) -> dict[str, Partitions]:
    """Return the partitions of each set, with the features of the training documents."""
    summaries = iter(engine.compute(describe, [source for set_sources in sources.values() for source in set_sources]))
    sets: dict[str, Partitions] = {}
    schema: Schema | None = None
    for name, set_sources in sources.items():
        shown_name = "the training documents" if name == TRAIN else f"the evaluation set {name!r}"
        sets[name] = gather_partitions(shown_name, set_sources, list(islice(summaries, len(set_sources))), schema)
        schema = schema or sets[name].schema
    return sets


def _outline(partitions: Partitions, facts: Mapping[str, Any]) -> RankingData:
    """Return a few rows with the columns of a set of documents, every label that occurs, and the last position."""
    schema, first, labels = partitions.schema, partitions.first, facts["labels"]
    n = max(2, *(len(values) for values in labels.values())) if labels else 2
    padded = {source: np.append(values, np.full(n - len(values), np.nan)) for source, values in labels.items()}
    ones = np.ones(n, np.float32)
    has = set(first.has)
    data = RankingData(
        np.zeros((n, schema.n_features), np.float32),
        qid=np.zeros(n, np.int64),
        labels=padded,
        document_weights=ones if "document_weights" in has else None,
        query_weights=ones if "query_weights" in has else None,
        positions=np.full(n, int(facts["last_position"])) if "positions" in has else None,
        preferences=([0], [1], [1.0]) if "preferences" in has else None,
        feature_names=schema.names,
        encoding=schema.encoding,
    )
    return data._changed(losses=tuple(dict.fromkeys(facts["losses"])), reading=dict(first.reading))


def _by_set(gathered: list[tuple[int, dict[str, Any]]]) -> dict[str, dict[int, Any]]:
    """Return the answers of workers by set and worker."""
    sets: dict[str, dict[int, Any]] = {}
    for number, answer in gathered:
        for name, values in answer.items():
            sets.setdefault(name, {})[number] = values
    return sets


def _occurrences(
    name: str, sums: Mapping[int, Any], contents: Mapping[int, tuple[Any, Any]]
) -> dict[tuple[int, str], Any]:
    """Return, for each worker, the queries whose features have occurred before, and how often.

    Queries with equal content are interchangeable. They are ordered by partition, so that their order stays the same
    after a worker is lost.
    """
    workers = sorted(sums)
    sizes = [len(sums[w]) for w in workers]
    keys = np.concatenate([sums[w] for w in workers])
    content, partition = (np.concatenate([contents[w][k] for w in workers]) for k in range(2))
    place = np.concatenate([np.arange(size) for size in sizes])
    n_before = occurrences_in(keys, np.lexsort((place, partition, content, keys)))
    parts = np.split(n_before, np.cumsum(sizes)[:-1])
    return {(w, name): (np.flatnonzero(part), part[part > 0]) for w, part in zip(workers, parts, strict=True)}


def require_known_facts(measure: Measure) -> None:
    """Raise if a user-defined measure needs all data, because no worker has all of it."""
    kind = type(measure)
    if kind.fixed is not Measure.fixed and not kind.fixed.__module__.startswith("podium."):
        raise DataError(
            f"{measure} depends on all data (`fixed`), which no worker of a cluster has: call its `fixed` first"
        )
    if kind.mean is not Measure.mean and kind.sums is Measure.sums:
        raise DataError(f"{measure} overrides `mean`: on a cluster it needs `sums` and `mean_of_sums` as well")
