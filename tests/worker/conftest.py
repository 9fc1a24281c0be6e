"""Apps of bounded jobs, and who listens to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duly import App
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from tests.worker.bounded import Meter


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    url = request.getfixturevalue(f"{request.param}_url")
    app = App(url)
    if request.param == "postgres":
        app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture
def sqlite_app(sqlite_url: str) -> Iterator[App]:
    """For what the client and the worker do alike on every store; what the store does is in the suite."""
    app = App(sqlite_url)
    yield app
    app.close()


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Happening]:
    said: list[Happening] = []
    emit = Hub.emit

    def listen(hub: Hub, happening: Happening) -> None:
        said.append(happening)
        emit(hub, happening)

    monkeypatch.setattr(Hub, "emit", listen)
    return said
