"""A store on a file and a real HTTP sink, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.testing.conformance.bench import Bench
from tests.alerts.scene import Scene, declare
from tests.alerts.servers import Receiver, receiver
from tests.conformance.places import SQLitePlace


@pytest.fixture
def hook() -> Iterator[Receiver]:
    """A server that takes notifications."""
    with receiver() as kept:
        yield kept


@pytest.fixture
def scene(sqlite_path: Path, hook: Receiver) -> Iterator[Scene]:
    """A store with the queue mail."""
    bench = Bench(SQLitePlace(sqlite_path, "truncate"))
    made = Scene(bench, f"sqlite:///{sqlite_path}", hook)
    declare(made)
    yield made
    made.close()
    bench.close()
