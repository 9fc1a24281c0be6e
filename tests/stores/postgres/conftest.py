"""A migrated database for each test, and stores on it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from duly.stores.postgres.database import Database
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import Proxy

Open = Callable[..., PostgresStore]


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database of this test's own with the schema in it."""
    return postgres_url


@pytest.fixture
def open_store(url: str) -> Iterator[Open]:
    """Another store on the database of this test, closed at its end."""
    with ExitStack() as stack:

        def open_one(other: str | None = None, **options: object) -> PostgresStore:
            store = PostgresStore(other or url, **options)  # type: ignore[arg-type]
            stack.callback(store.close)
            return store

        yield open_one


@pytest.fixture
def store(open_store: Open) -> PostgresStore:
    return open_store()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The layer below the store: one call, one transaction."""
    database = Database(url, "duly", None, 4)
    yield database
    database.close()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    proxy = Proxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied_url(url: str, postgres: PostgresServer, proxy: Proxy) -> str:
    """The same database through the proxy."""
    return url.replace(f":{postgres.port}/", f":{proxy.port}/")
