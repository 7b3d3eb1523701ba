"""The parameters of each estimator, and their defaults.

The command line derives its options from this file, so it must not import scikit-learn, NumPy or the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core import hyperparameters as h
from podium.core.parameters import Parameterized

if TYPE_CHECKING:
    from podium.boosting import Step
    from podium.measures import Graded, Measure
    from podium.objectives import Objective


class TreeParameters(Parameterized):
    """The parameters of all boosted trees."""

    n_trees: int = h.N_TREES()
    n_leaves: int = h.N_LEAVES()
    learning_rate: h.ByRound = h.LEARNING_RATE()
    measure: Measure | Graded | str = h.MEASURE()
    _: KW_ONLY
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF()
    min_hessian_in_leaf: float = h.MIN_HESSIAN_IN_LEAF()
    min_gain_to_split: float = h.MIN_GAIN_TO_SPLIT()
    max_depth: int | None = h.MAX_DEPTH()
    symmetric: bool = h.SYMMETRIC()
    l1: float = h.L1()
    l2: float = h.L2()
    max_delta_step: float | None = h.MAX_DELTA_STEP()
    split: str = h.SPLIT()
    document_fraction: float = h.DOCUMENT_FRACTION()
    query_fraction: float = h.QUERY_FRACTION()
    feature_fraction: float = h.FEATURE_FRACTION()
    feature_fraction_per_node: float = h.FEATURE_FRACTION_PER_NODE()
    split_fraction: float | None = h.SPLIT_FRACTION()
    max_bins: int = h.MAX_BINS()
    categorical: Sequence[int | str] = h.CATEGORICAL()
    monotone: Mapping[int | str, int] | Sequence[int] | None = h.MONOTONE()
    interaction_constraints: Sequence[Sequence[int | str]] | None = h.INTERACTION_CONSTRAINTS()
    patience: int | None = h.PATIENCE()
    min_delta: float = h.MIN_DELTA()
    random_state: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS_AND_LOSS()
    verbose: int | None = h.VERBOSE()


class LambdaMARTParameters(TreeParameters):
    """Boosted trees on LambdaRank's gradients, for any measure or objective."""

    _: KW_ONLY
    split_fraction: float | None = h.SPLIT_FRACTION(None)  # as accurate as 1, because pairs weight documents unequally
    truncation: int | None = h.TRUNCATION()
    pair_truncation: int | None = h.PAIR_TRUNCATION()
    sigma: float = h.SIGMA()
    normalize: bool = h.NORMALIZE()
    objective: Objective | str | None = h.OBJECTIVE()
    step: Step | str = h.STEP()
    submodel: Any = h.SUBMODEL()
    submodel_scale: float | str = h.SUBMODEL_SCALE()


class RankerParameters(TreeParameters):
    """Boosted trees on query regression and on λ, averaged: the model to start with."""

    n_trees: int = h.ROUNDS_OF_RANKER()
    n_leaves: int | None = h.RANKER_LEAVES(None)  # type: ignore[assignment]
    learning_rate: h.ByRound | None = h.RANKER_RATE(None)  # type: ignore[assignment]
    _: KW_ONLY
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    feature_fraction: float | None = h.HALF_OR_ALL_FEATURES(None)  # type: ignore[assignment]
    patience: int | None = h.PATIENCE(100)
    n_folds: int = h.N_FOLDS()


class AdaptParameters(LambdaMARTParameters):
    """LambdaMART on a new domain: the papers' trees for adaptation ([W] 5.5)."""

    n_leaves: int = h.N_LEAVES(20)
    _: KW_ONLY
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    patience: int | None = h.PATIENCE(50)


class RankNetTreesParameters(TreeParameters):
    """Boosted trees on RankNet's pairs."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE()
    _: KW_ONLY
    sigma: float = h.SIGMA()
    normalize: bool = h.NORMALIZE(False)


class PointwiseParameters(TreeParameters):
    """Boosted trees on single documents, as published: least-squares splits, and no L2."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE()
    _: KW_ONLY
    split: str = h.SPLIT("least-squares")
    l2: float = h.L2(0.0)


