"""`podium clicks`: the commands do what the library does, and report errors in one line."""

import csv

import numpy as np
import pytest

import podium
from podium.clicks import ClickLog
from tests.commands import run


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "events.jsonl"
    assert run("clicks", "generate", str(path), "--rankings", "60").returncode == 0
    return path


def test_commands_equal_the_library(events, tmp_path):
    log = ClickLog.read(events, format="metarank")
    common = [str(events), "--format", "metarank"]
    assert run("clicks", "check", *common).stdout.splitlines()[0] == repr(log)
    shown = run("clicks", "labels", *common, "--kind", "coec", "--min-impressions", "2").stdout
    rows = list(csv.DictReader(shown.splitlines()))
    expected = log.labels("coec", min_impressions=2)
    np.testing.assert_array_equal([float(row["value"] or "nan") for row in rows], expected.value)
    path = tmp_path / "data.parquet"
    done = run("clicks", "features", *common, "-f", "rate(click, by=brand)", "--label", "ctr", "-o", str(path))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(podium.read(path).features, log.features(["rate(click, by=brand)"]).features)
    table = run("clicks", "bias", *common).stdout.splitlines()
    assert len(table) == 11
    assert table[1].split()[:2] == ["1", "1.0000"]


def test_errors_are_one_line(events, tmp_path):
    for words, message in [
        (["check", str(events)], "there is no column 'query'"),
        (["labels", str(events), "--format", "metarank", "--kind", "crt"], "did you mean 'ctr'"),
        (["check", str(tmp_path / "nothing.csv")], "nothing.csv"),
    ]:
        done = run("clicks", *words)
        assert done.returncode == 1
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
