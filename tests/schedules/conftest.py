"""An App on a migrated database of its own, on each kind of store, by a clock that only the test moves."""

from collections.abc import Iterator

import pytest

from duly import App
from duly.testing.clock import FakeClock


def app_on(url: str, clock: FakeClock) -> App:
    """Another App on this database, as another process or another release would have."""
    app = App(url)
    app.client.clock = clock
    return app


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def file_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
def server_url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The same test on both kinds of store."""
    found: str = request.getfixturevalue("file_url" if request.param == "sqlite" else "server_url")
    return found


@pytest.fixture
def jobs(url: str, clock: FakeClock) -> Iterator[App]:
    """On both kinds of store."""
    app = app_on(url, clock)
    yield app
    app.close()


@pytest.fixture
def filed(file_url: str, clock: FakeClock) -> Iterator[App]:
    """On SQLite, for what no store has a part in."""
    app = app_on(file_url, clock)
    yield app
    app.close()
