"""How the flat arrays of trees become scores: in blocks of documents (`TreeScorer`), or by a walk from each root.

`program` turns trees into searches, comparisons, choices and codes; `encoding` has the choices; `blocks` runs a program
on some hundred documents at a time. `traversal` walks: for few documents, trees of thousands of leaves, and leaves.
"""

from podium.models.scoring.traversal import Traversal, TreeArrays
from podium.models.scoring.tree_scorer import TreeScorer

__all__ = ["Traversal", "TreeArrays", "TreeScorer"]
