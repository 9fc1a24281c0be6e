"""After the drill: whether bounds were kept, by the leases that the store saw and by what handlers saw of each other.

Leases must keep every order and every cap. Handlers may overlap where a process was frozen past its lease and let go
again: that is counted and measured, and is broken only where no process was frozen.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.names import key_of
from tests.drill import controls
from tests.drill.controlled import OWN
from tests.drill.leases import Event, most_at_once
from tests.drill.ledger import LOCKED, UNLOCKED, Line, Run, runs


@dataclass
class Bounded:
    """What the audit counted; `broken` must stay empty."""

    keyed: int = 0
    keys: int = 0
    limited: int = 0
    chained: int = 0
    locks_taken: int = 0
    breaker_opened: int = 0
    cancelled: int = 0
    died: int = 0
    overlaps: dict[str, "Overlap"] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)


@dataclass
class Overlap:
    """How often handler code was inside together although it should not have been, and for how long at most."""

    times: int = 0
    longest_ms: float = 0.0


class Stretch(NamedTuple):
    """Somebody inside of something, as seen from outside."""

    name: str
    start: int
    last: int
    pids: frozenset[int]
    who: str


def audit(
    records: dict[JobId, JobRecord],
    found: list[Event],
    lines: list[Line],
    died: set[int],
    frozen: set[int],
) -> Bounded:
    """`died`: jobs that were dead at some time; `frozen`: pids that were stopped by SIGSTOP."""
    bounded, seen = Bounded(died=len(died)), runs(lines)
    keys = {id: key for id, record in records.items() if (key := controls.key_of_job(record)) is not None}
    limits = {
        id: tuple(controls.limits_of_job(record, json.loads(record.args))) for id, record in records.items()
    }
    bounded.keyed, bounded.keys = len(keys), len(set(keys.values()))
    bounded.limited = sum(bool(names) for names in limits.values())
    bounded.cancelled = sum(record.state is State.cancelled for record in records.values())
    bounded.breaker_opened = sum(event.what == "open" for event in found)
    _one_at_a_time(bounded, found, keys)
    _in_order(bounded, found, keys, died)
    _caps(bounded, found, limits)
    _paces(bounded, found, limits)
    _starts(bounded, seen, keys, frozen)
    inside: list[tuple[str, Callable[[str], int], Iterable[Stretch]]] = [
        ("keys", lambda _: 1, _stretches(seen, {id: (key,) for id, key in keys.items()})),
        ("limits", lambda name: controls.caps()[name], _stretches(seen, limits)),
        ("locks", lambda _: 1, _locks(lines)),
    ]
    for what, cap, stretches in inside:
        bounded.overlaps[what] = _overlap(bounded, [*stretches], cap, frozen)
    bounded.locks_taken = sum(line.kind == LOCKED for line in lines)
    return bounded


def _one_at_a_time(bounded: Bounded, found: list[Event], keys: dict[JobId, str]) -> None:
    """No two workers have a lease on jobs of one key. One worker may have several, which it runs one by one."""
    running: dict[str, dict[int, int]] = defaultdict(dict)
    for event in found:
        key = keys.get(JobId(event.id))
        if key is None or event.what not in ("claim", "end"):
            continue
        if event.what == "end":
            running[key].pop(event.id, None)
            continue
        others = {id for id, incarnation in running[key].items() if incarnation != event.incarnation}
        if others:
            bounded.broken.append(f"{key}: job {event.id} was claimed while others had a lease on {others}")
        bounded.chained += len(running[key]) > 0
        running[key][event.id] = event.incarnation


def _in_order(bounded: Bounded, found: list[Event], keys: dict[JobId, str], died: set[int]) -> None:
    """Of one producer's own keys: nothing is claimed before what was stored before it has had its last lease.

    A chain is claimed together; a job that was dead may come back behind others.
    """
    own = {id: key for id, key in keys.items() if f" {OWN}-" in key}
    last_claim: dict[int, int] = {}
    for place, event in enumerate(found):
        if event.what == "claim" and event.id in own and event.id not in died:
            last_claim[event.id] = place
    members: dict[str, list[int]] = defaultdict(list)
    for id in sorted(last_claim):
        members[own[JobId(id)]].append(id)
    standing: dict[int, int] = {}
    for place, event in enumerate(found):
        if event.what == "end":
            standing.pop(event.id, None)
        if event.what != "claim" or event.id not in last_claim:
            continue
        standing[event.id] = event.incarnation
        for earlier in members[own[JobId(event.id)]]:
            if earlier >= event.id:
                break
            if last_claim[earlier] > place and standing.get(earlier) != event.incarnation:
                bounded.broken.append(
                    f"{own[JobId(event.id)]}: job {event.id} was claimed, and {earlier} after it"
                )


def _caps(bounded: Bounded, found: list[Event], limits: dict[JobId, tuple[str, ...]]) -> None:
    """By the leases of jobs that take a limit, and by the holds of everybody."""
    caps = controls.caps()
    leases = (
        event._replace(subject=key_of(name))
        for event in found
        if event.what in ("claim", "end")
        for name in limits.get(JobId(event.id), ())
    )
    running = most_at_once(leases, "claim", "end")
    holding = most_at_once(found, "hold", "free")
    for name, cap in caps.items():
        for what, most in (("leases", running[key_of(name)]), ("holds", holding[key_of(name)])):
            if most > cap:
                bounded.broken.append(f"{name}: {most} {what} at once of at most {cap}")


def _paces(bounded: Bounded, found: list[Event], limits: dict[JobId, tuple[str, ...]]) -> None:
    """No stretch of time has more starts than its length and the burst allow."""
    starts: dict[str, list[float]] = defaultdict(list)
    for event in found:
        if event.what == "claim" and event.at is not None:
            for name in limits.get(JobId(event.id), ()):
                starts[name].append(event.at)
    for name, (a_second, burst) in controls.paces().items():
        allowed_at = 0.0
        for at in sorted(starts[name]):
            early = allowed_at - (burst - 1) / a_second - at
            if early > 0.001:
                bounded.broken.append(f"{name}: a start {early * 1000:.0f} ms before its rate allowed it")
                break
            allowed_at = max(allowed_at, at) + 1 / a_second


def _starts(bounded: Bounded, seen: dict[int, list[Run]], keys: dict[JobId, str], frozen: set[int]) -> None:
    """Handlers of one producer's own key were entered in the order of the enqueues, frozen processes apart."""
    first: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for id, key in keys.items():
        entries = [run for run in seen.get(id, []) if not {run.pid, run.parent} & frozen]
        if f" {OWN}-" in key and entries and len(entries) == len(seen[id]):
            first[key].append((id, entries[0].start))
    for key, entered in first.items():
        entered.sort()
        for (one, start), (other, later) in pairwise(entered):
            if later < start:
                bounded.broken.append(f"{key}: the handler of {other} began before that of {one}")


