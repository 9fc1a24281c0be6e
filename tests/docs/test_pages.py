"""Every code block of README and docs runs, on SQLite and on PostgreSQL, and prints what the page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run_page(page: Path, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, DULY_URL=url, PYTHONPATH=f"{ROOT}{os.pathsep}.", NO_COLOR="1")
    environment.pop("COLUMNS", None)  # some shells export the width of their terminal
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.pages", str(page)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=170,
    )


@pytest.mark.process
@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs_on_sqlite(page: Path, tmp_path: Path) -> None:
    done = run_page(page, tmp_path, f"sqlite:///{tmp_path}/docs.db")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.process
@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs_on_postgresql(page: Path, tmp_path: Path, postgres_url: str) -> None:
    done = run_page(page, tmp_path, postgres_url)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_life_cycle_page_is_generated_from_the_transition_table() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "lifecycle_diagram.py"), "--check"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout


def test_the_table_of_metrics_is_made_from_the_code() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "metrics_table.py"), "--check"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout
