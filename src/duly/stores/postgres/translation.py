"""The driver's errors as ours: the one place that knows SQLSTATEs.

Knows neither pool nor statements. What it cannot name stays as it is.
"""

from typing import Final

import psycopg

from duly.core.errors import DulyError, StoreUnreachable, UsageError
from duly.stores import faults

UNPREPARED: Final = "26000"
"""A prepared statement is gone: the driver drops those of a session, ours with its own, after a rollback."""
PREPARED_BEFORE: Final = "42P05"
"""The session knows the name already: an interrupt came between its preparation and our note of it."""
# Nothing was done and nothing is wrong with the statement: the same call may be made again at once.
REPEATABLE: Final = frozenset({"40001", "40P01", UNPREPARED, PREPARED_BEFORE})
WRONG_ISOLATION: Final = "DY001"
READ_ONLY: Final = "25006"
_DISK_FULL: Final = "53100"
NO_SCHEMA: Final = frozenset({"3F000", "42P01", "42883", "42704", "42703"})
_NO_RIGHT: Final = frozenset({"42501"})
_FOR_NOW: Final = (
    "08", "53", "57", "58", "55P03", "40", "25P02", "25P03", "25P04", "XX",
)  # fmt: skip
_BAD_DATA: Final = ("22", "23", "54")


class Unreachable(faults.Transient, StoreUnreachable):
    """The server does not answer: for a worker a reason to try again, for a person one line that says what to do."""


def unreachable(error: BaseException, where: str) -> Unreachable:
    """No connection could be made."""
    return Unreachable(
        f"PostgreSQL at {where} cannot be reached: {_reason(str(error))}. "
        "Check that the server runs and that DULY_URL is right"
    )


def _reason(text: str) -> str:
    """The last reason among those of several hosts and addresses, without the driver's hints."""
    reasons = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().endswith("?")]
    last = reasons[-1] if reasons else text.strip()
    return last.rpartition("failed: ")[2].removeprefix("connection is bad: ").rstrip(".")


def translated(error: psycopg.Error | UnicodeError, *, broken: bool, where: str) -> DulyError | None:
    """Our error for the driver's; None when it says nothing that a caller of ours could act on."""
    if isinstance(error, UnicodeError):
        return faults.DataFault(f"this text cannot be stored: {error}")
    state = error.sqlstate or ""
    if broken:
        # The statement may have been committed before the reply was lost.
        return faults.Transient(
            f"the connection to PostgreSQL at {where} was lost: {_first(error)}", outcome_unknown=True
        )
    if state == READ_ONLY:
        return faults.ReadOnly(f"PostgreSQL at {where} takes no writes: {_first(error)}")
    if state in _NO_RIGHT:
        return UsageError(
            f"the database user may not do this: {_first(error)}. "
            "Run as its owner: duly migrate, or GRANT USAGE on the schema and EXECUTE on its functions"
        )
    if state.startswith(_BAD_DATA) or (not state and isinstance(error, psycopg.DataError)):
        return faults.DataFault(f"this cannot be stored: {_first(error)}")
    if state == _DISK_FULL:
        return faults.Full(
            f"the disk of PostgreSQL at {where} is full: {_first(error)}; nothing of this call was stored. "
            "Free some space, then try again"
        )
    if state.startswith(_FOR_NOW) or (not state and isinstance(error, psycopg.OperationalError)):
        return faults.Transient(f"PostgreSQL at {where} refused for now: {_first(error)}")
    return None


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
