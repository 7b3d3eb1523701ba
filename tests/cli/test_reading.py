"""The options for reading data in a model file are checked before they are used."""

from functools import partial

import pytest

import podium
from podium import FileFormatError
from podium.cli import reading, runs
from podium.cli.runs import RunFolder

LEFT_OUT = dict.fromkeys([
    "input_format", "absent", "first_index", "qid", "label", "labels", "features", "categorical", "unlabelled",
    "normalize", "max_bytes",
])  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return podium.LambdaMART(n_trees=1, verbose=0).fit(podium.artificial(5, seed=0)).model_


@pytest.mark.parametrize(
    "stored",
    [
        {"absent": "foo"}, {"absent": 5}, {"absent": [1]}, {"first_index": "a"}, {"first_index": True},
        {"normalize": 5}, {"normalize": ["sum"]}, {"columns": 5}, {"columns": {"features": ["c"]}},
        {"columns": {"label": ["c"]}}, {"columns": {"labels": "x=y"}}, {"columns": {"labels": [1]}},
        {"columns": {"unlabelled": "q"}}, {"columns": {"qid": 7}},
    ],
)  # fmt: skip
def test_invalid_stored_options_are_refused(model, stored):
    with pytest.raises(FileFormatError, match="the stored options for reading data are invalid"):
        reading.for_model(partial(reading._read, **LEFT_OUT), model.with_info(reading=stored), "m.podium")


def test_a_model_sets_only_options_for_reading_data(model):
    stored = {"columns": {"max_bytes": 1, "input_format": "csv", "absent": "missing", "sources": "x", "qid": "query"}}
    options = reading.for_model(partial(reading._read, **LEFT_OUT), model.with_info(reading=stored), "m").keywords
    assert options == {**LEFT_OUT, "qid": "query"}


def test_huge_configs_are_not_read(tmp_path):
    path = tmp_path / "endless.toml"
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(FileFormatError, match="is larger than 1 MB"):
        runs.read_config(path)


def test_a_folder_with_circular_links_is_refused(tmp_path):
    (tmp_path / "model.podium").symlink_to("model.podium")
    with pytest.raises(FileFormatError, match="cannot be used for a run"):
        RunFolder(tmp_path).begin(overwrite=False)
