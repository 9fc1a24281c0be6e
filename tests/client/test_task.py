"""Tasks: called as functions, refused where they cannot work, and described without being stored."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from duly import App, Backoff, Job, Unique, UsageError
from duly.client.job import current


def test_a_task_is_still_the_function(jobs: App) -> None:
    @jobs.task
    def add(a: int, b: int = 1) -> int:
        """Add up."""
        return a + b

    assert add(2) == 3
    assert add.fn(2, b=5) == 7
    assert (add.name, add.__name__, add.__doc__) == ("add", "add", "Add up.")
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 1) -> 'int'"
    assert not jobs.client.is_open


def test_a_direct_call_gets_a_local_job_that_writes_nothing(
    jobs: App, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Job] = []

    @jobs.task(timeout="90s")
    def handler(job: Job, value: int) -> int:
        seen.append(job)
        job.progress(1, of=2, note="half")
        job.extend("30s")
        job.complete("done")
        return value

    with caplog.at_level(logging.DEBUG, "duly.job"):
        result = handler(7)

    (job,) = seen
    assert result == 7
    assert str(job.id).startswith("local-")
    assert (job.task, job.queue, job.attempt, job.token) == ("handler", "default", 1, None)
    assert timedelta(seconds=110) < job.time_left() <= timedelta(seconds=120)
    assert job.deadline > datetime.now(UTC)
    assert not job.should_stop
    assert "half" in caplog.text
    assert not jobs.client.is_open


@pytest.mark.asyncio
async def test_a_direct_call_of_an_async_task_is_awaited(jobs: App) -> None:
    @jobs.task
    async def handler(job: Job, value: int) -> int:
        await job.acomplete()
        return value + job.attempt

    assert await handler(7) == 8


def test_a_local_job_inside_a_handler_keeps_the_correlation_id(jobs: App) -> None:
    ids: list[str] = []

    @jobs.task
    def inner(job: Job) -> None:
        ids.append(job.correlation_id)

    @jobs.task
    def outer(job: Job) -> None:
        token = current.set(job)
        inner()
        current.reset(token)
        ids.append(job.correlation_id)

    outer()

    assert ids[0] == ids[1] != ""


def test_effect_keys_are_the_same_for_one_job_and_name(jobs: App) -> None:
    keys: list[str] = []

    @jobs.task
    def handler(job: Job) -> None:
        keys.extend([job.effect_key(), job.effect_key("charge"), job.effect_key("charge")])

    handler()

    assert keys[1] == keys[2] != keys[0]


@pytest.mark.parametrize("done", [-1, 1.5, True, "1"])
def test_progress_counts_whole_steps(jobs: App, done: Any) -> None:
    @jobs.task
    def handler(job: Job) -> None:
        job.progress(done)

    with pytest.raises(UsageError, match="counts whole steps"):
        handler()


def test_a_job_that_is_not_first_is_refused_with_the_line_to_write(jobs: App) -> None:
    with pytest.raises(UsageError, match=r"def send\(job: Job, order_id: int\)"):

        @jobs.task
        def send(order_id: int, job: Job) -> None: ...


def test_a_defaulted_or_keyword_only_job_is_refused(jobs: App) -> None:
    with pytest.raises(UsageError, match=r"async def first\(job: Job\)"):

        @jobs.task
        async def first(job: Job | None = None) -> None: ...

    with pytest.raises(UsageError, match=r"def second\(job: Job\)"):

        @jobs.task
        def second(*, job: Job) -> None: ...


def test_a_class_of_ones_own_called_job_is_an_argument(jobs: App) -> None:
    @dataclass
    class Job:
        number: int

    def handler(work: int, job: Job) -> None: ...

    handler.__annotations__["job"] = Job

    assert not jobs.task(handler).takes_job


@pytest.mark.parametrize("kind", ["generator", "method", "lambda", "class", "async generator"])
def test_what_cannot_be_a_task_is_refused(jobs: App, kind: str) -> None:
    def generator() -> Iterator[None]:
        yield

    async def agenerator() -> Any:
        yield

    class Shop:
        def method(self) -> None: ...

    candidates: dict[str, Any] = {
        "generator": generator,
        "method": Shop.method,
        "lambda": lambda: None,
        "class": Shop,
        "async generator": agenerator,
    }

    with pytest.raises(UsageError):
        jobs.task(candidates[kind])


def test_a_task_is_registered_once(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    with pytest.raises(UsageError, match="task already"):
        jobs.task(send)


def test_a_decorator_that_hides_an_async_function_is_refused(jobs: App) -> None:
    def traced(fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    with pytest.raises(UsageError, match="make its wrapper an `async def`"):

        @jobs.task
        @traced
        async def send() -> None: ...

    @jobs.task
    @traced
    def fine(number: int) -> int:
        return number

    assert fine(7) == 7


def test_two_functions_under_one_name_are_refused_with_both_places(jobs: App) -> None:
    @jobs.task
    def digest() -> None: ...

    here = Path(__file__).name

    with pytest.raises(UsageError, match=rf"(?s){here}:\d+ .*{here}:\d+ .*name='…'"):

        @jobs.task(name="digest")
        def other() -> None: ...


def test_an_alias_stands_for_the_task_and_collides_like_a_name(jobs: App) -> None:
    @jobs.task(aliases=["old"])
    def new() -> None: ...

    assert jobs.find_task("old") is new

    with pytest.raises(UsageError, match="two tasks are named 'old'"):

        @jobs.task
        def old() -> None: ...


def test_the_same_lines_imported_twice_are_one_task(jobs: App) -> None:
    def make() -> None:
        @jobs.task
        def same() -> None: ...

    make()
    make()

    assert list(jobs.tasks) == ["same"]


def test_options_merge_and_the_last_one_wins(jobs: App) -> None:
    @jobs.task
    def handler() -> None: ...

    moment = datetime(2030, 1, 1, tzinfo=UTC)

    first = handler.using(delay="1h", tenant="acme", priority=5)
    second = first.using(priority=6, run_at=moment)

    assert first.draft().options.priority == 5
    options = second.draft().options
    assert (options.tenant, options.priority, options.run_at, options.delay) == ("acme", 6, moment, None)
    assert handler.draft().options.priority is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"delay": 30}, "write '30s'"),
        ({"delay": "30"}, "write '30s'"),
        ({"run_at": datetime(2030, 1, 1)}, "tzinfo=UTC"),  # noqa: DTZ001 - the mistake itself
        ({"run_at": "2030-01-01"}, "no datetime"),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": "1s"}, "give one of them"),
        ({"timeout": 5}, "write '5s'"),
        ({"expires": "0s"}, "longer than zero"),
        ({"attempts": 0}, "1 means no retry"),
        ({"attempts": True}, "1 means no retry"),
        ({"priority": 2**31}, "lower is more urgent"),
        ({"priority": "high"}, "lower is more urgent"),
        ({"tenant": ""}, "must not be empty"),
        ({"tenant": "a\ud83d"}, "lone surrogate"),
        ({"tags": ["a\x00"]}, "NUL"),
        ({"tags": "vip"}, r"write tags=\['vip'\]"),
        ({"tags": ["x" * 101]}, "at most 100"),
        ({"correlation_id": "a\nb"}, "control character"),
        ({"queue": "a,b"}, "separates names"),
        ({"unique_key": ""}, "unique_key: a key must not be empty"),
        ({"unique_key": 7}, "write unique_key='order:7'"),
        ({"unique_key": "x" * 256}, "unique_key: .* has 256 characters; at most 255 fit"),
        ({"unique_key": Unique("a", scope=cast(Any, "running"))}, 'write "queued" or "live"'),
        ({"unique_key": Unique("a", on_conflict=cast(Any, "keep"))}, 'write "return" or "replace"'),
        ({"idempotency_key": ""}, "idempotency_key: a key must not be empty"),
        ({"idempotency_key": "x" * 256}, "at most 255 fit"),
        ({"idempotency_key": "a\x1fb"}, "control character"),
        ({"idempotency_key": 7}, "write idempotency_key='receipt:7'"),
        ({"version": True}, "no whole number of 64 bits"),
        ({"version": 2**63}, "no whole number of 64 bits"),
        ({"version": 1.5}, "no whole number of 64 bits"),
        ({"then": "archive"}, r"then\[0\] is 'a'; write task.draft"),
        ({"then": 7}, r"write then=\[task.draft"),
        ({"on_dead": [7]}, r"on_dead\[0\] is 7; write task.draft"),
        ({"app": "sqlite:///other.db"}, r"write app=jobs.at\(url\)"),
    ],
)
def test_a_wrong_option_says_what_to_write(jobs: App, options: dict[str, Any], told: str) -> None:
    @jobs.task
    def handler() -> None: ...

    with pytest.raises(UsageError, match=told):
        handler.using(**options)


@pytest.mark.parametrize("option", ["batch", "countdown"])
def test_an_option_that_is_not_built_is_not_accepted(jobs: App, option: str) -> None:
    @jobs.task
    def handler() -> None: ...

    options: dict[str, Any] = {option: "x"}

    with pytest.raises(TypeError, match=option):
        handler.using(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 30}, "write '30s'"),
        ({"isolation": "fork"}, "none of 'auto'"),
        ({"isolation": "loop"}, "does not fit"),
        ({"ack": "early"}, "neither 'success' nor 'start'"),
        ({"permanent": ["ValueError"]}, "exception class"),
        ({"permanent": [ValueError], "transient": [ValueError]}, "remove it from one"),
        ({"aliases": "old"}, r"aliases=\['old'\]"),
        ({"name": "send receipt"}, "holds ' '"),
        ({"unique": ""}, "unique: a key must not be empty"),
        ({"unique": 7}, "write unique='order:7'"),
        ({"unique": Unique("a", scope=cast(Any, "running"))}, 'write "queued" or "live"'),
        ({"unique": "order:{order_id"}, "cannot be read"),
        ({"unique": "order:{}"}, "write a parameter's name"),
        ({"unique": "order:{order_id:>5}"}, "write the bare parameter"),
        ({"unique": "order:{order_id!r}"}, "write the bare parameter"),
        ({"unique": "order:{orders[0]}"}, "write a parameter's name"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(jobs: App, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):

        @jobs.task(**options)
        def handler() -> None: ...


def test_where_a_task_runs_follows_from_its_kind(jobs: App) -> None:
    @jobs.task
    async def on_the_loop() -> None: ...

    @jobs.task
    def in_a_thread() -> None: ...

    @jobs.task(isolation="process")
    def in_a_child() -> None: ...

    assert [task.isolation for task in (on_the_loop, in_a_thread, in_a_child)] == [
        "loop",
        "thread",
        "process",
    ]


def test_what_a_task_leaves_open_comes_from_the_app(sqlite_url: str) -> None:
    jobs = App(sqlite_url, timeout="2m", attempts=4, backoff=Backoff("9s"))

    @jobs.task
    def handler() -> None: ...

    @jobs.task(timeout="3m", attempts=1, backoff=Backoff("1s"))
    def own() -> None: ...

    assert (handler.timeout, handler.attempts, handler.backoff) == (timedelta(minutes=2), 4, Backoff("9s"))
    assert (own.timeout, own.attempts, own.backoff) == (timedelta(minutes=3), 1, Backoff("1s"))


@pytest.mark.parametrize("name", ["delay", "apply_async"])
def test_habits_from_elsewhere_are_told_about_enqueue(jobs: App, name: str) -> None:
    @jobs.task
    def handler() -> None: ...

    with pytest.raises(AttributeError, match="enqueue"):
        getattr(handler, name)


def test_around_and_lifespan_take_generators_only(jobs: App) -> None:
    @jobs.around
    def around(job: Job) -> Iterator[None]:
        yield

    @jobs.lifespan
    def lifespan() -> Iterator[None]:
        yield

    wrong: Any = test_around_and_lifespan_take_generators_only

    assert jobs.around_functions == [around]
    assert jobs.lifespan_functions == [lifespan]
    with pytest.raises(UsageError, match="one bare `yield`"):
        jobs.lifespan(wrong)
    with pytest.raises(UsageError, match="takes 1 arguments"):
        jobs.lifespan(around)  # type: ignore[type-var]
