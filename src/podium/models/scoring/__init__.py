"""How the flat arrays of trees become scores: `Traversal`, by walking from each root.

A scorer has two methods, `add_scores(features, scores, first, last)` and `leaves(features)`. Another one, such as a
compiled one, takes the place of `Traversal` in `Ensemble` by having the same.
"""

from podium.models.scoring.traversal import Traversal, TreeArrays

__all__ = ["Traversal", "TreeArrays"]
