"""`make mutants`: see tests/mutants/run.py. Does nothing when it is imported, as the processes of the hunts do."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.mutants.run import main

    sys.exit(main())
