"""The state of a worker in training: its documents, their scores and their gradients.

The client calls the methods `call_…` by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.core.merging import Gathered, Max, Same, Total, Union, lowest
from podium.core.random import mix
from podium.core.team import Team
from podium.core.threads import at_most_threads
from podium.data import RankingData
from podium.data.canonical import content_hashes, document_hashes, keys_of_occurrences, query_sums
from podium.distributed.parts import ScoredPart, SearchedPart, Steps, TrainingPlan, TrainPart, ValidPart, by_bins
from podium.objectives import BoundObjective
from podium.trees import Tree, bin_features
from podium.trees.bin_matrix import FeatureLayout, bin_counts
from podium.trees.binning import BinnedFeatures, Bins
from podium.trees.distributed_binning import find_bins_in_parts
from podium.trees.growth_types import CELLS, MISSING

Calls = Sequence[tuple[str, tuple[Any, ...]]]
TRAIN = ""  # the name of the training documents among the sets
MOST_LABELS = 1000  # maximum number of distinct labels to send to the client
HASHES = 4  # number of sums that identify a data set, each over differently mixed hashes


class Holder:
    """A worker's partitions of each set, by number; the training set is `TRAIN`."""

    def __init__(self, number: int, sets: dict[str, list[tuple[int, RankingData]]], n_threads: int) -> None:
        self.number, self.n_threads, self.team = number, n_threads, Team(n_threads)
        self.data: dict[str, RankingData] = {}
        self.partition_of_row: dict[str, Ints] = {}
        for name, partitions in sets.items():
            nonempty = {k: data for k, data in sorted(partitions, key=itemgetter(0)) if len(data)}
            if nonempty:
                parts = list(nonempty.values())
                self.data[name] = parts[0] if len(parts) == 1 else RankingData.concatenate(parts)
                self.partition_of_row[name] = np.repeat(list(nonempty), [len(part) for part in parts])
        self.binned: dict[str, BinnedFeatures] = {}
        self.train: TrainPart | None = None
        self.valid: dict[str, ValidPart] = {}
        self.searched: SearchedPart | None = None
        self.ranker: BoundObjective | None = None
        self._steps: Steps | None = None

    def run(self, calls: Calls) -> Any:
        """Run calls in order, and return the answer to the last."""
        with at_most_threads(self.n_threads):
            for name, arguments in calls:
                answer = getattr(self, f"call_{name}")(*arguments)
        return answer

    # --- what the client needs to know about the documents

    def call_facts(self) -> dict[str, Any]:
        """Return the facts about each set that the client needs."""
        return {name: _facts_of(data) for name, data in self.data.items()}

    def call_keep_weighted(self) -> None:
        """Drop training documents of weight 0."""
        if TRAIN in self.data:
            data = self.data[TRAIN]
            has_weight = data.has_weight
            if not has_weight.all():
                self.data[TRAIN] = data.replace(preferences=None).take(np.flatnonzero(has_weight))
                self.partition_of_row[TRAIN] = self.partition_of_row[TRAIN][has_weight]
                if not has_weight.any():
                    del self.data[TRAIN]

    def call_query_sums(self) -> Gathered:
        """Return a hash of the features of each query; the client numbers queries with equal hashes."""
        return Gathered([(self.number, {n: query_sums(d, d.row_hashes) for n, d in self.data.items()})])

    def call_query_contents(self) -> Gathered:
        """Return a hash of all content of each query, and its original partition."""
        contents = {
            n: (query_sums(d, content_hashes(d)), self.partition_of_row[n][d.order[d.offsets[:-1]]])
            for n, d in self.data.items()
        }
        return Gathered([(self.number, contents)])

    def call_set_query_keys(self, occurrences: dict[tuple[int, str], Any]) -> None:
        """Set the keys of all queries; queries with equal features differ by how often these have occurred before."""
        for name, data in self.data.items():
            n_before = np.zeros(data.n_queries, np.uint64)
            if (self.number, name) in occurrences:
                queries, numbers = occurrences[self.number, name]
                n_before[queries] = numbers
            query_keys = keys_of_occurrences(query_sums(data, data.row_hashes), n_before)
            self.data[name] = data._changed(query_keys=query_keys)

    def call_hash_documents(self) -> dict[str, Total]:
        """Return sums over the hashes of all documents, which identify a set."""
        hashes = {name: document_hashes(data) for name, data in self.data.items()}
        return {
            name: Total(tuple(int(mix(keys + np.uint64(k)).sum(dtype=np.uint64)) for k in range(HASHES)))
            for name, keys in hashes.items()
        }

    # --- bins

    def call_bin(self, bins: Bins) -> Any:
        """Bin all documents; return the training documents per bin, and which features have missing values."""
        for name, data in self.data.items():
            self.binned[name] = bin_features(data.features, bins, self.n_threads)
        if TRAIN not in self.binned:
            return None
        binned = self.binned[TRAIN]
        counts = bin_counts(binned.columns, binned.n_rows, bins.n_features)
        return Total(counts), Union(np.array(binned.features_with_missing, np.int64))

    # --- training

    def call_bind(self, plan: TrainingPlan, layout: FeatureLayout) -> Any:
        """Start a run; return the facts that the objective needs, and the queries that a line search measures."""
        sweep, self.ranker = plan.sweep, None
        for name, data in self.data.items():
            without_features = data.without_features()
            part: ScoredPart
            if name == TRAIN:
                self.binned[name].__dict__["layout"] = layout
                part = self.train = TrainPart(without_features, self.binned[name], self.team, plan)
            else:
                part = self.valid[name] = ValidPart(without_features, self.binned[name], self.team, plan)
            if sweep is not None and sweep.set_name == name:
                orders_by_feature = sweep.ties not in ("expected", "stable", "jitter")
                searched = data if orders_by_feature else without_features
                self.searched = SearchedPart(part, searched, sweep, self.n_threads)
            self.data[name] = without_features
        facts = None if self.train is None else self.train.objective.facts()
        return facts, None if self.searched is None else self.searched.count()

    def call_set_facts(self, facts: Any, ranker: BoundObjective) -> None:
        """Set the facts about all data once; `ranker` computes the scores that rank documents."""
        if self.ranker is not None:
            return
        self.ranker = ranker
        if self.train is not None:
            self.train.set_facts(facts)
        for part in self.valid.values():
            part.begin(ranker.n_outputs)
            if part.objective is not None:
                part.objective.set_facts(facts)

    def call_start(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Start work in steps, each of which needs the merged answers of all parts to the previous one."""
        if TRAIN in self.data:
            self._steps = (self._find_bins if name == "find_bins" else getattr(self.train, name))(*arguments)
        return self.call_go_on(None)

    def _find_bins(self, max_bins: int, categorical: Sequence[int]) -> Steps:
        bins = yield from find_bins_in_parts(self.data[TRAIN].features, max_bins, categorical, self.n_threads)
        return Same(bins)

    def call_go_on(self, answer: Any) -> Any:
        """Continue with the merged answers of all parts; return whether the work is done, and this part's answer."""
        if self._steps is None:
            return None
        try:
            return Same(False), self._steps.send(answer)
        except StopIteration as end:
            self._steps = None
            return Same(True), end.value

    def call_train(self, name: str, *arguments: Any) -> Any:
        """Call a method of `TrainPart`."""
        return None if self.train is None else getattr(self.train, name)(*arguments)

    def call_add_tree(self, output: int, tree: Tree, goes_left: Bools, values: Floats, leaves: Sequence[int]) -> None:
        """Add a new tree to all scores."""
        grown = by_bins(tree, goes_left)
        if self.train is not None:
            self.train.add_tree(output, grown, values, leaves)
        for part in self.valid.values():
            part.add_by_bins(output, grown, values)

    def call_measure(self, state: dict[str, list[float]]) -> dict[str, Any]:
        """Return sums for the means of measures, by `set/measure`; `state` is the state of the objective."""
        ranker = self.ranker
        assert ranker is not None
        if state:
            ranker.restore(state)
        return {
            f"{name}/{measure}": sums
            for name, part in self.valid.items()
            for measure, sums in part.measure(ranker).items()
        }

    def call_measure_loss(self, state: dict[str, list[float]], iteration: int, of_training: bool) -> dict[str, Any]:
        """Return sums for the loss of the objective, by `set/loss`; `state` is the state of the objective."""
        parts: dict[str, TrainPart | ValidPart] = dict(self.valid)
        if of_training and self.train is not None:
            parts["train"] = self.train
        losses = {}
        for name, part in parts.items():
            assert part.objective is not None
            if state:
                part.objective.restore(state)
            losses[f"{name}/loss"] = [term.sums() for term in part.objective.loss_terms(part.scores, iteration)]
        return losses

    def call_restore(self, trees: Sequence[Tree], n_outputs: int, state: dict[str, list[float]], bins: Bins) -> None:
        """Restore the scores after some trees, and the state of the objective after them."""
        parts: list[ScoredPart] = [*self.valid.values()] + ([self.train] if self.train else [])
        grown = [(tree, by_bins(tree, goes_left_of(tree, bins))) for tree in trees]
        for part in parts:
            if part.n_trees != len(trees):
                part.begin(n_outputs)
                for k, (tree, by_bin) in enumerate(grown):
                    part.add_by_bins(k % n_outputs, by_bin, tree.leaf_value)
        if self.train is not None and state:
            self.train.objective.restore(state)

    def call_gather(self, names: Sequence[str]) -> Gathered:
        """Return arrays over the training documents, such as their scores."""
        part = self.train
        return Gathered([] if part is None else [{name: getattr(part, name).copy() for name in names}])

    # --- line search

    def call_line(self, name: str, *arguments: Any) -> Any:
        """Call a method of `SearchedPart`."""
        return None if self.searched is None else getattr(self.searched, name)(*arguments)


def _facts_of(data: RankingData) -> dict[str, Any]:
    labels = {source: np.unique(values[~np.isnan(values)]) for source, values in data.labels.items()}
    return {
        "documents": Total(len(data)),
        "queries": Total(data.n_queries),
        "weighted": Total(int(data.has_weight.sum())),
        "labels": {source: Union(lowest(values, MOST_LABELS), MOST_LABELS) for source, values in labels.items()},
        "last_position": Max(-1 if data.positions is None else int(data.positions.max())),
        "losses": Gathered(list(data.losses)),
    }


def goes_left_of(tree: Tree, bins: Bins) -> Bools:
    """Return, for each node and bin, whether the bin goes left."""
    goes_left = np.zeros((len(tree.feature), CELLS), bool)
    for k, feature in enumerate(tree.feature.tolist()):
        if tree.category[k] >= 0:
            left_categories, values = tree.categories[tree.category[k]], bins.categories[feature]
            goes_left[k, 1 : len(values) + 1] = np.isin(values, left_categories)
            if feature in bins.rare:
                goes_left[k, len(values) + 1] = np.isin(bins.rare[feature], left_categories).any()
        else:
            goes_left[k, 1 : np.searchsorted(bins.cuts[feature], tree.threshold[k]) + 2] = True
            goes_left[k, MISSING] = tree.missing_left[k]
    return goes_left
