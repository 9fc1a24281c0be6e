"""ControlStore on PostgreSQL: limits, overrides, tenants' plans and ordering keys, read and changed by hand.

What jobs take of them is decided in the claims; this is what people and plain code do.
"""

from duly.stores.postgres.database import Database


class PostgresControl:
    """See `ControlStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
