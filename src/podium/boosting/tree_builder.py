"""Build a tree from gradients: sample, round to integers, grow, compute leaf values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.boosting.binned_data import BinnedData
from podium.boosting.sampling import BoundSampling
from podium.core.array_types import Floats, Int32s, Ints
from podium.core.team import Team
from podium.trees import Grower, GrownTree
from podium.trees.gradient_sampling import GradientSampler
from podium.trees.grower import NO_RULE, NONE
from podium.trees.growth_types import LeafRule
from podium.trees.quantization import BoundedGradients, quantize

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting


class Sample(NamedTuple):
    """The documents and features that the trees of a round are grown on; None for all."""

    rows: Int32s | None  # of the documents, ascending
    features: Ints | None  # by number, ascending


class TreeBuilder:
    """Builds trees on the training data.

    A tree depends only on the settings and on sums of integers over documents: bounds (`BoundedGradients`), histograms
    and totals (`Grower`), leaf sums (`GrownTree.sums`). Parts of the documents can be summed separately and added in
    any order; the result is the same.

    Attributes:
        step: computes leaf values.

    """

    def __init__(self, settings: Boosting, data: BinnedData, team: Team) -> None:
        growth, self.team = settings.growth, team
        if not settings.step.uses_hessians:
            growth = replace(growth, split="least-squares", l1=0.0, l2=0.0)
        self.sampling = BoundSampling(settings.sampling, data.train)
        self.sampler = None
        if self.sampling.split_fraction < 1:  # before the grower allocates memory, because keys need some temporarily
            keys = self.sampling.random.document_keys
            order = data.binned.rows_by_entries
            self.sampler = GradientSampler(self.sampling.split_fraction, keys, growth.split, team, order)
        self.grower = Grower(data.binned, growth, team)
        self.step = settings.step.bind(settings.objective)
        self.words = np.empty(data.train.n_documents, np.int64)

    def sample(self, iteration: int) -> Sample:
        """Draw the documents and features of a round."""
        settings = self.sampling.sampling
        return Sample(self.sampling.rows(iteration), settings.features(iteration, self.grower.binned.bins.n_features))

    def build(
        self, gradients: Floats, hessians: Floats, weights: Floats | None, sample: Sample, tree: int,
        scores: Floats = NONE, rule: LeafRule = NO_RULE,
    ) -> tuple[GrownTree, BoundedGradients]:  # fmt: skip
        """Build a tree, with splits from the gradient-based sample, or from all documents if that allows no split.

        Args:
            gradients, hessians: those of one output, after `Step.prepare`.
            weights: the weight of each document in least-squares splits; None if all weigh 1.
            sample: the documents and features of the tree.
            tree: the number of the tree, which seeds random numbers.
            scores, rule: see `Grower.grow`.

        """
        self.grower.wait_for_compilation()  # also of the kernels that sample
        bounded, sampling = None, self.sampling.sampling
        node_seed = sampling.node_seed(tree)
        if self.sampler is not None:
            seed = sampling.split_seed(tree)
            quantized = self.sampler.quantize(gradients, hessians, seed, self.words, weights)
            grown, bounded = self.grower.grow(quantized, *sample, scores, rule, node_seed), quantized.source
            if grown.tree.n_leaves > 1:
                return grown, bounded
        bounded = bounded or BoundedGradients.of(gradients, hessians, self.team)
        quantized = quantize(bounded, self.grower.parameters.split, self.team, self.words, weights)
        return self.grower.grow(quantized, *sample, scores, rule, node_seed), bounded

    def leaf_values(self, grown: GrownTree, gradients: BoundedGradients) -> Floats:
        """Return a value for each leaf, within the bounds of monotone constraints."""
        return grown.within_bounds(self.step.leaf_values(grown, gradients, self.team))
