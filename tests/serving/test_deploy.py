"""The container file and the script take the same steps; the script is run by hand, since it installs everything."""

import re
import subprocess
from pathlib import Path

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def test_the_container_runs_without_rights_and_with_compiled_kernels():
    text = (DEPLOY / "Containerfile").read_text()
    build, image = text.split("\nFROM ")[-2:]
    assert "podium warmup" in build
    assert re.search(r"^USER 10001$", image, re.MULTILINE)
    assert "RUN pip" not in image
    compose = (DEPLOY / "compose.yaml").read_text()
    assert "read_only: true" in compose
    assert "127.0.0.1:8000:8000" in compose


def test_the_script_takes_the_same_steps():
    script, container = (DEPLOY / "steps.sh").read_text(), (DEPLOY / "Containerfile").read_text()
    for step in ("-m venv", "[serve]", "warmup", "NUMBA_CACHE_DIR", "serve"):
        assert step in script
        assert step in container
    assert subprocess.run(["sh", "-n", str(DEPLOY / "steps.sh")], check=False).returncode == 0
    wrong = subprocess.run(["sh", str(DEPLOY / "steps.sh")], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "usage" in wrong.stderr) == (2, True)
