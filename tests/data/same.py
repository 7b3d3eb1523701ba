"""Compare data sets."""

import numpy as np


def assert_same(a, b):
    assert np.array_equal(a.features, b.features)
    assert a.qid.tolist() == b.qid.tolist()
    assert a.labels.keys() == b.labels.keys()
    for source in a.labels:
        assert np.array_equal(a.labels[source], b.labels[source], equal_nan=True)
    for name in ("document_weights", "query_weights", "positions", "document_ids"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.feature_names == b.feature_names
    if a.preferences is not None:
        for name in ("i", "j", "probability"):
            assert np.array_equal(getattr(a.preferences, name), getattr(b.preferences, name))
