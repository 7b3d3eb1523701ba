"""Which parameters each estimator has, and their defaults.

This file is light on purpose: the command line makes its options of it without scikit-learn, NumPy and the engine.
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
    """What all boosted trees have."""

    n_trees: int = h.N_TREES(500)
    n_leaves: int = h.N_LEAVES(15)
    learning_rate: float = h.LEARNING_RATE(0.1)
    measure: Measure | Graded | str = h.MEASURE("ndcg@10")
    _: KW_ONLY
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF(20)
    max_depth: int | None = h.MAX_DEPTH(None)
    l2: float = h.L2(1.0)
    max_delta_step: float | None = h.MAX_DELTA_STEP(None)
    split: str = h.SPLIT("newton")
    document_fraction: float = h.DOCUMENT_FRACTION(1.0)
    query_fraction: float = h.QUERY_FRACTION(1.0)
    feature_fraction: float = h.FEATURE_FRACTION(1.0)
    split_fraction: float | None = h.SPLIT_FRACTION(1.0)
    max_bins: int = h.MAX_BINS(255)
    categorical: Sequence[int | str] = h.CATEGORICAL(())
    monotone: Mapping[int | str, int] | Sequence[int] | None = h.MONOTONE(None)
    patience: int | None = h.PATIENCE(None)
    random_state: int = h.RANDOM_STATE(0)
    n_threads: int | None = h.N_THREADS(None)
    metrics: Sequence[Measure | str] = h.METRICS(())
    verbose: int | None = h.VERBOSE(None)


class LambdaMARTParameters(TreeParameters):
    """Boosted trees on LambdaRank's gradients, for any measure or objective."""

    _: KW_ONLY
    split_fraction: float | None = h.SPLIT_FRACTION(None)  # pairs weigh documents unequally: a sample serves as well
    truncation: int | None = h.TRUNCATION(None)
    sigma: float = h.SIGMA(1.0)
    normalize: bool = h.NORMALIZE(True)
    objective: Objective | str | None = h.OBJECTIVE(None)
    step: Step | str = h.STEP("newton")
    submodel: Any = h.SUBMODEL(None)
    submodel_scale: float | str = h.SUBMODEL_SCALE("fit")


class RankerParameters(TreeParameters):
    """Boosted trees that go from query regression to λ: the model to begin with."""

    n_trees: int = h.N_TREES(2000)
    learning_rate: float = h.LEARNING_RATE(0.05)
    _: KW_ONLY
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    feature_fraction: float | None = h.HALF_OR_ALL_FEATURES(None)  # type: ignore[assignment]
    patience: int | None = h.PATIENCE(100)
    n_folds: int = h.N_FOLDS(5)


class AdaptParameters(LambdaMARTParameters):
    """LambdaMART on a new domain: the papers' trees for adaptation ([W] 5.5)."""

    n_leaves: int = h.N_LEAVES(20)
    _: KW_ONLY
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    patience: int | None = h.PATIENCE(50)


class RankNetTreesParameters(TreeParameters):
    """Boosted trees on RankNet's pairs."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")
    _: KW_ONLY
    sigma: float = h.SIGMA(1.0)
    normalize: bool = h.NORMALIZE(False)


class PointwiseParameters(TreeParameters):
    """Boosted trees on single documents, as the papers have them: least-squares splits, and no L2."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")
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
    sigma: float = h.CLASS_SIGMA(1.0)
    balanced: bool = h.BALANCED(False)


class McRankParameters(PointwiseParameters):
    """Ranking by classification: a tree for each label and round."""

    n_leaves: int = h.N_LEAVES(10)
    learning_rate: float = h.LEARNING_RATE(0.05)
    _: KW_ONLY
    expects: str = h.EXPECTS("relevance")


class OrdinalMARTParameters(TreeParameters):
    """Ordinal regression: boosted trees, and thresholds between the labels."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")


class LinearRankerParameters(Parameterized):
    """A weighted sum of features, trained on λ or on the measure itself."""

    measure: Measure | Graded | str = h.MEASURE("ndcg@10")
    _: KW_ONLY
    n_iterations: int = h.N_ITERATIONS(100)
    learning_rate: float = h.LEARNING_RATE(1.0)
    l2: float = h.LINEAR_L2(1e-4)
    truncation: int | None = h.TRUNCATION(None)
    sigma: float = h.SIGMA(1.0)
    normalize: bool = h.NORMALIZE(False)
    method: str = h.METHOD("descent")
    objective: Objective | str | None = h.OBJECTIVE(None)
    patience: int | None = h.PATIENCE(None)
    n_threads: int | None = h.N_THREADS(None)
    metrics: Sequence[Measure | str] = h.METRICS(())
    verbose: int | None = h.VERBOSE(None)


class PRankParameters(Parameterized):
    """A weighted sum of features with thresholds between labels, learnt one document at a time."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")
    _: KW_ONLY
    epochs: int = h.EPOCHS(20)
    averaged: bool = h.AVERAGED(True)
    patience: int | None = h.PATIENCE(None)
    random_state: int = h.RANDOM_STATE(0)
    n_threads: int | None = h.N_THREADS(None)
    metrics: Sequence[Measure | str] = h.METRICS(())
    verbose: int | None = h.VERBOSE(None)


