"""Short verbs for tests of the PostgreSQL store, and a TCP proxy that can lose what it was told to carry."""

import select
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Literal

from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Incarnation,
    JobId,
    NewJob,
    QueueClaim,
    WorkerInfo,
)
from duly.core.lifecycle import Event, State
from duly.stores.protocol import Store

MINUTE = timedelta(minutes=1)
_TO = {
    Event.complete: State.completed,
    Event.fail: State.scheduled,
    Event.bury: State.dead,
    Event.interrupt: State.ready,
}


def put(
    store: Store, count: int = 1, *, queue: str = "default", task: str = "ok", priority: int = 100
) -> list[JobId]:
    jobs = [NewJob(queue, task, b'{"n":1}', priority=priority)] * count
    return [stored.id for stored in store.jobs.enqueue(jobs)]


def worker(store: Store, *tasks: str) -> Incarnation:
    return store.leases.register(
        WorkerInfo(
            host="host-1",
            pid=4711,
            supervisor="host-1:4700",
            queues=("default",),
            tasks=dict.fromkeys(tasks or ("ok",), 15 * MINUTE),
            lease=timedelta(seconds=30),
            heartbeat=timedelta(seconds=5),
            slots=10,
            version="1.0",
        )
    )


def claim(store: Store, incarnation: Incarnation, most: int = 1, *queues: str) -> tuple[ClaimedJob, ...]:
    return store.jobs.exchange(incarnation, (), request(most, *queues)).claimed


def request(most: int, *queues: str) -> ClaimRequest:
    return ClaimRequest(tuple(QueueClaim(queue, most) for queue in queues or ("default",)), most)


def ended(job: ClaimedJob, event: Event = Event.complete, **more: object) -> Ended:
    failed = 1 if event is Event.fail else 0
    counters = Counters(job.counters.failed + failed, job.counters.lost, 0, job.counters.snoozed)
    end = Ended(job.id, job.run, event, _TO[event], counters, elapsed=timedelta(0))
    return Ended(**{**{name: getattr(end, name) for name in end.__struct_fields__}, **more})


def states(store: Store, ids: Sequence[JobId]) -> list[State | None]:
    return [record.state if record else None for record in store.inspection.lookup(ids)]


def together(*acts: Callable[[], object]) -> None:
    """Run all at once, each in a thread; the first error is raised here."""
    barrier = threading.Barrier(len(acts))
    errors: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        try:
            barrier.wait()
            act()
        except BaseException as error:  # shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


Mood = Literal["carry", "silent", "cut replies"]


class Proxy:
    """Carries TCP to one port until told otherwise.

    `silent` drops everything without closing anything; `cut replies` lets requests through and closes both sides
    when an answer comes. New connections are carried whatever befell the old ones.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._pairs: list[tuple[socket.socket, socket.socket, list[Mood]]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._open = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def treat(self, mood: Mood) -> None:
        """From now on, and for the connections that are there now."""
        for _, _, moods in list(self._pairs):
            moods[0] = mood

    def close(self) -> None:
        self._open = False
        self._thread.join()
        self._server.close()
        for client, server, _ in self._pairs:
            client.close()
            server.close()

    def _run(self) -> None:
        while self._open:
            sockets = {one.fileno(): one for pair in self._pairs for one in pair[:2]}
            poll = select.poll()
            for watched in (self._server.fileno(), *sockets):
                poll.register(watched, select.POLLIN)
            for number, _ in poll.poll(20):
                if number == self._server.fileno():
                    self._accept()
                else:
                    self._carry(sockets[number])

    def _accept(self) -> None:
        client, _ = self._server.accept()
        self._pairs.append((client, socket.create_connection(("127.0.0.1", self._target)), ["carry"]))

    def _carry(self, source: socket.socket) -> None:
        found = next((pair for pair in self._pairs if source in pair[:2]), None)
        if found is None:
            return
        client, server, moods = found
        data = b""
        with suppress(OSError):
            data = source.recv(65536)
        if moods[0] == "silent" and data:
            return
        if not data or (moods[0] == "cut replies" and source is server):
            self._pairs.remove(found)
            client.close()
            server.close()
            return
        with suppress(OSError):
            (server if source is client else client).sendall(data)
