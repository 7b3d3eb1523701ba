"""Scoring with the flat arrays of trees: in blocks of documents (`TreeScorer`), or by traversal of each tree.

`program` translates trees into searches, comparisons, choices and codes (`encoding`), and `blocks` runs a program on
hundreds of documents at a time, with a bit for each. No code is compiled for a model. `traversal` walks the trees, for
few documents, trees of thousands of leaves, and the leaves of documents. Sums are in double precision in the order of
the trees, so that both ways give the same bits. docs/performance.md has the cost of each stage.
"""

from podium.models.scoring.traversal import TreeArrays, find_leaves
from podium.models.scoring.tree_scorer import TreeScorer

__all__ = ["TreeArrays", "TreeScorer", "find_leaves"]