class MARTParameters(PointwiseParameters):
    """Boosted regression on the labels."""


class MARTClassifierParameters(PointwiseParameters):
    """Boosted trees for two classes."""

    n_trees: int = h.N_TREES(100)
    measure: Measure | Graded | str = h.STOPPING_MEASURE("ap")
    _: KW_ONLY
    sigma: float = h.CLASS_SIGMA()
    balanced: bool = h.BALANCED()


class McRankParameters(PointwiseParameters):
    """Ranking by classification: a tree for each label and round."""

    n_leaves: int = h.N_LEAVES(10)
    learning_rate: h.ByRound = h.LEARNING_RATE(0.05)
    _: KW_ONLY
    expects: str = h.EXPECTS()
    form: str = h.FORM()


class OrdinalMARTParameters(TreeParameters):
    """Ordinal regression: boosted trees, and thresholds between the labels."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE()


class LinearRankerParameters(Parameterized):
    """A weighted sum of features, trained on λ or on the measure itself."""

    measure: Measure | Graded | str = h.MEASURE()
    _: KW_ONLY
    n_iterations: int = h.N_ITERATIONS()
    learning_rate: float = h.LINEAR_RATE()
    l2: float = h.LINEAR_L2()
    truncation: int | None = h.TRUNCATION()
    pair_truncation: int | None = h.PAIR_TRUNCATION()
    sigma: float = h.SIGMA()
    normalize: bool = h.NORMALIZE()
    method: str = h.METHOD()
    objective: Objective | str | None = h.OBJECTIVE()
    patience: int | None = h.PATIENCE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS_AND_LOSS()
    verbose: int | None = h.VERBOSE()


class PRankParameters(Parameterized):
    """A weighted sum of features with thresholds between labels, learnt one document at a time."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE()
    _: KW_ONLY
    epochs: int = h.PASSES()
    averaged: bool = h.AVERAGED()
    patience: int | None = h.PATIENCE()
    random_state: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS()
    verbose: int | None = h.VERBOSE()


class AdaRankParameters(Parameterized):
    """A weighted sum of features by boosting on a measure."""

    measure: Measure | Graded | str = h.MEASURE()
    _: KW_ONLY
    n_iterations: int = h.BOOSTED_FEATURES()
    repeats: bool = h.REPEATS()
    patience: int | None = h.PATIENCE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS()
    verbose: int | None = h.VERBOSE()


class RankBoostParameters(Parameterized):
    """A weighted sum of thresholds on features by boosting on pairs."""

    n_trees: int = h.N_TREES()
    measure: Measure | Graded | str = h.STOPPING_MEASURE()
    _: KW_ONLY
    max_bins: int = h.MAX_BINS()
    categorical: Sequence[int | str] = h.CATEGORICAL()
    patience: int | None = h.PATIENCE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS_AND_LOSS()
    verbose: int | None = h.VERBOSE()


class AdditiveGrovesParameters(Parameterized):
    """Averaged groves: few large trees each, fitted in turn to the residuals of the others."""

    n_groves: int = h.N_GROVES()
    n_trees_in_grove: int = h.N_TREES_IN_GROVE()
    alpha: float = h.ALPHA()
    measure: Measure | Graded | str = h.STOPPING_MEASURE()
    _: KW_ONLY
    training: str = h.TRAINING()
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_GROVE_LEAF()
    max_bins: int = h.MAX_BINS()
    categorical: Sequence[int | str] = h.CATEGORICAL()
    random_state: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS()
    verbose: int | None = h.VERBOSE()


