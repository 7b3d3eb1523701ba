"""Run the tests of all kernels once more, with bounds checks and fewer examples: `make bounds`.

A kernel that reads or writes outside its arrays may still give the right result, so ordinary tests do not notice it.
Kernels are compiled without optimization, which is faster.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("data", "measures", "evaluation", "combining", "trees", "models", "explain", "objectives")
# Names of tests without compiled code, of tests about time and memory, and of tests that call kernels on much data that
# other tests call as well.
LEFT_OUT = (
    "frames or parquet or agrees or checks or memory or zeros or tensors or version_0_1 or boundary or damage or "
    "encoding or float32 or predict or safety or folds or significance or mixing or origin or explanations or "
    "shapes_and_ranges or a_shift_moves or noise_is or looks_like_the_web or changes_between_the_passes"
)


def main() -> int:
    """Run the tests, and return pytest's exit code."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(ROOT / ".numba_cache" / "bounds"), "NUMBA_OPT": "0", "NUMBA_BOUNDSCHECK": "1",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--numprocesses=auto", "--hypothesis-profile=few",
        *(f"tests/{name}" for name in PACKAGES), "-m", "not slow", "-k", f"not ({LEFT_OUT})",
    ]  # fmt: skip
    return subprocess.run(command, env=environment, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
