"""Features as a step of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from podium.errors import DataError
from podium.features import FeatureSet, PairTransformer, default
from tests.features.collections_ import built

ROWS = [
    {"id": "a", "title": "red shoes", "body": "shoes", "votes": 1},
    {"id": "b", "title": "blue hat", "body": "", "votes": 2},
]
PAIRS = [("red", "a"), ("hat", "b"), ("red", "b"), ("red", "a")]


def test_rows_are_those_of_the_feature_set():
    index = built(ROWS)
    transformer = PairTransformer(index)
    values = transformer.fit_transform(PAIRS)
    features = default(index)
    assert transformer.get_feature_names_out().tolist() == list(features.names)
    for (text, document), row in zip(PAIRS, values, strict=True):
        assert np.array_equal(row, features.rows(index, text, index.rows([document]))[0], equal_nan=True)


def test_it_works_in_a_pipeline():
    index = built(ROWS)
    transformer = PairTransformer(index, FeatureSet(["bm25", "attribute(votes)"]))
    model = make_pipeline(clone(transformer, safe=False), SimpleImputer(), Ridge())
    assert model.fit(PAIRS, [1, 1, 0, 1]).predict(PAIRS).shape == (4,)


@pytest.mark.parametrize(
    ("pairs", "message"), [([("red", "z")], "no document 'z'"), ([("red",)], "two columns"), (["red"], "two columns")]
)
def test_errors(pairs, message):
    transformer = PairTransformer(built(ROWS), ["bm25"]).fit()
    with pytest.raises(DataError, match=message):
        transformer.transform(pairs)
