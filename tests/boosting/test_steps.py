"""Steps: what a tree's leaves add to the scores, compared with slow references."""

import math

import numpy as np
import pytest

import podium
from podium import MART, DataError, LambdaMART
from podium.boosting import Gradient, LeafLineSearch, LineSearch, Newton
from podium.combining import Sweep
from podium.objectives import Lambda, Local


@pytest.fixture(scope="module")
def parts():
    return tuple(podium.artificial(60, documents=20, features=10, seed=5, part=p) for p in ("train", "valid"))


def ndcg(data, scores):
    return Sweep(data, "ndcg@10").value(scores)  # ties count by the mean over their orders


def test_line_search_learns_at_the_usual_learning_rate(parts):
    train, valid = parts
    values = {
        step: max(LambdaMART(40, step=step).fit(train, valid=valid).history_["valid/ndcg@10"])
        for step in ("newton", "line-search")
    }
    assert values["line-search"] > values["newton"] - 0.01
    shrunk_later = LambdaMART(40, step=LineSearch(shrink="alpha")).fit(train, valid=valid)
    assert max(shrunk_later.history_["valid/ndcg@10"]) < values["newton"] - 0.02  # METHODS.md: slow for small v


class Followed:
    """A model with the scores before each tree, λ and w there, and the leaf of each document."""

    def __init__(self, train, step, n_trees=4, rate=0.3, **settings):
        seen = []
        objective = Lambda("ndcg", normalize=False)
        self.model = LambdaMART(n_trees, 6, rate, objective=objective, step=step, split_fraction=1, **settings)
        self.model.fit(train, observers=[seen.append])
        self.weights = [round_.weights[0] for round_ in seen]
        self.trees = [round_.tree for round_ in seen]
        self.before = [np.zeros(len(train)), *(round_.scores for round_ in seen[:-1])]
        self.gradients = [objective.bind(train).gradients(scores, k) for k, scores in enumerate(self.before)]
        self.leaves = self.model.apply(train).T


def mean_lambdas(lambdas, leaves):
    return np.array([lambdas[leaves == leaf].mean() for leaf in range(leaves.max() + 1)])


@pytest.mark.parametrize("shrink", ["tree", "alpha"])
def test_alpha_counts_newton_steps_and_shrinkage_follows_the_option(parts, shrink):
    """A reference that follows METHODS.md: t = v · mean λ · Σλt / Σwt², F += α t; or t without v and F += v α t."""
    train, rate = parts[0], 0.3
    run = Followed(train, LineSearch("ndcg@10", shrink=shrink))
    for k, (lambdas, hessians) in enumerate(run.gradients):
        leaves, weight = run.leaves[k], run.weights[k]
        means = mean_lambdas(lambdas, leaves)
        t = means[leaves]
        outputs = means * (lambdas @ t) / (hessians @ (t * t))
        if shrink == "tree":
            outputs = rate * outputs
        shrunk = 1.0 if shrink == "tree" else rate
        np.testing.assert_allclose(run.trees[k].leaf_value, shrunk * weight * outputs, rtol=1e-9)
        assert 0.1 <= weight <= 5
        best = ndcg(train, run.before[k] + weight * outputs[leaves])
        assert all(ndcg(train, run.before[k] + a * outputs[leaves]) <= best + 1e-9 for a in np.linspace(0.1, 5, 200))
        if k == 0:
            assert weight == 1  # F_0 = 0: every α > 0 orders alike


def test_outputs_of_newton_are_not_scaled_again(parts):
    run = Followed(parts[0], LineSearch("ndcg@10", values=Newton(l2=0.0)), l2=0.0)
    for k, (lambdas, hessians) in enumerate(run.gradients):
        leaves = run.leaves[k]
        newton = np.array([lambdas[leaves == n].sum() / hessians[leaves == n].sum() for n in range(leaves.max() + 1)])
        np.testing.assert_allclose(run.trees[k].leaf_value, run.weights[k] * 0.3 * newton, rtol=1e-9)


def test_normalized_means_are_scaled_by_the_newton_step_of_the_objective(parts):
    train = parts[0]
    run = Followed(train, LineSearch("ndcg@10", values=Gradient()), n_trees=2)
    lambdas, hessians = run.gradients[1]
    queries, leaves = np.unique(train.qid, return_inverse=True)[1], run.leaves[1]
    size = np.sqrt(np.bincount(queries, lambdas**2) / np.bincount(queries))
    means = mean_lambdas(lambdas / size[queries], leaves)
    t = means[leaves]
    unit = (lambdas @ t) / (hessians @ (t * t))
    np.testing.assert_allclose(run.trees[1].leaf_value, run.weights[1] * 0.3 * unit * means, rtol=1e-9)


