"""The scale of inputs, compared with scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from podium import DataError
from podium.neural import Inputs

X = np.random.default_rng(0).lognormal(size=(500, 4)).astype(np.float32)


def test_standard_and_log_equal_those_of_scikit_learn():
    assert np.allclose(Inputs.fitted(X, "standard")(X), StandardScaler().fit_transform(X), atol=1e-5)
    logs = StandardScaler().fit_transform(np.log1p(X.astype(np.float64)))
    assert np.allclose(Inputs.fitted(X, "log")(X), logs, atol=1e-5)
    signed = np.where(np.arange(500)[:, None] % 2, X, -X)
    scaled = Inputs.fitted(signed, "log")(signed)
    assert np.allclose(scaled, StandardScaler().fit_transform(np.sign(signed) * np.log1p(np.abs(signed))), atol=1e-5)


def test_quantiles_equal_those_of_scikit_learn_except_for_the_scale():
    ties = X.round(1)
    ranks = QuantileTransformer(n_quantiles=129).fit_transform(ties.astype(np.float64))
    scaled = Inputs.fitted(ties, "quantile")(ties)
    inner = (ranks > 0.01) & (ranks < 0.99)  # at the ends scikit-learn leaves the middle of ties
    assert np.allclose(scaled[inner], StandardScaler().fit_transform(ranks)[inner], atol=0.05)
    assert abs(scaled.mean(axis=0)).max() < 1e-5
    beyond = Inputs.fitted(X, "quantile")(np.array([[1e9] * 4, [-1e9] * 4], np.float32))
    assert (beyond[0] == Inputs.fitted(X, "quantile")(X).max(axis=0)).all()
    assert (beyond[1] < beyond[0]).all()


@pytest.mark.parametrize("kind", ["standard", "log", "quantile"])
def test_missing_values_count_as_the_mean(kind):
    holes = X.copy()
    holes[:50, 1], holes[50:60, 2], holes[:, 3] = np.nan, np.inf, 7.0
    inputs = Inputs.fitted(holes, kind)
    scaled = inputs(holes)
    assert np.isfinite(scaled).all()
    assert (scaled[:50, 1] == 0).all()
    assert (scaled[50:60, 2] == 0).all()
    assert (scaled[:, 3] == 0).all()  # a constant says nothing
    tiny = np.array([[1e-13], [3e-13], [2e-13]], np.float32)
    assert np.allclose(Inputs.fitted(tiny, "standard")(tiny)[:, 0], [-1.2247, 1.2247, 0], atol=1e-3)
    far = Inputs.fitted(X / 1e6, "standard")(np.full((1, 4), np.finfo(np.float32).max))
    assert (far == 1e6).all()
    rest = Inputs.fitted(holes[50:], kind)(holes[50:])
    assert np.allclose(scaled[50:, 1], rest[:, 1])


def test_sparse_equals_dense_and_none_changes_nothing():
    few = np.where(X > 1.5, X, 0).astype(np.float32)
    compressed = sparse.csr_array(few)
    for kind in ("standard", "log", "quantile"):
        assert np.array_equal(Inputs.fitted(few, kind)(few), Inputs.fitted(compressed, kind)(compressed))
    assert np.array_equal(Inputs.fitted(X, "none")(X), X)
    with pytest.raises(DataError, match="inputs must be one of 'standard'"):
        Inputs.fitted(X, "minmax")
