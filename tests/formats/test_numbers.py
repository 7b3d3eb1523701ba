"""Whole numbers in files of other tools: a fraction is refused, never truncated."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, FileFormatError
from podium.formats.base import truth_value, whole_number

FIELDS = {
    "lightgbm": [r"max_feature_idx=", r"num_leaves=", r"split_feature=", r"left_child=", r"right_child=",
                 r"decision_type=", r"leaf_count=", r"internal_count=", r"num_tree_per_iteration="],
    "lightgbm-json": [r'"max_feature_idx": ', r'"split_feature": ', r'"leaf_count": ', r'"internal_count": ',
                      r'"num_tree_per_iteration": ', r'"default_left": '],
    "xgboost": [r'"num_feature": "', r'"num_nodes": "', r'"num_class": "', r'"left_children": \[',
                r'"right_children": \[', r'"split_indices": \[', r'"default_left": \['],
    "catboost": [r'"feature_index": ', r'"flat_feature_index": ', r'"split_index": '],
    "ranklib": [r"<feature> "],
    "elasticsearch": [r'"split_feature": ', r'"left_child": ', r'"right_child": ', r'"default_left": '],
    "vespa": [r'"max_feature_idx": ', r'"split_feature": '],
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return podium.LambdaMART(n_trees=2, n_leaves=4).fit(podium.artificial(20, features=4))


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, fields in FIELDS.items() for field in fields])
def test_a_fraction_where_a_whole_number_belongs_is_refused(name, field, model, tmp_path):
    path = tmp_path / "model"
    model.export(path, name)
    text, n_changed = re.subn(rf"({field})(-?[0-9]+|true|false)", r"\g<1>1.5", path.read_text(), count=1)
    assert n_changed == 1
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"must be (a whole number|true or false), but is '? ?1\.5"):
        podium.import_model(path, name)


def test_a_linear_model_of_ranklib_with_a_fraction_for_a_feature_is_refused(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("## Coordinate Ascent\n1:0.5 2.5:0.25\n")
    with pytest.raises(FileFormatError, match=r"a feature must be a whole number, but is '2\.5'"):
        podium.import_model(path, "ranklib")


def test_onnx_attributes_with_fractions_are_refused(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    model.export(path)
    document = onnx.load(path)
    (trees,) = (node for node in document.graph.node if node.op_type == "TreeEnsemble")
    features = next(list(attribute.ints) for attribute in trees.attribute if attribute.name == "nodes_featureids")
    others = [attribute for attribute in trees.attribute if attribute.name != "nodes_featureids"]
    trees.ClearField("attribute")
    trees.attribute.extend([*others, onnx.helper.make_attribute("nodes_featureids", [k + 0.5 for k in features])])
    onnx.save(document, path)
    with pytest.raises(FileFormatError, match="nodes_featureids must be a whole number"):
        podium.import_model(path)


@given(st.integers(-(2**40), 2**40))
def test_a_whole_number_may_be_written_in_several_ways(number):
    for written in (number, float(number), str(number), f" {number} ", f"{number}.0", np.int64(number)):
        assert whole_number(written, "x") == number


@pytest.mark.parametrize(
    "value", [True, None, 0.5, "", "1.5", "1e3", "٣", "1_0", [], float("nan"), float("inf"), "9" * 50]
)
def test_nothing_else_is_a_whole_number(value):
    with pytest.raises(DataError, match="x must be a whole number"):
        whole_number(value, "x")


def test_a_truth_value_cannot_be_text():
    assert [truth_value(value, "x") for value in (True, False, 1, 0, np.uint8(1))] == [True, False, True, False, True]
    for value in ("false", "true", 2, 0.5, None):
        with pytest.raises(DataError, match="x must be true or false"):
            truth_value(value, "x")
