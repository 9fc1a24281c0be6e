"""When a schedule is due next, and what to do about the due times that have passed.

A pure function of the schedule, the moment and what the store says of the previous job; cronsim knows cron and DST.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from hashlib import sha256
from typing import Final, get_args
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from msgspec import Struct
from msgspec.structs import replace

from duly.core.cron_words import cron_words
from duly.core.defaults import EARLIEST, LATEST, MISSED_AFTER
from duly.core.durations import format_duration
from duly.core.errors import UsageError
from duly.core.job import NewJob
from duly.core.names import check_name
from duly.core.registration import CatchUp, Overlap, Schedule, ScheduleRecord

ROUND: Final = 1_000
"""Due times handled at once; the rest comes in the next round."""

SHORTEST: Final = timedelta(seconds=1)
"""Of an interval: workers look once a second."""

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_FIELDS: Final = "minute hour day-of-month month day-of-week, such as '0 9 * * 1-5'"
_LONGEST: Final = 200
# A year from which cronsim's fifty years hold every combination of weekday and leap day.
_SAMPLE: Final = datetime(2001, 1, 1, tzinfo=UTC)


class Plan(Struct, frozen=True):
    """What becomes of a schedule's due times that have passed."""

    fire: tuple[datetime, ...]
    """Each becomes one job."""
    next_at: datetime
    """Unchanged when nothing is due, or when a due time waits for the previous job to end."""
    missed: int = 0
    """Passed without a job."""


def checked(schedule: Schedule) -> Schedule:
    """This schedule with its expression in one form, if all of it may be stored. UsageError says what to write."""
    check_name("schedule", schedule.name)
    if (schedule.every is None) == (schedule.cron is None):
        raise UsageError(f"schedule {schedule.name!r}: give either every='10m' or cron='0 9 * * 1-5'")
    if schedule.catch_up not in get_args(CatchUp):
        raise UsageError(f'catch_up={schedule.catch_up!r}: write "last", "skip" or "all"')
    if schedule.overlap not in get_args(Overlap):
        raise UsageError(f'overlap={schedule.overlap!r}: write "skip", "queue" or "allow"')
    _check_policies(schedule)
    if schedule.cron is not None:
        schedule = replace(schedule, cron=parse_cron(schedule.cron, schedule.tz))
    elif schedule.every is not None:
        _check_interval(schedule.every, schedule.jitter)
    return schedule


def parse_cron(expression: str, tz: str) -> str:
    """The five fields, if they name a moment that comes in this zone. UsageError says what is wrong."""
    if not isinstance(expression, str):
        raise UsageError(f"cron={expression!r:.60} is no text; write {_FIELDS}")
    zone_of(tz)
    text = " ".join(expression.split())
    text = ALIASES.get(text.lower(), text)
    shown = f"cron={expression[:_LONGEST]!r}"
    fields = text.split()
    if text.startswith("@"):
        raise UsageError(f"{shown} is none of {', '.join(ALIASES)}; for an interval write every='5m'")
    if len(fields) == 6:
        raise UsageError(f"{shown} has six fields; write five, {_FIELDS}, or every='10s' for seconds")
    if len(fields) != 5 or len(text) > _LONGEST:
        raise UsageError(f"{shown} is not five fields; write {_FIELDS}")
    try:
        first = next(CronSim(text, _SAMPLE), None)
    except (CronSimError, AssertionError, ValueError, OverflowError) as error:
        # cronsim finds out itself that a month is too short, and calls it a bad day.
        why = f": {str(error).lower()}" if isinstance(error, CronSimError) else ""
        raise UsageError(f"{shown} is no cron expression, or never comes{why}; write {_FIELDS}") from error
    if first is None:
        raise UsageError(
            f"{shown} never comes: no day in fifty years fits all its fields; change one of them"
        )
    return text


def zone_of(name: str) -> tzinfo:
    """The time zone of this name. UsageError names the nearest one."""
    if not isinstance(name, str):
        raise UsageError(f"tz={name!r:.60} is no name of a time zone; write tz='Europe/Berlin' or tz='UTC'")
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    # zoneinfo raises OSError for the name of a folder, as "Europe".
    except (KeyError, ValueError, OSError) as error:
        known = available_timezones()
        if not known:
            raise UsageError(f"tz={name!r}: this system has no time zones; pip install tzdata") from error
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"; did you mean {close[0]!r}?" if close else "; write one such as 'Europe/Berlin' or 'UTC'"
        raise UsageError(f"tz={name[:60]!r} is no time zone{hint}") from error


