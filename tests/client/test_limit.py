"""Limit: places in order, paces by an injected clock, threads and event loops on one limit, and whoever gives up."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from duly import Limit, UsageError
from tests.waiting import wait_until


class FakeTime:
    """Waiting moves the time on at once, and is written down."""

    def __init__(self) -> None:
        self.time = 100.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self._pass(seconds)

    async def asleep(self, seconds: float) -> None:
        self._pass(seconds)
        await asyncio.sleep(0)

    def _pass(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.time += seconds


def test_its_text_says_that_other_processes_are_not_limited() -> None:
    assert repr(Limit(2, rate="5/s")) == "<Limit 2 at once, 5/s; in this process only>"
    assert repr(Limit(rate="100/s burst 20")) == "<Limit 100/s burst 20; in this process only>"


def test_a_limit_that_limits_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Limit\(2\)"):
        Limit()


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2"])
def test_a_limit_needs_a_whole_number_of_places(most: object) -> None:
    with pytest.raises(UsageError, match="whole number"):
        Limit(most)  # type: ignore[arg-type]


def test_a_rate_in_the_place_of_a_number_is_told_its_name() -> None:
    with pytest.raises(UsageError, match=r"Limit\(rate='5/s'\)"):
        Limit("5/s")  # type: ignore[arg-type]


def test_thirty_tasks_run_two_at_a_time() -> None:
    limit, seen = Limit(2), []

    async def settle() -> None:
        async with limit:
            seen.append(limit.running)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(settle() for _ in range(30)))

    asyncio.run(main())

    assert len(seen) == 30
    assert max(seen) == 2
    assert (limit.running, limit.waiting) == (0, 0)


def test_places_are_given_in_the_order_they_were_asked_for() -> None:
    limit, order = Limit(1), []

    async def enter(number: int) -> None:
        async with limit:
            order.append(number)
            await asyncio.sleep(0)

    async def main() -> None:
        async with limit:
            tasks = [asyncio.create_task(enter(number)) for number in range(20)]
            await asyncio.sleep(0)
            assert limit.waiting == 20
        # Whoever comes now finds a line, though nobody runs at this moment.
        tasks.append(asyncio.create_task(enter(20)))
        await asyncio.gather(*tasks)

    asyncio.run(main())

    assert order == list(range(21))


def test_threads_and_event_loops_share_one_limit() -> None:
    limit, running, most = Limit(3), 0, 0
    lock = threading.Lock()

    def count(step: int) -> None:
        nonlocal running, most
        with lock:
            running += step
            most = max(most, running)

    async def task() -> None:
        async with limit:
            count(1)
            await asyncio.sleep(0)
            count(-1)

    async def tasks() -> None:
        await asyncio.gather(*(task() for _ in range(50)))

    def thread() -> None:
        for _ in range(50):
            with limit:
                count(1)
                count(-1)

    with ThreadPoolExecutor(6) as pool:
        acts = [thread, thread, thread, lambda: asyncio.run(tasks()), lambda: asyncio.run(tasks()), thread]
        for work in [pool.submit(act) for act in acts]:
            work.result(timeout=30)

    assert 1 <= most <= 3
    assert limit.running == 0


def test_a_cancelled_waiter_leaves_the_line_and_takes_no_place() -> None:
    limit = Limit(1)

    async def enter() -> None:
        async with limit:
            pass

    async def main() -> None:
        async with limit:
            first, second = asyncio.create_task(enter()), asyncio.create_task(enter())
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert limit.waiting == 1
        await asyncio.wait_for(second, 30)

    asyncio.run(main())

    assert (limit.running, limit.waiting) == (0, 0)


def test_a_place_given_to_someone_cancelled_at_that_moment_is_given_on() -> None:
    limit = Limit(1)

    async def enter() -> None:
        async with limit:
            pass

    async def main() -> None:
        async with limit:
            first, second = asyncio.create_task(enter()), asyncio.create_task(enter())
            await asyncio.sleep(0)
        # The place is the first one's already, and it has not run since.
        first.cancel()
        await asyncio.wait_for(second, 30)
        assert first.cancelled()

    asyncio.run(main())

    assert limit.running == 0


def test_a_waiter_whose_loop_is_gone_does_not_keep_its_place() -> None:
    limit = Limit(1)
    loop = asyncio.new_event_loop()

    async def enter() -> None:
        async with limit:
            pass

    with limit:
        task = loop.create_task(enter())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert limit.waiting == 1

    with limit:
        assert limit.waiting == 0
    # A task of a closed loop would complain when it is collected.
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.get_coro().close()


def test_a_rate_spaces_entries_evenly() -> None:
    clock = FakeTime()
    limit = Limit(rate="5/s", clock=clock)

    for _ in range(4):
        with limit:
            pass

    assert clock.waits == [0.2, 0.2, 0.2]


def test_a_burst_is_not_waited_for() -> None:
    clock = FakeTime()
    limit = Limit(rate="10/s burst 3", clock=clock)

    async def main() -> None:
        for _ in range(5):
            async with limit:
                pass

    asyncio.run(main())

    assert clock.waits == [0.1, 0.1]


def test_a_pause_is_not_saved_up_beyond_the_burst() -> None:
    clock = FakeTime()
    limit = Limit(rate="10/s burst 2", clock=clock)
    with limit:
        clock.time += 60

    for _ in range(4):
        with limit:
            pass

    assert clock.waits == [0.1, 0.1]


def test_an_error_inside_gives_the_place_back() -> None:
    limit = Limit(1)

    with pytest.raises(ZeroDivisionError), limit:
        raise ZeroDivisionError

    assert limit.running == 0


def test_a_blocking_entry_inside_an_event_loop_is_told() -> None:
    limit = Limit(1)

    async def main() -> None:
        with limit:
            pass

    with pytest.warns(RuntimeWarning, match="async with limit"):
        asyncio.run(main())


def test_a_thread_waits_for_its_place() -> None:
    limit, entered = Limit(1), threading.Event()

    def enter() -> None:
        with limit:
            entered.set()

    with limit:
        thread = threading.Thread(target=enter)
        thread.start()
        wait_until(lambda: limit.waiting == 1, what="the thread in the line")
        assert not entered.is_set()
    thread.join(30)

    assert entered.is_set()


def test_a_forked_child_starts_with_all_its_places_free() -> None:
    limit = Limit(1)

    with limit:
        pid = os.fork()
        if pid == 0:
            with limit:
                os._exit(0 if limit.running == 1 else 1)
        _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert limit.running == 0
