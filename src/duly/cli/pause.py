"""`duly pause` and `duly resume`: whether a queue, a task or an ordering key may start jobs."""

from __future__ import annotations

from datetime import timedelta

import click

from duly.app import App
from duly.core.errors import NotFound, UsageError
from duly.stores.protocol import Pause

from .errors import Conflict
from .options import Act, acting, common, duration
from .output import Column, Json, clock, plain, relative
from .session import Session, session_of

PAUSES = (Column("PAUSED"), Column("UNTIL"), Column("BY"), Column("SINCE"), Column("REASON", wide=True))


@click.command()
@common
@acting
@click.argument("targets", nargs=-1, metavar="[QUEUE|task:NAME]...")
@click.option(
    "--for",
    "lasting",
    type=duration("--for"),
    metavar="DURATION",
    help="End by itself after this long, such as 30m.",
)
@click.pass_context
def pause(context: click.Context, targets: tuple[str, ...], lasting: timedelta | None, act: Act) -> None:
    """Start no more jobs of a queue or a task, on any worker. What runs, ends; new jobs are stored as always.

    Without a target it lists what is paused.

    \b
      duly pause mail --for 30m --reason INC-311
      duly pause task:send_receipt
      duly pause
    """
    session = session_of(context)
    app = session.data()
    if not targets:
        _list(session, app)
        return
    if act.dry_run:
        _dry(session, app, targets, "paused")
        return
    made = [app.operate.pause(target, lasting=lasting, reason=act.reason or "") for target in targets]
    session.out.answer(plain(made), lambda: [_said(one) for one in made], (plain(one) for one in made))


@click.command()
@common
@acting
@click.argument("targets", nargs=-1, required=True, metavar="QUEUE|task:NAME|key:QUEUE/KEY...")
@click.option("--tenant", default="", metavar="NAME", help="Of this tenant, for an ordering key.")
@click.pass_context
def resume(context: click.Context, targets: tuple[str, ...], tenant: str, act: Act) -> None:
    """Let a paused queue or task start jobs again, or an ordering key whose first job is dead go on without it.

    \b
      duly resume mail
      duly resume task:send_receipt
      duly resume key:payments/order-7
    """
    session = session_of(context)
    app = session.data()
    if act.dry_run:
        _dry(session, app, targets, "resumed")
        return
    resumed = {target: _resume(app, target, tenant, act.reason or "") for target in targets}
    if not any(resumed.values()):
        raise Conflict(f"{', '.join(targets)}: not paused")
    document: list[Json] = [{"target": target, "resumed": done} for target, done in resumed.items()]
    session.out.answer(
        document,
        lambda: [f"{target} {'resumed' if done else 'was not paused'}" for target, done in resumed.items()],
        document,
    )


def _resume(app: App, target: str, tenant: str, reason: str) -> bool:
    if not target.startswith("key:"):
        if tenant:
            raise UsageError("--tenant says whose ordering key is meant; write key:QUEUE/KEY with it")
        return app.operate.resume(target, reason=reason)
    queue, slash, key = target.removeprefix("key:").partition("/")
    if not slash or not key:
        raise UsageError(f"{target!r}: write key:QUEUE/KEY, such as key:payments/order-7")
    return app.operate.resume_key(queue, key, tenant=tenant, reason=reason)


def _list(session: Session, app: App) -> None:
    pauses = app.inspect.pauses()
    now = app.client.call(app.store.inspection.now)

    def lines() -> list[str]:
        if not pauses:
            return ["nothing is paused"]
        rows = [
            [
                _name(one.target),
                "resumed by hand" if one.until is None else relative(one.until, now),
                one.by,
                relative(one.at, now),
                one.reason,
            ]
            for one in pauses
        ]
        return session.out.table(PAUSES, rows)

    session.out.answer(plain(pauses), lines, (plain(one) for one in pauses))


def _dry(session: Session, app: App, targets: tuple[str, ...], word: str) -> None:
    known = {status.counts.queue for status in app.inspect.queues()}
    for target in targets:
        if ":" not in target and target not in known:
            raise NotFound(f"no queue is named {target!r}", kind="queue", name=target)
    document: Json = {"targets": list(targets), "dry_run": True}
    session.out.answer(document, lambda: [f"{', '.join(targets)} would be {word}; nothing was done"])


def _said(made: Pause) -> str:
    name = _name(made.target)
    until = "until it is resumed" if made.until is None else f"until {clock(made.until)} UTC"
    because = f" ({made.reason})" if made.reason else ""
    return f"{name} paused {until} by {made.by}{because}. Undo: duly resume {name}"


def _name(target: str) -> str:
    return target.removeprefix("queue:")
