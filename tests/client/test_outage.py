"""A server that restarts or stops between two calls of a program: what goes on by itself, and what is said."""

from __future__ import annotations

import pytest

from duly import App, StoreUnreachable
from tests.services import PostgresServer
from tests.waiting import wait_until


@pytest.mark.slow
def test_a_program_goes_on_after_the_server_restarted(server_jobs: App, postgres: PostgresServer) -> None:
    @server_jobs.task
    def send(number: int) -> None: ...

    send.enqueue(1)
    postgres.restart("immediate")

    def again() -> bool:
        try:
            send.enqueue(2)
        except StoreUnreachable:
            return False
        return True

    tries = 0

    def counted() -> bool:
        nonlocal tries
        tries += 1
        return again()

    wait_until(counted, timeout=20, what="the store answers again")

    assert tries == 1
    assert server_jobs.inspect.queue("default").counts.ready == 2


@pytest.mark.slow
def test_a_server_that_is_down_is_one_error_and_nothing_is_lost(
    server_jobs: App, postgres: PostgresServer
) -> None:
    @server_jobs.task
    def send(number: int) -> int:
        return number

    enqueued = send.enqueue(1)
    postgres.halt("immediate")

    with pytest.raises(StoreUnreachable):
        send.enqueue(2)
    with pytest.raises(StoreUnreachable):
        enqueued.result(timeout="50ms")

    postgres.resume()
    wait_until(lambda: server_jobs.inspect.queue("default").counts.ready == 1, timeout=20)
