"""The store that a test of this folder runs on."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.places import STORES, Place, postgres_place, sqlite_place
from tests.services import PostgresServer

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def fast_folder() -> Iterator[Path]:
    """A folder in memory where the system has one: thousands of commits, none of which must outlive the machine."""
    parent = MEMORY if MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="duly-conformance-", dir=parent))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session", params=STORES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where each test gets an empty database of one of the stores."""
    name: str = request.param
    if name.startswith("postgres"):
        server: PostgresServer = request.getfixturevalue(name)
        return postgres_place(server.url(server.create_database()))
    return sqlite_place(request.getfixturevalue("fast_folder"), "wal" if name.endswith("wal") else "truncate")
