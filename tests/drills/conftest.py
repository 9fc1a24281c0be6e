"""A folder for what the drilled handlers do, and which line they do it in."""

from pathlib import Path

import pytest

from tests.drills import shop


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(shop.FOLDER, str(tmp_path))
    return tmp_path


def line_of(mark: str) -> int:
    """The line of the shop that ends with this comment."""
    source = Path(shop.__file__).read_text().splitlines()
    return next(number for number, text in enumerate(source, start=1) if text.endswith(f"# {mark}"))
