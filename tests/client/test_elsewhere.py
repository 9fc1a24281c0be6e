"""`App.at(url)`: the same tasks on another store, and what keeps the two apart."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import App, Job, UsageError
from duly.client.job import LocalPort, current
from duly.core.job import Token
from duly.worker.source import load_app
from tests.client.conftest import Hands


@pytest.fixture
def eu(jobs: App, tmp_path: Path) -> App:
    return jobs.at(f"sqlite:///{tmp_path}/eu.db")


def ready(app: App) -> int:
    return sum(queue.counts.ready for queue in app.inspect.status().queues)


def test_a_task_enqueues_into_another_store(jobs: App, eu: App) -> None:
    @jobs.task
    def send(number: int) -> int:
        return number

    here, there = send.enqueue(1), send.using(app=eu, priority=3).enqueue(2)
    hands = Hands(eu.store, "send")
    hands.complete(hands.claim()[0], b"2")

    assert there.result(timeout="10s") == 2
    assert (ready(jobs), ready(eu)) == (1, 0)
    assert jobs.store.inspection.lookup([here.id])[0] is not None
    assert eu.tasks == jobs.tasks


@pytest.mark.asyncio
async def test_many_and_async_enqueues_go_there_too(jobs: App, eu: App) -> None:
    @jobs.task
    def send(number: int) -> None: ...

    await send.using(app=eu).aenqueue(1)
    await eu.aenqueue_many(send.draft(number) for number in range(3))
    async with eu.atransaction() as connection:
        await send.using(app=eu, connection=connection).aenqueue(5)

    assert (await eu.inspect.aqueue("default")).counts.ready == 5
    assert (await jobs.inspect.aqueue("default")).counts.ready == 0


def test_what_is_declared_later_is_known_there(jobs: App, eu: App) -> None:
    mail = jobs.queue("mail")

    @jobs.task(queue=mail)
    def later() -> None: ...

    later.using(app=eu).enqueue()

    assert eu.inspect.queue("mail").counts.ready == 1


def test_the_same_url_is_the_same_app_and_settings_are_shared(tmp_path: Path) -> None:
    jobs = App(f"sqlite:///{tmp_path}/a.db", max_payload="1KiB", schema="shop")
    eu = jobs.at(f"sqlite:///{tmp_path}/eu.db")

    jobs.configure(timeout="2m")

    assert jobs.at(f"sqlite:///{tmp_path}/eu.db") is eu is eu.at(f"sqlite:///{tmp_path}/eu.db")
    assert (eu.settings.max_payload, eu.settings.schema) == (1024, "shop")
    assert eu.settings.timeout == timedelta(minutes=2)
    assert jobs.settings.url != eu.settings.url


def test_closing_an_app_closes_the_others_it_made(jobs: App, eu: App) -> None:
    jobs.inspect.status()
    eu.inspect.status()

    jobs.close()

    assert (jobs.client.is_open, eu.client.is_open) == (False, False)


def test_an_enqueue_into_another_store_inherits_but_is_not_fenced_by_an_attempt_unknown_there(
    jobs: App, eu: App
) -> None:
    @jobs.task
    def parent() -> None: ...

    hands = Hands(jobs.store, "parent")
    parent.enqueue()
    (claimed,) = hands.claim()
    inside = Job(
        id=claimed.id,
        task="parent",
        queue="default",
        port=LocalPort("test", timedelta(minutes=1)),
        encode=lambda _: (None, None),
        correlation_id="r-1",
        token=Token(hands.incarnation, claimed.id, claimed.run),
    )
    reset = current.set(inside)

    there = parent.using(app=eu).enqueue()

    current.reset(reset)
    record = eu.store.inspection.lookup([there.id])[0]
    assert record is not None
    assert record.correlation_id == "r-1"


@pytest.mark.asyncio
async def test_a_handler_may_enqueue_into_and_wait_for_a_store_of_its_own_kind(
    jobs: App, eu: App, sqlite_path: Path
) -> None:
    unrelated = App(f"sqlite:///{sqlite_path}.other")

    @unrelated.task
    async def foreign(number: int) -> None: ...

    @jobs.task
    async def leaf(number: int) -> int:
        return number

    @jobs.task
    async def parent() -> int:
        await foreign.aenqueue(1)
        there = await leaf.using(app=eu).aenqueue(7)
        hands = Hands(eu.store, "leaf")
        hands.complete(hands.claim()[0], b"7")
        return await there.aresult(timeout="20s")

    async with jobs.working():
        result = await (await parent.aenqueue()).aresult(timeout="30s")

    assert result == 7
    assert (await unrelated.inspect.aqueue("default")).counts.ready == 1
    await unrelated.client.aclose()


def test_what_belongs_elsewhere_is_refused(jobs: App, eu: App, sqlite_url: str) -> None:
    other = App(sqlite_url)

    @jobs.task
    def send() -> None: ...

    with pytest.raises(UsageError, match=r"does not know the task 'send'; write app=jobs\.at\(url\)"):
        send.using(app=other)
    with pytest.raises(UsageError, match=r"draft 0 of enqueue_many: .* is for another store"):
        jobs.enqueue_many([send.using(app=eu).draft()])
    with pytest.raises(UsageError, match="the database URL"):
        jobs.at("mysql://db")


def test_nothing_is_declared_and_nothing_runs_there(
    jobs: App, eu: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Any:
        return eu.run_worker()

    with pytest.raises(UsageError, match="declare them there"):
        eu.queue("mail")
    with pytest.raises(UsageError, match="declare them there"):
        eu.task(run)
    with pytest.raises(UsageError, match="duly worker MODULE --url URL"):
        run()

    (tmp_path / "sharded.py").write_text(
        "from duly import App\njobs = App('sqlite:///here.db')\neu = jobs.at('sqlite:///there.db')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_app("sharded").client.main
    with pytest.raises(UsageError, match="the store with --url"):
        load_app("sharded:eu")


@pytest.mark.process
def test_a_worker_with_a_url_runs_the_jobs_of_that_store_with_blobs_in_a_child_process(
    tmp_path: Path,
) -> None:
    (tmp_path / "sharded.py").write_text(
        "from duly import RESULT, App, Blob\n"
        f"jobs = App('sqlite:///here.db', blobs='file://{tmp_path}/blobs')\n"
        "eu = jobs.at('sqlite:///eu.db')\n"
        "@jobs.task(isolation='process')\n"
        "def load(blob: Blob) -> int:\n"
        "    with blob.open() as opened:\n"
        "        size = len(opened.read())\n"
        "    total.enqueue(size, note='from the handler')\n"
        "    return size\n"
        "@jobs.task\n"
        "def total(size: int, note: str = '') -> int:\n"
        "    return size\n"
    )
    (tmp_path / "produce.py").write_text(
        "from sharded import RESULT, Blob, eu, load, total\n"
        "open('big', 'wb').write(b'x' * 300_000)\n"
        "load.using(app=eu, then=[total.draft(RESULT)]).enqueue(Blob.of('big'))\n"
    )
    (tmp_path / "look.py").write_text(
        "from sharded import eu, jobs\n"
        "for app in (eu, jobs):\n"
        "    print(sorted(f'{job.task} {job.state} {job.args[:30]}' for job in app.inspect.jobs().jobs))\n"
    )
    worker = ["-m", "duly.cli.main", "worker", "sharded", "--url", "sqlite:///eu.db", "--until-idle"]

    said = ""
    for command in (["produce.py"], worker, ["look.py"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout

    there, here = (line.strip("[]").split("', '") for line in said.replace('"', "'").splitlines())
    assert len([line for line in there if "total completed" in line]) == 2
    assert len([line for line in there if "load completed" in line]) == 1
    assert here == [""]
