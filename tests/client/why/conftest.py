"""A store whose clock stands still, on both stores, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from duly import App
from duly.core.control import LimitPolicy, TaskLimit
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from tests.client.conftest import Hands


class Noon:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2030, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def noon() -> Noon:
    return Noon()


@pytest.fixture(params=["sqlite", "postgres"])
def jobs(request: pytest.FixtureRequest, noon: Noon, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("DULY_ACTOR", "ada@ops")
    app = App(request.getfixturevalue(f"{request.param}_url"))
    app.client.clock = noon
    app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture
def send(jobs: App) -> Any:
    @jobs.task
    def send(customer_id: int = 0) -> None: ...

    return send


@pytest.fixture
def hands(jobs: App, send: Any) -> Hands:
    return Hands(jobs.store, "send")


def told(jobs: App, target: Any, **how: Any) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.text, one.change) for one in jobs.inspect.why(target, **how).reasons]


def limited(jobs: App, *limits: LimitPolicy, takes: tuple[TaskLimit, ...] = ()) -> None:
    jobs.store.schema.declare(
        Registration(
            "app", "1", (QueuePolicy("default"),), (TaskPolicy("send", "default", 100),),
            limits=limits, task_limits=takes,
        )
    )  # fmt: skip
