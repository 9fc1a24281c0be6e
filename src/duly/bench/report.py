"""What the bench found, and the sentence that says what bounds it. Pure: measures nothing."""

from typing import Final, Literal

from msgspec import Struct

Cause = Literal["network", "disk", "database", "python"]

_BUSY: Final = 0.85
"""From this share of a core on, a Python process is what others wait for."""
_NOISY: Final = 0.25
_NEAR: Final = 0.1


class Limits(Struct, frozen=True):
    """What this machine and database can do without any queue, over one connection."""

    round_trips_per_s: float
    commits_per_s: float
    """Of one bare row each, durably."""
    unsynced_commits_per_s: float
    """The same without waiting for the disk."""
    bulk_rows_per_s: float
    """Of 1,000 bare rows a commit."""

    @property
    def round_trip_ms(self) -> float:
        return 1000 / self.round_trips_per_s

    @property
    def commit_ms(self) -> float:
        return 1000 / self.commits_per_s

    @property
    def disk_ms(self) -> float:
        """What a commit waits for the disk."""
        return max(0.0, self.commit_ms - 1000 / self.unsynced_commits_per_s)


class Drain(Struct, frozen=True):
    """One worker process with nothing to do but jobs that do nothing."""

    jobs: int
    per_s: float
    worker_cpu: float
    """Share of one core that the worker's process used meanwhile."""


class Latency(Struct, frozen=True):
    """From the call of `enqueue` to the first line of the handler, of an idle worker."""

    samples: int
    p50_ms: float
    p99_ms: float


class Report(Struct, frozen=True):
    """One run."""

    store: dict[str, str]
    """Facts: where, server version, journal mode, sync."""
    limits: Limits
    single_per_s: float
    """`enqueue`, one job a call, on one thread."""
    bulk_per_s: float
    """`enqueue_many`, 1,000 jobs a call."""
    drain: Drain
    latency: Latency
    seconds: float
    cores: int
    load: float
    """Average number of processes that wanted a core while it ran."""
    spread: float
    """The widest scatter of any rate: half the distance of its quartiles, as a share of its median."""
    warnings: tuple[str, ...] = ()
    """What `duly check` says of this database: much of it makes a queue slow."""


def bounds(report: Report) -> str:
    """What bounds single enqueues, draining and latency on this database, in one plain sentence."""
    single, drain = _single(report), _drain(report)
    first = f"Single enqueues are bound by {single[1]}"
    latency = f"a job starts {report.latency.p50_ms:.1f} ms after its enqueue (p50)"
    if single[0] == drain[0]:
        return f"{first}; so is draining, at {report.drain.per_s:,.0f} jobs/s; {latency}."
    return f"{first}; draining by {drain[1]}; {latency}."


def doubts(report: Report) -> list[str]:
    """Why the figures may be worse than they could be; empty on a quiet machine."""
    found = []
    if report.load > report.cores * 1.2 + 1:
        found.append(
            f"other processes were busy (load {report.load:.1f} on {report.cores} cores): "
            "the ratios hold, the rates are too low"
        )
    if report.spread > _NOISY:
        found.append(f"rates scattered by ±{report.spread:.0%}: run it again on a quieter machine or disk")
    return found


def _single(report: Report) -> tuple[Cause, str]:
    limits = report.limits
    whole = 1000 / report.single_per_s
    # On a noisy machine the bare commit may have been slower than ours.
    parts: dict[Cause, float] = {
        "network": min(whole, limits.round_trip_ms),
        "disk": min(whole, limits.disk_ms),
        "python": max(0.0, whole - limits.commit_ms),
        "database": max(0.0, min(whole, limits.commit_ms) - limits.disk_ms - limits.round_trip_ms),
    }
    cause = max(parts, key=lambda name: parts[name])
    return cause, {
        "network": f"the network: {_ms(parts['network'])} a round trip of {_ms(whole)} a call",
        "disk": f"your disk's fsync: {_ms(parts['disk'])} of {_ms(whole)} a call",
        "python": f"Python and duly's statement: {_ms(parts['python'])} of {_ms(whole)} a call",
        "database": f"the database's own work on a commit: {_ms(parts['database'])} of {_ms(whole)} a call",
    }[cause]


def _drain(report: Report) -> tuple[Cause, str]:
    """A worker asks once for many jobs, so that what is not its own work is shared by all of those."""
    drain, limits = report.drain, report.limits
    if drain.worker_cpu >= _BUSY:
        return "python", (
            f"Python: the worker process used {drain.worker_cpu:.0%} of a core for {drain.per_s:,.0f} jobs/s, "
            "and a second process helps where a core is free"
        )
    waited = f"its worker waited {1 - drain.worker_cpu:.0%} of the time at {drain.per_s:,.0f} jobs/s"
    if limits.round_trip_ms > max(limits.disk_ms, _NEAR):
        return "network", f"the network: {waited}, and a round trip takes {_ms(limits.round_trip_ms)}"
    if limits.disk_ms > 2 * limits.round_trip_ms:
        return "disk", f"your disk's fsync: {waited}, and a commit waits {_ms(limits.disk_ms)} for the disk"
    return "database", f"the database's own work: {waited}"


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms" if value >= 0.01 else "no time"
