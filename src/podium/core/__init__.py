"""Foundations of all packages: compilation, threads, exact sums, files, parameters, progress."""
