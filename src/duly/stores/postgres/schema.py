"""SchemaStore on PostgreSQL: numbered forward-only migrations, and the declared names.

Safe from many processes at once: one advisory lock, all that is missing in one transaction, no long wait for any lock.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import psycopg

from duly.core.errors import StoreUnreachable, UsageError
from duly.core.registration import Registration
from duly.stores.postgres import roles, specs, translation
from duly.stores.postgres.columns import seconds
from duly.stores.postgres.database import Database, migration_needed, rows_of
from duly.stores.postgres.pool import Link
from duly.stores.postgres.statements import TOKEN, Migration, migrations, quoted, statement

_PATIENCE: Final = 60.0
"""Seconds to try for the locks that a migration needs, one second at a time."""
# A lock that somebody holds, and a deadlock with those who wait for ours.
_FOR_NOW: Final = frozenset({"55P03", "40P01"})


class PostgresSchema:
    """See `SchemaStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        with self._database.pool.link() as link:
            try:
                return self._database.found_version(link.connection)
            except psycopg.Error as error:
                raise self._database.fault(error, link) from error

    def wanted(self) -> int:
        return migrations()[-1].version

    def migrate(self) -> list[str]:
        until = time.monotonic() + _PATIENCE
        pause = threading.Event()
        with self._database.pool.link() as link:
            while True:
                try:
                    return self._migrate_on(link)
                except psycopg.Error as error:
                    if error.sqlstate in translation.NO_SCHEMA:
                        raise  # a fault of the migration itself
                    if error.sqlstate not in _FOR_NOW or link.broken:
                        raise self._database.fault(error, link) from error
                    if time.monotonic() > until:
                        raise StoreUnreachable(
                            f"schema {self._database.schema!r} is locked by another session for {_PATIENCE:g} s; "
                            "end long transactions on its tables and run duly migrate again"
                        ) from error
                # Whoever queues behind our waiting lock must get through in between.
                pause.wait(0.2)

    def sql(self) -> str:
        name = quoted(self._database.schema)
        parts = [
            f"create schema if not exists {name};",
            statement("create_schema_version", self._database.schema).decode() + ";",
        ]
        for migration in migrations():
            parts.append(f"-- migration {migration.version}: {migration.name}")
            parts.append(migration.text.replace(TOKEN, name))
            parts.append(_recorded(migration, self._database.schema))
        return "\n\n".join(parts) + "\n"

    def grant_roles(self) -> tuple[str, ...]:
        schema = self._database.schema
        with self._database.pool.link() as link:
            try:
                with link.connection.transaction():
                    functions = self._run(link.connection, "list_functions")
                    for text in roles.statements(
                        schema, [(name, signature) for name, signature in functions]
                    ):
                        link.connection.execute(text.encode())
            except psycopg.Error as error:
                raise self._database.fault(error, link) from error
        return roles.ROLES

    def roles_sql(self) -> str:
        return ";\n".join(roles.statements(self._database.schema, roles.signatures())) + ";\n"

    def declare(self, registration: Registration) -> bool:
        queues, tasks, schedules = registration.queues, registration.tasks, registration.schedules
        parameters = {
            "origin": registration.origin,
            "release": registration.release,
            "queues": [queue.name for queue in queues],
            "owners": [queue.owner for queue in queues],
            "keep": [seconds(queue.keep) for queue in queues],
            "keep_dead": [seconds(queue.keep_dead) for queue in queues],
            "tasks": [task.name for task in tasks],
            "task_queues": [task.queue for task in tasks],
            "priorities": [task.priority for task in tasks],
            "expires": [seconds(task.expires) for task in tasks],
            "schedules": [schedule.name for schedule, _ in schedules],
            "definitions": specs.definitions(schedule for schedule, _ in schedules),
            "first": [first for _, first in schedules],
            "bounds": specs.bounds(queues),
            "limits": specs.limits(registration.limits),
            "task_limits": specs.task_limits(registration.task_limits),
            "now": self._database.now(),
        }
        return bool(self._database.call("declare_release", parameters)[0][0])

    def declared(self) -> tuple[dict[str, str], dict[str, str]]:
        rows = self._database.call("read_declared")
        return (
            {name: value for kind, name, value in rows if kind == "queue"},
            {name: value for kind, name, value in rows if kind == "task"},
        )

    def _migrate_on(self, link: Link) -> list[str]:
        connection = link.connection
        with connection.transaction():
            connection.execute("set local lock_timeout to '1s'")
            self._run(connection, "lock_migrations")
            if not rows_of(
                connection,
                b"select 1 from pg_namespace where nspname = %(name)s",
                {"name": self._database.schema},
            ):
                connection.execute(f"create schema {quoted(self._database.schema)}".encode())
            self._run(connection, "create_schema_version")
            applied = {row[0]: row[1] for row in self._run(connection, "read_migrations")}
            self._check(applied)
            missing = [migration for migration in migrations() if migration.version not in applied]
            for migration in missing:
                connection.execute(migration.text.replace(TOKEN, quoted(self._database.schema)).encode())
                self._record(connection, migration)
        return [f"{migration.version:04d}_{migration.name}" for migration in missing]

    def _check(self, applied: Mapping[int, str]) -> None:
        if applied and max(applied) > self.wanted():
            raise migration_needed(self._database.schema, self._database.where, max(applied), self.wanted())
        for migration in migrations():
            if applied.get(migration.version, migration.checksum) != migration.checksum:
                raise UsageError(
                    f"migration {migration.version} of schema {self._database.schema!r} was applied from another text "
                    "than this release's; install the release that made the schema, or use another schema"
                )

    def _record(self, connection: psycopg.Connection[Any], migration: Migration) -> None:
        parameters = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
        rows_of(connection, statement("record_migration", self._database.schema), parameters)

    def _run(self, connection: psycopg.Connection[Any], name: str) -> list[tuple[Any, ...]]:
        return rows_of(connection, statement(name, self._database.schema), {"schema": self._database.schema})


def _recorded(migration: Migration, schema: str) -> str:
    """The text that notes a migration as applied, its values written out."""
    text = statement("record_migration", schema).decode()
    values = {
        "version": str(migration.version),
        "name": f"'{migration.name}'",
        "checksum": f"'{migration.checksum}'",
    }
    for name, value in values.items():
        text = text.replace(f"%({name})s", value)
    return text.rstrip() + ";"
