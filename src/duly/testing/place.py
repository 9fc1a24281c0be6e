"""Where the jobs of one test are: a temporary SQLite file, or a schema for tests on the App's PostgreSQL.

Opens stores through stores.open and knows no concrete one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from duly.client.settings import Settings
from duly.stores.open import clear_schema, open_store
from duly.stores.protocol import Clock, Store
from duly.stores.urls import parse_url

_THREADS: Final = 64
_dropped: Final[set[tuple[str, str]]] = set()


@dataclass(frozen=True, slots=True)
class Place:
    """A URL and a schema for one test."""

    url: str
    schema: str

    @property
    def is_server(self) -> bool:
        return parse_url(self.url).kind == "postgres"

    def settings(self, own: Settings) -> Settings:
        """The App's settings, with this place instead of its own."""
        # Inside inline() an awaited enqueue keeps its thread until its job has run, and that may enqueue, too.
        return replace(own, url=self.url, schema=self.schema, migrate="auto", pool=_THREADS)

    def prepare(self) -> None:
        """An empty place: in a session's first test the schema is made anew, later it is emptied."""
        if not self.is_server:
            return
        key = (self.url, self.schema)
        # What an earlier session left may be of another release.
        clear_schema(self.url, self.schema, drop=key not in _dropped)
        _dropped.add(key)

    def opener(self, clock: Clock, wrap: Callable[[Store], Store]) -> Callable[[], Store]:
        """Opens the store, with its tables there."""

        def opened() -> Store:
            store = open_store(self.url, schema=self.schema, clock=clock, durable=False)
            store.schema.migrate()
            return wrap(store)

        return opened


def own_url(settings: Settings, folder: Path) -> str:
    """The App's URL where that is a server, else a file of the test's own."""
    if parse_url(settings.url).kind == "postgres":
        return settings.url
    return f"sqlite:///{folder / 'duly.db'}"


def place_of(settings: Settings, url: str) -> Place:
    """The place at a URL: on a server a schema of its own for each process of the test run."""
    address = parse_url(url)
    if address.kind != "postgres":
        return Place(address.url, settings.schema)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return Place(address.url, f"{settings.schema}_test_{worker}")
