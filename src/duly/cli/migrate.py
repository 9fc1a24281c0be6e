"""`duly migrate`: the tables, and what is declared in them."""

from __future__ import annotations

import click

from duly.app import App
from duly.client.settings import without_password
from duly.client.signing import make_key
from duly.core.errors import MigrationNeeded, UsageError
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.worker.registration import declare

from .errors import Failed
from .options import common
from .output import Json, counted
from .session import session_of


@click.command()
@common
@click.argument("module", required=False, metavar="[APP]")
@click.option(
    "--sql", is_flag=True, help="Print the SQL that makes everything from nothing; touch no database."
)
@click.option(
    "--roles",
    "with_roles",
    is_flag=True,
    help="Then make database roles (duly_producer and so on), each with no more rights than it needs. PostgreSQL only.",
)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when something is missing.")
@click.pass_context
def migrate(context: click.Context, module: str | None, sql: bool, with_roles: bool, check: bool) -> None:
    """Make or renew duly's tables. Run it before new code starts; safe from many machines at once.

    With an APP it also writes down what the App declares: queues and tasks, for `enqueue` by name and for owners in
    `status`, and schedules.
    SQLite files are made at first use; PostgreSQL needs this once for each release that says so.
    With --roles it takes all rights on the schema away from everybody but its owner, and gives them to five roles.

    \b
      duly migrate --url postgresql://db/shop
      duly migrate shop.background
      duly migrate --sql > duly.sql
      duly migrate --roles --url postgresql://owner@db/shop
    """
    session = session_of(context)
    opened = session.app(module) if module is not None else session.data()
    schema, call = opened.store.schema, opened.client.call
    if with_roles and not opened.store.capabilities.shared_by_machines:
        raise UsageError(
            f"{_where(opened)} has no roles: whoever may write the file may do everything; guard it by the rights of "
            "its folder, and give others the HTTP API with tokens"
        )
    if sql:
        click.echo(schema.sql() + (schema.roles_sql() if with_roles else ""))
        return
    found, wanted = call(schema.version), schema.wanted()
    if check:
        if found != wanted:
            raise Failed(f"{_where(opened)} has schema version {found} and needs {wanted}; run duly migrate")
        document: Json = {"version": found, "wanted": wanted, "applied": []}
        session.out.answer(document, lambda: [f"{_where(opened)}: schema version {found} is current"])
        return
    if found > wanted:
        raise MigrationNeeded(
            f"{_where(opened)} has schema version {found}, and this release of duly knows {wanted}; "
            "install the newer release",
            found=found,
            wanted=wanted,
        )
    applied = call(schema.migrate)
    if applied:
        call(make_key, opened.store, opened.settings)
    roles = call(schema.grant_roles) if with_roles else ()
    declared = _declare(opened) if module is not None else []
    document = {"version": wanted, "before": found, "applied": list(applied), "roles": [*roles]}

    def lines() -> list[str]:
        if applied:
            text = [f"{_where(opened)}: schema version {found} -> {wanted}"]
            text += [f"  applied {name}" for name in applied]
        else:
            text = [f"{_where(opened)}: schema version {wanted} is current"]
        if roles:
            text.append(f"roles {', '.join(roles)}: grant one to each login, as in: grant {roles[0]} to shop")
        return [*text, *declared]

    session.out.answer(document, lines)


def _declare(app: App) -> list[str]:
    hub, said = Hub(), list[Happening]()
    hub.listen(said.append)
    if not app.client.call(declare, app, hub):
        return [
            "a later release of this App has declared its queues, tasks and schedules; they stay as they are"
        ]
    parts = (
        counted(len(app.queues), "queue"),
        counted(len(app.tasks), "task"),
        counted(len(app.client.registry.schedules), "schedule"),
    )
    return [
        *(f"warning: {event.sentence()}" for event in said),
        f"declared {parts[0]}, {parts[1]} and {parts[2]}",
    ]


def _where(app: App) -> str:
    return without_password(app.settings.url)
