"""Databases with duly's schema in them, lent to one test after another: to make one costs ten times what emptying does.

Whoever gets one finds it as it was made: rows, sequences and sessions of the test before are gone. A database whose
catalogue a test has changed, or whose server has not been there, is lent to nobody again.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakKeyDictionary

import psycopg

from duly.stores.open import open_store
from tests.services import PostgresServer

# All that a test may leave in the catalogue. Tables are written to and truncated, which changes neither their ids nor
# the rows of their columns.
_CATALOGUE: Final = b"""
select md5(string_agg(part, ';' order by part)) from (
    select concat_ws(' ', 'n', oid, nspname, nspowner, nspacl) from pg_namespace where nspname !~ '^pg_(toast_)?temp'
    union all
    select concat_ws(' ', 'c', c.oid, c.relname, c.relkind, c.relowner, c.relpersistence, c.reloptions, c.relacl)
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.oid >= 16384 and n.nspname !~ '^pg_(toast_)?temp'
    union all
    select concat_ws(' ', 'a', a.attrelid,
                     sum(hashtext(concat_ws(' ', a.attname, a.atttypid, a.attnotnull, a.attisdropped, a.attacl))))
      from pg_attribute a where a.attrelid >= 16384 and a.attnum > 0 group by a.attrelid
    union all
    select concat_ws(' ', 'p', oid, xmin) from pg_proc where oid >= 16384
    union all
    select concat_ws(' ', 'd', oid, xmin) from pg_attrdef
    union all
    select concat_ws(' ', 'k', oid, conname, convalidated) from pg_constraint where oid >= 16384
    union all
    select concat_ws(' ', 't', oid, tgenabled) from pg_trigger
    union all
    select concat_ws(' ', 'y', oid) from pg_type where oid >= 16384 and typnamespace <> pg_my_temp_schema()
    union all
    select concat_ws(' ', 'x', oid) from pg_extension union all select concat_ws(' ', 'e', oid) from pg_event_trigger
    union all
    select concat_ws(' ', 'u', oid) from pg_publication union all select concat_ws(' ', 'f', oid) from pg_default_acl
    union all
    select concat_ws(' ', 's', setdatabase, setrole, setconfig) from pg_db_role_setting
    union all
    select concat_ws(' ', 'b', datdba, datallowconn, datconnlimit, datacl) from pg_database
     where datname = current_database()
    union all
    select concat_ws(' ', 'v', xmin, version) from duly.schema_version
) found (part)
"""
# Whoever is still connected holds locks that nothing here must wait for.
_CUT: Final = b"""
select pg_terminate_backend(pid, 10000) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""
_PREPARED: Final = b"select count(*) from pg_prepared_xacts where database = current_database()"
_EMPTY: Final = b"""
do $$
declare
    dirty text := (
        select string_agg(c.oid::regclass::text, ', ')
          from pg_class c
         where c.relnamespace = 'duly'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_version'
           and pg_relation_size(c.oid) > 0);
begin
    set local lock_timeout = '20s';
    if dirty is not null then
        execute 'truncate ' || dirty;
        delete from pg_statistic where starelid >= 16384;
    end if;
    perform setval(s.seqrelid, s.seqstart, false) from pg_sequence s
      where pg_sequence_last_value(s.seqrelid) is not null;
    perform pg_stat_reset();
end
$$
"""


class Databases:
    """Those of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._spare: list[str] = []
        self._catalogues: dict[str, str] = {}

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of a database that nobody else uses meanwhile."""
        name = self._spare.pop() if self._spare else self._made()
        try:
            yield self._server.url(name)
        finally:
            kept = False
            with suppress(psycopg.Error):
                kept = self._emptied(name)
            if kept:
                self._spare.append(name)
            else:
                self._server.drop_database(name)

    def _made(self) -> str:
        name = self._server.create_database(self._server.template("duly", migrate))
        with self._connected(name) as connection:
            self._catalogues[name] = _catalogue(connection)
        return name

    def _emptied(self, name: str) -> bool:
        with self._connected(name) as connection:
            connection.execute(_CUT)
            found = connection.execute(_PREPARED).fetchone()
            if found != (0,) or _catalogue(connection) != self._catalogues[name]:
                return False
            connection.execute(_EMPTY)
        return True

    def _connected(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self._server.url(name, host="socket"), autocommit=True, connect_timeout=10)


def _catalogue(connection: psycopg.Connection) -> str:
    found = connection.execute(_CATALOGUE).fetchone()
    assert found is not None
    return str(found[0])


def migrate(url: str) -> None:
    store = open_store(url)
    store.schema.migrate()
    store.close()


_DATABASES: Final[WeakKeyDictionary[PostgresServer, Databases]] = WeakKeyDictionary()


def databases_of(server: PostgresServer) -> Databases:
    """The same for everyone who has this server."""
    return _DATABASES.setdefault(server, Databases(server))
