"""The command `podium`: arguments in, text out; the work is done by the library."""

from podium.cli.app import main

__all__ = ["main"]
