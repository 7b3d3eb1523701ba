"""Run the quick tests with the oldest and the newest versions that pyproject.toml allows: `make compat`.

Each set of versions gets an environment below `.compat/`, which a second run reuses. The oldest versions are the lower
bounds in pyproject.toml for Podium's own dependencies; the other tools of the tests are not pinned.
"""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINNED = ("numpy", "numba", "scipy", "scikit-learn")
VERSIONS = ("oldest", "newest")


def lower_bounds() -> list[str]:
    """Return the oldest allowed version of each pinned dependency, for example `numpy==2.0.*`."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    bounds = dict(line.split(",")[0].split(">=") for line in dependencies if ">=" in line)
    return [f"{name}=={bounds[name]}.*" for name in PINNED]


def run(*words: object, **variables: str) -> None:
    """Run a command from the root of the checkout; exit if it fails."""
    print("$", *words, flush=True)
    done = subprocess.run([str(word) for word in words], cwd=ROOT, env=os.environ | variables, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def test_with(versions: str) -> None:
    """Install one set of versions and run the quick tests."""
    folder = ROOT / ".compat" / versions
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    packages = lower_bounds() if versions == "oldest" else ["--upgrade", *PINNED]
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-e", ".[dev]", *packages)
    run(python, "-m", "pip", "list")
    kernels = str(ROOT / ".compat" / f"kernels-{versions}")
    run(python, "-m", "podium", "warmup", NUMBA_CACHE_DIR=kernels)
    words = ["-m", "pytest", "-m", "not slow", "--numprocesses=auto", "--dist=worksteal"]
    run(python, *words, NUMBA_CACHE_DIR=kernels)


if __name__ == "__main__":
    for name in sys.argv[1:] or VERSIONS:
        if name not in VERSIONS:
            sys.exit(f"unknown versions {name!r}: expected one of {', '.join(VERSIONS)}")
        test_with(name)
