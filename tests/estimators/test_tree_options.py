"""Options of tree growth in trained models: what they promise, and what LightGBM and CatBoost grow."""

import warnings

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART, PodiumWarning
from podium.boosting import Boosting, Newton
from podium.trees import GrowthParameters
from podium.trees.quantization import shrunk

OPTIONS = {
    "l1": 0.05, "min_gain_to_split": 3.0, "min_hessian_in_leaf": 2.0, "feature_fraction_per_node": 0.6,
    "interaction_constraints": [[0, 1, 2], [2, 3, 4]],
}  # fmt: skip
TINY = 1e-200  # l1 that changes nothing, but has the kernel of others
SMALL = {"n_trees": 4, "n_leaves": 8, "min_documents_in_leaf": 9, "learning_rate": 0.3}


@pytest.fixture(scope="module")
def train():
    return podium.artificial(30, documents=20, features=6)


def trees_of(model):
    return [model.trees_.tree(k) for k in range(model.trees_.n_trees)]


def paths(tree, node=0, above=()):
    """Return the features on the path to each leaf."""
    if node < 0 or not len(tree.feature):
        return [above]
    below = (*above, int(tree.feature[node]))
    return paths(tree, tree.left[node], below) + paths(tree, tree.right[node], below)


@pytest.mark.parametrize("options", [OPTIONS, {"symmetric": True}], ids=["options", "symmetric"])
def test_neither_threads_nor_rows_nor_a_folder_of_bins_matter(train, options, tmp_path):
    first = LambdaMART(**SMALL, **options, n_threads=1).fit(train)
    assert first.trees_.n_trees == 4
    assert first.digest() != LambdaMART(**SMALL).fit(train).digest()
    shuffled = train.take(np.random.default_rng(0).permutation(len(train)))
    assert LambdaMART(**SMALL, **options, n_threads=3).fit(shuffled).digest() == first.digest()
    podium.write(train, tmp_path / "train.txt", lossy=True)
    bins = podium.bin_files(tmp_path / "train.txt", tmp_path / "bins")
    in_memory = LambdaMART(**SMALL, **options).fit(podium.read(tmp_path / "train.txt"))
    assert LambdaMART(**SMALL, **options).fit(bins).digest() == in_memory.digest()
    first.save(tmp_path / "model.podium")
    assert podium.load(tmp_path / "model.podium").get_params()["symmetric"] == ("symmetric" in options)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_its_effect(train, name):
    """All options are set, so that one kernel is compiled for all cases."""
    without = {"l1": TINY, "interaction_constraints": [list(range(6))], "feature_fraction_per_node": 1.0}
    changed = OPTIONS | {name: without.get(name, 0.0)}
    assert LambdaMART(**SMALL, **changed).fit(train).digest() != LambdaMART(**SMALL, **OPTIONS).fit(train).digest()


def test_a_path_uses_features_of_one_group(train):
    named = train.replace(feature_names=tuple("abcdef"))
    options = OPTIONS | {"feature_fraction_per_node": 1.0}
    groups = [["a", "b", "c"], ["c", "d", "e"]]
    model = LambdaMART(**SMALL | {"n_leaves": 16}, **options | {"interaction_constraints": groups}).fit(named)
    used = {path for tree in trees_of(model) for path in paths(tree)}
    assert all(set(path) <= {0, 1, 2} or set(path) <= {2, 3, 4} for path in used)
    assert any(0 in path for path in used)
    assert any(3 in path for path in used)
    assert not any(5 in path for path in used)  # in no group
    by_number = LambdaMART(**SMALL | {"n_leaves": 16}, **options).fit(named)
    assert by_number.digest() == model.digest()


def test_features_of_nodes_follow_from_the_seed(train):
    options = OPTIONS | {"feature_fraction_per_node": 0.4, "interaction_constraints": [list(range(6))]}
    options["min_gain_to_split"] = 0.0
    models = [LambdaMART(**SMALL, **options, split_fraction=1.0, random_state=seed).fit(train) for seed in (0, 0, 1)]
    assert models[0].digest() == models[1].digest()
    assert models[0].digest() != models[2].digest()
    roots = {int(tree.feature[0]) for tree in trees_of(LambdaMART(**SMALL | {"n_trees": 40}, **options).fit(train))}
    assert len(roots) >= 3  # the best feature is often left out


