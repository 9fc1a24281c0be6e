"""How an act on jobs goes: count first, ask for what is missing, confirm, do it, say what really moved.

The verbs themselves are `operate`'s; this turns its answers into words and exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from duly.app import App
from duly.client.operate import Act as Done
from duly.core.defaults import BULK_ACT
from duly.core.errors import UsageError
from duly.core.filters import Filter
from duly.core.job import JobId
from duly.core.lifecycle import State
from duly.core.operating import successor_of

from .errors import Conflict
from .follow import follow_job, follow_many, follow_operation
from .options import Act, Rate
from .output import Json, age, count, counted, plain, rate
from .session import Session

Verb = Literal["cancel", "redrive", "purge"]

_WORDS: Final = {
    "cancel": ("cancelled", "would be cancelled", "waits or runs"),
    "redrive": ("will run again", "would run again", "is dead, cancelled or skipped"),
    "purge": ("deleted for good", "would be deleted for good", "is dead"),
}


_REDRIVEN: Final = {State.dead, State.cancelled, State.skipped}


class Bulk(Struct, frozen=True):
    """Which jobs, and how."""

    verb: Verb
    ids: tuple[int, ...]
    filter: Filter
    everything: bool = False
    first: int | None = None
    rate: Rate | None = None
    priority: int | None = None
    follow: bool = False


def perform(session: Session, app: App, wish: Bulk, act: Act) -> None:
    """Do it, or say why not. UsageError for what is missing, NotFound, Conflict when nothing could be moved."""
    jobs = _meant(wish)
    if wish.ids:
        _must_exist(app, wish)
    foreseen = _call(app, wish, jobs, "", dry_run=True)
    matched = foreseen.matched
    if act.dry_run:
        _say_dry(session, app, wish, foreseen)
        return
    if matched == 0:
        session.out.answer(plain(Done(wish.verb, 0)), lambda: ["no job fits; nothing was done"])
        return
    if matched > 1 and not (act.reason or "").strip():
        raise UsageError(f"{counted(matched, 'job')}: say why with --reason TEXT; it is kept with the act")
    if matched > BULK_ACT and wish.rate is None and not wish.ids:
        raise UsageError(
            f"{counted(matched, 'job')}: say how fast with --rate{_pace(app, wish)}; --rate max means at once"
        )
    if matched > 1:
        confirm(act, f"{counted(matched, 'job')} {_WORDS[wish.verb][1]}. Go on?")
    done = _call(app, wish, jobs, act.reason or "", dry_run=False)
    _say_done(session, app, wish, done)


def confirm(act: Act, question: str) -> None:
    """Ask, unless --yes was said. Where nobody can answer, UsageError asks for --yes."""
    if act.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question.removesuffix(' Go on?')} Nobody is here to confirm: add --yes")
    click.confirm(question, abort=True, err=True)


def _meant(wish: Bulk) -> Filter | Sequence[int]:
    if wish.ids:
        if not wish.filter.everything or wish.everything:
            raise UsageError("ids and a filter say two things; give one of them")
        return wish.ids
    if wish.filter.everything and not wish.everything:
        raise UsageError("which jobs? Give ids, a filter such as --queue mail, or --all")
    return wish.filter


def _must_exist(app: App, wish: Bulk) -> None:
    for id in wish.ids:
        app.inspect.job(id)


def _call(app: App, wish: Bulk, jobs: Filter | Sequence[int], reason: str, *, dry_run: bool) -> Done:
    rate = None if wish.rate is None else wish.rate.text
    verbs: dict[Verb, Callable[[], Done]] = {
        "cancel": lambda: app.operate.cancel(
            jobs, reason=reason, rate=rate, first=wish.first, dry_run=dry_run
        ),
        "redrive": lambda: app.operate.redrive(
            jobs, reason=reason, rate=rate, priority=wish.priority, first=wish.first, dry_run=dry_run
        ),
        "purge": lambda: app.operate.purge(jobs, reason=reason, rate=rate, first=wish.first, dry_run=dry_run),
    }
    return verbs[wish.verb]()


def _pace(app: App, wish: Bulk) -> str:
    """What --rate may be measured by: how fast the queue ends jobs now."""
    queue = wish.filter.queue
    if queue is None and wish.filter.fingerprint is not None:
        queues = {group.queue for group in app.inspect.dead_groups(replace(wish.filter, where=None))}
        queue = queues.pop() if len(queues) == 1 else None
    found = (
        None
        if queue is None
        else next((one for one in app.inspect.queues() if one.counts.queue == queue), None)
    )
    if found is None or not found.counts.out_per_s:
        return ", such as 20/s"
    return f" ({queue} finishes {rate(found.counts.out_per_s)}/s now)"


def _say_dry(session: Session, app: App, wish: Bulk, foreseen: Done) -> None:
    matched, outlook = foreseen.matched, foreseen.outlook
    document: dict[str, Json] = {"verb": wish.verb, "matched": matched, "dry_run": True}
    lines = [f"{counted(matched, 'job')} {_WORDS[wish.verb][1]}; nothing was done"]
    if outlook is not None:
        document |= {"oldest": plain(outlook.oldest), "twins": outlook.twins, "of": outlook.count}
        if outlook.oldest is not None:
            since = age(app.client.call(app.store.inspection.now) - outlook.oldest)
            lines.append(f"the oldest is dead for {since}")
        if outlook.twins:
            has = "has" if outlook.twins == 1 else "have"
            lines.append(
                f"{count(outlook.twins)} of them {has} a live twin by unique key and would stay dead while it lives"
            )
    session.out.answer(document, lambda: lines)


def _say_done(session: Session, app: App, wish: Bulk, done: Done) -> None:
    if done.operation is not None:
        number = done.operation.id
        about = ""
        if wish.rate is not None and wish.rate.per_second is not None:
            about = f", about {age(timedelta(seconds=done.matched / wish.rate.per_second))}"
        level = done.operation.priority
        behind = "" if level is None else f", at priority {level}"
        session.out.answer(
            plain(done),
            lambda: [
                f"operation {number} started: {counted(done.matched, 'job')}{about}{behind}. The workers carry it out.",
                f"duly operations show {number} · pause {number} · cancel {number}",
            ],
        )
        if wish.follow:
            follow_operation(session, app, number)
        return
    if not done.moved:
        raise Conflict(_unmoved(app, wish, done))
    session.out.answer(plain(done), lambda: _moved(wish, done))
    if wish.follow:
        _follow(session, app, done.moved)


def _moved(wish: Bulk, done: Done) -> list[str]:
    word = _WORDS[wish.verb][0]
    at_once = len(done.moved) - len(done.asked)
    lines = [f"{counted(at_once, 'job')} {word}"] if at_once else []
    if done.asked:
        lines.append(f"{counted(len(done.asked), 'running job')} asked to stop")
    if left := done.matched - len(done.moved):
        lines.append(f"{count(left)} of {count(done.matched)} had changed meanwhile and stay as they are")
    return lines


def _unmoved(app: App, wish: Bulk, done: Done) -> str:
    needed = _WORDS[wish.verb][2]
    if len(wish.ids) == 1:
        job = app.inspect.job(wish.ids[0]).job
        if wish.verb == "redrive" and (successor := successor_of(job.note)) is not None:
            return f"job {job.id} was edited: it runs again as job {successor}"
        if wish.verb == "redrive" and job.state in _REDRIVEN:
            return f"job {job.id} stays {job.state}: its unique key is another job's by now; cancel that one, or wait"
        return f"job {job.id} is {job.state}; {wish.verb} needs one that {needed}"
    return f"none of {counted(done.matched, 'job')} {needed} any more; nothing was changed"


def _follow(session: Session, app: App, ids: Sequence[JobId]) -> None:
    if len(ids) == 1:
        follow_job(session, app, ids[0])
    else:
        follow_many(session, app, ids)
