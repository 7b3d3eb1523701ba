"""Podium: learning to rank, from RankNet to LambdaMART and beyond.

Everything that users need stands here; each name is loaded when it is first used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

if TYPE_CHECKING:
    from podium.binned import BinnedFiles as BinnedFiles
    from podium.binned import bin_files as bin_files
    from podium.binned import open_binned as open_binned
    from podium.data import RankingData as RankingData
    from podium.data import read as read
    from podium.data import read_blocks as read_blocks
    from podium.data import write as write
    from podium.data.datasets.artificial import artificial as artificial
    from podium.data.datasets.artificial import artificial_web as artificial_web
    from podium.data.datasets.clicks import simulate_clicks as simulate_clicks
    from podium.data.datasets.folds import Fold as Fold
    from podium.data.datasets.folds import folds as folds
    from podium.diagnostics import Optimality as Optimality
    from podium.diagnostics import local_optimality as local_optimality
    from podium.errors import DataError as DataError
    from podium.errors import FileFormatError as FileFormatError
    from podium.errors import MissingExtraError as MissingExtraError
    from podium.errors import ParameterError as ParameterError
    from podium.errors import PodiumError as PodiumError
    from podium.errors import PodiumWarning as PodiumWarning
    from podium.estimators import MART as MART
    from podium.estimators import Adaptation as Adaptation
    from podium.estimators import AdditiveGroves as AdditiveGroves
    from podium.estimators import Committee as Committee
    from podium.estimators import CrossValidation as CrossValidation
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
    from podium.estimators import learn_exit as learn_exit
    from podium.evaluation import Comparison as Comparison
    from podium.evaluation import Evaluation as Evaluation
    from podium.evaluation import compare as compare
    from podium.evaluation import evaluate as evaluate
    from podium.evaluation import read_qrels as read_qrels
    from podium.evaluation import read_run as read_run
    from podium.evaluation import write_qrels as write_qrels
    from podium.evaluation import write_run as write_run
    from podium.explain import Explanation as Explanation
    from podium.explain import compare_explanations as compare_explanations
    from podium.explain import partial_dependence as partial_dependence
    from podium.explain import permutation_importance as permutation_importance
    from podium.formats import import_model as import_model
    from podium.measures import AP as AP
    from podium.measures import CNDCG as CNDCG
    from podium.measures import DCG as DCG
    from podium.measures import ERR as ERR
    from podium.measures import ERRIA as ERRIA
    from podium.measures import NDCG as NDCG
    from podium.measures import RBP as RBP
    from podium.measures import RR as RR
    from podium.measures import AlphaNDCG as AlphaNDCG
    from podium.measures import Graded as Graded
    from podium.measures import KendallTau as KendallTau
    from podium.measures import Measure as Measure
    from podium.measures import PairwiseAccuracy as PairwiseAccuracy
    from podium.measures import Precision as Precision
    from podium.measures import PropensityNDCG as PropensityNDCG
    from podium.measures import Recall as Recall
    from podium.models import Blend as Blend
    from podium.models import ClassEnsemble as ClassEnsemble
    from podium.models import Combination as Combination
    from podium.models import Combined as Combined
    from podium.models import EarlyExit as EarlyExit
    from podium.models import Ensemble as Ensemble
    from podium.models import LinearModel as LinearModel
    from podium.models import Model as Model
    from podium.models import OrdinalModel as OrdinalModel
    from podium.models import Scorer as Scorer
    from podium.models import TopDocuments as TopDocuments
    from podium.models import TreesOnBaseScores as TreesOnBaseScores
    from podium.models import combine as combine
    from podium.models import combine_all as combine_all
    from podium.models import load as load
    from podium.models import refit_weights as refit_weights
    from podium.reports import save_chart as save_chart
    from podium.reports.page import report as report
    from podium.tuning import Between as Between
    from podium.tuning import Tuning as Tuning
    from podium.tuning import tune as tune


# The map: every public name and the module that it comes from.
_HOMES = {
    # data, in and out
    "RankingData": "podium.data",  # documents with features and labels, grouped into queries
    "read": "podium.data",  # LETOR text, CSV, TSV, Parquet …
    "read_blocks": "podium.data",  # … in blocks, for files that are larger than memory
    "bin_files": "podium.binned",  # files that are larger than memory as bins in a folder, to train on …
    "open_binned": "podium.binned",  # … opened again
    "BinnedFiles": "podium.binned",  # … what both return
    "write": "podium.data",  # LETOR text, Parquet
    "folds": "podium.data.datasets.folds",  # folders of benchmark data, as folds
    "Fold": "podium.data.datasets.folds",  # one of them
    # generated data
    "artificial": "podium.data.datasets.artificial",  # the papers' random cubic polynomials
    "artificial_web": "podium.data.datasets.artificial",  # in the shape of MSLR-WEB
    "simulate_clicks": "podium.data.datasets.clicks",  # click labels from simulated users
    # measures
    "Measure": "podium.measures",  # the base of all; subclass it for one of your own
    "NDCG": "podium.measures",  # normalised discounted cumulative gain
    "DCG": "podium.measures",  # the same without the norm
    "CNDCG": "podium.measures",  # NDCG on click labels
    "ERR": "podium.measures",  # expected reciprocal rank
    "AP": "podium.measures",  # average precision
    "RR": "podium.measures",  # reciprocal rank
    "Precision": "podium.measures",  # of the first k
    "Recall": "podium.measures",  # by the first k
    "RBP": "podium.measures",  # rank-biased precision
    "AlphaNDCG": "podium.measures",  # diversity: repetitions of a subtopic count less
    "ERRIA": "podium.measures",  # diversity: ERR over the intents of a query
    "PropensityNDCG": "podium.measures",  # on clicks, without the bias of positions
    "PairwiseAccuracy": "podium.measures",  # pairs in the right order
    "KendallTau": "podium.measures",  # rank correlation
    "Graded": "podium.measures",  # several measures in order of trust
    # evaluation
    "evaluate": "podium.evaluation",  # one ranking, measured
    "compare": "podium.evaluation",  # several rankings, with significance
    "Explanation": "podium.explain",  # what Model.explain returns: what each feature adds to each score
    "compare_explanations": "podium.explain",  # two models on a query: what moved, and through which features
    "partial_dependence": "podium.explain",  # how scores change with one feature
    "permutation_importance": "podium.explain",  # what a measure loses without a feature
    "Evaluation": "podium.evaluation",  # what evaluate returns
    "Comparison": "podium.evaluation",  # what compare returns
    "local_optimality": "podium.diagnostics",  # does a net sit at an optimum of its measure?
    "Optimality": "podium.diagnostics",  # … what was seen
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
    "adapt": "podium.estimators",  # a background model to a new domain …
    "Adaptation": "podium.estimators",  # … beside the other ways
    "Committee": "podium.estimators",  # several objectives, bagged and weighed: the best model
    "RankNet": "podium.estimators",  # a net trained on pairs
    "LambdaRank": "podium.estimators",  # a net trained on λ of a measure
    "LinearRanker": "podium.estimators",  # a weighted sum of features, trained on λ
    "Model": "podium.models",  # what all models are
    "Scorer": "podium.models",  # … made ready to score
    "Ensemble": "podium.models",  # trees
    "TopDocuments": "podium.models",  # the top k of each query, as an ensemble finds them
    "learn_exit": "podium.estimators",  # train a classifier that lets documents leave the trees early
    "EarlyExit": "podium.models",  # … the model that it gives
    "ClassEnsemble": "podium.models",  # trees for each class of relevance
    "LinearModel": "podium.models",  # a weight for each feature
    "OrdinalModel": "podium.models",  # … with thresholds between labels
    "Combined": "podium.models",  # a weighted sum of models
    "combine": "podium.models",  # the exact best weight of two rankers
    "Combination": "podium.models",  # … what it found
    "combine_all": "podium.models",  # weights of several rankers, in turn
    "Blend": "podium.models",  # … what it found
    "TreesOnBaseScores": "podium.models",  # trees on top of scores that are not in the model
    "refit_weights": "podium.models",  # the exact best weights of an ensemble's trees, in turn
    "load": "podium.models",  # a model from its file
    "import_model": "podium.formats",  # a model of another tool
    # many fits
    "fit_many": "podium.estimators",  # settings, seeds, folds: one fit on each thread
    "cross_validate": "podium.estimators",  # each query measured by models that have not seen it
    "CrossValidation": "podium.estimators",  # … what it found
    "tune": "podium.tuning",  # search parameters for a measure
    "Tuning": "podium.tuning",  # … what it found
    "Between": "podium.tuning",  # … a range that is searched
    # scikit-learn
    "QueryKFold": "podium.estimators",  # cross-validation by query
    "QueryNormalizer": "podium.estimators",  # per-query normalisation
    # errors
    "PodiumError": "podium.errors",  # the base of all of them
    "DataError": "podium.errors",  # data or parameters that cannot be right
    "FileFormatError": "podium.errors",  # with file, line and column
    "ParameterError": "podium.errors",  # a parameter that does not exist
    "MissingExtraError": "podium.errors",  # an optional dependency is not installed
    "PodiumWarning": "podium.errors",  # legal, but often a mistake
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"podium.{name}") is not None:
        return import_module(f"podium.{name}")  # a subpackage, such as podium.diagnostics
    raise AttributeError(f"module 'podium' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
