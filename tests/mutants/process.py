"""The process of one hunt, forked from one that has loaded what all hunts need: what it imports of duly is the mutant.

Imports nothing of duly or its tests before it runs.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOADED: Final = [
    "asyncio", "click", "cronsim", "hypothesis", "hypothesis.stateful", "msgspec", "psycopg", "psycopg_pool", "pytest",
]  # fmt: skip
"""Loaded once, before the forks. Nothing of duly may be here."""


def hunt_there(source: Path, output: Path, tests: Sequence[str], arguments: Sequence[str]) -> None:
    """Run pytest on `tests`, or tests.mutants.hunt with `arguments`, on the package in `source`."""
    assert "duly" not in sys.modules, "the mutant came too late"
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(source), str(ROOT)]
    os.environ["PYTHONPATH"] = str(source)
    if tests:
        import pytest

        sys.exit(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "--no-header",
                    "--tb=no",
                    "--assert=plain",
                    "-p",
                    "no:cacheprovider",
                    *tests,
                ]
            )
        )
    from tests.mutants import hunt

    sys.exit(hunt.main(list(arguments)))
