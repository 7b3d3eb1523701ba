"""`python -m podium`: the command, where it is not on the PATH."""

from podium.cli import main

if __name__ == "__main__":  # worker processes import this module again
    main()
