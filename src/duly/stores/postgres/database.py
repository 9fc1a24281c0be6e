"""Calls on one PostgreSQL database: how we connect, run one statement as one transaction, and what its errors mean.

Knows no jobs. Every transaction of ours is READ COMMITTED: with the usual default a lone statement is one already, else
a function that depends on it refuses and the call is made again inside an explicit transaction.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus

from duly.core.errors import MigrationNeeded, UsageError
from duly.stores.faults import ReadOnly
from duly.stores.postgres import translation
from duly.stores.postgres.calls import Call
from duly.stores.postgres.direct import text_of
from duly.stores.postgres.patience import SILENCE, PatientConnection
from duly.stores.postgres.pool import Link, Pool
from duly.stores.postgres.statements import check_schema, migrations, quoted, statement
from duly.stores.protocol import Clock

T = TypeVar("T")
Row = tuple[Any, ...]
Parameters = Mapping[str, Any]

_TRIES: Final = 8
_PREPARE_AFTER: Final = 3
_SCHEME: Final = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9_]+)?://", re.IGNORECASE)
# A dead peer is noticed within half a minute, by the kernel, whatever the statement.
_CONNECTION: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
    "target_session_attrs": "read-write",
    "application_name": "duly",
}
_DIRECT: Final = frozenset(
    {
        "exchange_jobs",
        "enqueue_one_job",
        "enqueue_alike_jobs",
        "enqueue_jobs",
        "enqueue_rich_jobs",
        "enqueue_keyed_job",
        "enqueue_keyed_jobs",
        "keep_steps",
    }
)
"""Statements that come often enough to be spoken to libpq itself."""


class Database:
    """One database, seen through one schema of ours."""

    def __init__(self, url: str, schema: str, clock: Clock | None, pool: int) -> None:
        self.schema = check_schema(schema)
        self._clock = clock
        self._settings = _settings(url)
        self._explicit = False
        self.pooled = False
        """Whether a pooler stands between us and the server, as seen when connecting."""
        self.pool = Pool(self.connect, pool)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self._settings)

    @property
    def where(self) -> str:
        """Host, port and database, for messages; never the password."""
        hosts = str(self._settings.get("host") or "the local socket").split(",")
        ports = str(self._settings.get("port") or "").split(",")
        places = [
            f"{host}:{port}" if port else host
            for host, port in zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False)
        ]
        name = self._settings.get("dbname") or self._settings.get("user") or ""
        return f"{','.join(places)}/{name}"

    def now(self) -> datetime | None:
        """What statements get as p_now: None leaves it to the server's clock."""
        return self._clock() if self._clock else None

    def connect(self) -> PatientConnection:
        """A new connection of ours, in autocommit mode. StoreUnreachable with one line for a person."""
        try:
            connection = PatientConnection.connect(**self._settings, autocommit=True, prepare_threshold=None)
        except psycopg.OperationalError as error:
            if "read-only" in str(error) or "not read-only" in str(error):
                raise ReadOnly(f"no server of {self.where} takes writes: {error}") from error
            raise translation.unreachable(error, self.where) from error
        # As the driver's own pool marks its connections: they may end with the process, and in a forked child, where
        # closing one would end the parent's session, nobody is told to close them.
        vars(connection)["_pool"] = None
        try:
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            with connection.patience(SILENCE):
                told = connection.execute(
                    "select set_config('TimeZone', 'UTC', false), pg_backend_pid()"
                ).fetchone()
                if told is not None and told[1] == connection.info.backend_pid:
                    # A pooler names itself instead of the backend: behind it, our prepared statement may be another's.
                    connection.prepare_threshold = _PREPARE_AFTER
                else:
                    self.pooled = True
                self._check_positions(connection)
        except psycopg.Error as error:
            connection.close()
            raise translation.unreachable(error, self.where) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_positions(self, connection: psycopg.Connection[Any]) -> None:
        """Refuse to write where numbers could be given out twice, as after a failover that lost some."""
        identity = rows_of(connection, statement("read_identity", self.schema), {})
        if identity[0][-1] is None:
            return  # nothing of ours is here yet
        for name, highest in rows_of(connection, statement("check_positions", self.schema), {}):
            raise UsageError(behind(self.schema, name, highest))

    def call(self, name: str, parameters: Parameters | None = None) -> list[Row]:
        """Run queries/NAME.sql as one transaction and return its rows."""
        with self.pool.link() as link:
            return self.call_on(link, name, parameters)

    def call_together(self, calls: Callable[[], Iterable[Call[T]]]) -> list[T]:
        """Run several statements of `_DIRECT` in one transaction: all or nothing, also when the reader of one's rows
        raises. The next one is made while the server works on the one before; a repeat makes them all again."""
        with self.pool.link() as link:
            for left in reversed(range(_TRIES)):
                try:
                    with link.connection.patience(SILENCE), link.connection.transaction():
                        return self._in_turns(link, calls())
                except (psycopg.Error, UnicodeError) as error:
                    state = getattr(error, "sqlstate", None)
                    if left == 0 or link.broken or state not in translation.REPEATABLE:
                        raise self.fault(error, link) from error
        raise AssertionError("unreachable")

    def _in_turns(self, link: Link, calls: Iterable[Call[T]]) -> list[T]:
        answers: list[T] = []
        before: Call[T] | None = None
        try:
            for call in calls:
                if before is not None:
                    answers.append(before.read(link.direct.fetch(SILENCE)))
                link.direct.send(text_of(call.name, self.schema), call.parameters, SILENCE)
                before = call
            if before is not None:
                answers.append(before.read(link.direct.fetch(SILENCE)))
        finally:
            # What could not be made leaves the one before it unread.
            link.direct.settle(SILENCE)
        return answers

    def call_on(self, link: Link, name: str, parameters: Parameters | None = None) -> list[Row]:
        """As `call`, on a connection that the caller holds."""
        for left in reversed(range(_TRIES)):
            try:
                return self._run(link, name, parameters or {})
            except (psycopg.Error, UnicodeError) as error:
                state = getattr(error, "sqlstate", None)
                if state == translation.WRONG_ISOLATION and not self._explicit:
                    self._explicit = True
                elif left == 0 or link.broken or state not in translation.REPEATABLE:
                    raise self.fault(error, link) from error
        raise AssertionError("unreachable")

    def _run(self, link: Link, name: str, parameters: Parameters) -> list[Row]:
        if self._explicit:
            with link.connection.patience(SILENCE) as connection, connection.transaction():
                return self._rows(link, name, parameters)
        return self._rows(link, name, parameters)

    def _rows(self, link: Link, name: str, parameters: Parameters) -> list[Row]:
        if name in _DIRECT:
            link.direct.send(text_of(name, self.schema), parameters, SILENCE)
            return link.direct.fetch(SILENCE)
        with link.connection.patience(SILENCE) as connection:
            return rows_of(connection, statement(name, self.schema), parameters, prepare=None)

    def fault(self, error: psycopg.Error | UnicodeError, link: Link) -> Exception:
        """Our error for the driver's; drops a connection that leads to a read-only node."""
        if isinstance(error, psycopg.Error) and not link.broken and error.sqlstate in translation.NO_SCHEMA:
            return self._schema_fault(link, error)
        known = translation.translated(error, broken=link.broken, where=self.where)
        if isinstance(known, ReadOnly):
            link.connection.close()
        return known or error

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection inside a READ COMMITTED transaction that commits at the block's end."""
        with self.pool.link() as link:
            try:
                with link.connection.transaction():
                    yield link.connection
            except psycopg.Error as error:
                if link.broken:
                    raise self.fault(error, link) from error
                raise

    def found_version(self, connection: psycopg.Connection[Any]) -> int:
        """The schema's version as stored; 0 when nothing of ours is there."""
        there = connection.execute(
            "select to_regclass(%s)", (f"{quoted(self.schema)}.schema_version",)
        ).fetchone()
        if there is None or there[0] is None:
            return 0
        row = rows_of(connection, statement("read_version", self.schema), {})
        return int(row[0][0])

    def _schema_fault(self, link: Link, error: psycopg.Error) -> Exception:
        wanted = migrations()[-1].version
        try:
            found = self.found_version(link.connection)
        except psycopg.Error:
            found = -1
        if found == wanted:
            return error
        return migration_needed(self.schema, self.where, found, wanted)

    def close(self) -> None:
        self.pool.close()


