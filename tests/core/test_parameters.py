"""Parameters declared once: constructors, checks, docstrings, tables and names derive from the declaration."""

import copy
import inspect
import math
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import podium
from podium.boosting import Boosting, CommitteeTraining, GrovesTraining, Newton, Sampling
from podium.core import hyperparameters as h
from podium.core.parameters import (
    Parameter,
    Parameterized,
    check_parameters,
    choice,
    flag,
    fraction,
    from_parameters,
    integer,
    number,
    optional,
    parameters,
    settings,
)  # fmt: skip
from podium.errors import DataError, ParameterError
from podium.estimators.parameters import MODELS
from podium.linear import AdaRankTraining, Ascent, CuttingPlanes, Descent, PRankTraining
from podium.neural import NetTraining
from podium.trees import GrowthParameters
from podium.trees.growth_types import GrowthLimits
from podium.trees.quantization import QuantizedGradients

DECLARED = [value for value in vars(h).values() if isinstance(value, Parameter) and value is not h.LABEL_GAIN]
DEPTH = integer("depth", 3, least=1, most=9, help="levels, at most. None of them is empty.")
RATE = optional(number("rate", above=0, help="of learning"))
KIND = choice("kind", "a", ("a", "b", "c"), help="a letter")


class Small(Parameterized, BaseEstimator):
    """A small estimator.

    Attributes:
        nothing_: nothing.

    """

    depth: int = DEPTH(4)
    _: KW_ONLY
    rate: float | None = RATE(None)
    kind: str = KIND("a")


class Other(Small):
    """Another default."""

    _: KW_ONLY
    rate: float | None = RATE(0.5)


def test_the_constructor_follows_from_the_fields():
    shown = str(inspect.signature(Small))
    assert shown == "(depth: int = 4, *, rate: float | None = None, kind: str = 'a') -> None"
    assert Small(2, kind="b").get_params() == {"depth": 2, "rate": None, "kind": "b"}
    assert (Other().rate, Other(rate=None).rate, Small().rate) == (0.5, None, None)
    with pytest.raises(TypeError):
        Small(2, 0.5)


def test_values_are_stored_as_they_are_and_checked_later():
    wrong = Small(depth="deep", rate=-1)
    assert wrong.depth == "deep"
    with pytest.raises(DataError, match="depth must be a whole number from 1, but is 'deep'"):
        check_parameters(wrong)
    with pytest.raises(DataError, match="rate must be positive, but is -1"):
        check_parameters(Small(rate=-1))
    check_parameters(Small(np.int64(3), rate=np.float32(0.5)))


def test_scikit_learn_clones_and_sets():
    model = Small(7, rate=0.25)
    for duplicate in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert duplicate.get_params() == model.get_params()
    assert model.set_params(kind="c") is model
    with pytest.raises(ParameterError, match=r"Small has no parameter 'kin' \(did you mean 'kind'\?\)"):
        model.set_params(kin="c")
    with pytest.raises(ParameterError, match=r"Small has no parameter 'dept' \(did you mean 'depth'\?\)"):
        Small(dept=3)


def test_a_constructor_may_take_other_parameters_as_settings():
    class Coloured(Small):
        def __init__(self, depth=1, colour="red", **settings):
            super().__init__(depth, **settings)
            self.colour = colour

    assert Coloured(colour="blue", rate=0.1).get_params() == {"colour": "blue", "depth": 1, "rate": 0.1, "kind": "a"}
    with pytest.raises(ParameterError, match="did you mean 'colour'"):
        Coloured(color="blue")


def test_docstrings_contain_the_help_of_parameters():
    doc = inspect.getdoc(Small)
    assert "Args:\n    depth: levels, at most. None of them is empty.\n    rate: of learning\n" in doc
    assert doc.index("Args:") < doc.index("Attributes:")
    assert DEPTH.summary == "Levels, at most."
    assert "n_leaves: maximum number of leaves of a tree" in inspect.getdoc(GrowthParameters)
    assert "monotone: for each feature" in inspect.getdoc(GrowthParameters)
    assert inspect.getdoc(PRankTraining).count("    seed: ") == 1  # documented by the class itself


def test_settings_are_frozen_and_checked_when_they_are_made():
    @settings
    class Both:
        depth: int = DEPTH()
        rate: float | None = RATE()

        def __post_init__(self):
            if self.depth == 5:
                raise DataError("five is right out")

    with pytest.raises(TypeError, match="positional"):
        Both(2)
    assert Both(depth=2).depth == 2
    for values, words in (({"depth": 0}, "from 1"), ({"rate": 0}, "positive"), ({"depth": 5}, "right out")):
        with pytest.raises(DataError, match=words):
            Both(**values)
    with pytest.raises(FrozenInstanceError):
        Both().depth = 4


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        (DEPTH, 10, "depth must be at most 9, but is 10"), (DEPTH, True, "depth must be a whole number"),
        (DEPTH, None, "depth must be a whole number from 1, but is None"), (DEPTH, 2.0, "must be a whole number"),
        (RATE, "x", "rate must be a number, but is 'x'"), (RATE, math.nan, "rate must be positive"),
        (RATE, math.inf, "rate must be positive"), (KIND, "d", "kind must be one of 'a', 'b', 'c', but is 'd'"),
        (fraction("share", help=""), 1.5, "share must be above 0 and at most 1, but is 1.5"),
        (fraction("share", help=""), 0, "share must be above 0 and at most 1, but is 0"),
        (number("n", 1.0, above=0, below=1, help=""), 1, "n must be between 0 and 1, but is 1"),
        (flag("f", True, help=""), "yes", "f must be True or False, but is 'yes'"),
        (h.RANDOM_STATE, 1.5, "random_state must be a whole number, but is 1.5"),
        (h.SPLIT, "newtn", "split must be 'newton' or 'least-squares', but is 'newtn' .did you mean 'newton'"),
    ],
)  # fmt: skip
def test_errors_state_what_was_expected_and_what_was_passed(parameter, value, message):
    with pytest.raises(DataError, match=message):
        parameter.check(value)