def _stretches(seen: dict[int, list[Run]], names: dict[JobId, tuple[str, ...]]) -> Iterator[Stretch]:
    for id, found in seen.items():
        for name in names.get(JobId(id), ()):
            for run in found:
                yield Stretch(name, run.start, run.last, frozenset({run.pid, run.parent}), f"job {id}")


def _locks(lines: list[Line]) -> Iterator[Stretch]:
    """From a lock's line to the line at its end; of one who was killed inside, the first line alone."""
    entered: dict[tuple[int, int, int], Line] = {}
    for line in lines:
        where = (line.n, line.pid, line.job)
        if line.kind == LOCKED:
            entered[where] = line
        elif line.kind == UNLOCKED and (began := entered.pop(where, None)) is not None:
            yield Stretch(
                f"lock:{controls.LOCKS[line.n]}",
                began.at,
                line.at,
                frozenset({line.pid, line.parent}),
                f"job {line.job}",
            )


def _overlap(bounded: Bounded, found: list[Stretch], cap: Callable[[str], int], frozen: set[int]) -> Overlap:
    """Where more were inside than may be: explained as far as frozen ones were among them."""
    overlap = Overlap()
    by_name: dict[str, list[Stretch]] = defaultdict(list)
    for stretch in sorted(found, key=lambda stretch: stretch.start):
        inside = [other for other in by_name[stretch.name] if other.last > stretch.start]
        by_name[stretch.name] = [*inside, stretch]
        if len(inside) < cap(stretch.name):
            continue
        together = [*inside, stretch]
        ms = (min(other.last for other in together) - stretch.start) / 1e6
        overlap.times += 1
        overlap.longest_ms = max(overlap.longest_ms, ms)
        if sum(not other.pids & frozen for other in together) > cap(stretch.name):
            bounded.broken.append(
                f"{stretch.name}: {[other.who for other in together]} were inside together for {ms:.0f} ms"
            )
    return overlap
