"""Regression trees on binned features: binning, histograms, splits, growth. Nothing here depends on ranking."""

from podium.trees.binning import BinnedFeatures, Bins, bin_features, find_bins
from podium.trees.grower import Grower
from podium.trees.grown_tree import GrownTree, Tree
from podium.trees.parameters import GrowthParameters

__all__ = ["BinnedFeatures", "Bins", "Grower", "GrownTree", "GrowthParameters", "Tree", "bin_features", "find_bins"]