def migration_needed(schema: str, where: str, found: int, wanted: int) -> MigrationNeeded:
    """What to do about a schema of another version; `found` is -1 when it could not be read."""
    if found == 0:
        text = f"schema {schema!r} is not in {where} yet; run: duly migrate"
    elif found > wanted:
        text = (
            f"schema {schema!r} in {where} has version {found}, newer than this release's {wanted}; "
            "deploy the release that matches (never run an older duly migrate)"
        )
    else:
        text = f"schema {schema!r} in {where} has version {found}, this release needs {wanted}; run: duly migrate"
    return MigrationNeeded(text, found=found, wanted=wanted)


def behind(schema: str, sequence: str, highest: int) -> str:
    """What to do about a sequence that stands below numbers already given out."""
    return (
        f"sequence {schema}.{sequence} stands below {highest}, which was given out already (a failover or restore lost "
        f"some): check what else was lost, then run: select setval('{schema}.{sequence}', {highest + 1_000_000})"
    )


def rows_of(
    connection: psycopg.Connection[Any], text: bytes, parameters: Parameters, *, prepare: bool | None = False
) -> list[Row]:
    """Run one statement with a cursor of our own, whatever factories the connection has.

    `prepare=None` leaves it to the connection whether a statement that comes often is prepared.
    """
    with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute(text, parameters, prepare=prepare, binary=True)
        # Not by cursor.description, which describes every column at some cost.
        found = cursor.pgresult is not None and cursor.pgresult.status == ExecStatus.TUPLES_OK
        return cursor.fetchall() if found else []


def _settings(url: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(_SCHEME.sub("postgresql://", url))
    except psycopg.ProgrammingError as error:
        raise UsageError(f"this PostgreSQL URL cannot be read: {str(error).strip()}") from None
    return {
        **_CONNECTION,
        **{key: value for key, value in given.items() if value is not None},
        # `direct` encodes by itself.
        "client_encoding": "UTF8",
    }
