"""An App on a server and one on a file, a table of the user's own beside its jobs, and callers of every kind."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import psycopg
import pytest

from duly import App
from tests.connections.callers import FILE_KINDS, SERVER_KINDS, Caller
from tests.services import PostgresServer

Open = Callable[..., Caller]
KINDS = [f"postgres-{kind}" for kind in SERVER_KINDS] + [f"sqlite-{kind}" for kind in FILE_KINDS]


@pytest.fixture(scope="module")
def server_url(postgres15: PostgresServer) -> Iterator[str]:
    """One database for all tests of a module: each looks at its own jobs only."""
    with postgres15.database() as url:
        app = App(url)
        app.store.schema.migrate()
        app.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table orders (id int)")
        yield url


@pytest.fixture
def file_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """postgres- or sqlite-, and a name of callers.py."""
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest) -> str:
    """Where the App's jobs are."""
    found = request.getfixturevalue("server_url" if kind.startswith("postgres") else "file_url")
    return str(found)


@pytest.fixture
def jobs(url: str) -> Iterator[App]:
    app = App(url)
    if url.startswith("sqlite"):
        with app.transaction() as connection:
            connection.execute("create table orders (id int)")
    yield app
    app.close()


@pytest.fixture
def open_caller(kind: str, url: str) -> Iterator[Open]:
    """Opens connections of this kind, to the App's database unless told otherwise; lets go of them."""
    with ExitStack() as stack:

        def opened(to: str = url, *, autocommit: bool = False) -> Caller:
            store, _, name = kind.partition("-")
            caller = (SERVER_KINDS if store == "postgres" else FILE_KINDS)[name](to, autocommit=autocommit)
            stack.callback(_dispose, caller)
            return caller

        yield opened


def _dispose(caller: Caller) -> None:
    # A test may have closed it, or left a failed transaction.
    with suppress(Exception):
        caller.dispose()


@pytest.fixture
def caller(open_caller: Open) -> Caller:
    return open_caller()
