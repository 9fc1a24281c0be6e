"""What a run of the demo did, counted from what the store kept, and whether all of it is as it must be.

Pure arithmetic over records; runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from duly.core.job import AttemptRecord, JobRecord
from duly.core.lifecycle import FINAL, Event, State

from .photos import Photo
from .pictures import FORMATS

# The errors that the two bad photographs must end with.
_REASONS = {"truncated": "BrokenPhoto", "text": "UnidentifiedImageError"}


class Kill(Struct, frozen=True):
    """One of the demo's own workers, ended by SIGKILL."""

    pid: int
    after: int
    """Photographs that were finished then."""


class DeadLetter(Struct, frozen=True):
    photo: str
    error: str


class Ledger(Struct, frozen=True):
    """The summary. `failures` says what is not as it must be; empty is success."""

    photographs: int
    made: int
    taken: int
    broken: int
    jobs: int
    completed: int
    dead: int
    unfinished: int
    attempts: int
    failed: int
    lost: int
    kills: tuple[Kill, ...]
    dead_letters: tuple[DeadLetter, ...]
    files: int
    failures: tuple[str, ...]
    seconds: float
    url: str
    folder: str

    @property
    def ok(self) -> bool:
        return not self.failures


def draw_up(
    photos: Sequence[Photo],
    records: Mapping[str, JobRecord | None],
    attempts: Mapping[str, Sequence[AttemptRecord]],
    kills: Sequence[Kill],
    wrong: Sequence[str],
    *,
    seconds: float,
    url: str,
    folder: str,
) -> Ledger:
    """Count a run, and compare it with what must be. The mappings are by the photograph's name."""
    jobs = {name: record for name, record in records.items() if record is not None}
    states = Counter(record.state for record in jobs.values())
    # What a worker only held when it was killed goes back unstarted: no attempt was made.
    made = [attempt for ended in attempts.values() for attempt in ended if attempt.started_at is not None]
    events = Counter(attempt.event for attempt in made)
    # A job that completed in its first run has no attempt record.
    at_once = sum(record.state is State.completed and not attempts.get(name) for name, record in jobs.items())
    good = [photo for photo in photos if photo.expected is not None]
    failures = [*_wrong_jobs(photos, jobs), *_wrong_kills(kills, events[Event.lose]), *wrong]
    return Ledger(
        photographs=len(photos),
        made=sum(photo.kind != "taken" for photo in photos),
        taken=sum(photo.kind == "taken" for photo in photos),
        broken=len(photos) - len(good),
        jobs=len(jobs),
        completed=states[State.completed],
        dead=states[State.dead],
        unfinished=sum(count for state, count in states.items() if state not in FINAL),
        attempts=at_once + len(made),
        failed=events[Event.fail] + events[Event.bury],
        lost=events[Event.lose],
        kills=tuple(kills),
        dead_letters=tuple(
            DeadLetter(name, _error(record))
            for name, record in sorted(jobs.items())
            if record.state is State.dead
        ),
        files=len(good) * len(FORMATS),
        failures=tuple(failures),
        seconds=seconds,
        url=url,
        folder=folder,
    )


def _wrong_jobs(photos: Sequence[Photo], jobs: Mapping[str, JobRecord]) -> list[str]:
    wrong: list[str] = []
    for photo in photos:
        record = jobs.get(photo.name)
        wanted = State.dead if photo.expected is None else State.completed
        if record is None:
            wrong.append(f"the job of {photo.name} is gone")
        elif record.state is not wanted:
            because = f": {record.reason}" if record.reason else ""
            wrong.append(f"the job of {photo.name} is {record.state} and not {wanted}{because}")
        elif (reason := _REASONS.get(photo.kind)) and reason not in _error(record):
            wrong.append(f"{photo.name} is dead of {_error(record)}, not of {reason}")
    return wrong


def _wrong_kills(kills: Sequence[Kill], lost: int) -> list[str]:
    if not kills:
        return ["no worker was killed: the jobs were done too soon"]
    return [] if lost else ["a worker was killed, but no attempt is recorded as lost"]


def _error(record: JobRecord) -> str:
    if record.error is None:
        return record.reason or "no reason"
    return f"{record.error.type}: {record.error.message}"


def lines(ledger: Ledger) -> list[str]:
    """The summary for people."""
    kills = ", ".join(f"worker {kill.pid} killed after {kill.after} photographs" for kill in ledger.kills)
    rows = [
        (
            "photographs",
            ledger.photographs,
            f"{ledger.made} made, {ledger.taken} taken; {ledger.broken} are broken",
        ),
        (
            "jobs",
            ledger.jobs,
            f"{ledger.completed} completed, {ledger.dead} dead, {ledger.unfinished} unfinished",
        ),
        (
            "attempts",
            ledger.attempts,
            f"{ledger.completed} completed, {ledger.failed} failed, {ledger.lost} lost by the kill",
        ),
        ("killed", len(ledger.kills), kills or "none"),
        ("dead letters", len(ledger.dead_letters), ""),
    ]
    text = [f"{name:<13}{number:>5}  {rest}".rstrip() for name, number, rest in rows]
    text += [f"                     {letter.photo}  {letter.error}" for letter in ledger.dead_letters]
    state = "each there once, opens, has the right size, turn and colours"
    if not ledger.ok:
        state = "see below"
    text += [f"{'files':<13}{ledger.files:>5}  {state}", f"{'seconds':<13}{ledger.seconds:>5.0f}"]
    text += [f"WRONG: {failure}" for failure in ledger.failures]
    return text
