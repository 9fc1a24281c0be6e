"""An App on a real file, one on a real server, and a worker reduced to its calls of the store."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App
from duly.client import blocking
from duly.core.decide import completed
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Incarnation, QueueClaim, WorkerInfo
from duly.core.names import check_name
from duly.stores.protocol import Store


@pytest.fixture
def jobs(sqlite_url: str) -> Iterator[App]:
    app = App(sqlite_url)
    yield app
    app.close()


@pytest.fixture
def server_jobs(postgres_url: str) -> Iterator[App]:
    app = App(postgres_url)
    app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest) -> App:
    """An App on each kind of store in turn."""
    app = request.getfixturevalue("jobs" if request.param == "sqlite" else "server_jobs")
    assert isinstance(app, App)
    return app


@pytest.fixture(autouse=True)
def no_warning_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test sees the first warning of its lines, and a debug setting of one does not reach the next."""
    monkeypatch.setattr(blocking, "_told", set())
    monkeypatch.setattr(blocking, "_strict", False)


class Hands:
    """One registered worker without a process: claims and ends by hand."""

    def __init__(self, store: Store, *tasks: str, queues: tuple[str, ...] = ("default",)) -> None:
        self.store = store
        self.queues = tuple(check_name("queue", name) for name in queues)
        self.incarnation: Incarnation = store.leases.register(
            WorkerInfo(
                host="here",
                pid=1,
                supervisor="here:1",
                queues=self.queues,
                tasks=dict.fromkeys(tasks, timedelta(minutes=15)),
                lease=timedelta(seconds=30),
                heartbeat=timedelta(seconds=5),
                slots=10,
                version="0",
            )
        )

    def claim(self, most: int = 10) -> tuple[ClaimedJob, ...]:
        request = ClaimRequest(tuple(QueueClaim(name, most) for name in self.queues), most)
        return self.store.jobs.exchange(self.incarnation, [], request).claimed

    def end(self, *ended: Ended) -> None:
        exchange = self.store.jobs.exchange(self.incarnation, ended, None)
        assert len(exchange.acked) == len(ended)

    def complete(self, job: ClaimedJob, result: bytes | None = None) -> None:
        self.end(completed(job, result, timedelta(seconds=1)))
