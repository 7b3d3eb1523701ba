"""Imported once by the process that commands and Dask's workers are forked from: they find the libraries ready."""

import importlib
from importlib.util import find_spec

import podium
import podium.cli

for name in podium.__all__:
    getattr(podium, name)  # imports where it is from
if find_spec("distributed"):
    importlib.import_module("distributed")
podium.RankingData([[1.0], [0.0]], qid=[1, 1]).canonical_order  # noqa: B018  Numba prepares itself at a first kernel
