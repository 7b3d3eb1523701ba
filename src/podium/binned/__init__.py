"""Store ranking data as a folder of bins, for files larger than memory."""

from podium.binned.binned_files import BinnedFiles, open_binned
from podium.binned.binning_files import bin_files
from podium.binned.folder import is_binned

__all__ = ["BinnedFiles", "bin_files", "is_binned", "open_binned"]
