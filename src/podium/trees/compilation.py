"""Compile the kernels of a tree in a separate process, by growing a tree on a few documents.

Each function avoids the kernels that this process compiles, and passes arguments of the types that training uses.
"""

from __future__ import annotations

import numpy as np

from podium.core.compiling import compile_in_background
from podium.core.merging import alone
from podium.core.team import Team
from podium.core.threads import n_threads_for
from podium.trees.bin_matrix import BinMatrix, lay_out
from podium.trees.binning import BinnedFeatures, Bins
from podium.trees.gradient_sampling import GradientSampler
from podium.trees.grower import Grower, grow
from podium.trees.growth_types import CELLS
from podium.trees.parameters import GrowthParameters
from podium.trees.quantization import BoundedGradients, QuantizedGradients, quantize


def begin_compilation(n_documents: int, n_threads: int, is_sampled: bool) -> None:
    """Start to compile the kernels of a tree in another process if this is a first run; `Grower` waits for it."""
    function = grow_small_tree
    if is_sampled:
        function = sample_small_tree if n_threads_for(n_documents, n_threads) == 1 else sample_small_tree_in_shares
    compile_in_background(grow, __name__, function.__name__)


def grow_small_tree() -> None:
    """Grow a tree, without a sample."""
    _grow(quantize(_gradients()))


def sample_small_tree() -> None:
    """Draw a sample on one thread, and grow a tree."""
    gradients = _gradients()
    _grow(_sampler().quantize(gradients.gradients, gradients.hessians, np.uint64(0)))


def sample_small_tree_in_shares() -> None:
    """Draw a sample with the kernels of several threads, and grow a tree."""
    gradients, sampler = _gradients(), _sampler()
    _grow(alone(sampler.quantize_in_parts(gradients, np.uint64(0), None, None, len(gradients.gradients))))


def _gradients() -> BoundedGradients:
    return BoundedGradients(np.arange(4.0), np.ones(4), (3.0, 1.0), (6.0, 4.0))


def _sampler() -> GradientSampler:
    return GradientSampler(0.5, np.arange(4, dtype=np.uint64), "newton", Team(1))


def _grow(gradients: QuantizedGradients) -> None:
    """Grow a tree on one dense feature, whose bins are laid out here, without the kernels that lay out bins."""
    bins, columns = Bins((np.zeros(1, np.float32),), {}), np.ones(4, np.uint8)
    layout = lay_out(np.ones((1, CELLS), np.int64), 4, bins.counts)
    rows, no_cells = np.ones((4 + 2) * layout.width, np.uint8), np.empty(0, np.uint32)
    matrix = BinMatrix(columns, 4, rows, layout.width, no_cells, np.empty(0, np.int64))
    binned = BinnedFeatures(bins, 4, columns).with_matrix(layout, matrix)
    Grower(binned, GrowthParameters()).grow(gradients)
