"""Scenes that need processes of their own. Run as `python -m tests.stores.sqlite.processes SCENE FILE JOURNAL …`."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta

from duly.core.defaults import POISON
from duly.core.errors import UsageError
from duly.core.job import Ended, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import claim, put, worker


def say(*words: object) -> None:
    sys.stdout.write("".join(f"{word}\n" for word in words))
    sys.stdout.flush()


def produce(path: str, journal: Journal) -> None:
    """Enqueue until killed; a line for each job once it is stored."""
    store, parent = SQLiteStore(path, journal=journal), os.getppid()
    while os.getppid() == parent:
        say(*put(store))


def consume(path: str, journal: Journal) -> None:
    """Claim and complete until killed; a line for each job whose end was acknowledged."""
    store, parent = SQLiteStore(path, journal=journal), os.getppid()
    incarnation = worker(store)
    while os.getppid() == parent:
        say(*complete(store, incarnation, 5))


def complete(store: SQLiteStore, incarnation: Incarnation, most: int) -> list[JobId]:
    """Claim up to `most` jobs and complete them; the ids acknowledged."""
    jobs = claim(store, incarnation, most)
    ended = [Ended(job.id, job.run, Event.complete, State.completed, job.counters) for job in jobs]
    return [id for id, _ in store.jobs.exchange(incarnation, ended, None).acked]


def begin(path: str, journal: Journal) -> None:
    """Wait for the word, then be one of several that make the file."""
    say("here")
    sys.stdin.readline()
    say(*put(SQLiteStore(path, journal=journal)))


def enqueue(path: str, journal: Journal, count: str) -> None:
    """Enqueue one at a time, as often as told."""
    store = SQLiteStore(path, journal=journal)
    for _ in range(int(count)):
        say(*put(store))


def fork(path: str, journal: Journal) -> None:
    """A parent with open handles forks twice; all of them enqueue and complete."""
    store = SQLiteStore(path, journal=journal)
    put(store, 10)
    store.upkeep.sweep(timedelta(hours=1), POISON, timedelta(0))
    listener = store.listen(lambda: None)
    codes = _children(store, 4)
    put(store, 10)
    complete(store, worker(store), 5)
    store.upkeep.sweep(timedelta(hours=1), POISON, timedelta(0))
    codes += _children(store, 4)
    put(store, 10)
    listener.close()
    store.close()
    say(*codes)


def _children(store: SQLiteStore, count: int) -> list[int]:
    """Fork children that work on the inherited store; their exit codes."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                put(store, 10)
                incarnation = worker(store)
                code = 0 if len(complete(store, incarnation, 5)) == 5 else 2
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def exit_after_fork(path: str, journal: Journal) -> None:
    """A child ends in the ordinary way, collecting everything, while its parent is inside a transaction."""
    store = SQLiteStore(path, journal=journal)
    put(store)
    with store.transaction() as connection:
        connection.execute("create table mine (n integer)")
        connection.execute("insert into mine values (1)")
        pid = os.fork()
        if pid == 0:
            try:
                put(store)
            except UsageError as refusal:
                say(refusal)
            sys.exit(0)
        os.waitpid(pid, 0)
        connection.execute("insert into mine values (2)")
    with store.transaction() as connection:
        say(*(n for (n,) in connection.execute("select n from mine order by n")))
    store.close()


SCENES: dict[str, Callable[..., None]] = {
    "produce": produce,
    "consume": consume,
    "begin": begin,
    "enqueue": enqueue,
    "fork": fork,
    "exit_after_fork": exit_after_fork,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]](*sys.argv[2:])
