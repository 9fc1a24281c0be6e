"""The tests of a test author, run by a pytest of their own: the plugin is found, and every test passes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.programs import EXAMPLES


@pytest.mark.process
def test_every_test_of_the_example_passes(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(EXAMPLES / "test_author", folder, ignore=shutil.ignore_patterns("__pycache__"))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=55,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    # The App's own store was never opened.
    assert not (folder / "shop.db").exists()
