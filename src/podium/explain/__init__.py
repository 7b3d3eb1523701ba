"""Why a model ranks as it does."""

from podium.explain.importance import Importance, permutation_importance

__all__ = ["Importance", "permutation_importance"]
