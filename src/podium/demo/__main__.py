"""`python -m podium.demo FOLDER`."""

import sys
from pathlib import Path

from podium.demo import main

main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
