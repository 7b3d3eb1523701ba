"""Shared fixtures; kernels are cached inside the checkout, for all processes of the tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache"))

# Each process of the tests and its children get one core: two processes with two threads each would spend their time
# waiting for each other on two cores. Tests that need several threads ask for them.
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from tests.browser import Browser  # noqa: E402

# Every run tests the same examples, so that only a change of the code changes a result. Profile "fuzz" tests new ones.
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
    """Let each of several processes start with its share of the long tests, so that no long test runs at the end alone.

    Each process gets an equal part of the list, so other tests fill the shares up to equal length. Long tests of a file
    stay together, because they share fixtures. Tests of pages and whole runs of tests share none and take longest, so
    they are distributed one by one.
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
    n_shared = 0
    for k, share in enumerate(shares):
        n_more = max(len(items) * (k + 1) // n - len(items) * k // n - len(share), 0)
        share.extend(others[n_shared : n_shared + n_more])
        n_shared += n_more
    items[:] = [item for share in shares for item in share] + others[n_shared:]


def _together(item: pytest.Item) -> str:
    """Return a key that is equal for tests that must run in the same process."""
    return item.nodeid if item.path.parent.name == "tests" else str(item.path)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real data sets, which are not part of the project."""
    folder = Path(os.environ.get("PODIUM_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; name its folder with PODIUM_DATA")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a page of a real browser, for tests that are marked `needs_browser`."""
    page = Browser(tmp_path_factory.mktemp("browser"))
    yield page
    page.close()