class AdditiveGrovesParameters(Parameterized):
    """Averaged groves: few large trees each, fitted in turn to what the others leave over."""

    n_groves: int = h.N_GROVES(60)
    n_trees_in_grove: int = h.N_TREES_IN_GROVE(8)
    alpha: float = h.ALPHA(0.01)
    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")
    _: KW_ONLY
    training: str = h.TRAINING("fast")
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF(1)
    max_bins: int = h.MAX_BINS(255)
    categorical: Sequence[int | str] = h.CATEGORICAL(())
    random_state: int = h.RANDOM_STATE(0)
    n_threads: int | None = h.N_THREADS(None)
    metrics: Sequence[Measure | str] = h.METRICS(())
    verbose: int | None = h.VERBOSE(None)


class CommitteeParameters(Parameterized):
    """Several objectives, bagged and weighed, in one ensemble of trees."""

    measure: Measure | Graded | str = h.MEASURE("ndcg@10")
    _: KW_ONLY
    members: Sequence[tuple[Objective | str, int]] | None = h.MEMBERS(None)
    n_trees: int = h.N_TREES(2000)
    n_leaves: int = h.N_LEAVES(15)
    learning_rate: float = h.LEARNING_RATE(0.05)
    min_documents_in_leaf: int = h.MIN_DOCUMENTS_IN_LEAF(20)
    l2: float = h.L2(1.0)
    document_fraction: float = h.DOCUMENT_FRACTION(0.7)
    feature_fraction: float | None = h.HALF_OR_ALL_FEATURES(None)
    patience: int | None = h.PATIENCE(100)
    cycles: int = h.CYCLES(2)
    shrinkage: float | None = h.SHRINKAGE(None)
    n_folds: int = h.N_FOLDS(5)
    time_budget: float | None = h.TIME_BUDGET(None)
    random_state: int = h.RANDOM_STATE(0)
    n_threads: int | None = h.N_THREADS(None)
    verbose: int | None = h.VERBOSE(None)


class NetParameters(Parameterized):
    """What all nets have."""

    measure: Measure | Graded | str = h.MEASURE("ndcg@10")
    _: KW_ONLY
    net: Any = h.NET(None)
    hidden: int | Sequence[int] = h.HIDDEN(10)
    activation: str = h.ACTIVATION("tanh")
    inputs: str = h.INPUTS("standard")
    optimizer: str = h.OPTIMIZER("adam")
    learning_rate: float | None = h.FIRST_RATE(None)
    smallest_rate: float = h.SMALLEST_RATE(1e-5)
    halve_after: int = h.HALVE_AFTER(5)
    epochs: int = h.EPOCHS(100)
    batch_queries: int | None = h.BATCH_QUERIES(32)
    l2: float = h.WEIGHT_DECAY(0.0)
    sigma: float = h.SIGMA(1.0)
    patience: int | None = h.PATIENCE(None)
    random_state: int = h.NET_RANDOM_STATE(0)
    n_threads: int | None = h.NET_N_THREADS(None)
    metrics: Sequence[Measure | str] = h.METRICS(())
    verbose: int | None = h.VERBOSE(None)


class RankNetParameters(NetParameters):
    """A net trained on pairs."""

    measure: Measure | Graded | str = h.STOPPING_MEASURE("ndcg@10")


class LambdaRankParameters(NetParameters):
    """A net trained on λ of a measure."""

    _: KW_ONLY
    objective: Objective | str | None = h.OBJECTIVE(None)
    truncation: int | None = h.TRUNCATION(None)
    normalize: bool = h.NORMALIZE(False)


class TrainableModel(NamedTuple):
    """What `podium train` knows of a model.

    Attributes:
        estimator: its name in `podium.estimators`.
        parameters: the class that declares them; its docstring describes the model.
        has_checkpoints: whether a run that was stopped goes on.
        has_rounds: whether there is a curve to watch.

    """

    estimator: str
    parameters: type[Parameterized]
    has_checkpoints: bool = True
    has_rounds: bool = True


# What `podium train` trains, by the word on the command line.
MODELS: dict[str, TrainableModel] = {
    "lambdamart": TrainableModel("LambdaMART", LambdaMARTParameters),
    "ranker": TrainableModel("Ranker", RankerParameters),
    "ranknet-trees": TrainableModel("RankNetTrees", RankNetTreesParameters),
    "mart": TrainableModel("MART", MARTParameters),
    "mcrank": TrainableModel("McRank", McRankParameters),
    "ordinal-mart": TrainableModel("OrdinalMART", OrdinalMARTParameters),
    "additive-groves": TrainableModel(
        "AdditiveGroves", AdditiveGrovesParameters, has_checkpoints=False, has_rounds=False
    ),
    "prank": TrainableModel("PRank", PRankParameters, has_checkpoints=False),
    "linear": TrainableModel("LinearRanker", LinearRankerParameters, has_checkpoints=False),
    "committee": TrainableModel("Committee", CommitteeParameters, has_checkpoints=False, has_rounds=False),
    "ranknet": TrainableModel("RankNet", RankNetParameters),
    "lambdarank": TrainableModel("LambdaRank", LambdaRankParameters),
}
