"""Podium: learning to rank, from RankNet to LambdaMART and beyond.

This module provides the names that most programs need, and imports each on first use. Everything else is in packages
such as `podium.measures`, `podium.objectives` and `podium.explain`, which `import podium` makes available too.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

if TYPE_CHECKING:
    from podium import binned as binned
    from podium import boosting as boosting
    from podium import clicks as clicks
    from podium import combining as combining
    from podium import data as data
    from podium import diagnostics as diagnostics
    from podium import distributed as distributed
    from podium import errors as errors
    from podium import estimators as estimators
    from podium import evaluation as evaluation
    from podium import explain as explain
    from podium import features as features
    from podium import formats as formats
    from podium import integrations as integrations
    from podium import linear as linear
    from podium import measures as measures
    from podium import models as models
    from podium import neural as neural
    from podium import objectives as objectives
    from podium import reports as reports
    from podium import testing as testing
    from podium import tuning as tuning
    from podium.binned import bin_files as bin_files
    from podium.binned import open_binned as open_binned
    from podium.data import RankingData as RankingData
    from podium.data import read as read
    from podium.data import read_blocks as read_blocks
    from podium.data import write as write
    from podium.data.datasets.artificial import artificial as artificial
    from podium.data.datasets.artificial import artificial_web as artificial_web
    from podium.errors import DataError as DataError
    from podium.errors import FileFormatError as FileFormatError
    from podium.errors import PodiumError as PodiumError
    from podium.errors import PodiumWarning as PodiumWarning
    from podium.estimators import MART as MART
    from podium.estimators import AdditiveGroves as AdditiveGroves
    from podium.estimators import Committee as Committee
    from podium.estimators import LambdaMART as LambdaMART
    from podium.estimators import LambdaRank as LambdaRank
    from podium.estimators import LinearRanker as LinearRanker
    from podium.estimators import MARTClassifier as MARTClassifier
    from podium.estimators import McRank as McRank
    from podium.estimators import OrdinalMART as OrdinalMART
    from podium.estimators import PRank as PRank
    from podium.estimators import QueryKFold as QueryKFold
    from podium.estimators import QueryNormalizer as QueryNormalizer
    from podium.estimators import Ranker as Ranker
    from podium.estimators import RankNet as RankNet
    from podium.estimators import RankNetTrees as RankNetTrees
    from podium.estimators import adapt as adapt
    from podium.estimators import cross_validate as cross_validate
    from podium.estimators import fit_many as fit_many
    from podium.estimators import load as load
    from podium.evaluation import compare as compare
    from podium.evaluation import evaluate as evaluate
    from podium.evaluation import read_qrels as read_qrels
    from podium.evaluation import read_run as read_run
    from podium.evaluation import write_qrels as write_qrels
    from podium.evaluation import write_run as write_run
    from podium.formats import import_model as import_model
    from podium.measures import AP as AP
    from podium.measures import ERR as ERR
    from podium.measures import NDCG as NDCG
    from podium.measures import Graded as Graded
    from podium.measures import Measure as Measure
    from podium.models import combine as combine
    from podium.reports import save_chart as save_chart
    from podium.reports.page import report as report
    from podium.tuning import tune as tune


# The public names of the top level, by the module to import them from.
_PUBLIC = {
    "podium.data": ("RankingData", "read", "read_blocks", "write"),
    "podium.binned": ("bin_files", "open_binned"),
    "podium.data.datasets.artificial": ("artificial", "artificial_web"),
    "podium.measures": ("Measure", "NDCG", "ERR", "AP", "Graded"),
    "podium.evaluation": ("evaluate", "compare", "read_run", "write_run", "read_qrels", "write_qrels"),
    "podium.reports": ("save_chart",),
    "podium.reports.page": ("report",),
    "podium.estimators": (
        "Ranker", "LambdaMART", "RankNetTrees", "MART", "MARTClassifier", "McRank", "OrdinalMART", "AdditiveGroves",
        "PRank", "adapt", "Committee", "RankNet", "LambdaRank", "LinearRanker", "load", "fit_many", "cross_validate",
        "QueryKFold", "QueryNormalizer",
    ),
    "podium.models": ("combine",),
    "podium.formats": ("import_model",),
    "podium.tuning": ("tune",),
    "podium.errors": ("PodiumError", "DataError", "FileFormatError", "PodiumWarning"),
}  # fmt: skip
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}

# Names that moved from the top level into a package. The old names still work, with a warning, until the next release.
_MOVED = {
    "podium.binned": ("BinnedFiles",),
    "podium.data.datasets": ("Fold", "folds", "simulate_clicks"),
    "podium.diagnostics": ("Optimality", "local_optimality"),
    "podium.errors": ("MissingExtraError", "ParameterError"),
    "podium.estimators": ("Adaptation", "CrossValidation"),
    "podium.evaluation": ("Comparison", "Evaluation"),
    "podium.explain": ("Explanation", "compare_explanations", "partial_dependence", "permutation_importance"),
    "podium.measures": (
        "AlphaNDCG", "CNDCG", "DCG", "ERRIA", "KendallTau", "PairwiseAccuracy", "Precision", "PropensityNDCG", "RBP",
        "RR", "Recall",
    ),
    "podium.models": (
        "ClassEnsemble", "Combination", "Combined", "Ensemble", "LinearModel", "Model", "OrdinalModel", "Scorer",
        "TreesOnBaseScores", "refit_weights",
    ),
    "podium.tuning": ("Between", "Tuning"),
}  # fmt: skip
_NEW_HOMES = {name: package for package, names in _MOVED.items() for name in names}
_RENAMED = ("Blend", "combine_all")  # podium.models deprecates these with a warning

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _NEW_HOMES:
        home = _NEW_HOMES[name]
        message = f"podium.{name} will be removed in the next release: use {home}.{name}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module(home), name)
    if name in _RENAMED:
        return getattr(import_module("podium.models"), name)
    if not name.startswith("_") and find_spec(f"podium.{name}") is not None:
        return import_module(f"podium.{name}")  # a subpackage, such as podium.diagnostics
    raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