def test_values_at_the_limits_of_ranges_are_valid():
    for parameter, values in (
        (DEPTH, (1, 9)), (RATE, (None, 5e-324, 1e308)), (fraction("s", help=""), (1e-9, 1)),
        (h.MAX_DELTA_STEP, (None, math.inf)), (h.RANDOM_STATE, (-5, 2**80)), (h.SHRINKAGE, (0, 1, None)),
        (flag("f", True, help=""), (True, np.False_)),
    ):  # fmt: skip
        for value in values:
            parameter.check(value)


@pytest.mark.parametrize("parameter", DECLARED, ids=lambda parameter: parameter.name)
def test_every_declaration_is_complete(parameter):
    assert parameter.help
    assert not parameter.help.startswith(" ")
    if parameter.default is None:
        assert parameter.optional or parameter.kind is object
    parameter.check(parameter.default)


@pytest.mark.parametrize("name", MODELS)
def test_estimators_have_exactly_the_declared_parameters(name):
    model = MODELS[name]
    estimator = getattr(podium.estimators, model.estimator)
    assert (
        set(inspect.signature(estimator).parameters) == set(parameters(model.parameters)) == set(parameters(estimator))
    )
    for parameter in parameters(estimator).values():
        parameter.check(parameter.default)
        assert parameter.name in inspect.getdoc(estimator)


ENGINE = (
    AdaRankTraining, Ascent, Boosting, CommitteeTraining, CuttingPlanes, Descent, GrovesTraining, GrowthParameters,
    NetTraining, Newton, PRankTraining, Sampling,
)  # fmt: skip


@pytest.mark.parametrize("cls", ENGINE, ids=lambda cls: cls.__name__)
def test_the_engine_has_the_same_declarations_and_defaults(cls):
    """Two copies of a range, a help text or a default would differ one day."""
    assert parameters(cls)
    for parameter in parameters(cls).values():
        assert parameter in DECLARED


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (podium.LambdaMART, (Boosting, GrowthParameters, Sampling, Newton)),
        (podium.AdditiveGroves, (GrovesTraining,)),
        (podium.LinearRanker, (Ascent, CuttingPlanes, Descent)),
        (podium.estimators.AdaRank, (AdaRankTraining,)),
        (podium.PRank, (PRankTraining,)),
        (podium.LambdaRank, (NetTraining,)),
    ],
)
def test_the_defaults_of_the_engine_are_those_of_the_estimators(estimator, settings):
    for cls in settings:
        for parameter in parameters(cls).values():
            declared = parameters(estimator).get(parameter.name)
            if declared is not None and declared.name != "split_fraction":  # pairs weigh documents unequally
                assert declared.default == parameter.default, (cls, declared.name)


def test_settings_take_the_parameters_of_an_estimator_by_name():
    ranker = podium.LambdaMART(7, n_leaves=3, random_state=5, l2=2.5, max_depth=4, min_documents_in_leaf=2)
    growth = from_parameters(GrowthParameters, ranker, monotone=(1, 0))
    assert growth == GrowthParameters(n_leaves=3, l2=2.5, max_depth=4, min_documents_in_leaf=2, monotone=(1, 0))
    assert from_parameters(Sampling, ranker) == Sampling(seed=5, split_fraction=None)
    units = QuantizedGradients(np.empty(0), 0.25, 0.5, 1, False, None)
    limits = growth.limits(3, units)
    assert limits == GrowthLimits(n_leaves=3, max_depth=4, min_documents=2, min_documents_to_split=2, l2=5.0)
    assert replace(growth, split="least-squares", max_depth=None).limits(2, units)[:2] == (2, -1)


def test_limits_are_in_the_units_of_the_gradients():
    growth = GrowthParameters(min_hessian_in_leaf=3.0, min_gain_to_split=2.0, l1=5.0, min_documents_in_leaf=7)
    limits = growth.limits(15, QuantizedGradients(np.empty(0), 0.25, 0.5, 1, False, None))
    assert (limits.min_weight, limits.min_gain, limits.l1) == (6, 16.0, 20.0)
    counting = QuantizedGradients(np.empty(0), 0.25, 1.0, 1, True, None)
    plain = GrowthParameters(l1=5.0, min_documents_in_leaf=7, split="least-squares").limits(15, counting)
    assert (plain.min_weight, plain.min_gain, plain.l1, plain.l2) == (7, 0.0, None, 0.0)
    for n_leaves, max_depth, levels in ((15, None, 3), (16, None, 4), (64, 3, 3), (2, 9, 1)):
        growth = GrowthParameters(symmetric=True, n_leaves=n_leaves, max_depth=max_depth)
        assert growth.limits(n_leaves, counting).max_depth == levels
    assert GrowthParameters(min_hessian_in_leaf=1e300).limits(15, counting).min_weight == 20
    with pytest.raises(DataError, match=r"min_hessian_in_leaf=1.0 needs splits by hessians .*: use min_documents_in"):
        GrowthParameters(min_hessian_in_leaf=1.0, split="least-squares")
