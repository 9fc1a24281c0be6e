"""Opening a store by URL: the only place that names concrete stores. Connects nothing; that is the first call's."""

from importlib.util import find_spec

from duly.core.errors import UsageError
from duly.stores.probe import Probe
from duly.stores.protocol import Clock, Store
from duly.stores.urls import parse_url


def open_store(
    url: object,
    *,
    schema: str = "duly",
    clock: Clock | None = None,
    pool: int = 4,
    notify: bool = True,
    durable: bool = True,
) -> Store:
    """The store that a URL leads to.

    `schema` separates Apps on one database, `clock` replaces the database's clock in tests, `pool` bounds the
    connections of this process and `notify` lets producers ring (both PostgreSQL). Without `durable` a file is not
    synced, which is for tests. UsageError for a URL that is not understood or a missing driver.
    """
    address = parse_url(url)
    if address.kind == "memory":
        from duly.stores.memory.store import MemoryStore

        return MemoryStore(schema=schema, clock=clock, most=address.most)
    if address.path is not None:
        from duly.stores.sqlite.store import SQLiteStore

        return SQLiteStore(address.path, schema=schema, clock=clock, durable=durable)
    _require_driver()
    from duly.stores.postgres.store import PostgresStore

    return PostgresStore(address.url, schema=schema, clock=clock, pool=pool, notify=notify)


def clear_schema(url: object, schema: str, *, drop: bool) -> None:
    """Empty a schema that is for tests, or drop it; UsageError for a name that does not say so. PostgreSQL only."""
    from duly.stores.postgres import scratch

    address = parse_url(url)
    (scratch.drop if drop else scratch.empty)(address.url, schema)


def open_probe(url: object) -> Probe:
    """A scratch place beside the jobs that a URL leads to, for measuring; nothing is made before its `prepare`."""
    address = parse_url(url)
    if address.kind == "memory":
        raise UsageError(
            "memory:// has neither disk nor network to measure; give sqlite:///… or postgresql://…"
        )
    if address.path is not None:
        from duly.stores.sqlite.probe import SQLiteProbe

        return SQLiteProbe(address.path)
    _require_driver()
    from duly.stores.postgres.probe import PostgresProbe

    return PostgresProbe(address.url)


def _require_driver() -> None:
    if find_spec("psycopg") is None:
        raise UsageError("PostgreSQL needs a driver that is not installed; run: pip install 'duly[postgres]'")
