"""What holds for the whole source: layers, numba's place, the public map, light imports."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import podium
from podium.core.kernel_cache import WITHOUT_KERNELS

SOURCE = Path(podium.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Each layer may import from itself and from those before it (docs/architecture.md).
LAYERS = [
    {"errors"}, {"core"}, {"data"}, {"measures", "trees"}, {"binned"}, {"objectives"}, {"combining"}, {"models"},
    {"boosting", "linear"}, {"neural"}, {"evaluation"}, {"diagnostics", "explain", "formats", "features"}, {"clicks"},
    {"estimators"}, {"distributed", "tuning"}, {"reports", "serving"}, {"integrations"}, {"cli", "demo"}, {"testing"},
]  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
STRANGERS = [{"measures", "trees"}]  # know nothing of each other


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            yield node.module
            if node.module == "podium":
                yield from (f"podium.{alias.name}" for alias in node.names)


def package_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_import_only_lower_layers(path):
    package = package_of(path)
    if package in ("__init__", "__main__", "demo"):  # the map of names, and programs that use everything
        return
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "podium" or len(parts) == 1:
            continue
        imported = parts[1]
        if imported in LEVEL:
            assert LEVEL[imported] <= LEVEL[package], f"{path.name} ({package}) imports {name}"
            assert {package, imported} not in STRANGERS
            if LEVEL[imported] == LEVEL[package]:
                assert imported == package, f"{path.name} ({package}) imports {name} of the same layer"
        else:
            assert imported == "__version__", f"{path.name} imports {name}"


# Modules that import a module of a higher layer by its name, when they are called.
UPWARD = {
    "models/file.py": {"podium.neural.model"},
    "models/base.py": {"podium.explain", "podium.formats"},
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_listed_modules_name_higher_layers(path):
    package = package_of(path)
    texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
    modules = {text for text in texts if isinstance(text, str) and re.fullmatch(r"podium(\.[a-z_]+)+", text)}
    above = {name for name in modules if LEVEL.get(name.split(".")[1], -1) > LEVEL.get(package, len(LAYERS))}
    assert above == UPWARD.get(str(path.relative_to(SOURCE)), set())


def test_only_the_core_imports_numba():
    users = {path for path in FILES if any(name.split(".")[0] == "numba" for name in imports_of(path))}
    assert {str(path.relative_to(SOURCE)) for path in users} == {
        "core/compiling.py", "core/kernel_cache.py", "core/llvm_bitwise.py", "core/llvm_check.py", "core/llvm_lanes.py",
        "core/numba_extension.py",
    }  # fmt: skip


def test_public_methods_are_documented_where_they_are_introduced():
    """Methods that override a method of another class of Podium inherit its docstring."""
    classes = [n for path in FILES for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
    bases, methods = {}, {}
    for node in classes:
        bases.setdefault(node.name, set()).update(ast.unparse(base).partition("[")[0] for base in node.bases)
        members = methods.setdefault(node.name, set())
        members.update(m.name for m in node.body if isinstance(m, ast.FunctionDef))
        members.update(ast.unparse(m.target) for m in node.body if isinstance(m, ast.AnnAssign))

    def has_method(name, method):
        return method in methods.get(name, ()) or any(has_method(base, method) for base in bases.get(name, ()))

    for node in classes:
        public = [m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]
        for method in public if not node.name.startswith("_") else ():
            is_documented = ast.get_docstring(method) or any(has_method(b, method.name) for b in bases[node.name])
            assert is_documented, f"{node.name}.{method.name} has no docstring"


def test_every_package_has_a_layer():
    assert {package_of(path) for path in FILES} - {"__init__", "__main__"} <= set(LEVEL)


def test_packages_outside_the_digest_of_kernels_cannot_change_machine_code():
    with_kernels = {package_of(path) for path in FILES if re.search(r"^@(kernel|helper)$", path.read_text(), re.M)}
    assert with_kernels.isdisjoint(WITHOUT_KERNELS)
    assert max(LEVEL[name] for name in with_kernels) < min(LEVEL[name] for name in WITHOUT_KERNELS)


def test_class_names_are_unique():
    names = [node.name for path in FILES for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    assert [name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")] == []


def test_the_map_of_public_names_is_complete_and_correct():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If))
    typed = {alias.asname: node.module for node in block.body for alias in node.names}
    packages = {name for name, home in typed.items() if home == "podium"}
    assert {name: home for name, home in typed.items() if home != "podium"} == podium._HOMES
    public = {path.parent.name for path in SOURCE.glob("*/__init__.py") if "__all__" in path.read_text()}
    assert packages == (public | {"errors"}) - {"cli", "serving", "trees"}
    for name in podium.__all__:
        value = getattr(podium, name)
        assert name == "__version__" or value.__doc__, f"{name} has no docstring"
    assert set(podium.__all__) <= set(dir(podium))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = podium.nonsense


@pytest.mark.parametrize("package", podium._MOVED)
def test_moved_names_work_and_name_their_new_place(package):
    for name in podium._MOVED[package]:
        with pytest.warns(DeprecationWarning, match=re.escape(f"use {package}.{name}")) as warned:
            value = getattr(podium, name)
        assert value is getattr(import_module(package), name)
        assert warned[0].filename == __file__
        assert name not in podium.__all__
        assert name in import_module(package).__all__


def test_import_podium_makes_the_new_places_available():
    packages = sorted(podium._MOVED, key=lambda name: -name.count("."))  # inner ones before anything else loads them
    done = python(f"import podium\nfor package in {packages}: print(eval(package).__name__)")
    assert done.stdout.split() == packages, done.stderr


def test_names_of_the_top_level_do_not_warn(recwarn):
    for name in podium.__all__:
        vars(podium).pop(name, None) if name != "__version__" else None
        getattr(podium, name)
    assert not [warning for warning in recwarn if issubclass(warning.category, DeprecationWarning | FutureWarning)]
    assert len(podium.__all__) < 50


def python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)


def test_import_is_light():
    done = python("import podium, sys; print([m for m in ('numpy', 'numba', 'sklearn') if m in sys.modules])")
    assert done.stdout.strip() == "[]"
    data = python(
        "import podium, sys; podium.RankingData([[1.0]], [1], qid=[1]); "
        "print([m for m in ('numba', 'sklearn', 'pandas', 'pyarrow', 'scipy') if m in sys.modules])"
    )
    assert data.stdout.strip() == "[]", data.stderr


@pytest.mark.parametrize("temporary", ["writable", "blocked"])
def test_it_works_where_nothing_is_writable(temporary, tmp_path):
    """Use a copy of the package in which `__pycache__` is a file, so that not even root can write a cache there."""
    copy = tmp_path / "site" / "podium"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(p for p in copy.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if temporary == "blocked":
        (scratch / f"podium-kernels-{os.getuid()}").touch()
    environment = {
        "PYTHONPATH": str(copy.parent), "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null",
        "TMPDIR": str(scratch), "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    done = python(
        "import podium; assert 'site' in podium.__file__; "
        "d = podium.RankingData([[2.0], [1.0]], qid=[1, 1]); print(len(d.canonical_order))",
        env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.strip() == "2", done.stderr
    cached = list(scratch.rglob("*.nbc"))
    assert bool(cached) == (temporary == "writable")


def test_subpackages_are_attributes():
    code = "import podium; print(podium.diagnostics.Optimality, podium.objectives.Lambda, hasattr(podium, 'nonsense'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
