"""Imported once by the process that calls of commands are forked from: they find the libraries loaded."""

import podium

for name in podium.__all__:
    getattr(podium, name)  # imports where it is from
