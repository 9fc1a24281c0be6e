"""The budget of a whole store at its producers and in `status`, on both stores: the least important give way first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from duly import App, QueueFull, UsageError
from duly.client.settings import resolve
from duly.core.budget import STORE_FULL
from tests.waiting import wait_until

DAY = timedelta(days=1)
NONE = timedelta(0)


class Shop(NamedTuple):
    """An App whose payments matter more than its analytics."""

    app: App
    pay: Any
    count: Any


Open = Callable[[float], Shop]


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def filled_to(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """An App on a store that takes this share of its budget."""
    url = request.getfixturevalue(request.param)
    opened: list[App] = []

    def open_app() -> Shop:
        app = App(url)
        opened.append(app)

        @app.task(queue=app.queue("payments", importance=1))
        def pay(text: str = "") -> None: ...

        @app.task(queue=app.queue("analytics", importance=200))
        def count(text: str = "") -> None: ...

        return Shop(app, pay, count)

    def fill(share: float) -> Shop:
        plain = open_app()
        plain.app.store.schema.migrate()
        plain.app.enqueue_many(plain.count.draft("x" * 200) for _ in range(1500))
        use = plain.app.store.pressing.use()
        assert use is not None
        monkeypatch.setenv("DULY_MAX_BYTES", f"{int(use.bytes / share)}B")
        return open_app()

    yield fill
    for app in opened:
        app.close()


def waiting(shop: Shop, queue: str) -> int:
    return shop.app.inspect.queue(queue).counts.ready


def stores(task: Any) -> bool:
    try:
        task.enqueue()
    except QueueFull:
        return False
    return True


def test_near_the_budget_the_least_important_queue_is_refused_and_the_most_important_is_not(
    filled_to: Open,
) -> None:
    shop = filled_to(0.85)

    with pytest.raises(
        QueueFull, match=r"'analytics' gives way to more important ones: .* of max_bytes="
    ) as full:
        shop.count.enqueue()

    assert full.value.queue == "analytics"
    assert timedelta(seconds=1) <= full.value.retry_after <= timedelta(minutes=1)
    assert waiting(shop, "analytics") == 1500
    shop.pay.enqueue()
    assert waiting(shop, "payments") == 1


def test_beyond_the_budget_the_most_important_queue_still_goes_on(filled_to: Open) -> None:
    shop = filled_to(1.5)

    shop.pay.enqueue()

    assert waiting(shop, "payments") == 1
    assert not stores(shop.count)


def test_far_from_the_budget_everything_is_stored(filled_to: Open) -> None:
    shop = filled_to(0.5)

    assert stores(shop.count)
    assert stores(shop.pay)


def test_in_a_transaction_of_the_caller_the_job_is_stored_and_marked(filled_to: Open) -> None:
    shop = filled_to(0.85)
    assert not stores(shop.count)

    with shop.app.transaction() as connection:
        job = shop.count.using(connection=connection).enqueue()

    assert job.over_limit
    assert waiting(shop, "analytics") == 1501


def test_strict_refuses_it_there_and_leaves_the_transaction_usable(filled_to: Open) -> None:
    shop = filled_to(0.85)
    assert not stores(shop.count)

    with shop.app.transaction() as connection:
        with pytest.raises(QueueFull):
            shop.count.using(connection=connection, strict=True).enqueue()
        shop.pay.using(connection=connection).enqueue()

    assert (waiting(shop, "analytics"), waiting(shop, "payments")) == (1500, 1)


def test_control_is_never_refused(filled_to: Open) -> None:
    shop = filled_to(1.5)
    job = shop.app.inspect.jobs(limit=1).jobs[0]

    shop.app.operate.cancel(job.id, reason="by mistake")
    shop.app.operate.pause("analytics", reason="full")

    assert waiting(shop, "analytics") == 1499


def test_it_is_let_in_again_by_itself_once_there_is_room(filled_to: Open) -> None:
    shop = filled_to(0.85)
    assert not stores(shop.count)

    store = shop.app.store
    while store.pressing.shed(["analytics"], 1000, STORE_FULL):
        pass
    while store.upkeep.retain({}, {}, NONE, DAY):
        pass

    wait_until(lambda: stores(shop.count), timeout=30, what="analytics are let in again")


def test_status_says_what_is_spent_and_who_is_refused(filled_to: Open) -> None:
    shop = filled_to(0.85)
    # What workers' sweeps keep: without it nothing is known of the pace.
    shop.app.store.upkeep.sweep(DAY, 3, NONE)

    room = shop.app.inspect.status().room

    assert room is not None
    assert room.max_bytes is not None
    assert 0.8 <= room.used / room.max_bytes == room.filled < 1
    assert room.refused == ("analytics",)
    assert "of max_bytes=" in room.health
    assert room.health.endswith("refused for now: analytics")


def test_without_a_budget_status_says_nothing_of_it(both: App) -> None:
    assert both.inspect.status().room is None
    assert both.client.pressing.idle


def test_the_free_disk_of_a_server_is_refused_with_what_to_write_instead() -> None:
    environ = {"DULY_URL": "postgresql://localhost/shop", "DULY_MIN_FREE_DISK": "1GiB"}

    with pytest.raises(
        UsageError, match=r"min_free_disk: the disk of a PostgreSQL server cannot be seen.*max_bytes"
    ):
        resolve({}, environ=environ)


def test_a_budget_is_read_from_the_environment_and_may_be_off() -> None:
    environ = {"DULY_MAX_BYTES": "2GiB", "DULY_MIN_FREE_DISK": "off"}

    settings = resolve({}, environ=environ)

    assert (settings.max_bytes, settings.min_free_disk) == (2 * 1024**3, None)
    assert settings.budget


def test_a_disk_with_too_little_space_refuses_as_well(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_MIN_FREE_DISK", "900TiB")
    app = App(sqlite_url)

    @app.task(queue=app.queue("payments", importance=1))
    def pay() -> None: ...

    @app.task(queue=app.queue("analytics", importance=200))
    def count() -> None: ...

    with pytest.raises(QueueFull, match=r"the disk of the store has .* free, min_free_disk=900TiB"):
        count.enqueue()
    pay.enqueue()

    room = app.inspect.status().room
    assert room is not None
    assert room.free_disk is not None
    assert room.health.endswith("its budget is spent; refused for now: analytics")
    app.close()
