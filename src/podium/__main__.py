"""`python -m podium`: the command, where it is not on the PATH."""

from podium.cli import main

main()
