"""`duly alerts`: what fires, who is told, and how to have it silent for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

from duly.alerts.watch import sinks_of
from duly.app import App
from duly.client.alert_acts import ANY
from duly.client.settings import without_password
from duly.core.alerting import RULES
from duly.core.errors import NotFound
from duly.core.notification import Notification, SinkFailed
from duly.core.operating import AlertChange, AlertRecord, Silence

from .errors import Failed
from .options import common, duration
from .output import Column, Json, plain, printable, relative
from .session import Session, session_of

COLUMNS = (
    Column("STATE"),
    Column("RULE"),
    Column("TARGET"),
    Column("SINCE"),
    Column("WHAT", wide=True),
)


@click.group()
@common
def alerts() -> None:
    """What fires, and who is told.

    Workers and servers look at the rules every fifteen seconds and tell the sinks that DULY_ALERTS or the App names; a
    line of their log where nothing is named. From cron, without either: `duly check --alerts`.
    """


@alerts.command("list")
@common
@click.option("--all", "everything", is_flag=True, help="Also what is over.")
@click.pass_context
def list_(context: click.Context, everything: bool) -> None:
    """What fires and what is about to, with the silences in force."""
    session = session_of(context)
    app = session.data()
    found = [record for record in app.inspect.alerts() if everything or _matters(record)]
    found.sort(
        key=lambda record: (record.state != "firing", record.since is None, record.rule, record.target)
    )
    silences = app.inspect.silences()
    now = app.inspect.now()
    document: Json = {"alerts": plain(found), "silences": plain(silences)}

    def lines() -> Iterator[str]:
        if found:
            yield from session.out.table(COLUMNS, (_row(record, now) for record in found))
        else:
            yield "nothing fires"
        for silence in silences:
            yield _silence_line(silence, now)

    session.out.answer(document, lines, (plain(record) for record in found))


@alerts.command()
@common
@click.option("--limit", type=click.IntRange(1, 1000), default=50, metavar="N", help="So many. [50]")
@click.pass_context
def history(context: click.Context, limit: int) -> None:
    """What has fired and ended, the newest first; kept for 90 days."""
    session = session_of(context)
    app = session.data()
    found = app.inspect.alert_changes(limit=limit)
    now = app.inspect.now()
    session.out.answer(
        plain(found),
        lambda: session.out.table(COLUMNS, (_change(change, now) for change in found)),
        (plain(change) for change in found),
    )


@alerts.command("test")
@common
@click.argument("name", required=False, metavar="[SINK]")
@click.pass_context
def test(context: click.Context, name: str | None) -> None:
    """Send a test notification to one sink, or to all: does it arrive?

    The sinks are those of DULY_ALERTS and, with -a, DULY_APP or [tool.duly], those of the App. Exit 1 if any fails.
    """
    session = session_of(context)
    app = _with_sinks(session)
    sinks = sinks_of(app.client)
    if name is not None and name not in sinks:
        raise NotFound(f"no sink is named {name!r}; there is {', '.join(sinks)}", kind="sink", name=name)
    note = _test_note(app)
    failed = 0
    for one in sinks if name is None else [name]:
        try:
            sinks[one].send(note)
        except SinkFailed as error:
            failed += 1
            session.out.item({"sink": one, "ok": False, "error": str(error)}, f"{one}: {error}")
        else:
            session.out.item({"sink": one, "ok": True}, f"{one}: taken")
    if failed:
        raise Failed(f"{failed} of {1 if name is not None else len(sinks)} sinks did not take it")


@alerts.command()
@common
@click.argument("target")
@click.option(
    "--for", "lasting", type=duration("--for"), required=True, metavar="DURATION", help="How long, as 1h."
)
@click.option("--rule", default=ANY, metavar="RULE", help=f"Only this one: {', '.join(RULES)}.")
@click.option("--reason", metavar="TEXT", help="Why; whoever wonders will read it.")
@click.pass_context
def silence(context: click.Context, target: str, lasting: timedelta, rule: str, reason: str | None) -> None:
    """Tell nobody of TARGET for a while: queue:NAME, worker:ID, resource:NAME, store or '*'.

    What begins meanwhile and still holds at its end is told then.

    \b
      duly alerts silence queue:mail --for 1h --reason INC-311
    """
    session = session_of(context)
    app = session.data()
    made = app.operate.silence(target, lasting=lasting, rule=rule, reason=reason or "")
    now = app.inspect.now()
    session.out.answer(
        plain(made), lambda: [f"{_silence_line(made, now)}. Undo: duly alerts unsilence {made.id}"]
    )


@alerts.command()
@common
@click.argument("id", type=click.IntRange(1))
@click.option("--reason", metavar="TEXT", help="Why.")
@click.pass_context
def unsilence(context: click.Context, id: int, reason: str | None) -> None:
    """End a silence before its time."""
    session = session_of(context)
    session.data().operate.unsilence(id, reason=reason or "")
    session.out.answer({"id": id, "ended": True}, lambda: [f"silence {id} is over"])


def _with_sinks(session: Session) -> App:
    """The App where one is named, since it may name sinks; else settings alone."""
    if not session.has_reference():
        return session.data()
    app = session.app()
    app.load()
    return app


def _matters(record: AlertRecord) -> bool:
    return record.state == "firing" or record.since is not None


def _row(record: AlertRecord, now: datetime) -> list[str]:
    if record.state == "firing":
        state, moment = "firing", record.changed_at
    elif record.since is not None:
        state, moment = "pending", record.since
    else:
        state, moment = "clear", record.changed_at
    return [state, record.rule, printable(record.target), relative(moment, now), _text(record)]


def _change(change: AlertChange, now: datetime) -> list[str]:
    return [change.state, change.rule, printable(change.target), relative(change.at, now), _text(change)]


def _text(of: AlertRecord | AlertChange) -> str:
    return printable(str(of.value.get("text", "")))


def _silence_line(silence: Silence, now: datetime) -> str:
    rule = "all rules" if silence.rule == ANY else silence.rule
    why = f" ({printable(silence.reason)})" if silence.reason else ""
    target, by = printable(silence.target), printable(silence.by)
    return f"silence {silence.id}: {rule} for {target}, over {relative(silence.until, now)}, by {by}{why}"


def _test_note(app: App) -> Notification:
    moment = datetime.now(UTC)
    return Notification(
        f"alert-test-{int(moment.timestamp())}",
        "test",
        "store",
        "firing",
        moment,
        f"this is a test by {app.operate.actor()}; nothing is wrong",
        store=without_password(app.settings.url),
        test=True,
    )
