"""What the store itself saw of leases and holds: triggers write down every claim, every end of one, and every hold.

Reads them as one line of events, in the order in which they took effect. Knows no handler and no ledger.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

_SQLITE_TABLE: Final = """
CREATE TABLE drill_leases (
    number integer PRIMARY KEY AUTOINCREMENT, act integer NOT NULL DEFAULT 0, what text NOT NULL,
    subject integer NOT NULL, id integer NOT NULL, incarnation integer NOT NULL, at real,
    clock real NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400))
"""
_SQLITE_TRIGGER: Final = """
CREATE TRIGGER drill_{what} AFTER {moment} BEGIN
    INSERT INTO drill_leases (what, subject, id, incarnation, at) VALUES ('{what}', {values});
END
"""
_SQLITE_MOMENTS: Final = {
    "claim": ("INSERT ON duly_claimed", "new.run, new.id, new.incarnation, new.claimed_at / 1000000.0"),
    "end": ("DELETE ON duly_claimed", "old.run, old.id, old.incarnation, NULL"),
    "hold": ("INSERT ON duly_hold", "new.key, new.id, new.incarnation, new.until / 1000000.0"),
    "free": ("DELETE ON duly_hold", "old.key, old.id, old.incarnation, NULL"),
    "open": (
        "UPDATE ON duly_limit_state WHEN new.breaker_state = 'open' AND old.breaker_state IS NOT 'open'",
        "new.key, 0, 0, NULL",
    ),
}
_POSTGRES_TABLE: Final = """
CREATE TABLE drill_leases (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    act bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, what text NOT NULL,
    subject bigint NOT NULL, id bigint NOT NULL, incarnation bigint NOT NULL, at float8,
    clock float8 NOT NULL DEFAULT extract(epoch FROM clock_timestamp()))
"""
_POSTGRES_FUNCTION: Final = """
CREATE FUNCTION drill_{what}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.drill_leases (what, subject, id, incarnation, at) VALUES ('{what}', {values});
    RETURN NULL;
END
$$
"""
_POSTGRES_TRIGGER: Final = (
    "CREATE TRIGGER drill_{what} AFTER {moment} FOR EACH ROW {when} EXECUTE FUNCTION drill_{what}()"
)
_POSTGRES_MOMENTS: Final = {
    "claim": (
        "INSERT ON duly.claimed",
        "new.run, new.id, new.incarnation, extract(epoch FROM new.claimed_at)",
        "",
    ),
    "end": ("DELETE ON duly.claimed", "old.run, old.id, old.incarnation, NULL", ""),
    "hold": ("INSERT ON duly.hold", "new.key, new.id, new.incarnation, extract(epoch FROM new.until)", ""),
    "free": ("DELETE ON duly.hold", "old.key, old.id, old.incarnation, NULL", ""),
    "open": (
        "UPDATE ON duly.limit_state",
        "new.key, 0, 0, NULL",
        "WHEN (new.breaker_state = 'open' AND old.breaker_state IS DISTINCT FROM 'open')",
    ),
}
_EVERYWHERE: Final = ("keyed", "key_head", "hold", "blocked")
# One row of each resource with a breaker and of each bounded queue is kept.
_LIMITS: Final = "limit_state AS found WHERE name NOT LIKE 'resource:%' AND name NOT LIKE 'queue:%'"
_ON_POSTGRES: Final = ("released", "batch_done")


class Event(NamedTuple):
    """One thing that happened to a lease or a hold."""

    what: str
    """claim, end, hold, free, or open for a breaker."""
    subject: int
    """The run of a claim, the key of a hold."""
    id: int
    incarnation: int
    at: float | None
    """The store's time of a claim, in seconds; of a hold the time when it runs out by itself."""
    clock: float


def watch(connection: Any, *, postgres: bool) -> None:
    """Make the triggers; the caller commits."""
    connection.execute(_POSTGRES_TABLE if postgres else _SQLITE_TABLE)
    if not postgres:
        for what, (moment, values) in _SQLITE_MOMENTS.items():
            connection.execute(_SQLITE_TRIGGER.format(what=what, moment=moment, values=values))
        return
    for what, (moment, values, when) in _POSTGRES_MOMENTS.items():
        connection.execute(_POSTGRES_FUNCTION.format(what=what, values=values))
        connection.execute(_POSTGRES_TRIGGER.format(what=what, moment=moment, when=when))


def events(connection: Any) -> list[Event]:
    """Everything that took effect, in order: within one transaction what ended comes before what began.

    A statement that does both lets its triggers fire in any order.
    """
    rows = connection.execute(
        "SELECT number, act, what, subject, id, incarnation, at, clock FROM drill_leases ORDER BY number"
    ).fetchall()
    last: dict[int, int] = {act: number for number, act, *_ in rows if act}
    begins = {"claim", "hold"}
    ordered = sorted(
        rows, key=lambda row: (last.get(row[1], row[0]) if row[2] in begins else row[0], row[2] in begins)
    )
    return [Event(*row[2:]) for row in ordered]


def left(connection: Any, *, postgres: bool) -> list[str]:
    """What stands in tables that must be empty once nothing is live: their names with the first rows."""
    prefix, columns = ("duly.", "found::text") if postgres else ("duly_", "*")
    tables = [f"{name} AS found" for name in _EVERYWHERE + (_ON_POSTGRES if postgres else ())]
    left = []
    for table in (*tables, _LIMITS):
        rows = connection.execute(f"SELECT {columns} FROM {prefix}{table} LIMIT 3").fetchall()
        if rows:
            left.append(f"{table.partition(' ')[0]}: {[*map(tuple, rows)]}")
    return left


def most_at_once(found: Iterable[Event], begins: str, ends: str) -> dict[int, int]:
    """Of each subject the most that stood at one time. What has run out counts no more."""
    standing: dict[int, dict[int, Event]] = defaultdict(dict)
    most: dict[int, int] = defaultdict(int)
    for event in found:
        if event.what == begins:
            there = standing[event.subject]
            there[event.id] = event
            over = [id for id, one in there.items() if begins == "hold" and one.at and one.at <= event.clock]
            for id in over:
                del there[id]
            most[event.subject] = max(most[event.subject], len(there))
        elif event.what == ends:
            standing[event.subject].pop(event.id, None)
    return most
