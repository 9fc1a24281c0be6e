"""`duly check`: everything that is wrong or odd, each with its fix, and every setting with its origin."""

from __future__ import annotations

from collections.abc import Iterator

import click

from duly.alerts.watch import AlertWatch, sinks_of
from duly.app import App
from duly.client.check import Check, Finding
from duly.client.settings import SettingRow
from duly.core.errors import DulyError, UsageError

from .errors import Failed
from .options import common
from .output import Column, Json, counted, plain, printable
from .session import Session, session_of

SETTINGS = (Column("SETTING"), Column("VALUE"), Column("FROM", wide=True))


@click.command(short_help="Find what is wrong, and how to put it right.")
@common
@click.argument("module", required=False, metavar="[APP]")
@click.option(
    "--alerts", is_flag=True, help="Look at the alert rules now instead, and tell the sinks: for cron."
)
@click.pass_context
def check(context: click.Context, module: str | None, alerts: bool) -> None:
    """Look for what is wrong: declarations, settings, the store, jobs nobody can run, letters about to be deleted.

    Each finding says what to do. Then every setting with its value and where it comes from. Exit 1 if there is any
    error. Without an App only the settings and the store are looked at.

    With --alerts it looks at the alert rules once, as workers and servers do every fifteen seconds, and sends what is
    to be sent; a rule whose condition has to last fires in a later run. Exit 1 when a sink does not take something.

    \b
      duly check shop.background
      * * * * *  duly check --alerts > /dev/null
    """
    session = session_of(context)
    if alerts:
        _watch(session, module)
        return
    found = _look(session, module)
    errors = sum(finding.level == "error" for finding in found.findings)
    document: Json = {
        "ok": found.ok,
        "findings": [plain(finding) for finding in found.findings],
        "settings": [_setting(row) for row in found.settings],
    }

    def lines() -> Iterator[str]:
        yield from _finding_lines(found.findings)
        if found.settings and not session.quiet:
            yield ""
            rows = ([row.name, row.value, str(row.origin)] for row in found.settings)
            yield from session.out.table(SETTINGS, rows)

    session.out.answer(document, lines, (plain(finding) for finding in found.findings))
    if errors:
        raise Failed(f"{counted(errors, 'error')} found")


def _watch(session: Session, module: str | None) -> None:
    """One round over the alert rules."""
    named = module is not None or session.has_reference()
    app = session.app(module) if named else session.data()
    if named:
        app.load()
    done = app.client.call(lambda: AlertWatch(app.client).round(always=True))
    verdict, sent = done.verdict, done.sent
    holds = () if verdict is None else verdict.holds

    def lines() -> Iterator[str]:
        for finding in holds:
            yield printable(f"{finding.rule} {finding.target}: {finding.text}")
        if not holds and not session.quiet:
            yield "nothing holds of what alerts look at"
        if not session.quiet:
            yield f"{counted(sent.sent, 'notification')} sent"

    session.out.answer(plain(done), lines, (plain(finding) for finding in holds))
    if sent.failed:
        raise Failed(f"not taken: {'; '.join(sent.failed)}")


def _look(session: Session, module: str | None) -> Check:
    """What is found; code that does not import is a finding, and settings and store are looked at all the same."""
    problem: UsageError | None = None
    try:
        if module is not None or session.has_reference():
            return _with_sinks(session.app(module))
    except UsageError as error:
        problem = error
    try:
        found = _with_sinks(session.store_only())
    except DulyError as error:
        found = Check((Finding("error", str(error)),))
    # Without code there is nothing to say about declarations.
    findings = tuple(
        finding for finding in found.findings if not finding.text.startswith("no task is declared")
    )
    if problem is not None:
        findings = (Finding("error", str(problem)), *findings)
    return Check(findings, found.settings)


def _with_sinks(app: App) -> Check:
    """The App's check, and whether its alerts can go where they should."""
    found = app.check()
    try:
        sinks_of(app.client)
    except UsageError as error:
        # A setting that cannot be read at all is found already.
        if str(error) not in {finding.text for finding in found.findings}:
            return Check((Finding("error", f"alerts: {error}"), *found.findings), found.settings)
    return found


def _finding_lines(findings: tuple[Finding, ...]) -> Iterator[str]:
    colours = {"error": "red", "warning": "yellow", "note": "cyan"}
    for finding in findings:
        yield click.style(f"{finding.level}:", fg=colours[finding.level], bold=True) + f" {finding.text}"
    if not findings:
        yield click.style("ok:", fg="green", bold=True) + " nothing found"


def _setting(row: SettingRow) -> Json:
    return {"name": row.name, "value": row.value, "origin": row.origin.kind, "from": row.origin.name or None}
