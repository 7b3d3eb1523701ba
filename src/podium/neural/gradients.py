"""Integrated gradients: what each input of a net adds to its score, on the way from a baseline to the document.

φ_k = (x_k − b_k) ∫ ∂s/∂x_k (b + t (x − b)) dt over [0, 1], x and b on the scale of the net's inputs (Sundararajan, Taly
and Yan 2017). Σ φ_k = s(x) − s(b). The integral is a sum over 16 points of Gauss and Legendre, or over 16 of each of
several stretches, until Σ is right. Few points do for smooth nets; those with kinks (ReLU) need many.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np
import torch
from torch import nn

from podium.core.array_types import Float32s, Floats
from podium.errors import DataError, PodiumWarning
from podium.neural.modules import scores_of, sees_lists

POINTS, STRETCHES = 16, (1, 4, 16, 64)
TOLERANCE, TOO_MUCH = 1e-4, 1e-3  # of 1 + |gap of the scores|: when to stop, and when to warn
ROWS_AT_ONCE = 1 << 15  # documents × points


def integrated_gradients(module: nn.Module, inputs: Float32s, baseline: Floats) -> tuple[Floats, float]:
    """φ of each input (column) for each document (row), and the score of the baseline; computed in double.

    Example:
        >>> import numpy as np, torch
        >>> from podium.neural import Layers
        >>> from podium.neural.gradients import integrated_gradients
        >>> net = Layers(2, hidden=3)
        >>> values, base = integrated_gradients(net, np.array([[0.5, -1.0]], np.float32), np.zeros(2))
        >>> with torch.no_grad():
        ...     score = net.double()(torch.tensor([[0.5, -1.0]], dtype=torch.double)).item()
        >>> bool(abs(base + values.sum() - score) < 1e-5)
        True

    """
    if sees_lists(module):
        raise DataError(
            "this net sees whole lists: a document's score depends on the features of the others, too, so that its own "
            "do not add up to it. permutation_importance and partial_dependence take any model"
        )
    exact = copy.deepcopy(module).double().requires_grad_(False).eval()
    start = torch.from_numpy(np.asarray(baseline, np.float64))
    steps = torch.from_numpy(inputs.astype(np.float64)) - start
    base = float(_scores(exact, start[None, :])[0])
    gaps = _scores(exact, start + steps) - base
    values, open_rows = torch.zeros_like(steps), torch.arange(len(steps))
    for n_stretches in STRETCHES:
        for rows in torch.split(open_rows, ROWS_AT_ONCE // (POINTS * n_stretches)):
            values[rows] = steps[rows] * _mean_gradients(exact, start, steps[rows], n_stretches)
        errors = (values.sum(dim=1) - gaps).abs() / (1 + gaps.abs())
        open_rows = torch.nonzero(errors > TOLERANCE).ravel()
        if not len(open_rows):
            break
    n_wrong = int((errors > TOO_MUCH).sum())
    if n_wrong:
        warnings.warn(
            f"integrated gradients of {n_wrong} documents add up only within {float(errors.max()):.1g} of "
            f"the gap of scores, even with {POINTS * STRETCHES[-1]} points: the net is not smooth there",
            PodiumWarning,
            stacklevel=2,
        )
    return values.numpy(), base


def _scores(module: nn.Module, documents: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return scores_of(module, documents, torch.tensor([0, len(documents)]), False)


def _mean_gradients(module: nn.Module, start: torch.Tensor, steps: torch.Tensor, n_stretches: int) -> torch.Tensor:
    """∫ ∂s/∂x along each step."""
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    places = (np.arange(n_stretches)[:, None] + (points + 1) / 2).ravel() / n_stretches
    shares = torch.from_numpy(np.tile(weights / 2, n_stretches) / n_stretches)
    documents = start + torch.from_numpy(places)[None, :, None] * steps[:, None, :]
    documents = documents.reshape(-1, len(start)).requires_grad_()
    with torch.enable_grad():
        scores = scores_of(module, documents, torch.tensor([0, len(documents)]), False)
        (gradients,) = torch.autograd.grad(scores.sum(), documents)
    return (gradients.reshape(len(steps), len(places), len(start)) * shares[None, :, None]).sum(dim=1)
