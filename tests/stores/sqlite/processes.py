"""Scenes that need processes of their own. Run as `python -m tests.stores.sqlite.processes SCENE FILE JOURNAL …`."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import count

from duly.core.defaults import POISON
from duly.core.errors import UsageError
from duly.core.job import Ended, Incarnation, JobId, NewJob, UniqueKey
from duly.core.keys import idempotency_digest, unique_digest
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


def enqueue(path: str, journal: Journal, times: str) -> None:
    """Enqueue one at a time, as often as told."""
    store = SQLiteStore(path, journal=journal)
    for _ in range(int(times)):
        say(*put(store))


def fork(path: str, journal: Journal) -> None:
    """A parent with open handles forks twice; all of them enqueue and complete."""
    store = SQLiteStore(path, journal=journal)
    put(store, 10)
    store.upkeep.sweep(timedelta(hours=1), POISON, timedelta(0))
    listener = store.listen(lambda: None)
    with store.transaction(kept=True):
        pass
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


def race(path: str, journal: Journal, keys: str) -> None:
    """Wait for the word, then enqueue a job for each key, as several others do; a line of outcome and id for each."""
    store = SQLiteStore(path, journal=journal)
    say("here")
    sys.stdin.readline()
    for n in range(int(keys)):
        (stored,) = store.jobs.enqueue([keyed(f"key-{n}")])
        say(f"{stored.outcome} {stored.id}")


def hold(path: str, journal: Journal) -> None:
    """Take keys in a transaction that never ends."""
    store = SQLiteStore(path, journal=journal)
    with store.transaction() as connection:
        store.enqueue_on(connection, [keyed("key-0")])
        say("here")
        sys.stdin.readline()


def produce_keyed(path: str, journal: Journal) -> None:
    """Enqueue jobs with keys and follow-ups, and complete some, until killed."""
    store, parent = SQLiteStore(path, journal=journal), os.getppid()
    incarnation = worker(store)
    for n in count():
        if os.getppid() != parent:
            return
        names = [f"{os.getpid()}-{n}", f"{os.getpid()}+{n}"]
        say(*(stored.id for stored in store.jobs.enqueue([keyed(name) for name in names])))
        complete(store, incarnation, 1)


def keyed(name: str) -> NewJob:
    """A job with both kinds of keys and a follow-up with a key of its own."""
    follow = NewJob("default", "other", b"{}", unique=UniqueKey(unique_digest("other", "", name)))
    return NewJob(
        "default",
        "ok",
        b"{}",
        idempotency=idempotency_digest("ok", "", name),
        unique=UniqueKey(unique_digest("ok", "", name), live=True),
        then=(follow,),
    )


SCENES: dict[str, Callable[..., None]] = {
    "produce": produce,
    "consume": consume,
    "begin": begin,
    "enqueue": enqueue,
    "fork": fork,
    "exit_after_fork": exit_after_fork,
    "race": race,
    "hold": hold,
    "produce_keyed": produce_keyed,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]](*sys.argv[2:])
