"""The probe on PostgreSQL: a schema of its own in the same database, dropped at the end.

Touches no other schema. Everything goes over one connection, as one caller's would.
"""

from typing import Any

import psycopg
from psycopg import sql

from duly.core.errors import UsageError
from duly.stores.postgres import translation
from duly.stores.postgres.database import Database, rows_of
from duly.stores.postgres.statements import statement
from duly.stores.probe import ROW, ROWS, SCRATCH, is_left_behind, new_name


class PostgresProbe:
    """See `duly.stores.probe.Probe`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schema = new_name()
        self._database = Database(url, self.schema, None, 1)
        self._connection: psycopg.Connection[Any] | None = None

    def prepare(self) -> None:
        connection = self._connected()
        try:
            for (name,) in rows_of(connection, statement("list_scratch", self.schema), {"begin": SCRATCH}):
                if is_left_behind(name):
                    _drop(connection, name)
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(self.schema)))
            rows_of(connection, statement("create_probe", self.schema), {})
        except psycopg.errors.InsufficientPrivilege as error:
            raise UsageError(
                f"the bench needs a schema of its own in {self._database.where}, and this role may not make one "
                f"({str(error).strip()}); grant it CREATE on the database, or give --url with a role that has it"
            ) from error
        except psycopg.Error as error:
            raise self._fault(error) from error

    def round_trip(self) -> None:
        self._run("answer_probe", {})

    def commit(self) -> None:
        self._run("add_probe_row", {"payload": ROW})

    def unsynced(self) -> None:
        self._run("add_probe_unsynced", {"payload": ROW})

    def bulk(self) -> int:
        self._run("add_probe_rows", {"payloads": [ROW] * ROWS})
        return ROWS

    def remove(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        # What broke the run may have broken the connection, too.
        with connection if not connection.closed else self._database.connect() as mine:
            try:
                _drop(mine, self.schema)
            except psycopg.Error as error:
                raise self._fault(error) from error

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection

    def _run(self, name: str, parameters: dict[str, Any]) -> None:
        try:
            rows_of(self._connected(), statement(name, self.schema), parameters, prepare=None)
        except psycopg.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: psycopg.Error) -> Exception:
        broken = self._connection is not None and self._connection.broken
        return translation.translated(error, broken=broken, where=self._database.where) or error


def _drop(connection: psycopg.Connection[Any], schema: str) -> None:
    if not schema.startswith(SCRATCH):
        raise ValueError(f"schema {schema!r} is no scratch place")
    connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
