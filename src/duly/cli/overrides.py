"""`duly limit`, `duly block` and `duly overrides`: bounds of jobs that a person changes for a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import click

from duly.app import App
from duly.core.control import BreakerState, Override
from duly.core.control_words import change_text, plan_text
from duly.core.errors import UsageError
from duly.core.filters import Filter

from .errors import Conflict
from .options import Act, acting, common, duration, filters
from .output import Column, Json, clock, count, plain, printable, relative
from .session import Session, session_of

OVERRIDES = (
    Column("ID", "right"),
    Column("TARGET"),
    Column("CHANGE"),
    Column("ENDS"),
    Column("BY"),
    Column("MADE"),
    Column("REASON", wide=True),
)


@click.command()
@common
@acting
@click.argument("target", required=False, metavar="[QUEUE|task:NAME|resource:NAME]")
@click.option(
    "--tenant", metavar="NAME", help="Only this tenant's share of the queue; alone, of every queue."
)
@click.option("--max-running", metavar="N|none", help="So many at once in the whole fleet.")
@click.option("--rate", metavar="N/s|N/min|none", help="So many starts per time in the whole fleet.")
@click.option("--weight", type=int, metavar="N", help="Turns of the tenant in a round.")
@click.option(
    "--breaker", type=click.Choice(["open", "closed", "auto"]), help="Of a resource, until set again."
)
@click.option(
    "--hold", is_flag=True, help="Of a resource: nobody begins to use it, for so long as --for says."
)
@click.option(
    "--for", "lasting", type=duration("--for"), metavar="DURATION", help="End by itself after this long."
)
@click.pass_context
def limit(
    context: click.Context,
    target: str | None,
    tenant: str | None,
    max_running: str | None,
    rate: str | None,
    weight: int | None,
    breaker: Literal["open", "closed", "auto"] | None,
    hold: bool,
    lasting: timedelta | None,
    act: Act,
) -> None:
    """Bound a queue, a task, a resource or a tenant otherwise than declared, for a time. What runs already goes on.

    With a tenant alone and no --for it stores the tenant's plan, which lasts.

    \b
      duly limit mail --max-running 5 --for 2h --reason INC-311
      duly limit task:send_receipt --rate 10/s --for 30m
      duly limit mail --tenant acme --max-running 2 --for 1h
      duly limit --tenant acme --weight 5 --max-running 20
      duly limit resource:stripe --breaker open --reason "their status page"
      duly limit resource:stripe --hold --for 10m --reason "they asked for it"
    """
    session = session_of(context)
    app = session.data()
    bounds = (max_running, rate, weight)
    if breaker is not None:
        if hold or any(bound is not None for bound in (*bounds, tenant, lasting)):
            raise UsageError("--breaker stands alone: it stays until it is set again")
        _breaker(session, app, target, breaker, act)
        return
    if hold:
        if lasting is None or any(bound is not None for bound in (*bounds, tenant)):
            raise UsageError("--hold stands alone, with the time that it lasts: --hold --for 30s")
        _hold(session, app, target, lasting, act)
        return
    cap = _cap(max_running)
    if lasting is None and target is None and tenant is not None:
        _plan(session, app, tenant, (cap, rate, weight), act)
        return
    if lasting is None:
        raise UsageError("say for how long with --for, such as 2h: what nobody remembers ends by itself")
    if act.dry_run:
        raise UsageError("--dry-run has nothing to count here: a limit moves no job")
    made = app.operate.limit(
        target,
        lasting=lasting,
        tenant=tenant,
        max_running="none" if cap == "none" else None if cap is None else int(cap),
        rate="none" if rate == "none" else rate,
        weight=weight,
        reason=act.reason or "",
    )
    session.out.answer(plain(made), lambda: [said(made)])


@click.command()
@common
@filters
@acting
@click.option(
    "--for",
    "lasting",
    required=True,
    type=duration("--for"),
    metavar="DURATION",
    help="End by itself after this long.",
)
@click.pass_context
def block(context: click.Context, filter: Filter, everything: bool, lasting: timedelta, act: Act) -> None:
    """Start no job of a queue that fits, for a time: they are stored and wait. What runs already goes on.

    \b
      duly block --queue mail --where 'args.customer_id = 7' --for 2h --reason INC-311
      duly block --queue mail --task send_receipt --tenant acme --for 30m
    """
    session = session_of(context)
    app = session.data()
    if everything:
        raise UsageError("to start nothing at all, pause: duly pause QUEUE")
    if act.dry_run:
        found = app.inspect.jobs(filter, limit=1000).jobs
        waiting = [job for job in found if job.state in {"ready", "scheduled", "blocked"}]
        document: Json = {"matched": len(waiting), "dry_run": True}
        session.out.answer(
            document, lambda: [f"{count(len(waiting))} of the newest jobs would wait; nothing was done"]
        )
        return
    made = app.operate.block(filter, lasting=lasting, reason=act.reason or "")
    session.out.answer(plain(made), lambda: [said(made)])


@click.group()
@common
def overrides() -> None:
    """What was changed for a time: by whom, why, and until when."""


@overrides.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """Every override in force, the newest first."""
    session = session_of(context)
    app = session.data()
    found = app.inspect.overrides()
    now = app.client.call(app.store.inspection.now)
    session.out.answer(
        plain(found),
        lambda: (
            session.out.table(OVERRIDES, (_row(one, now) for one in found))
            if found
            else ["nothing is overridden"]
        ),
        (plain(one) for one in found),
    )


@overrides.command()
@common
@acting
@click.argument("id", type=int)
@click.pass_context
def lift(context: click.Context, id: int, act: Act) -> None:
    """End one before its time: what is declared holds again."""
    session = session_of(context)
    app = session.data()
    if act.dry_run:
        known = any(one.id == id for one in app.inspect.overrides())
    else:
        known = app.operate.lift(id, reason=act.reason or "")
    if not known:
        raise Conflict(f"override {id} is not in force; duly overrides list shows those that are")
    document: Json = {"id": id, "lifted": not act.dry_run, "dry_run": act.dry_run}
    word = "would be lifted; nothing was done" if act.dry_run else "lifted"
    session.out.answer(document, lambda: [f"override {id} {word}"])


def said(made: Override) -> str:
    until = "until it is lifted" if made.until is None else f"until {clock(made.until)} UTC"
    because = f" ({printable(made.reason)})" if made.reason else ""
    change = printable(change_text(made))
    return (
        f"override {made.id}: {printable(made.target)}, {change}, {until}, by {made.by}{because}. "
        f"Undo: duly overrides lift {made.id}"
    )


def _row(one: Override, now: datetime) -> list[str]:
    ends = "lifted by hand" if one.until is None else relative(one.until, now)
    return [
        str(one.id),
        printable(one.target),
        printable(change_text(one)),
        ends,
        one.by,
        relative(one.at, now),
        printable(one.reason),
    ]


def _cap(text: str | None) -> int | Literal["none"] | None:
    if text is None:
        return None
    if text == "none":
        return "none"
    if not text.isascii() or not text.isdecimal():
        raise UsageError(f"--max-running {text!r:.40}: write a whole number from 1, or none")
    return int(text)


def _plan(
    session: Session,
    app: App,
    tenant: str,
    bounds: tuple[int | Literal["none"] | None, str | None, int | None],
    act: Act,
) -> None:
    cap, rate, weight = bounds
    if cap is None and rate is None and weight is None:
        raise UsageError("nothing is bounded: give --max-running, --rate or --weight")
    if act.dry_run:
        raise UsageError("--dry-run has nothing to count here: a plan moves no job")
    plan = app.operate.tenant(
        tenant,
        weight=1 if weight is None else weight,
        max_running=None if cap is None or cap == "none" else cap,
        rate=None if rate == "none" else rate,
        reason=act.reason or "",
    )
    session.out.answer(plain(plan), lambda: [f"plan of tenant {tenant}: {plan_text(plan)}"])


def _hold(session: Session, app: App, target: str | None, lasting: timedelta, act: Act) -> None:
    kind, _, name = (target or "").partition(":")
    if kind != "resource" or not name:
        raise UsageError(
            "what is held is a resource: duly limit resource:NAME --hold --for 30s; pause a queue"
        )
    if act.dry_run:
        raise UsageError("--dry-run has nothing to count here: a hold moves no job")
    until = app.operate.hold(name, lasting, reason=act.reason or "")
    document: Json = {"resource": name, "held_until": plain(until)}
    session.out.answer(
        document, lambda: [f"resource {name} is held until {clock(until)} UTC, by {app.operate.actor()}"]
    )


def _breaker(session: Session, app: App, target: str | None, state: str, act: Act) -> None:
    kind, _, name = (target or "").partition(":")
    if kind != "resource" or not name:
        raise UsageError("a breaker is a resource's: duly limit resource:NAME --breaker open")
    if act.dry_run:
        raise UsageError("--dry-run has nothing to count here: a breaker moves no job")
    states: dict[str, BreakerState | None] = {"open": "open", "closed": "closed", "auto": None}
    app.operate.breaker(name, states[state], reason=act.reason or "")
    word = "is left to its counts" if state == "auto" else f"is {state} until it is set again"
    document: Json = {"resource": name, "breaker": state}
    session.out.answer(
        document, lambda: [f"breaker of {name} {word}. Undo: duly limit resource:{name} --breaker auto"]
    )