def test_leaf_by_leaf_scales_by_the_newton_step_of_each_leaf(parts):
    run = Followed(parts[0], LeafLineSearch("ndcg@10"), n_trees=3)
    for k, (lambdas, hessians) in enumerate(run.gradients):
        leaves = run.leaves[k]
        newton = np.array([lambdas[leaves == n].sum() / hessians[leaves == n].sum() for n in range(leaves.max() + 1)])
        weights = run.trees[k].leaf_value / (0.3 * newton)
        assert ((weights > 0.1 - 1e-9) & (weights < 5 + 1e-9)).all()
        assert len(np.unique(weights.round(6))) > 1 or k == 0
        if k:
            assert ndcg(parts[0], run.before[k] + run.trees[k].leaf_value[leaves]) >= ndcg(
                parts[0], run.before[k] + 0.3 * newton[leaves]
            )


def test_leaf_by_leaf_finds_what_brute_force_finds():
    """A leaf after the other, the largest output first: no weight between two crossings gives more."""
    train = podium.artificial(12, documents=6, features=3)
    run = Followed(train, LeafLineSearch("ndcg@10"), n_trees=3)
    for k, (lambdas, hessians) in enumerate(run.gradients):
        leaves, before, values = run.leaves[k], run.before[k], run.trees[k].leaf_value
        outputs = np.array([
            0.3 * lambdas[leaves == n].sum() / hessians[leaves == n].sum() for n in range(leaves.max() + 1)
        ])  # fmt: skip
        weighted = outputs.copy()
        for leaf in np.argsort(-np.abs(outputs), kind="stable"):
            here = leaves == leaf
            others = before + np.where(here, 0.0, weighted[leaves])
            crossings = (others[~here][:, None] - others[here]).ravel() / outputs[leaf]
            marks = np.unique(np.clip(crossings, 0.1, 5.0))
            between = ((marks[1:] + marks[:-1]) / 2)[np.diff(marks) > 1e-9]  # closer ones are one crossing, rounded
            weights = np.concatenate([[0.1, 1.0, 5.0], between])
            highest = max(ndcg(train, others + np.where(here, w * outputs[leaf], 0.0)) for w in weights)
            weighted[leaf] = values[leaf]
            best = ndcg(train, others + np.where(here, values[leaf], 0.0))
            # At a crossing documents are tied, and the expectation over their orders may be better than both sides.
            is_crossing = np.abs(crossings - values[leaf] / outputs[leaf]).min() < 1e-9
            assert best == pytest.approx(highest, abs=1e-9) or (best > highest and is_crossing)


@pytest.mark.parametrize("step", [LineSearch("ndcg@10"), LeafLineSearch("ndcg@10"), LineSearch(values=Newton(l2=0.0))])
def test_monotone_constraints_hold_for_all_weights(parts, step):
    train = parts[0]
    model = LambdaMART(8, 8, step=step, monotone={0: 1, 1: -1}).fit(train)
    probe = np.repeat(train.features[:40], 50, axis=0)
    for feature, sign in ((0, 1), (1, -1)):
        values = probe.copy()
        values[:, feature] = np.tile(np.linspace(-3, 3, 50), 40)
        assert (sign * np.diff(model.predict(values).reshape(40, 50), axis=1) >= 0).all()


def test_outputs_are_not_scaled_without_a_newton_step(parts):
    train = parts[0]
    model = LambdaMART(5, objective=Local("ndcg"), step="line-search").fit(train)
    assert model.score(train) > LambdaMART(1, objective=Local("ndcg"), step="line-search").fit(train).score(train)


def test_bad_options():
    with pytest.raises(DataError, match="shrink must be 'tree' or 'alpha'"):
        LineSearch(shrink="both")
    for make in (Newton, LineSearch):
        with pytest.raises(DataError, match="max_delta_step must be positive"):
            make(max_delta_step=0)


def test_labels_of_any_size_are_reached_in_one_step():
    """Least squares: w does not depend on the scores, and no step needs a limit."""
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 20, -1e6, 1e6)
    model = MART(1, 2, 1.0, min_documents_in_leaf=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y)
    held = MART(1, 2, 1.0, min_documents_in_leaf=1, max_delta_step=10).fit(X, y)
    np.testing.assert_allclose(held.predict(X), np.sign(y) * 10)
    free = MART(1, 2, 1.0, min_documents_in_leaf=1, max_delta_step=math.inf).fit(X, y)
    assert free.digest() == model.digest()