class CommitteeParameters(Parameterized):
    """Several objectives, bagged and weighted, in one ensemble of trees."""

    measure: Measure | Graded | str = h.MEASURE()
    _: KW_ONLY
    members: Sequence[tuple[Objective | str, int]] | None = h.MEMBERS()
    n_trees: int = h.N_TREES(2000)
    n_leaves: int = h.N_LEAVES()
    learning_rate: h.ByRound = h.LEARNING_RATE(0.05)
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF()
    l2: float = h.L2()
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    feature_fraction: float | None = h.HALF_OR_ALL_FEATURES(None)
    patience: int | None = h.PATIENCE(100)
    cycles: int = h.CYCLES()
    shrinkage: float | None = h.SHRINKAGE()
    n_folds: int = h.N_FOLDS()
    time_budget: float | None = h.TIME_BUDGET()
    random_state: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    verbose: int | None = h.VERBOSE()


class NetParameters(Parameterized):
    """The parameters of all nets."""

    measure: Measure | Graded | str = h.MEASURE()
    _: KW_ONLY
    net: Any = h.NET()
    hidden: int | Sequence[int] = h.HIDDEN()
    activation: str = h.ACTIVATION()
    inputs: str = h.INPUTS()
    optimizer: str = h.OPTIMIZER()
    learning_rate: float | None = h.FIRST_RATE()
    smallest_rate: float = h.SMALLEST_RATE()
    halve_after: int = h.HALVE_AFTER()
    epochs: int = h.EPOCHS()
    batch_queries: int | None = h.BATCH_QUERIES()
    l2: float = h.WEIGHT_DECAY()
    sigma: float = h.SIGMA()
    patience: int | None = h.PATIENCE()
    random_state: int = h.NET_RANDOM_STATE()
    n_threads: int | None = h.NET_N_THREADS()
    metrics: Sequence[Measure | str] = h.METRICS_AND_LOSS()
    verbose: int | None = h.VERBOSE()


class RankNetParameters(NetParameters):
    """A net trained on pairs."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE()


class LambdaRankParameters(NetParameters):
    """A net trained on λ of a measure."""

    _: KW_ONLY
    objective: Objective | str | None = h.OBJECTIVE()
    truncation: int | None = h.TRUNCATION()
    pair_truncation: int | None = h.PAIR_TRUNCATION()
    normalize: bool = h.NORMALIZE()


class TrainableModel(NamedTuple):
    """A model of `podium train`."""

    estimator: str  # the name of the estimator in `podium.estimators`
    parameters: type[Parameterized]  # the class that declares its parameters; the docstring describes the model
    has_checkpoints: bool = True  # whether an interrupted run can be resumed
    has_rounds: bool = True  # whether there is a curve to watch


# The models of `podium train`, by the word on the command line.
MODELS: dict[str, TrainableModel] = {
    "ranker": TrainableModel("Ranker", RankerParameters),
    "lambdamart": TrainableModel("LambdaMART", LambdaMARTParameters),
    "ranknet-trees": TrainableModel("RankNetTrees", RankNetTreesParameters),
    "mart": TrainableModel("MART", MARTParameters),
    "mcrank": TrainableModel("McRank", McRankParameters),
    "ordinal-mart": TrainableModel("OrdinalMART", OrdinalMARTParameters),
    "additive-groves": TrainableModel(
        "AdditiveGroves", AdditiveGrovesParameters, has_checkpoints=False, has_rounds=False
    ),
    "rankboost": TrainableModel("RankBoost", RankBoostParameters),
    "adarank": TrainableModel("AdaRank", AdaRankParameters, has_checkpoints=False),
    "prank": TrainableModel("PRank", PRankParameters, has_checkpoints=False),
    "linear": TrainableModel("LinearRanker", LinearRankerParameters, has_checkpoints=False),
    "committee": TrainableModel("Committee", CommitteeParameters, has_checkpoints=False, has_rounds=False),
    "ranknet": TrainableModel("RankNet", RankNetParameters),
    "lambdarank": TrainableModel("LambdaRank", LambdaRankParameters),
}
