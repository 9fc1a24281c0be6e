"""What bounds jobs, for those who look at it or change it: the ControlStore on SQLite."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from duly.core.control import (
    BreakerState,
    Calls,
    KeyRecord,
    LimitRecord,
    Override,
    OverrideKind,
    Permit,
    Refusal,
    TenantPlan,
)
from duly.core.job import Token
from duly.stores.sqlite.database import Database


class SQLiteControl:
    """See duly.stores.protocol.ControlStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, names: Sequence[str], holder: Token | None, ttl: timedelta | None) -> Permit | Refusal:
        raise NotImplementedError

    def release(self, permit: Permit) -> bool:
        raise NotImplementedError

    def observe(self, calls: Sequence[Calls]) -> list[LimitRecord]:
        raise NotImplementedError

    def hold(self, name: str, wait: timedelta, by: str, reason: str) -> datetime:
        raise NotImplementedError

    def set_breaker(self, name: str, state: BreakerState | None, by: str, reason: str) -> bool:
        raise NotImplementedError

    def limits(self, names: Sequence[str] | None = None, most: int = 1000) -> list[LimitRecord]:
        raise NotImplementedError

    def override(
        self,
        target: str,
        kind: OverrideKind,
        value: Mapping[str, object],
        lasting: timedelta | None,
        by: str,
        reason: str,
    ) -> Override:
        raise NotImplementedError

    def lift(self, id: int, by: str, reason: str) -> bool:
        raise NotImplementedError

    def overrides(self) -> list[Override]:
        raise NotImplementedError

    def set_plan(self, plan: TenantPlan, by: str, reason: str) -> None:
        raise NotImplementedError

    def plans(self) -> list[TenantPlan]:
        raise NotImplementedError

    def keys(self, queue: str | None = None, most: int = 100) -> list[KeyRecord]:
        raise NotImplementedError

    def resume_key(self, queue: str, tenant: str, key: str, by: str, reason: str) -> bool:
        raise NotImplementedError
