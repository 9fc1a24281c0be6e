"""A store on a file and a real HTTP sink, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from duly.stores.open import open_store
from duly.testing.conformance.bench import Bench, Database
from tests.alerts.scene import Scene, declare
from tests.alerts.servers import Receiver, receiver
from tests.conformance.places import PostgresPlace, SQLitePlace


@pytest.fixture
def hook() -> Iterator[Receiver]:
    """A server that takes notifications."""
    with receiver() as kept:
        yield kept


@pytest.fixture
def scene(sqlite_path: Path, sqlite_url: str, hook: Receiver) -> Iterator[Scene]:
    """A store on a file with the queue mail."""
    yield from _scene(SQLitePlace(sqlite_path, "truncate"), sqlite_url, hook)


@pytest.fixture
def server_scene(postgres_url: str, hook: Receiver) -> Iterator[Scene]:
    """A store on a server with the queue mail."""
    with closing(open_store(postgres_url)) as store:
        store.schema.migrate()
    yield from _scene(PostgresPlace(postgres_url), postgres_url, hook)


@pytest.fixture(params=["sqlite", "postgres"])
def any_scene(request: pytest.FixtureRequest) -> Scene:
    """Each of them in turn."""
    made = request.getfixturevalue("scene" if request.param == "sqlite" else "server_scene")
    assert isinstance(made, Scene)
    return made


def _scene(place: Database, url: str, hook: Receiver) -> Iterator[Scene]:
    bench = Bench(place)
    made = Scene(bench, url, hook)
    declare(made)
    yield made
    made.close()
    bench.close()
