"""Podium: learning to rank, from RankNet to LambdaMART and beyond.

This module has the names that most programs need, each imported on first use. The rest is in packages such as
`podium.measures`, `podium.objectives` and `podium.explain`, which are attributes of `podium`.
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


# The map: every public name and the module that it comes from.
_HOMES = {
    # data, in and out
    "RankingData": "podium.data",  # documents with features and labels, grouped into queries
    "read": "podium.data",  # LETOR text, CSV, TSV, Parquet …
    "read_blocks": "podium.data",  # … in blocks, for files that are larger than memory
    "bin_files": "podium.binned",  # files that are larger than memory as bins in a folder, to train on …
    "open_binned": "podium.binned",  # … opened again
    "write": "podium.data",  # LETOR text, Parquet
    # generated data
    "artificial": "podium.data.datasets.artificial",  # the papers' random cubic polynomials
    "artificial_web": "podium.data.datasets.artificial",  # in the shape of MSLR-WEB
    # measures
    "Measure": "podium.measures",  # the base class; subclass it for your own
    "NDCG": "podium.measures",  # normalised discounted cumulative gain
    "ERR": "podium.measures",  # expected reciprocal rank
    "AP": "podium.measures",  # average precision
    "Graded": "podium.measures",  # several measures in order of trust
    # evaluation
    "evaluate": "podium.evaluation",  # one ranking, measured
    "compare": "podium.evaluation",  # several rankings, with significance
    "save_chart": "podium.reports",  # what plot() of a result gave, as a picture or a page
    "report": "podium.reports.page",  # all that is known of a model, as one page
    "read_run": "podium.evaluation",  # TREC runs …
    "write_run": "podium.evaluation",
    "read_qrels": "podium.evaluation",  # … and judgements
    "write_qrels": "podium.evaluation",
    # models
    "Ranker": "podium.estimators",  # the model to begin with: boosted trees, from query regression to λ
    "LambdaMART": "podium.estimators",  # boosted trees on LambdaRank's gradients
    "RankNetTrees": "podium.estimators",  # boosted trees on RankNet's pairs
    "MART": "podium.estimators",  # boosted regression on labels
    "MARTClassifier": "podium.estimators",  # boosted two-class trees
    "McRank": "podium.estimators",  # ranking by classification
    "OrdinalMART": "podium.estimators",  # ordinal regression: trees, and thresholds between the labels
    "AdditiveGroves": "podium.estimators",  # bagged sums of few large trees
    "PRank": "podium.estimators",  # an online perceptron with thresholds between labels
    "adapt": "podium.estimators",  # a background model to a new domain
    "Committee": "podium.estimators",  # several objectives, bagged and weighed: the best model
    "RankNet": "podium.estimators",  # a net trained on pairs
    "LambdaRank": "podium.estimators",  # a net trained on λ of a measure
    "LinearRanker": "podium.estimators",  # a weighted sum of features, trained on λ
    "combine": "podium.models",  # the best weights of rankers: exact for two
    "load": "podium.estimators",  # a saved estimator or model from its file
    "import_model": "podium.formats",  # a model of another tool
    # many fits
    "fit_many": "podium.estimators",  # settings, seeds, folds: one fit on each thread
    "cross_validate": "podium.estimators",  # each query measured by models that have not seen it
    "tune": "podium.tuning",  # search parameters for a measure
    # scikit-learn
    "QueryKFold": "podium.estimators",  # cross-validation by query
    "QueryNormalizer": "podium.estimators",  # per-query normalisation
    # errors
    "PodiumError": "podium.errors",  # the base of all of them
    "DataError": "podium.errors",  # data or parameters that cannot be right
    "FileFormatError": "podium.errors",  # with file, line and column
    "PodiumWarning": "podium.errors",  # legal, but often a mistake
}

# Names that were at the top level before, by the package that has them now. They work for one more release, and warn.
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
_RENAMED = ("Blend", "combine_all")  # names that podium.models deprecates

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
