"""A subset of the papers' experiments, in under a minute."""

import json

import pytest

from podium.reproduce import reproduce
from podium.reproduce.page import write_page

# What must hold even in a quick run, by how many claims at the least.
HOLDING = {"arrows": 3, "balanced": 4, "clicks": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("papers")
    reproduce(list(HOLDING), root, quick=True, report=lambda text: None)
    return root


@pytest.mark.slow
def test_claims_hold_in_a_quick_run(folder):
    for name, least in HOLDING.items():
        result = json.loads((folder / "results" / f"{name}.json").read_text())
        verdicts = [claim["verdict"] for claim in result["claims"]]
        assert verdicts.count("holds") >= least, (name, verdicts)
        assert result["seconds"] < 60
        assert len(result["seeds"]) == 3


@pytest.mark.slow
def test_the_page_has_a_section_and_pictures_for_each(folder):
    page = write_page(folder).read_text()
    for name in HOLDING:
        assert f"\n## {name}\n" in page
    for link in {part.split(")")[0] for part in page.split("](")[1:] if ".svg" in part.split(")")[0]}:
        assert (folder / link).stat().st_size > 1000
