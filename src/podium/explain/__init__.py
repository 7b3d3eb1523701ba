"""Why a model ranks as it does."""

from podium.explain.importance import permutation_importance

__all__ = ["permutation_importance"]
