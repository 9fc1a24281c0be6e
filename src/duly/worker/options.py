"""What a worker was asked for, and what it comes to on this machine: queues, slots, grace, limits.

Reads the number of usable cores; knows neither tasks nor stores.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from duly.client.settings import Settings
from duly.core import defaults
from duly.core.errors import UsageError
from duly.core.names import check_name
from duly.core.plan import USUAL, Tempo

PREFETCH: Final = 1000
"""Jobs waiting in the process when they take next to no time."""


class WorkerOptions(Struct, frozen=True, kw_only=True):
    """The caller's wishes; None is "not said" and leaves it to the settings."""

    url: str | None = None
    """As a command line said it, before everything else."""

    queues: dict[str, int | None] | None = None
    """Queue -> slots of its own, or None; None altogether: every declared queue."""
    except_queues: tuple[str, ...] = ()
    concurrency: int | None = None
    """Async handlers at once in one process."""
    threads: int | None = None
    """`def` handlers at once in one process."""
    isolated: int | None = None
    """Killable child processes of one process."""
    processes: int | None = None
    processes_most: int | None = None
    """From `processes` up to so many, by how long jobs wait; None: always the same number."""
    tempo: Tempo = USUAL
    """How quickly their number changes."""
    grace: timedelta | None = None
    max_jobs: int | None = None
    """Jobs after which a process is replaced."""
    max_memory: int | None = None
    """Bytes of resident memory beyond which a process is replaced."""
    until_idle: bool = False
    lease: timedelta | None = None
    heartbeat: timedelta | None = None
    poll: timedelta | None = None
    patience: timedelta = timedelta(seconds=5)
    """How long a handler that was asked to stop may take before it is given up."""
    unstarted: timedelta = timedelta(seconds=1)
    """A claimed job that no slot took within this goes back."""
    counts: bool = False
    """The processes count what they do and say so once a second, for who exposes it."""


class Plan(Struct, frozen=True, kw_only=True):
    """What one process of the worker does; everything is decided. Times in seconds."""

    queues: dict[str, int | None]
    concurrency: int
    threads: int
    isolated: int
    processes: int
    grace: float
    lease: float
    heartbeat: float
    poll: float | None
    """None leaves it to what the store can do."""
    poison: int
    keep: timedelta
    keep_dead: timedelta
    max_jobs: int | None
    max_memory: int | None
    until_idle: bool
    patience: float
    unstarted: float
    quarantine: bool = False
    """Runs only jobs with a lost attempt behind them, one at a time."""
    cores: int = 1

    def lateness(self) -> float:
        """How long past the store's deadline an attempt may run before a sweep takes it back."""
        # That deadline counts from the claim. A handler begins later, by a whole lease if its process is frozen in
        # between, and has the patience to end; the sweep must not start the job elsewhere meanwhile.
        return max(self.grace, self.lease + self.unstarted + self.patience)

    def describe_slots(self) -> str:
        return f"{self.concurrency} async, {self.threads} threads, {self.isolated} isolated"

    def poll_every(self, rings: bool) -> float:
        if self.poll is not None:
            return self.poll
        return (defaults.POLL if rings else defaults.POLL_SQLITE).total_seconds()


def plan(
    options: WorkerOptions, settings: Settings, declared: Iterable[str], *, quarantine: bool = False
) -> Plan:
    """Fill in what was not said. UsageError for a queue that nobody declared and for limits that cannot hold."""
    lease = (options.lease or settings.lease).total_seconds()
    heartbeat = (options.heartbeat or settings.heartbeat).total_seconds()
    if heartbeat * defaults.HEARTBEATS_PER_LEASE > lease:
        raise UsageError(
            f"heartbeat {heartbeat:g}s x {defaults.HEARTBEATS_PER_LEASE} is longer than the lease {lease:g}s; "
            f"write a lease of '{heartbeat * defaults.HEARTBEATS_PER_LEASE:g}s' or more"
        )
    cores = usable_cores()
    poll = options.poll or settings.poll
    return Plan(
        queues=chosen_queues(options, settings, declared),
        concurrency=_count("concurrency", options.concurrency, settings.concurrency),
        threads=_count("threads", options.threads, settings.threads),
        isolated=_count("isolated", options.isolated, settings.isolated or cores),
        processes=_count("processes", options.processes, settings.processes.least),
        grace=(settings.grace if options.grace is None else options.grace).total_seconds(),
        lease=lease,
        heartbeat=heartbeat,
        poll=None if poll is None else poll.total_seconds(),
        poison=settings.poison,
        keep=settings.keep,
        keep_dead=settings.keep_dead,
        max_jobs=options.max_jobs or settings.max_jobs,
        max_memory=options.max_memory or settings.max_memory,
        until_idle=options.until_idle,
        patience=options.patience.total_seconds(),
        unstarted=options.unstarted.total_seconds(),
        quarantine=quarantine,
        cores=cores,
    )


def chosen_queues(
    options: WorkerOptions, settings: Settings, declared: Iterable[str]
) -> dict[str, int | None]:
    """The queues to work on, in order, with their own slots where given."""
    known = [defaults.QUEUE, *(name for name in declared if name != defaults.QUEUE)]
    wanted: Mapping[str, int | None]
    if options.queues is not None:
        wanted = options.queues
    elif settings.queues is not None:
        wanted = read_queues(settings.queues)
    else:
        wanted = dict.fromkeys(known)
    for name in (*wanted, *options.except_queues):
        if name not in known:
            raise UsageError(f"queue {name!r} is not declared; the App knows {', '.join(known)}")
    queues = {name: slots for name, slots in wanted.items() if name not in options.except_queues}
    if not queues:
        raise UsageError("no queue is left to work on; name one with --queues or take it out of --except")
    return queues


def read_queues(text: str) -> dict[str, int | None]:
    """Read `mail:8,reports:2` or `mail,reports`."""
    queues: dict[str, int | None] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, colon, number = part.partition(":")
        check_name("queue", name)
        if not colon:
            queues[name] = None
        elif number.isdecimal() and int(number) >= 1:
            queues[name] = int(number)
        else:
            raise UsageError(f"queues: {part!r} must be NAME or NAME:SLOTS with at least one slot, as mail:8")
    if not queues:
        raise UsageError("queues: no name given; write them as mail:8,reports:2")
    return queues


def usable_cores() -> int:
    """Cores this process may use: by affinity and by the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        # No control group of version 2 here.
        pass
    return cores


def _count(name: str, said: int | None, otherwise: int) -> int:
    number = otherwise if said is None else said
    if number < 1:
        raise UsageError(f"{name}={number} must be 1 or more")
    return number
