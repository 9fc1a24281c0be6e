"""An empty database on each kind of store, as a URL, as the suite's bench and as an App."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from duly import App
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import Database
from tests.conformance.places import PostgresPlace, SQLitePlace

MEMORY = Path("/dev/shm")


def migrate(url: str) -> None:
    store = open_store(url)
    store.schema.migrate()
    store.close()


@pytest.fixture
def sqlite_file() -> Iterator[str]:
    """The URL of a migrated file of this test's own; in memory where the system has such a folder."""
    with TemporaryDirectory(prefix="duly-scenario-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        url = f"sqlite:///{folder}/jobs.db"
        migrate(url)
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> str:
    """The URL of a migrated database of this test's own."""
    return postgres_url


@pytest.fixture
def store(postgres_database: str) -> Iterator[Store]:
    """PostgreSQL."""
    opened = open_store(postgres_database)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The same test on both kinds of store."""
    found: str = request.getfixturevalue("sqlite_file" if request.param == "sqlite" else "postgres_database")
    return found


@pytest.fixture
def bench(url: str) -> Iterator[Bench]:
    """Store protocol and a clock that only the test moves."""
    database: Database = (
        SQLitePlace(Path(url.removeprefix("sqlite:///")), "truncate")
        if url.startswith("sqlite")
        else PostgresPlace(url)
    )
    bench = Bench(database)
    yield bench
    bench.close()


@pytest.fixture
def jobs(url: str) -> Iterator[App]:
    app = App(url)
    yield app
    app.close()
