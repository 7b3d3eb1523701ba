"""Literal types that the library and the command line share. The command line imports them without NumPy."""

from typing import Literal

DataFormat = Literal["letor", "csv", "tsv", "parquet"]
Absent = Literal["zero", "missing"]  # the value of features that a line of LETOR text omits
Returning = Literal["warn", "merge", "error"]  # what to do if a query id returns after other queries
DataPart = Literal["train", "valid", "test"]  # of artificial data
Fusion = Literal["rrf", "combsum", "combmnz", "borda"]  # see `podium.evaluation.fuse`
SplitMode = Literal["newton", "least-squares"]  # the criterion of a split
