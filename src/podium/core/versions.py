"""List the versions that results may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import version

from podium import __version__


def versions() -> dict[str, str]:
    """Return, by name, the versions of Podium, Python and numerical libraries, and the kind of machine."""
    libraries = {name: version(name.lower()) for name in ("NumPy", "Numba", "SciPy")}
    machine = f"{platform.system()} {platform.machine()}"
    return {"Podium": __version__, "Python": platform.python_version(), **libraries, "machine": machine}
