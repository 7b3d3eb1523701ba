"""scikit-learn's base classes with type annotations.

scikit-learn has none, and mypy accepts any constructor argument of a class that derives from an untyped one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """See scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set some parameters."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """See scikit-learn."""

        def score(self, X: Any, y: Any = None, *args: Any, **others: Any) -> float:
            """Return R²."""

    class ClassifierMixin:
        """See scikit-learn."""

    def check_is_fitted(estimator: object) -> None:
        """Raise `NotFittedError` if `fit` has not been called."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "check_is_fitted"]
