"""Install the packages to publish as users do, and test them: `make release-check`, which takes some minutes.

Wheel and sdist are each installed into a fresh environment, where the quick tests of the sdist run against the
installed package. Then uv, uvx and pipx install the wheel. All files are in a temporary folder.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PIP_REQUIRE_VIRTUALENV")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}


def call(*words: object, cwd: Path | None = None, **variables: object) -> str:
    """Run a command, and return its output; exit if it fails."""
    shown = " ".join(map(str, words))
    print(f"$ {shown}", flush=True)
    environment = ENVIRONMENT | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {shown}")
    return done.stdout


def environment(folder: Path, *packages: object) -> Path:
    """Create an environment with some packages, and return the folder of its commands."""
    venv.create(folder, with_pip=True)
    call(folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)
    return folder / "bin"


def try_commands(podium: Path, python: Path | None = None) -> None:
    """Run the first commands of a new user."""
    assert "Usage: podium" in call(podium, "--help")
    version = call(podium, "--version")
    assert version.split()[1] in call(podium, "info")
    assert python is None or call(python, "-m", "podium", "--version") == version


def run_quick_tests(commands: Path, tree: Path, kernels: Path) -> None:
    """Run the quick tests on the installed package, not on the source in the tree."""
    place = call(commands / "python", "-c", "import podium; print(podium.__file__)", cwd=tree)
    assert "site-packages" in place, place
    call(commands / "podium", "warmup", NUMBA_CACHE_DIR=kernels)
    words = ["-m", "pytest", "-m", "not slow", "--numprocesses=auto", "--dist=worksteal"]
    print(call(commands / "python", *words, cwd=tree, NUMBA_CACHE_DIR=kernels), flush=True)


def main() -> None:
    """Build, install and test, in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tools = environment(work / "tools", "build", "uv", "pipx")
        call(tools / "python", "-m", "build", "--outdir", work / "dist", ROOT)
        (wheel,), (sdist,) = ((work / "dist").glob(pattern) for pattern in ("*.whl", "*.tar.gz"))
        with tarfile.open(sdist) as archive:
            archive.extractall(work, filter="data")
        tree = work / sdist.name.removesuffix(".tar.gz")
        for kind, file in {"wheel": wheel, "sdist": sdist}.items():
            commands = environment(work / kind, f"{file}[dev]")
            try_commands(commands / "podium", commands / "python")
            run_quick_tests(commands, tree, work / f"{kind}-kernels")
        call(tools / "uv", "venv", work / "uv")
        call(tools / "uv", "pip", "install", "--python", work / "uv" / "bin" / "python", wheel)
        try_commands(work / "uv" / "bin" / "podium", work / "uv" / "bin" / "python")
        folders = {"UV_TOOL_DIR": work / "uv-tools", "UV_TOOL_BIN_DIR": work / "uv-bin"}
        call(tools / "uv", "tool", "install", wheel, **folders)
        try_commands(work / "uv-bin" / "podium")
        assert "podium" in call(tools / "uvx", "--from", wheel, "podium", "--version")
        call(tools / "pipx", "install", wheel, PIPX_HOME=work / "pipx", PIPX_BIN_DIR=work / "pipx-bin")
        try_commands(work / "pipx-bin" / "podium")
    print("wheel and sdist install, run and pass the quick tests")


if __name__ == "__main__":
    main()
