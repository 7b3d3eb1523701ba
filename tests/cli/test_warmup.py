"""After `podium warmup`, no command compiles a kernel, and a deployed service starts without compiling."""

import importlib
import os
import pkgutil
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import podium
from podium.core.compiling import Kernel
from podium.estimators.parameters import MODELS

pytestmark = pytest.mark.slow

# Many commands in one process, because a process takes a second to start.
RUN = """
import sys
from podium.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["podium", *line.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            sys.exit(f"podium {line}: {end.code}")
"""
FEW = {
    "linear": "", "adarank": "", "prank": "--epochs 1", "ranknet": "--epochs 1", "lambdarank": "--epochs 1",
    "additive-groves": "--n-groves 1 --n-trees-in-grove 1",
}  # fmt: skip
COMMANDS = """
generate train.txt --queries 60 --features 10
generate valid.txt --queries 30 --features 10 --part valid
generate clicks.parquet --queries 30 --features 10 --clicks
generate web.parquet --web --queries 4 --documents 30
describe train.txt
convert train.txt train.parquet
convert train.txt scaled.txt --normalize minmax
{models}
train lambdamart clicks.parquet --n-trees 3 --objective debiased(lambda(cndcg)) -o clicked
train web.parquet --n-trees 3 -o web
bin train.txt train.bins
bin valid.txt valid.bins --like train.bins
train train.bins --valid valid.bins --n-trees 3 -o binned
score lambdamart/model.podium valid.txt --trec mine -o mine.run
inspect lambdamart/model.podium
explain lambdamart/model.podium valid.txt
explain lambdamart/model.podium train.txt --query 1 --top 5
explain lambdamart/model.podium valid.txt --background train.txt
explain linear/model.podium valid.txt
evaluate valid.txt lambdamart/model.podium -m ndcg@10 -m err@10 -m ap -m rr -m precision@5 -m q -m rbp -m recall@5
evaluate valid.txt feature:1 --per-query
compare valid.txt old=mart/model.podium new=lambdamart/model.podium
combine mart/model.podium lambdamart/model.podium valid.txt -o both.podium
score both.podium valid.txt -o both.txt
adapt lambdamart/model.podium valid.txt --n-trees 3 -o adapted.podium
report lambdamart --test valid.txt -o report.html
export lambdamart/model.podium model.txt --format lightgbm --check valid.txt
import model.txt imported.podium
score imported.podium valid.txt -o imported.txt
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return environment variables that name a cache filled by `podium warmup`.

    It begins with the kernels from before the first test. These are the ones that `make test` compiled with the same
    command, unless earlier tests in this checkout compiled more.
    """
    folder = tmp_path_factory.mktemp("warm")
    folder.chmod(0o755)
    shutil.copytree(os.environ["KERNELS_BEFORE_TESTS"], folder, dirs_exist_ok=True)
    variables = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "podium", "warmup"], capture_output=True, text=True, check=False, env=variables
    )
    assert done.returncode == 0, done.stderr
    assert "compiled in" in done.stdout
    return variables


def files_of(environment: dict[str, str]) -> set[Path]:
    return {path for path in Path(environment["NUMBA_CACHE_DIR"]).rglob("*") if path.is_file()}


def test_every_kernel_is_compiled(environment):
    compiled, kernels = {path.name.split("-")[0] for path in files_of(environment)}, set()
    for module in pkgutil.walk_packages(podium.__path__, "podium."):
        if not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            kernels |= {value for value in values if isinstance(value, Kernel)}
    names = {f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}" for kernel in kernels}
    assert names - compiled == set()


def test_no_command_compiles_a_kernel_after_warmup(environment, tmp_path):
    before = files_of(environment)
    models = "\n".join(
        f"train {name} train.txt {FEW.get(name, '--n-trees 3')} -o {name}-alone\n"
        f"train {name} train.txt {FEW.get(name, '--n-trees 3')} --valid valid.txt -o {name}\n"
        f"score {name}/model.podium valid.txt -o {name}.txt"
        for name in MODELS
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN], input=COMMANDS.format(models=models).strip(), cwd=tmp_path,
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert files_of(environment) - before == set()
    assert "compiling" not in done.stderr


@pytest.mark.skipif(not shutil.which("setpriv"), reason="root can write anywhere unless setpriv removes its rights")
def test_a_service_without_rights_uses_kernels_that_it_cannot_write(environment, tmp_path):
    """Serve as deploy/steps.sh does: kernels are read-only, and only an empty temporary folder is writable."""
    kernels, temporary = environment["NUMBA_CACHE_DIR"], tmp_path / "tmp"
    subprocess.run(["chmod", "-R", "a+rX,a-w", kernels], check=True)
    temporary.mkdir()
    podium.LambdaMART(3).fit(podium.artificial(30, features=4)).save(tmp_path / "model.podium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "podium", "serve", str(tmp_path / "model.podium"), "--port", str(port)]
    if os.getuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]
    variables = environment | {"TMPDIR": str(temporary), "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "log").open("w") as log:
        service = subprocess.Popen(command, env=variables, stderr=log)
    try:
        for _ in range(300):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        answer = httpx.post(f"http://127.0.0.1:{port}/rank", json={"documents": [[1.0, 2, 3, 4], [0, 1, 0, 1]]})
        assert answer.status_code == 200, answer.text
    finally:
        service.terminate()
        service.wait(20)
        subprocess.run(["chmod", "-R", "u+w", kernels], check=True)
    assert "compiling" not in (tmp_path / "log").read_text()
    links = {path for path in temporary.rglob("*") if path.suffix in (".nbi", ".nbc")}
    assert links
    assert all(path.is_symlink() for path in links)