def next_due(schedule: Schedule, after: datetime) -> datetime:
    """The due time that follows `after`, in UTC: always later. For an interval `after` is itself a due time.

    UsageError for a moment without a time zone or outside 1970 to 8999, and when nothing ever comes again.
    """
    _check_moment(after)
    if schedule.every is not None:
        return after.astimezone(UTC) + schedule.every
    if schedule.cron is None:
        raise UsageError(f"schedule {schedule.name!r} has neither an interval nor a cron expression")
    return _successor(schedule.cron, schedule.tz)(after.astimezone(UTC))


def first_due(schedule: Schedule, now: datetime) -> datetime:
    """When a new schedule is due for the first time: one interval from now, in whole seconds, or as cron says."""
    return next_due(schedule, now if schedule.every is None else now.replace(microsecond=0))


def due_from(record: ScheduleRecord, now: datetime) -> datetime:
    """The first due time after `now` that keeps the schedule's rhythm: what was due until then does not fire."""
    schedule = record.schedule
    if schedule.every is None:
        return max(record.next_at, next_due(schedule, now))
    behind = (now - record.next_at) // schedule.every + 1
    return record.next_at + max(0, behind) * schedule.every


def next_runs(record: ScheduleRecord, most: int = 3) -> tuple[datetime, ...]:
    """Its next due times, in its own zone; () while it is paused. Fewer when nothing comes after them."""
    if record.paused:
        return ()
    try:
        zone = zone_of(record.schedule.tz)
        found = [record.next_at]
        while len(found) < most:
            found.append(next_due(record.schedule, found[-1]))
    except UsageError:
        # It never comes again, or a newer release has stored what this one cannot read.
        zone = UTC
        found = [record.next_at]
    return tuple(due.astimezone(zone) for due in found)


def plan(record: ScheduleRecord, now: datetime) -> Plan:
    """What to fire at this moment, when it is due next, and how many due times have passed without a job.

    A due time noticed less than MISSED_AFTER late is fired as if in time. Of those older than that `catch_up` fires
    the last one, none, or all. Never more than ROUND due times at once.
    """
    schedule = record.schedule
    busy = record.last_waiting or record.last_running
    if record.next_at > now or (busy and schedule.overlap == "queue"):
        return Plan((), record.next_at)
    if schedule.catch_up == "all" and schedule.overlap == "queue":
        # One after the other: the next one waits until this one's job has ended.
        return Plan((record.next_at,), next_due(schedule, record.next_at))
    passed, leapt, next_at = _passed(schedule, record.next_at, now)
    if busy and schedule.overlap == "skip":
        chosen: tuple[datetime, ...] = ()
    else:
        chosen = _chosen(schedule, passed, now, more=next_at <= now)
    return Plan(chosen, next_at, leapt + len(passed) - len(chosen))


def occurrence(schedule: Schedule, due: datetime) -> NewJob:
    """The job of one due time. ValueError for a tick, whose jobs the App makes."""
    if schedule.job is None:
        raise ValueError(f"schedule {schedule.name!r} has no job of its own")
    run_at = due + delay_of(schedule.name, due, schedule.jitter)
    return replace(schedule.job, run_at=run_at, delay=None, trigger=trigger_of(schedule.name, due))


