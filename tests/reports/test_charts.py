"""The look of charts and the files they are written to."""

import itertools
import json
import sys

import numpy as np
import pytest

from podium.errors import DataError, MissingExtraError
from podium.reports.charts import DARK, LIGHT, alt, data_of, save_chart, theme, themed
from tests.colours import contrast, linear

# What people with each kind of colour blindness see, in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "all colours": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
       [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
LAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
       [0.0259040371, 0.7827717662, -0.808675766]]  # fmt: skip


def oklab(colour, sight):
    return np.array(LAB) @ np.cbrt(np.array(LMS) @ np.clip(np.array(sight) @ linear(colour), 0, 1))


@pytest.fixture
def chart():
    rows = [{"x": k, "y": k * k, "kind": "ab"[k % 2]} for k in range(6)]
    return alt.Chart(data_of(rows)).mark_line().encode(x="x:Q", y="y:Q", color="kind:N")


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_distinguishable(colours):
    assert min(contrast(colour, colours.background) for colour in colours.series) >= 3
    assert contrast(colours.text, colours.background) >= 7
    assert contrast(colours.quiet, colours.background) >= 4.5
    for sight in SIGHTS.values():
        seen = [oklab(colour, sight) for colour in colours.series]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) >= 0.1


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "json", "SVG"])
def test_files_by_suffix(chart, suffix, tmp_path):
    contents = []
    for name, dark in (("one", False), ("two", False), ("three", True)):
        path = tmp_path / f"{name}.{suffix}"
        save_chart(chart, path, dark=dark)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]
    assert len(list(tmp_path.iterdir())) == 3
    starts = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>", "json": b"{"}
    assert contents[0].startswith(starts[suffix.lower()])
    if suffix == "html":  # all scripts are within
        assert b"<script src=" not in contents[0]
        assert len(contents[0]) > 500_000
    if suffix == "json":
        assert json.loads(contents[2])["config"]["background"] == DARK.background


def test_names_cannot_end_the_script_of_a_page(tmp_path):
    name = "</script><script>alert(1)</script><!--"
    rows = data_of([{name: 1, "y": 2}, {name: 2, "y": 3}])
    chart = alt.Chart(rows, title=name).mark_line().encode(x="y:Q", y="y:Q", tooltip=["y:Q"])
    save_chart(chart, tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert page.count("</script") == page.count("<script")


def test_png_grows_with_the_scale(chart, tmp_path):
    for scale in (1, 3):
        save_chart(chart, tmp_path / f"{scale}.png", scale=scale)
    width = [int.from_bytes((tmp_path / f"{scale}.png").read_bytes()[16:20]) for scale in (1, 3)]
    assert width[1] == pytest.approx(3 * width[0], abs=3)


def test_the_configuration_of_a_user_is_kept(chart):
    configured = themed(chart).configure_axis(grid=False)
    dark = themed(configured, dark=True).to_dict()["config"]
    assert dark["axis"] == {"grid": False}
    assert dark["title"] == theme(dark=True)["title"]
    assert themed(themed(chart, dark=True)).to_dict()["config"] == themed(chart).to_dict()["config"]


def test_rows_are_plain_and_their_number_is_unlimited():
    values = data_of([{"a": np.float64(1.5), "b": np.int64(2), "c": np.nan, "d": "é"}]).values
    assert values == [{"a": 1.5, "b": 2, "c": None, "d": "é"}]
    assert [type(value) for value in values[0].values()] == [float, int, type(None), str]
    chart = alt.Chart(data_of({"x": k} for k in range(6000))).mark_point().encode(x="x:Q")
    assert len(chart.to_dict()["data"]["values"]) == 6000


def test_errors(chart, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"end in one of \.svg, \.png, \.html, \.json, but got '\.pdf'"):
        save_chart(chart, tmp_path / "a.pdf")
    with pytest.raises(DataError, match="scale must be positive"):
        save_chart(chart, tmp_path / "a.png", scale=0)
    with pytest.raises(DataError, match="chart must be an Altair chart, for example from plot"):
        save_chart({"mark": "line"}, tmp_path / "a.png")
    with pytest.raises(DataError, match=r"nowhere.*cannot be written"):
        save_chart(chart, tmp_path / "nowhere" / "a.svg")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    save_chart(chart, tmp_path / "a.json")
    with pytest.raises(MissingExtraError, match=r"needs vl-convert-python.*podium\[report\]"):
        save_chart(chart, tmp_path / "a.svg")
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"a chart needs altair.*podium\[report\]"):
        data_of([])
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