@pytest.mark.parametrize("monotone", [None, {0: 1, 1: -1}])
def test_the_levels_of_a_symmetric_tree_have_one_split_each(train, monotone):
    model = LambdaMART(**SMALL | {"n_leaves": 33}, symmetric=True, monotone=monotone).fit(train)
    for tree in trees_of(model):
        splits = {(int(f), float(t)) for f, t in zip(tree.feature, tree.threshold, strict=True)}
        assert 1 < len(splits) <= 5
        assert len(tree.feature) > len(splits)
        assert tree.leaf_count.min() >= 9
    if monotone:
        rng = np.random.default_rng(1)
        for feature, direction in monotone.items():
            line = np.repeat(rng.random((20, 1, 6)), 50, axis=1)
            line[:, :, feature] = np.linspace(0, 1, 50)
            scores = model.predict(line.reshape(-1, 6)).reshape(20, 50)
            assert (np.diff(scores, axis=1) * direction >= 0).all()


def test_l1_shrinks_leaf_values(train):
    """Both in the kernel that grows a tree and in Python, which samples of documents need."""
    assert [shrunk(g, 2.0) for g in (-5.0, -2.0, -1.0, 0.0, 1.5, 3.0)] == [-3.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    growth = GrowthParameters(n_leaves=4, l1=0.3, l2=0.5, interaction_constraints=(tuple(range(6)),))
    run = Boosting(n_trees=1, growth=growth, step=Newton(l1=0.3, l2=0.5), learning_rate=1.0)
    rounds = []
    tree = run.fit(train, observers=[rounds.append]).ensemble
    leaf = tree.leaves(train)[:, 0]
    sums = [np.bincount(leaf, values, tree.tree(0).n_leaves) for values in (rounds[0].gradients, rounds[0].hessians)]
    expected = np.sign(sums[0]) * np.maximum(np.abs(sums[0]) - 0.3, 0) / (sums[1] + 0.5)
    assert tree.tree(0).leaf_value == pytest.approx(expected, abs=1e-9)
    assert 0.0 in Newton(l1=1e9).scale(Newton(l1=1e9).leaf_values(_Sums(sums), None, None), 1.0)
    assert Newton(l1=0.3, l2=0.5).leaf_values(_Sums(sums), None, None) == pytest.approx(expected)


class _Sums:
    def __init__(self, sums):
        self.known = sums

    def sums(self, gradients, team):
        return self.known


# --- other tools


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    x, weights = rng.integers(0, 12, (600, 6)).astype(float), rng.random(600) + 0.2
    y = x[:, 0] * x[:, 1] / 10 + 3 * np.sin(x[:, 2]) - x[:, 3] * (x[:, 4] > 5) / 3 + rng.normal(0, 0.5, 600)
    return x, y - np.average(y, weights=weights), weights


@pytest.mark.parametrize(
    "options",
    [
        {"lambda_l2": 3.0}, {"lambda_l1": 20.0}, {"min_gain_to_split": 60.0}, {"min_sum_hessian_in_leaf": 45.0},
        {"interaction_constraints": [[0, 1], [2, 3]]}, {"interaction_constraints": [[0, 1, 2], [2, 3], [4]]},
    ],
    ids=str,
)  # fmt: skip
def test_lightgbm_grows_the_same_tree(regression, options):
    """LightGBM does not try a feature without gain again further down; that makes no difference in these trees."""
    lightgbm = pytest.importorskip("lightgbm")
    x, y, weights = regression
    params = {
        "objective": "regression", "num_leaves": 15, "learning_rate": 0.3, "min_data_in_leaf": 1, "lambda_l1": TINY,
        "lambda_l2": 0.0, "min_sum_hessian_in_leaf": 0.0, "interaction_constraints": [list(range(6))],
    } | options  # fmt: skip
    others = {"min_data_in_bin": 1, "boost_from_average": False, "verbosity": -1, "num_threads": 1}
    expected = lightgbm.train(params | others, lightgbm.Dataset(x, y, weight=weights), 1).predict(x)
    translated = LambdaMART.from_lightgbm(params, n_trees=1).get_params()
    same = {name: translated[name] for name in podium.MART().get_params() if name not in ("measure", "split_fraction")}
    model = podium.MART(**same).fit(x, y, sample_weight=weights)
    assert model.predict(x) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("l2", [0.0, 5.0])
def test_catboost_grows_the_same_symmetric_trees(regression, l2):
    catboost = pytest.importorskip("catboost")
    x, y, _ = regression
    y = y - y.mean()
    theirs = catboost.CatBoostRegressor(
        iterations=3, depth=4, learning_rate=0.3, l2_leaf_reg=l2, score_function="L2", random_strength=0,
        bootstrap_type="No", boost_from_average=False, leaf_estimation_iterations=1, verbose=0, thread_count=1,
        allow_writing_files=False,
    ).fit(x, y)  # fmt: skip
    model = podium.MART(3, 16, 0.3, min_documents_in_leaf=1, symmetric=True, split="newton", l2=l2).fit(x, y)
    assert model.predict(x) == pytest.approx(theirs.predict(x), abs=1e-5)
    for ours, tree in zip(trees_of(model), map(podium.import_model(theirs).tree, range(3)), strict=True):
        splits = [set(zip(t.feature.tolist(), t.threshold.tolist(), strict=True)) for t in (ours, tree)]
        assert splits[0] == splits[1]


# --- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interaction_constraints": []}, r"interaction_constraints must be a list of groups, such as .*, but is \[\]"),
        ({"interaction_constraints": [[]]}, r"must be a list of groups, such as .*, but is \[\[\]\]"),
        ({"interaction_constraints": [0, 1]}, "interaction_constraints must be a list of groups"),
        ({"interaction_constraints": "ab"}, "interaction_constraints must be a list of groups"),
        ({"interaction_constraints": [["x"]]}, "interaction_constraints: there is no feature named 'x'"),
        ({"interaction_constraints": [[6]]}, "interaction_constraints: there is no feature 6"),
        ({"l1": -1}, "l1"), ({"min_gain_to_split": -1}, "min_gain_to_split"), ({"symmetric": 1}, "symmetric must be"),
        ({"feature_fraction_per_node": 0}, "feature_fraction_per_node must be above 0"),
        ({"min_hessian_in_leaf": 1.0, "split": "least-squares"}, "min_hessian_in_leaf=1.0 needs splits by hessians"),
        ({"min_hessian_in_leaf": 1.0, "step": "gradient"}, "min_hessian_in_leaf=1.0 needs splits by hessians"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(train, options, words):
    with pytest.raises(DataError, match=words):
        LambdaMART(**SMALL, **options).fit(train)


def test_l1_without_an_effect_is_named(train):
    with pytest.warns(PodiumWarning, match=r"l1=0.5 has no effect: step='gradient' uses means"):
        LambdaMART(**SMALL, l1=0.5, step="gradient").fit(train)


def test_a_tree_that_drew_no_useful_feature_does_not_end_training():
    rng = np.random.default_rng(0)
    x = np.zeros((200, 4), np.float32)
    x[:, 0], x[:, 1:] = rng.random(200), np.arange(200)[:, None] % 2
    data = podium.RankingData(x, x[:, 0] > 0.5, qid=np.arange(200) // 10)
    options = OPTIONS | {"interaction_constraints": [[0, 1, 2, 3]], "feature_fraction_per_node": 0.25}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        model = LambdaMART(12, 2, **options | {"min_gain_to_split": 3.0}).fit(data)
    sizes = [tree.n_leaves for tree in trees_of(model)]
    assert len(sizes) == 12
    assert sizes.count(1) > sizes.count(2) > 0