def delay_of(name: str, due: datetime, jitter: timedelta) -> timedelta:
    """Somewhere in [0, jitter): the same in every process, another one for each due time and each schedule."""
    digest = sha256(f"{name}\x1f{due.astimezone(UTC).isoformat()}".encode()).digest()
    return timedelta(microseconds=int.from_bytes(digest[:8], "big") * (jitter // _MICROSECOND) >> 64)


def declared_by(origin: str, name: str) -> UsageError:
    """Why a schedule of this name is not stored at run time: the next start of a worker would take it back."""
    return UsageError(
        f"schedule {name!r} is declared in code by {origin}; take another name, or delete it there first; where that "
        f"code is gone, run: duly schedules remove {name}"
    )


def trigger_of(name: str, due: datetime) -> str:
    """What a job says of the due time that made it."""
    return f"schedule:{name}@{due.astimezone(UTC).isoformat().replace('+00:00', 'Z')}"


def in_words(schedule: Schedule) -> str:
    """When it is due, as a person says it: "every weekday at 09:00 Europe/Berlin"."""
    if schedule.every is not None:
        return f"every {format_duration(schedule.every)}"
    if schedule.cron is None:
        return "never"
    try:
        short = cron_words(schedule.cron, schedule.tz)
        if short is not None:
            return short
        text = CronSim(schedule.cron, _SAMPLE).explain()
    except Exception:
        # A newer release may have stored what this one cannot explain.
        return f"{schedule.cron}, {schedule.tz}"
    text = text.replace(" through ", " to ")
    return f"{text[0].lower()}{text[1:]}, {schedule.tz}"


_MICROSECOND: Final = timedelta(microseconds=1)
_NEAR: Final = timedelta(minutes=5)


def _check_policies(schedule: Schedule) -> None:
    if schedule.catch_up == "all" and schedule.overlap == "skip":
        raise UsageError(
            "catch_up='all' runs each due time that was missed, overlap='skip' drops those that come while the "
            "previous job waits: write overlap='queue' to run them one after the other, or overlap='allow'"
        )
    if schedule.catch_up == "skip" and schedule.overlap == "queue":
        raise UsageError(
            "catch_up='skip' drops what is late, overlap='queue' makes it late: write catch_up='last' or overlap='skip'"
        )


def _check_interval(every: timedelta, jitter: timedelta) -> None:
    if every < SHORTEST:
        raise UsageError(f"every={format_duration(every)!r} is too short: at least '1s'")
    if jitter >= every:
        raise UsageError(
            f"jitter={format_duration(jitter)!r} must be shorter than every={format_duration(every)!r}"
        )


def _check_moment(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise UsageError(f"{moment!r} has no time zone; write datetime(…, tzinfo=UTC)")
    if not EARLIEST <= moment < LATEST:
        raise UsageError(
            f"{moment.isoformat()} is no moment for a schedule: its year is not from 1970 to 8999"
        )


def _passed(schedule: Schedule, first: datetime, now: datetime) -> tuple[tuple[datetime, ...], int, datetime]:
    """The due times from `first` to `now`, at most ROUND; how many before them were leapt over; the one after."""
    leapt = 0
    if schedule.every is not None and schedule.catch_up != "all":
        leapt = max(0, (now - first) // schedule.every + 1 - ROUND)
        first += leapt * schedule.every
    passed: list[datetime] = []
    due = first
    while due <= now and len(passed) < ROUND:
        passed.append(due)
        due = next_due(schedule, due)
    return tuple(passed), leapt, due


def _chosen(
    schedule: Schedule, passed: tuple[datetime, ...], now: datetime, *, more: bool
) -> tuple[datetime, ...]:
    if schedule.catch_up == "all":
        return passed
    late = tuple(due for due in passed if now - due < MISSED_AFTER)
    if schedule.overlap == "allow" and late:
        return late
    if more:
        # A later one is in the next round.
        return ()
    return late[-1:] if late or schedule.catch_up == "skip" else passed[-1:]


@lru_cache(maxsize=1024)
def _successor(cron: str, tz: str) -> Callable[[datetime], datetime]:
    """Finds the due time after a moment, both in UTC."""
    zone = zone_of(tz)
    # As Debian's cron: what names its minutes and hours runs once for each, whatever the clock does.
    follows_clock = any(field.startswith("*") for field in cron.split()[:2])

    def successor(after: datetime) -> datetime:
        due = _first_after(cron, zone, after)
        return _nearer(cron, zone, after, due) if follows_clock and due - after > _NEAR else due

    return successor


def _nearer(cron: str, zone: tzinfo, after: datetime, due: datetime) -> datetime:
    """What cronsim leaps over: it walks in steps of an hour, which a shift by half an hour sets off course."""
    offset = due.astimezone(zone).utcoffset() or timedelta(0)
    moment = max(after, due - timedelta(hours=1))
    while (moment := _first_after(cron, timezone(offset), moment)) < due:
        if moment.astimezone(zone).utcoffset() == offset:
            return moment
    return due


def _first_after(cron: str, zone: tzinfo, after: datetime) -> datetime:
    try:
        # An hour that comes twice gives its due times in the first one: cronsim names them in the second, too.
        for moment in CronSim(cron, after.astimezone(zone)):
            due = moment.astimezone(UTC)
            if due > after:
                return due
    except (CronSimError, OverflowError, ValueError) as error:
        raise UsageError(f"cron={cron!r} has no due time after {after.isoformat()}: {error}") from error
    raise UsageError(f"cron={cron!r} never comes again after {after.isoformat()}; remove it")
