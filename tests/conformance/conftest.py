"""The store that a test of this folder runs on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.places import STORES, Place, postgres_place, sqlite_place
from tests.folders import fast_folder
from tests.services import PostgresServer


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.fixture(scope="session", params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where each test gets an empty database of one of the stores."""
    name: str = request.param
    if name.startswith("postgres"):
        server: PostgresServer = request.getfixturevalue(name)
        return postgres_place(server.url(server.create_database()))
    return sqlite_place(request.getfixturevalue("folder"), "wal" if name.endswith("wal") else "truncate")
