"""The public types, as mypy and pyright see them: correct programs pass, each marked mistake is found by both."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "checker",
    [["mypy", "typing_tests"], ["pyright", "--pythonpath", sys.executable]],
    ids=["mypy", "pyright"],
)
def test_a_checker_accepts_the_programs_and_finds_every_mistake(checker: list[str]) -> None:
    program, *arguments = checker

    done = subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=280
    )

    # An expected error that is not found is an unnecessary ignore, which both count as an error.
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_mistake_is_expected_of_both_checkers() -> None:
    lines = (ROOT / "typing_tests/bad.py").read_text().splitlines()

    marked = [line for line in lines if "# type: ignore[" in line]

    assert len(marked) >= 20
    assert all(line.endswith("# pyright: ignore") for line in marked)
