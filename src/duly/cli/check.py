"""`duly check`: everything that is wrong or odd, each with its fix, and every setting with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import click
from msgspec import Struct

from duly.app import App
from duly.client.settings import SettingRow
from duly.core.defaults import PURGE_NOTICE
from duly.core.durations import compact_duration
from duly.core.errors import DulyError, UsageError

from .errors import Failed
from .options import common
from .output import Column, Json, clock, counted, plain
from .session import Session, session_of

SETTINGS = (Column("SETTING"), Column("VALUE"), Column("FROM", wide=True))


class Finding(Struct, frozen=True):
    """One thing a person should know. Errors make the command fail."""

    level: Literal["error", "warning", "note"]
    text: str
    """What is so, and what to do about it."""


@click.command(short_help="Find what is wrong, and how to put it right.")
@common
@click.argument("module", required=False, metavar="[APP]")
@click.pass_context
def check(context: click.Context, module: str | None) -> None:
    """Look for what is wrong: declarations, settings, the store, jobs nobody can run, letters about to be deleted.

    Each finding says what to do. Then every setting with its value and where it comes from. Exit 1 if there is any
    error. Without an App only the settings and the store are looked at.

    \b
      duly check shop.background
    """
    session = session_of(context)
    findings: list[Finding] = []
    opened = _opened(session, module, findings)
    if opened is not None:
        findings += look(opened)
    rows = opened.settings.rows() if opened is not None else []
    errors = sum(finding.level == "error" for finding in findings)
    document: Json = {
        "ok": errors == 0,
        "findings": [plain(finding) for finding in findings],
        "settings": [_setting(row) for row in rows],
    }

    def lines() -> Iterator[str]:
        yield from _finding_lines(findings)
        if rows and not session.quiet:
            yield ""
            yield from session.out.table(SETTINGS, ([row.name, row.value, str(row.origin)] for row in rows))

    session.out.answer(document, lines, (plain(finding) for finding in findings))
    if errors:
        raise Failed(f"{counted(errors, 'error')} found")


def _opened(session: Session, module: str | None, findings: list[Finding]) -> App | None:
    """The App; a failure to import it is a finding, and the store is still looked at."""
    wants_code = module is not None or session.app_reference is not None
    try:
        if not wants_code:
            session.reference()
        return session.app(module)
    except UsageError as error:
        if wants_code:
            findings.append(Finding("error", str(error)))
    try:
        return session.data()
    except DulyError as error:
        findings.append(Finding("error", str(error)))
        return None


def look(app: App) -> list[Finding]:
    """Every finding about an App that could be imported."""
    findings = list(_settings(app))
    findings += _declarations(app)
    try:
        findings += _store(app)
    except DulyError as error:
        findings.append(Finding("error", str(error)))
    return findings


def _settings(app: App) -> Iterator[Finding]:
    settings = app.settings
    for variable in settings.hidden:
        name = variable.removeprefix("DULY_").lower()
        yield Finding(
            "warning",
            f"the code says {name}= and so hides {variable}; take it out of the code to let {variable} rule",
        )
    longest = max([settings.timeout, *(task.timeout for task in app.tasks.values())])
    if settings.grace < longest:
        yield Finding(
            "note",
            f"grace {compact_duration(settings.grace)} is shorter than the longest time to run "
            f"{compact_duration(longest)}: jobs that a stop cuts off run again, at no cost of an attempt",
        )


def _declarations(app: App) -> Iterator[Finding]:
    for task in app.tasks.values():
        try:
            # Resolving the annotations is what fails at the first enqueue.
            _ = task.arguments
        except DulyError as error:
            yield Finding("error", str(error))


def _store(app: App) -> Iterator[Finding]:
    call, store = app.client.call, app.store
    found, wanted = call(store.schema.version), store.schema.wanted()
    if found != wanted and not (found == 0 and not store.capabilities.shared_by_machines):
        fix = "run duly migrate" if found < wanted else "install the newer release of duly"
        yield Finding("error", f"the store has schema version {found} and this release needs {wanted}; {fix}")
        return
    if found == 0:
        yield Finding("note", "the database file is not made yet; the first enqueue or worker makes it")
        return
    for warning in call(store.inspection.warnings):
        yield Finding("warning", warning)
    for status in app.inspect.queues():
        if not status.workers and (status.counts.ready or status.counts.scheduled):
            yield Finding("warning", f"{status.counts.queue}: {status.health}")
    for task in call(store.upkeep.parked_tasks):
        yield Finding(
            "warning",
            f"jobs of the task {task!r} wait for a worker that knows it; start one, or cancel them: "
            f"duly cancel --task {task} --state blocked",
        )
    yield from _purges(app)


def _purges(app: App) -> Iterator[Finding]:
    keep_dead = {name: queue.keep_dead for name, queue in app.queues.items() if queue.keep_dead is not None}
    due = app.client.call(app.store.upkeep.announce_dead, keep_dead, app.settings.keep_dead, PURGE_NOTICE)
    owners: Mapping[str, str] = {}
    if due:
        owners = {status.counts.queue: status.owner or "" for status in app.inspect.queues()}
    for queue, count, moment in due:
        owner = f" of {owners[queue]}" if owners.get(queue) else ""
        yield Finding(
            "warning",
            f"{counted(count, 'dead letter')} of queue {queue}{owner} will be deleted from {clock(moment)} UTC; "
            f"look at them: duly dead groups --queue {queue}",
        )


def _finding_lines(findings: list[Finding]) -> Iterator[str]:
    colours = {"error": "red", "warning": "yellow", "note": "cyan"}
    for finding in findings:
        yield click.style(f"{finding.level}:", fg=colours[finding.level], bold=True) + f" {finding.text}"
    if not findings:
        yield click.style("ok:", fg="green", bold=True) + " nothing found"


def _setting(row: SettingRow) -> Json:
    return {"name": row.name, "value": row.value, "origin": row.origin.kind, "from": row.origin.name or None}
