"""A command line over a real SQLite file, whose clock only the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from duly.app import App
from duly.cli.main import cli
from duly.cli.session import Session
from duly.core.job import Incarnation
from duly.stores.open import open_store
from duly.stores.protocol import Clock, Store
from duly.testing.conformance.bench import Bench


class Place:
    """One SQLite file, as the bench opens it."""

    def __init__(self, path: Path) -> None:
        self._url = f"sqlite:///{path}"

    def open(self, clock: Clock) -> Store:
        store = open_store(self._url, clock=clock)
        store.schema.migrate()
        return store

    def forget_worker(self, incarnation: Incarnation) -> None:
        raise NotImplementedError

    def next_id(self, at_least: int) -> None:
        raise NotImplementedError

    def wish_cancel(self, id: object, by: str, reason: str) -> None:
        raise NotImplementedError

    def forget_heads(self) -> None:
        raise NotImplementedError

    def mislead_heads(self) -> None:
        raise NotImplementedError

    def leak_hold(self, limit: str, id: object) -> None:
        raise NotImplementedError

    def rewrite_entry(self, id: int, reason: str) -> None:
        raise NotImplementedError

    def remove_entry(self, id: int) -> None:
        raise NotImplementedError


class Answer(msgspec.Struct, frozen=True):
    """What one command printed and how it ended."""

    out: str
    err: str
    code: int

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> object:
        return msgspec.json.decode(self.out)


class Terminal:
    """Runs commands as a person would, in one folder, on one store."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock

    def __call__(self, *args: str, typed: str | None = None) -> Answer:
        """Run `duly ARGS` on the bench's store and by its clock."""
        session = Session()
        app = App(self._url)
        app.client.clock = self._clock
        session.keep("", app)
        try:
            return run(*args, session=session, typed=typed)
        finally:
            session.close()


def run(*args: str, session: Session | None = None, typed: str | None = None) -> Answer:
    """Run `duly ARGS`."""
    result = CliRunner().invoke(cli, args, obj=session, input=typed, prog_name="duly")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.stdout, result.stderr, result.exit_code)


@pytest.fixture(autouse=True)
def terminal_of_120_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same width and the same author everywhere, in an empty folder."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("DULY_ACTOR", "ada@ops")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bench(sqlite_path: Path, sqlite_url: str) -> Iterator[Bench]:
    bench = Bench(Place(sqlite_path))
    yield bench
    bench.close()


@pytest.fixture
def duly(bench: Bench, sqlite_url: str) -> Terminal:
    return Terminal(sqlite_url, bench.clock)
