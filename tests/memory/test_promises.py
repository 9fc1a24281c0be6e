"""The conformance suite on memory://: what the bound and the private folder could change; with --long all of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duly.stores.memory.store import MemoryStore
from duly.stores.open import open_store
from duly.stores.protocol import Clock, Store
from duly.stores.sqlite.store import SQLiteStore
from duly.testing import conformance
from duly.testing.conformance import Case
from tests.conformance.places import SQLitePlace

CASES = conformance.cases()
# The other areas are SQLite's own code, which the suite runs on files.
NEAR = {"enqueueing", "keying", "claiming", "asynchronous"}


class MemoryPlace(SQLitePlace):
    """The first handle is the store itself; further ones reach it as a handler's own process does."""

    def __init__(self) -> None:
        self.store: MemoryStore | None = None

    def open(self, clock: Clock) -> Store:
        if self.store is None:
            store = open_store("memory://?max=1000000", clock=clock)
            assert isinstance(store, MemoryStore)
            store.schema.migrate()
            self.store = store
            self.path = Path(store.url_for_children.removeprefix("sqlite:///"))
            self.journal = "truncate"
            return store
        return SQLiteStore(self.path, clock=clock)


@contextmanager
def memory() -> Iterator[MemoryPlace]:
    place = MemoryPlace()
    yield place
    assert place.store is not None
    place.store.close()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.area}-{case.name}", marks=() if case.area in NEAR else pytest.mark.long)
        for case in CASES
    ],
)
def test_store_in_memory(case: Case) -> None:
    with memory() as place:
        conformance.check(case, place)
