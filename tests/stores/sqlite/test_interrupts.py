"""Ctrl-C in the middle of an enqueue: the file, its queue and the threads that wait are free after it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duly.stores.sqlite.database import Database
from duly.stores.sqlite.group import GroupCommit
from duly.stores.sqlite.locks import FileQueue
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import Connect, put

PATIENCE = 10.0
PLACES: list[tuple[type[Any], str]] = [
    (Database, "_begin"),
    (Database, "_writer"),
    (Database, "_commit"),
    (FileQueue, "acquire"),
    (FileQueue, "release"),
    (GroupCommit, "_take"),
    (GroupCommit, "_commit_all"),
]


def interrupted(function: Callable[..., Any], struck: list[bool], *, before: bool) -> Callable[..., Any]:
    """`function`, whose first call ends in Ctrl-C."""

    def run(*args: Any, **options: Any) -> Any:
        if struck:
            return function(*args, **options)
        struck.append(True)
        if not before:
            function(*args, **options)
        raise KeyboardInterrupt

    return run


# Before its release the lock of the queue goes with the next one: no place for a test that demands it now.
@pytest.mark.parametrize(
    ("owner", "name", "before"),
    [
        (*place, before)
        for place in PLACES
        for before in (True, False)
        if (place[1], before) != ("release", True)
    ],
)
def test_an_interrupt_leaves_the_file_to_others(
    store: SQLiteStore,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    owner: type[Any],
    name: str,
    before: bool,
) -> None:
    put(store)
    monkeypatch.setattr(owner, name, interrupted(getattr(owner, name), [], before=before))

    with pytest.raises(KeyboardInterrupt):
        put(store)

    foreign = connect(isolation_level=None, timeout=0)
    foreign.execute("begin immediate")
    foreign.execute("rollback")
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(put, store).result(PATIENCE)) == 1


def test_an_interrupted_block_leaves_the_file_to_others(
    store: SQLiteStore, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    monkeypatch.setattr(Database, "_begin", interrupted(Database._begin, [], before=False))

    with pytest.raises(KeyboardInterrupt), store.transaction():
        pass

    connect(isolation_level=None, timeout=0).execute("begin immediate").execute("rollback")
    assert len(put(store)) == 1
