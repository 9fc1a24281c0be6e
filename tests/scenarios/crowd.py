"""Processes that act on a store without being workers: `python -m tests.scenarios.crowd ROLE URL …`.

enqueue: stores jobs and prints each id. work: claims and ends jobs until a number is done. fork: a parent that uses
its handle between forks. crash: children that enqueue until they are killed, again and again.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from select import select

from duly.core.decide import completed
from duly.core.job import ClaimRequest, Ended, Incarnation, JobId, NewJob, QueueClaim, WorkerInfo
from duly.core.lifecycle import State
from duly.stores.open import open_store
from duly.stores.protocol import Store

ROOT = Path(__file__).parents[2]
JOB = NewJob("default", "ok", b'{"n":1}')
SECOND = timedelta(seconds=1)


def start(role: str, url: str, *said: object) -> subprocess.Popen[str]:
    """Start one of the crowd; its output and errors are read through pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.scenarios.crowd", role, url, *map(str, said)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process: subprocess.Popen[str], timeout: float = 50.0) -> list[str]:
    """Wait for its end, which must be a good one; the lines it printed."""
    try:
        printed, complained = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, complained = process.communicate()
        raise AssertionError(
            f"{process.args!r} did not end; it said: {printed[-2000:]}{complained}"
        ) from None
    assert process.returncode == 0, f"{process.args!r}: {complained[-4000:]}"
    return printed.splitlines()


def tell(ids: Iterable[JobId]) -> None:
    """One line each, in one write, so that processes do not mix theirs."""
    os.write(1, "".join(f"{id}\n" for id in ids).encode())


def register(store: Store) -> Incarnation:
    return store.leases.register(
        WorkerInfo(
            host="crowd",
            pid=os.getpid(),
            supervisor="crowd:1",
            queues=("default",),
            tasks={"ok": timedelta(minutes=15)},
            lease=60 * SECOND,
            heartbeat=5 * SECOND,
            slots=10,
            version="1",
        )
    )


def enqueue(store: Store, count: int) -> None:
    for _ in range(count):
        (stored,) = store.jobs.enqueue([JOB])
        tell([stored.id])


def work(store: Store, total: int) -> None:
    """Claim and end until `total` jobs of all workers are done; prints each job it ended."""
    worker = register(store)
    request = ClaimRequest((QueueClaim("default", 7),), 7)
    deadline = time.monotonic() + 45
    done: list[JobId] = []
    ends: list[Ended] = []
    while time.monotonic() < deadline:
        answer = store.jobs.exchange(worker, ends, request)
        assert {(end.id, end.run) for end in ends} == answer.acked
        done += [end.id for end in ends]
        ends = [completed(job, None, SECOND) for job in answer.claimed]
        if not ends and finished(store) >= total:
            break
    store.leases.retire(worker)
    tell(done)


def finished(store: Store) -> int:
    page = store.inspection.lookup([JobId(id) for id in range(1, 2_000)])
    return sum(record is not None and record.state is State.completed for record in page)


def take_some(store: Store, count: int) -> list[JobId]:
    """Store `count` jobs, then claim and complete as many."""
    for _ in range(count):
        store.jobs.enqueue([JOB])
    worker = register(store)
    claimed = store.jobs.exchange(worker, [], ClaimRequest((QueueClaim("default", count),), count)).claimed
    answer = store.jobs.exchange(worker, [completed(job, None, SECOND) for job in claimed], None)
    assert len(answer.acked) == len(claimed)
    store.leases.retire(worker)
    return [job.id for job in claimed]


def _take_and_print(store: Store, count: int) -> None:
    tell(take_some(store, count))


def fork(store: Store, rounds: int, children: int, count: int) -> None:
    """The parent uses its handle, forks children that use theirs, and goes on using its own."""
    for _ in range(rounds):
        store.upkeep.sweep(timedelta(hours=1), 3, SECOND)
        _take_and_print(store, count)
        pids = [_child(partial(_take_and_print, store, count)) for _ in range(children)]
        for pid in pids:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    _take_and_print(store, count)


def crash(url: str, cycles: int, seed: int, fresh: int) -> None:
    """Children store jobs one after the other until SIGKILL; prints each id they had in hand, and looks each time.

    With `fresh` each child gets a file of its own, which does not exist yet and which only the kill leaves behind.
    """
    chance = random.Random(seed)
    # Opens nothing, but brings in the modules, so that the children lose no time.
    open_store(url)
    for cycle in range(cycles):
        place = f"{url}-{cycle}" if fresh else url
        printed, writing = os.pipe()
        pid = _child(partial(_enqueue_for_ever, place, writing))
        os.close(writing)
        if not fresh and cycle % 3:
            select([printed], [], [], 5.0)
        _pause(chance.uniform(0.0, 0.03))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(printed) as lines:
            # A line cut off by the kill was not in anyone's hand.
            ids = [JobId(int(line)) for line in lines if line.endswith("\n")]
        tell(ids)
        reader = _child(partial(_check, place, ids))
        assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0


def _enqueue_for_ever(url: str, out: int) -> None:
    store = open_store(url)
    store.schema.migrate()
    while True:
        (stored,) = store.jobs.enqueue([JOB])
        os.write(out, f"{stored.id}\n".encode())


def _check(url: str, ids: list[JobId]) -> None:
    store = open_store(url)
    store.schema.migrate()
    records = store.inspection.lookup(ids)
    assert all(record is not None and record.args == JOB.args for record in records), (ids, records)
    store.jobs.enqueue([JOB])


def _pause(seconds: float) -> None:
    # The moment of the kill is the point: not a wait for something to become true.
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        os.sched_yield()


def _child(act: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


def main() -> None:
    role, url, *said = sys.argv[1:]
    numbers = [int(number) for number in said]
    if role == "crash":
        crash(url, *numbers)
        return
    store = open_store(url)
    acts: dict[str, Callable[..., None]] = {"enqueue": enqueue, "work": work, "fork": fork}
    acts[role](store, *numbers)
    store.close()


if __name__ == "__main__":
    main()
