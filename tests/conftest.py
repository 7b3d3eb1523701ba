"""Shared fixtures; kernels are cached inside the checkout, for all processes of the tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache"))

# One core for each process of the tests and its children: two processes with two threads each, on two cores, spend
# their time waiting for each other. What needs several threads asks for them.
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from tests.browser import Browser  # noqa: E402

# The same examples in each run: a change is judged by what it changes. Profile "fuzz" takes others, without end.
settings.register_profile(
    "default", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=10_000_000, derandomize=False)
settings.register_profile("few", settings.get_profile("default"), max_examples=15)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    """Link the kernels that are compiled before the first test, for `tests/cli/test_warmup.py`.

    In a clean clone, `make test` has compiled them with `podium warmup`; tests then compile others.
    """
    if hasattr(config, "workerinput"):
        return
    cache = Path(os.environ["NUMBA_CACHE_DIR"])
    cache.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="before-tests-", dir=cache)
    os.environ["KERNELS_BEFORE_TESTS"] = folder  # the processes of the tests inherit it
    for kernels in cache.glob("podium-kernels-*"):
        shutil.copytree(kernels, Path(folder, kernels.name), copy_function=os.link)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["KERNELS_BEFORE_TESTS"], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes each begins with its share of the long tests, so that none of them is left for the end.

    Each process is given an equal part of the list, so the other tests fill the shares up to equal length. Long tests
    of a file stay together, for their fixtures; but pages and whole runs of tests, which have none and take longest,
    are dealt out one by one.
    """
    if not hasattr(config, "workerinput"):
        return
    n = config.workerinput["workercount"]
    long = [item for item in items if item.get_closest_marker("slow") is not None]
    others = [item for item in items if item.get_closest_marker("slow") is None]
    number = {group: k for k, group in enumerate(dict.fromkeys(map(_together, long)))}
    shares: list[list[pytest.Item]] = [[] for _ in range(n)]
    for item in long:
        shares[number[_together(item)] % n].append(item)
    taken = 0
    for k, share in enumerate(shares):
        n_more = max(len(items) * (k + 1) // n - len(items) * k // n - len(share), 0)
        share.extend(others[taken : taken + n_more])
        taken += n_more
    items[:] = [item for share in shares for item in share] + others[taken:]


def _together(item: pytest.Item) -> str:
    """What tests that run in the same process have in common."""
    return item.nodeid if item.path.parent.name == "tests" else str(item.path)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, which are not part of the project."""
    folder = Path(os.environ.get("PODIUM_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; name its folder with PODIUM_DATA")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A page of a real browser; for tests that are marked `needs_browser`."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()
