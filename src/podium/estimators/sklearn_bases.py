"""scikit-learn's base classes, without loading scikit-learn before it is used.

Its import takes as long as all else before a first tree: it brings scipy.stats, and pandas where that is installed.
Training needs none of it. So the classes here stand for scikit-learn's until somebody imports it, whoever that is; from
then on they derive from scikit-learn's own, and so do all estimators, with nothing left of what stood here. Code that
can tell the difference, such as `isinstance(ranker, BaseEstimator)`, has imported it.

The classes are typed, too: an untyped base would let any constructor argument pass the type checker.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "check_is_fitted"]

_BASES = "sklearn.base"


# In the places of scikit-learn's classes: Python exchanges the bases of a class, but not where that is `object` alone.
class _EstimatorPlace: ...


class _RegressorPlace: ...


class _ClassifierPlace: ...


class BaseEstimator(_EstimatorPlace):
    """Becomes scikit-learn's; until then, what training uses of it."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, with those of estimators among them if `deep`."""
        values = {name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)}
        if deep and any(hasattr(value, "get_params") for value in values.values()):
            _like_sklearn(self)
            return super().get_params()  # type: ignore[misc, no-any-return]
        return values

    def set_params(self, **params: Any) -> Self:
        """Set some of them."""
        if not params.keys() <= self.get_params(deep=False).keys():  # of an estimator among them, or unknown
            _like_sklearn(self)
            return super().set_params(**params)  # type: ignore[misc, no-any-return]
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        return _like_sklearn(self).__sklearn_tags__()

    def __repr__(self) -> str:
        return repr(_like_sklearn(self))

    if not TYPE_CHECKING:  # which would let any attribute pass

        def __getattr__(self, name: str) -> Any:
            """How an estimator is shown, and where its metadata goes: whatever else scikit-learn's class brings."""
            if name.startswith(("_repr_", "set_", "get_", "_get_")):
                return getattr(_like_sklearn(self), name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class RegressorMixin(_RegressorPlace):
    """Becomes scikit-learn's."""

    def score(self, X: Any, y: Any = None, *args: Any, **others: Any) -> float:
        """R²."""
        _like_sklearn(self)
        return float(super().score(X, y, *args, **others))  # type: ignore[misc]


class ClassifierMixin(_ClassifierPlace):
    """Becomes scikit-learn's."""


def check_is_fitted(estimator: Any) -> None:
    """Refuse an estimator that has not been fitted, as scikit-learn does."""
    if not any(name.endswith("_") and not name.startswith("__") for name in vars(estimator)):
        import_module("sklearn.utils.validation").check_is_fitted(estimator)


def _like_sklearn(estimator: Any) -> Any:
    """The same object, whose class derives from scikit-learn's."""
    _derive_from(import_module(_BASES))
    return estimator


def _derive_from(module: ModuleType) -> None:
    """Put scikit-learn's classes below those of their names here, and take away what stood for them."""
    for own in (ClassifierMixin, RegressorMixin, BaseEstimator):
        if own.__bases__[0].__module__ != __name__:
            continue
        own.__bases__ = (getattr(module, own.__name__),)
        for name in [name for name, value in vars(own).items() if inspect.isfunction(value)]:
            delattr(own, name)
        if own is BaseEstimator:  # it tells its subclasses where metadata goes, but was not there when they were made
            for subclass in _below(own):
                module.BaseEstimator.__init_subclass__.__func__(subclass)


def _below(cls: type[Any]) -> Iterator[type[Any]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _below(subclass)


class _Watch(MetaPathFinder):
    """Hears of the import of scikit-learn's base classes."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:  # fmt: skip
        """Have the others find it, and the estimators derived from it as soon as it is loaded."""
        if name != _BASES:
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                if module.__name__ == _BASES:  # a loader may have others to load
                    _derive_from(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if _BASES in sys.modules:
    _derive_from(import_module(_BASES))  # which waits for another thread that is at it
else:
    sys.meta_path.insert(0, _Watch())
