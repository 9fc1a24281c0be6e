"""What may go wrong at the store boundary: drivers' errors become exactly these, in one place per store."""

from duly.core.errors import DulyError


class Transient(DulyError):
    """The store did not answer, or refused for now (connection lost, restart, lock timeout, read-only node).

    Retried by the worker with backoff. `outcome_unknown` is True when the statement may have been committed all the
    same: look before repeating anything that is not idempotent, and make no new claim before one report round.
    """

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class Full(Transient):
    """No space is left for the write, and nothing of it was stored; reads go on, and small writes may."""


class DataFault(DulyError):
    """One row of a batch cannot be stored. The batch was rolled back; halve it until the bad row is alone."""


class ReadOnly(Transient):
    """The node accepts no writes (a standby after a failover, a read-only file): reconnect and look for the primary."""
