"""Whatever objectives are put together: neither the order of rows nor the number of threads changes a bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import LambdaMART, RankingData
from podium.boosting import Gradient, Newton
from podium.core.team import Team
from podium.objectives import Anneal, Debiased, Sum, Tiers
from tests.objectives.test_grammar import objectives


def everything(seed):
    """Data with all that any objective asks for: labels of two sources, weights, positions, preferences."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 8)
    n = int(sizes.sum())
    labels, clicks = rng.integers(0, 4, n).astype(np.float32), (rng.integers(0, 4, n) / 4).astype(np.float32)
    labels[:4] = [0, 1, 2, 3]
    for source in (labels, clicks):
        source[4:][rng.random(n - 4) < 0.1] = np.nan
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    i = np.arange(n)
    j = first + (i - first + 1) % np.repeat(sizes, sizes)
    return RankingData(
        np.round(rng.normal(size=(n, 3)), 1), qid=np.repeat(np.arange(8) * 7 % 11, sizes),
        labels={"relevance": labels, "clicks": clicks}, document_weights=rng.random(n) + 0.5,
        query_weights=rng.random(8) + 0.5, positions=rng.choice([-1, 1, 2, 3, 4], n),
        preferences=(i, j, np.round(rng.random(n), 1)),
    )  # fmt: skip


def outputs(objective):
    parts = objective.tiers if isinstance(objective, Tiers) else ()
    if isinstance(objective, Anneal):
        parts = (objective.before, objective.after)
    elif isinstance(objective, Sum):
        parts = objective.parts
    elif isinstance(objective, Debiased):
        parts = (objective.objective,)
    return type(objective).__name__ == "Multiclass" or any(map(outputs, parts))


single = objectives.filter(lambda objective: not outputs(objective))


@settings(max_examples=60, deadline=None)
@given(single, st.integers(0, 50))
def test_gradients(objective, seed):
    data = everything(seed)
    shuffle = np.random.default_rng(seed).permutation(len(data))
    scores = np.round(np.random.default_rng(seed + 1).normal(size=len(data)), 1)
    results = []
    for given_data, given_scores, threads in ((data, scores, 1), (data.take(shuffle), scores[shuffle], 3)):
        bound = objective.bind(given_data)
        with Team(threads) as team:
            bound.team = team
            results.append([bound.gradients(given_scores, m) for m in (0, 1, 5)])
    for a, b in zip(*results, strict=True):
        assert np.array_equal(a[0][shuffle], b[0])
        assert np.array_equal(a[1][shuffle], b[1])
        assert np.isfinite(a[0]).all()
        assert not objective.has_hessian or (a[1] >= 0).all()


@settings(max_examples=20, deadline=None)
@given(single, st.integers(0, 50))
def test_models(objective, seed):
    data = everything(seed)
    shuffle = np.random.default_rng(seed).permutation(len(data))
    step = Newton(l2=0.1) if objective.has_hessian else Gradient()
    settings = {"n_trees": 3, "n_leaves": 4, "min_documents_in_leaf": 3, "objective": objective, "step": step}
    serial = LambdaMART(**settings, n_threads=1).fit(data)
    parallel = LambdaMART(**settings, n_threads=2).fit(data.take(shuffle))
    assert serial.digest() == parallel.digest()
