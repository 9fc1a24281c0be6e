"""Fixtures: a place on SQLite, and where a test asks for it also on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.stores.open import open_store
from tests.e2e.workers import Place, a_place

pytestmark = pytest.mark.process


@pytest.fixture
def place(sqlite_url: str, tmp_path: Path) -> Iterator[Place]:
    with a_place(sqlite_url, tmp_path) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """The same test on both stores."""
    if request.param == "sqlite":
        url = request.getfixturevalue("sqlite_url")
    else:
        url = request.getfixturevalue("postgres_url")
        store = open_store(url)
        store.schema.migrate()
        store.close()
    with a_place(url, tmp_path) as made:
        yield made
