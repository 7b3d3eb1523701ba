"""Import libraries once, in the process that commands and Dask's workers are forked from."""

import importlib
from importlib.util import find_spec

import podium
import podium.cli

for name in podium.__all__:
    getattr(podium, name)  # imports the module that defines it
if find_spec("distributed"):
    importlib.import_module("distributed")
podium.RankingData([[1.0], [0.0]], qid=[1, 1]).canonical_order  # noqa: B018  the first kernel initializes Numba
