"""Nothing is opened, read or started by importing duly or by making an App; forks and loops do no harm."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from duly import AlreadyOpen, App, StoreUnreachable
from duly.client.reference import reference_of


def run_python(text: str, directory: Path, **environ: str) -> str:
    """Run a program in a folder of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_and_declaring_opens_nothing_and_reads_no_setting(tmp_path: Path) -> None:
    program = """
        import os, threading
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        from duly import App, Backoff, Job, Snooze, Skip, Retry, Dead
        jobs = App(include=["nowhere"])
        mail = jobs.queue("mail")
        @jobs.task(queue=mail)
        def send(job: Job, order_id: int) -> None: ...
        draft = send.using(delay="1d").draft(7)
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        print(threading.active_count(), after - before, os.listdir("."))
    """

    # A setting that is an error once it is read.
    assert run_python(program, tmp_path, DULY_NONSENSE="1", DULY_URL="nonsense://") == "1 0 []"


def test_importing_duly_needs_neither_psycopg_nor_click_nor_asyncio_servers(tmp_path: Path) -> None:
    program = """
        import sys
        import duly
        print(sorted({"psycopg", "psycopg_pool", "click", "rich", "sqlite3", "multiprocessing"} & set(sys.modules)))
    """

    assert run_python(program, tmp_path) == "[]"


def test_the_default_is_a_file_in_the_working_directory(tmp_path: Path) -> None:
    program = """
        from duly import App
        jobs = App()
        @jobs.task
        def hello(name: str) -> None: ...
        print(hello.enqueue("you").outcome, jobs.settings.url)
    """

    assert run_python(program, tmp_path) == f"created sqlite:///{tmp_path}/duly.db"
    assert (tmp_path / "duly.db").exists()


def test_a_program_that_closes_nothing_ends_by_itself(tmp_path: Path) -> None:
    program = """
        import asyncio
        from duly import App
        jobs = App("sqlite:///x.db")
        @jobs.task
        async def hello() -> None: ...
        asyncio.run(hello.aenqueue())
        hello.enqueue()
        print("end")
    """

    assert run_python(program, tmp_path) == "end"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_opens_a_store_of_its_own(jobs: App) -> None:
    @jobs.task
    def hello(where: str) -> None: ...

    hello.enqueue("before")
    mine = jobs.store

    pid = os.fork()
    if pid == 0:
        try:
            hello.enqueue("child")
            os._exit(0 if jobs.store is not mine else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(pid, 0)
    hello.enqueue("after")

    assert os.waitstatus_to_exitcode(status) == 0
    assert jobs.store is mine
    assert jobs.inspect.queue("default").counts.ready == 3


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_opens_leaves_the_child_free(jobs: App) -> None:
    @jobs.task
    def hello() -> None: ...

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with jobs.client._lock:
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    pid = os.fork()
    if pid == 0:
        hello.enqueue()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    done.set()
    holder.join()

    assert os.waitstatus_to_exitcode(status) == 0


def test_event_loops_may_come_and_go(jobs: App) -> None:
    @jobs.task
    def hello() -> None: ...

    async def twice() -> int:
        await hello.aenqueue()
        return (await jobs.inspect.aqueue("default")).counts.ready

    counts = [asyncio.run(twice()) for _ in range(3)]

    assert counts == [1, 2, 3]


def test_a_factory_configures_before_first_use(tmp_path: Path) -> None:
    jobs = App()

    @jobs.task
    def hello() -> None: ...

    def create_app(file: str) -> None:
        jobs.configure(f"sqlite:///{tmp_path / file}", timeout="2m")

    create_app("first.db")
    create_app("second.db")
    hello.enqueue()

    assert jobs.settings.timeout.total_seconds() == 120
    assert not (tmp_path / "first.db").exists()
    assert (tmp_path / "second.db").exists()
    with pytest.raises(AlreadyOpen, match=r"second\.db.*before its first enqueue"):
        create_app("third.db")
    jobs.close()


def test_a_closed_app_opens_again(jobs: App) -> None:
    @jobs.task
    def hello() -> None: ...

    with jobs:
        hello.enqueue()
    assert not jobs.client.is_open

    hello.enqueue()

    assert jobs.inspect.queue("default").counts.ready == 2


@pytest.mark.asyncio
async def test_an_app_opens_and_closes_around_async_code(jobs: App) -> None:
    @jobs.task
    def hello() -> None: ...

    async with jobs:
        await hello.aenqueue()

    assert not jobs.client.is_open


def test_an_unreachable_store_is_one_error_with_its_address(tmp_path: Path) -> None:
    jobs = App("postgresql://nobody:secret@127.0.0.1:1/none?connect_timeout=1")

    @jobs.task
    def hello() -> None: ...

    with pytest.raises(StoreUnreachable) as caught:
        hello.enqueue()

    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    jobs.close()


def test_a_worker_finds_the_app_of_a_script_by_the_scripts_name(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from duly import App\n"
        "from duly.client.reference import reference_of\n"
        "background = App('sqlite:///x.db')\n"
        "@background.task\n"
        "def send() -> None: ...\n"
        "if __name__ == '__main__':\n"
        "    print(reference_of(background), send.name)\n"
    )

    told = [
        subprocess.run(
            [sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=True
        ).stdout.strip()
        for how in (["shop.py"], ["-m", "shop"])
    ]

    assert told == ["shop:background send", "shop:background send"]


def test_an_app_in_no_variable_has_no_reference() -> None:
    from duly import UsageError

    with pytest.raises(UsageError, match="assign it at module level"):
        reference_of(App())
