"""The command `podium` as a shell runs it, each call in a separate process.

A call is forked from a process that has imported what most commands need (`commands_server`), which saves most of its
time. If a call needs another environment, or the platform cannot fork, it starts a new interpreter.

Workers of Dask are forked from the same process (`tests/distributed/conftest.py`).
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from podium.cli import main

PODIUM = str(Path(sys.executable).parent / "podium")
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
TIMEOUT = 120  # seconds


def forking():
    """Return a context whose processes start with the libraries imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.commands_server"])
    return context


def run(*arguments, text="", cwd=None, **options):
    """Run a command with a text as its standard input; return its exit code and output."""
    words = [PODIUM, *map(str, arguments)]
    if options or not CAN_FORK:
        return subprocess.run(words, capture_output=True, text=True, check=False, input=text, cwd=cwd, **options)
    context = forking()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_text(text, encoding="utf-8")
        process = context.Process(target=_call, args=(words, cwd or Path.cwd(), files))
        process.start()
        process.join(TIMEOUT)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(words, TIMEOUT)
        out, err = (file.read_text(encoding="utf-8") for file in files[1:])
    return subprocess.CompletedProcess(words, process.exitcode, out, err)


def _call(words, folder, files):
    """Run a command in the forked process."""
    os.chdir(folder)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (file, mode) in enumerate(zip(files, modes, strict=True)):
        os.dup2(os.open(file, mode), number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, kind, encoding="utf-8", closefd=False) for number, kind in enumerate(("r", "w", "w"))
    )
    sys.argv = words
    main()
