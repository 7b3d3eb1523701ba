"""Every way to score trees gives the same bits as a walk in Python."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import podium
from podium.models import Ensemble
from podium.models.scoring import TreeArrays, TreeScorer, program, tree_scorer
from podium.models.scoring.encoding import MAX_BITS, encode_all
from podium.testing import score_slowly
from podium.trees import Tree

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38], np.float32)
SHAPES = ("any", "chain", "left chain", "even", "zigzag")


def random_tree(random, n_leaves, n_features, shape="any", categorical=(), thresholds=None):
    """Return a tree of a shape, with unusual thresholds, and missing values on either side."""
    left, right, leaves = [], [], [(-1, 0)]  # leaves that may become nodes: (parent, side)
    for node in range(n_leaves - 1):
        pick = {"chain": -1, "left chain": -2, "even": 0, "zigzag": -1 - node % 2}.get(shape)
        pick = random.integers(len(leaves)) if pick is None else max(pick, -len(leaves))
        parent, side = leaves.pop(int(pick))
        if parent >= 0:
            (left, right)[side][parent] = node
        left.append(None)
        right.append(None)
        leaves += [(node, 0), (node, 1)]
    for k, (parent, side) in enumerate(random.permutation(leaves) if n_leaves > 1 else []):
        (left, right)[side][parent] = ~k
    n = n_leaves - 1
    feature = random.integers(0, n_features, n).astype(np.int32)
    pool = (
        thresholds if thresholds is not None else np.concatenate([ODD[1:], random.normal(size=20)]).astype(np.float32)
    )
    category, sets = np.full(n, -1, np.int32), []
    for node in range(n):
        if feature[node] in categorical:
            category[node] = len(sets)
            sets.append(np.unique(random.integers(0, 40, random.integers(0, 6))).astype(np.float32))
    return Tree(
        feature, random.choice(pool, n), random.random(n) < 0.5, category, np.array(left, np.int32),
        np.array(right, np.int32), np.zeros(n), np.zeros(n, np.int64), random.normal(size=n_leaves),
        np.zeros(n_leaves, np.int64), tuple(sets),
    )  # fmt: skip


def random_rows(random, model, n):
    """Return values at thresholds and next to them, unusual values and categories."""
    thresholds = model.arrays["threshold"] if len(model.arrays["threshold"]) else ODD
    above, below = (np.nextafter(thresholds, np.float32(end)) for end in (np.inf, -np.inf))
    pool = [ODD, thresholds, above, below, np.arange(45)]
    return random.choice(np.concatenate(pool).astype(np.float32), (n, model.n_features))


def scores_in_blocks(model, rows, n_threads=1):
    scorer = TreeScorer(model.arrays)
    scorer.prepare()
    assert scorer._dense, "these trees have no program"
    scores = np.zeros(rows.shape[0])
    scorer.add_scores(rows, scores, 0, model.n_trees, n_threads)
    return scores


@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.integers(1, 40), st.integers(0, 20), st.integers(1, 40))
def test_blocks_score_as_a_walk_does(seed, shape, n_leaves, n_trees, n_features):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, n_leaves + 1, n_trees)
    trees = [random_tree(random, size, n_features, shape, categorical=(0, 3)) for size in sizes]
    model = Ensemble.of_trees(trees, n_features)
    rows = random_rows(random, model, int(random.choice([8, 65, 130])))
    expected = score_slowly(model, rows)
    assert np.array_equal(scores_in_blocks(model, rows), expected)
    walked = np.zeros(len(rows))
    for row in range(len(rows)):
        walked[row] = model.predict(rows[row : row + 1], n_threads=1)[0]
    assert np.array_equal(walked, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_leaves", [200, 300, 900])
def test_codes_of_two_bytes(shape, n_leaves):
    random = np.random.default_rng(n_leaves)
    trees = [random_tree(random, size, 5, shape) for size in (n_leaves, 3, n_leaves - 1, 1, n_leaves, 20, 20)]
    model = Ensemble.of_trees(trees, 5)
    rows = random_rows(random, model, 700)
    assert np.array_equal(scores_in_blocks(model, rows), score_slowly(model, rows))


def test_sparse_rows_with_features_that_no_tree_uses():
    random = np.random.default_rng(8)
    trees = [random_tree(random, 9, 3) for _ in range(12)]
    trees = [replace(tree, feature=np.array([4, 11, 30], np.int32)[tree.feature]) for tree in trees]
    model = Ensemble.of_trees(trees, 40)
    rows = sparse.csr_array(np.where(random.random((90, 40)) < 0.3, random.normal(size=(90, 40)), 0).astype(np.float32))
    assert np.array_equal(scores_in_blocks(model, rows), score_slowly(model, rows.toarray()))


def test_more_thresholds_than_a_rank_can_number():
    random = np.random.default_rng(5)
    trees = [random_tree(random, 60, 2, thresholds=random.normal(size=5000).astype(np.float32)) for _ in range(20)]
    model = Ensemble.of_trees(trees, 2)
    rows = random_rows(random, model, 600)
    assert np.array_equal(scores_in_blocks(model, rows), score_slowly(model, rows))


def test_many_comparisons_become_several_programs(monkeypatch):
    monkeypatch.setattr(program, "MAX_COMPARISONS", 100)
    monkeypatch.setattr(program, "MAX_PROGRAM_NODES", 0)
    random = np.random.default_rng(6)
    trees = [random_tree(random, 30, 6, categorical=(1,)) for _ in range(40)]
    model = Ensemble.of_trees(trees, 6)
    assert len(program.make_programs(TreeArrays.of(model.arrays))) > 5
    rows = random_rows(random, model, 300)
    assert np.array_equal(scores_in_blocks(model, rows), score_slowly(model, rows))


def test_trees_that_are_too_large_are_walked():
    random = np.random.default_rng(7)
    trees = [random_tree(random, (1 << MAX_BITS) + 1, 4)]
    model = Ensemble.of_trees(trees, 4)
    scorer = TreeScorer(model.arrays)
    scorer.prepare()
    assert not scorer._dense
    rows = random_rows(random, model, 2000)
    assert np.array_equal(model.predict(rows), model.predict(rows[::-1])[::-1])
    assert np.array_equal(model.predict(rows)[:50], score_slowly(model, rows[:50]))


def test_a_chain_of_leaves_has_a_short_code():
    """Cuts halve it: 7 bits for 31 leaves, where a bit for each level would be 30."""
    n = 30
    right = np.append(np.arange(1, n), ~n).astype(np.int32)
    encoded = encode_all(
        ~np.arange(n, dtype=np.int32), right, np.arange(2, n + 2, dtype=np.int32), np.array([0, n]), n + 2
    )
    assert encoded.plane_offsets[-1] <= 7
    assert len(encoded.choices) // 4 < 3 * n


@pytest.fixture(scope="module")
def trained():
    data = podium.artificial_web(60, seed=3)
    features = data.features.copy()
    features[::5, ::3] = np.nan
    return podium.LambdaMART(n_trees=60, n_leaves=31).fit(data.replace(features=features)).model_, features


def test_layouts_and_threads_give_the_same_bits(trained):
    model, features = trained
    expected = model.predict(features)
    assert np.array_equal(expected[:300], score_slowly(model, features[:300]))
    forms = {
        "columns": np.asfortranarray(features), "sliced": np.repeat(features, 2, axis=1)[:, ::2],
        "read-only": np.frombuffer(features.tobytes(), np.float32).reshape(features.shape),
        "double": features.astype(np.float64), "sparse": sparse.csr_array(features),
        "sparse columns": sparse.csc_matrix(features),
    }  # fmt: skip
    for name, form in forms.items():
        for n_threads in (1, 3):
            assert np.array_equal(model.predict(form, n_threads=n_threads), expected), name
    with ThreadPoolExecutor(4) as pool:  # at the same time, with one scorer
        scorer = model.scorer(n_threads=1)
        assert all(np.array_equal(scores, expected) for scores in pool.map(scorer, [features] * 8))


@pytest.mark.parametrize("n", [1, 7, 8, 100, 128, 129, 255, 256, 257, 500, 512, 513, 800, 1100])
def test_any_number_of_rows(trained, n):
    model, features = trained
    assert np.array_equal(model.scorer(n_threads=1)(features[:n].copy()), model.predict(features)[:n])


def test_a_scorer_refuses_what_predict_refuses(trained):
    """Parts that differ in the order of their features, and features of another number."""
    first, second = (
        podium.models.LinearModel(np.array([1.0, 2.0]), np.zeros(2), feature_names=names)
        for names in (("a", "b"), ("b", "a"))
    )
    combined = podium.models.Combined((first, second), (1.0, 1.0))
    with pytest.raises(podium.DataError, match="pass X with names"):
        combined.scorer()(np.ones((3, 2), np.float32))
    model, features = trained
    with pytest.raises(podium.DataError, match="136"):
        model.scorer()(features[:, :100])


def test_the_program_is_made_after_many_rows(trained, monkeypatch):
    model, features = trained
    calls = []
    monkeypatch.setattr(tree_scorer, "make_programs", lambda trees: calls.append(1) or program.make_programs(trees))
    model = copy.deepcopy(model)
    for _ in range(10):
        model.predict(features[:90])
    assert not calls
    for _ in range(5):
        model.predict(features[:90])
    assert len(calls) == 1
    again = pickle.loads(pickle.dumps(model))
    again.predict(features)
    assert len(calls) == 2


def test_raw_values_score_like_their_bins(trained):
    """Every value of a bin goes the same way at every threshold of a model trained on these bins."""
    from podium.trees import bin_features, find_bins

    model, features = trained
    bins = find_bins(features)
    binned = bin_features(features, bins)
    representatives = np.empty_like(features)
    for k, cuts in enumerate(bins.cuts):
        uppers = np.concatenate([[np.nan], cuts, [np.inf]]).astype(np.float32)
        representatives[:, k] = uppers[binned.column(k)]
    assert np.array_equal(model.predict(representatives), model.predict(features))


@pytest.mark.slow
def test_machines_without_avx512_give_the_same_bits(trained, tmp_path):
    model, features = trained
    model.save(tmp_path / "m.podium")
    np.save(tmp_path / "x.npy", features[:700])
    off = ",".join(f"-{name}" for name in ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512vbmi"))
    code = (
        "import sys, numpy as np, podium; m = podium.models.load_model(sys.argv[1] + '/m.podium'); "
        "np.save(sys.argv[1] + '/s.npy', m.scorer(n_threads=1)(np.load(sys.argv[1] + '/x.npy')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": f"+avx2,+fma,{off}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "s.npy"), model.predict(features)[:700])
