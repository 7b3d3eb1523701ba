"""Trees as a data frame, against LightGBM's frame of the same trees."""

import numpy as np
import pandas as pd
import pytest

import podium
from podium.errors import DataError
from podium.formats.trees import Leaf, make_tree
from tests.formats.data import CATEGORICAL, QID, X, Y


@pytest.fixture(scope="module")
def model():
    return podium.LambdaMART(n_trees=5, n_leaves=7, categorical=[CATEGORICAL]).fit(X, Y, qid=QID).model_


def test_the_frame_equals_lightgbms(model, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    model.export(tmp_path / "m.txt", format="lightgbm")
    theirs, ours = lightgbm.Booster(model_file=tmp_path / "m.txt").trees_to_dataframe(), model.trees_to_dataframe()
    same = [
        "tree_index",
        "node_depth",
        "node_index",
        "left_child",
        "right_child",
        "parent_index",
        "decision_type",
        "count",
    ]
    pd.testing.assert_frame_equal(ours[same].astype(object), theirs[same].astype(object), check_dtype=False)
    is_leaf = theirs["split_feature"].isna()
    assert np.allclose(ours["value"][is_leaf], theirs["value"][is_leaf], rtol=1e-12)
    is_set = theirs["decision_type"] == "=="
    assert is_set.any()
    assert ours["categories"][is_set].tolist() == theirs["threshold"][is_set].tolist()
    is_number = ~is_leaf & ~is_set
    assert np.allclose(ours["threshold"][is_number], theirs["threshold"][is_number].astype(float), rtol=1e-6)
    numbers = [f"column {name.removeprefix('f')}" for name in theirs["split_feature"][~is_leaf]]
    assert ours["split_feature"][~is_leaf].tolist() == numbers
    assert ours["missing_direction"][is_number].tolist() == theirs["missing_direction"][is_number].tolist()


def test_libraries(model):
    frames = [model.trees_to_dataframe(library) for library in ("pandas", "polars", "pyarrow")]
    for column in frames[0].columns:
        pandas, *others = (frame[column].to_pylist() if column_is_arrow else frame[column].to_list()
                           for frame, column_is_arrow in zip(frames, (False, False, True), strict=True))  # fmt: skip
        missing = [None if pd.isna(value) else value for value in pandas]
        assert [missing, missing] == others
    with pytest.raises(DataError, match="library must be one of 'pandas', 'polars', 'pyarrow', not 'xarray'"):
        model.trees_to_dataframe("xarray")


def test_a_tree_with_one_leaf_and_category_names():
    frame = pd.DataFrame({"site": np.resize(["a", "b", "c"], 60), "x": 0.0})
    labels = (frame["site"] == "b").astype(int)
    data = podium.RankingData(frame, labels, qid=np.arange(60) // 6, categorical=["site"])
    model = podium.LambdaMART(n_trees=1, min_documents_in_leaf=1).fit(data).model_
    nodes = model.trees_to_dataframe()
    assert nodes["split_feature"][0] == "site"
    assert nodes["categories"][0] in ("b", "a||c")
    assert len(model.truncate(0).trees_to_dataframe()) == 0
    leaf = podium.models.Ensemble.of_trees([make_tree(0, lambda _: Leaf(0.5, 3), "leaf")], 2).trees_to_dataframe()
    assert leaf[["node_index", "value", "count"]].values.tolist() == [["0-L0", 0.5, 3]]
