"""scikit-learn's base classes with types: an untyped base would let any constructor argument pass the type checker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """What estimators use of scikit-learn's."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set some of them."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """What regressors use of scikit-learn's."""

        def score(self, X: Any, y: Any = None, *args: Any, **others: Any) -> float:
            """R²."""

    class ClassifierMixin:
        """What classifiers use of scikit-learn's."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
