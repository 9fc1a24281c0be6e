"""memory:// and processes: other ones are refused, children and forks are told apart, nothing is left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duly import App, Blob, UsageError
from duly.stores.memory.folder import PrivateFolder
from duly.stores.memory.store import MemoryStore
from duly.stores.open import open_store
from duly.stores.urls import parse_url

PROGRAM = r"""
import os, sys
from duly import App

jobs = App("memory://")
apart = jobs.queue("apart")


@jobs.task
def inner(parent: int) -> None:
    os.write(1, f"inner {os.getpid() == parent}\n".encode())


@jobs.task(isolation="process", queue=apart)
def outer(parent: int) -> None:
    inner.enqueue(parent)
    os.write(1, f"outer {os.getpid() == parent}\n".encode())


if __name__ == "__main__":
    outer.enqueue(os.getpid())
    sys.exit(jobs.run_worker(until_idle=True))
"""

STOPPED = r"""
import os, signal, sys
from duly import App, Job

jobs = App("memory://")


@jobs.task
def stop(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    while not job.should_stop:
        pass
    os.write(1, b"ended by itself\n")


if __name__ == "__main__":
    stop.enqueue()
    sys.exit(jobs.run_worker())
"""


def run(folder: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.process
def test_run_worker_works_in_this_process_and_isolated_children_reach_its_jobs(program: Path) -> None:
    done = run(program, "shop.py")

    assert done.returncode == 0, done.stderr
    # In either order: the child's job may run before the child has ended.
    assert sorted(done.stdout.splitlines()) == ["inner True", "outer False"]


@pytest.mark.process
def test_sigterm_ends_run_worker_after_its_handlers(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(STOPPED)

    done = run(tmp_path, "stopped.py")

    assert (done.returncode, done.stdout) == (0, "ended by itself\n"), done.stderr


@pytest.mark.process
def test_a_worker_process_is_refused_with_what_to_use(program: Path) -> None:
    done = run(program, "-m", "duly.cli.main", "worker", "shop")

    assert done.returncode == 2
    assert "jobs.working()" in done.stderr
    assert "run_worker() in the process" in done.stderr


@pytest.mark.process
def test_a_command_is_not_answered_from_an_empty_store(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "duly.cli.main", "status", DULY_URL="memory://")

    assert done.returncode == 2
    assert "jobs.inspect" in done.stderr


def test_what_needs_other_processes_is_refused_by_run_worker() -> None:
    app = App("memory://")

    with pytest.raises(UsageError, match="leave processes= out"):
        app.run_worker(processes=2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_a_store_of_its_own_and_leaves_the_parents_alone() -> None:
    app = App("memory://")

    @app.task
    def hello() -> None: ...

    hello.enqueue()
    store = app.store
    assert isinstance(store, MemoryStore)

    pid = os.fork()
    if pid == 0:
        try:
            hello.enqueue()
            hello.enqueue()
            count = app.inspect.queue("default").counts.ready
            app.close()
            store._folder.remove()
            os._exit(0 if count == 2 else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert app.inspect.queue("default").counts.ready == 1
    app.close()


def test_closing_forgets_every_job_and_leaves_no_file() -> None:
    app = App("memory://")

    @app.task
    def hello() -> None: ...

    hello.enqueue()
    store = app.store
    assert isinstance(store, MemoryStore)
    folder = store._folder.path
    assert folder.exists()

    app.close()

    assert not folder.exists()
    assert app.inspect.queue("default").counts.ready == 0
    app.close()


@pytest.mark.process
def test_the_end_of_the_process_leaves_no_file(tmp_path: Path) -> None:
    code = (
        "from duly.stores.open import open_store\n"
        "store = open_store('memory://')\n"
        "store.schema.migrate()\n"
        "print(store._folder.path)\n"
    )

    done = run(tmp_path, "-c", code)

    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


@pytest.mark.process
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from duly.stores.open import open_store\n"
        "store = open_store('memory://')\n"
        "print(store._folder.path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    left = Path(run(tmp_path, "-c", code).stdout.strip())
    assert left.exists()
    mine = PrivateFolder()

    another = PrivateFolder()

    assert not left.exists()
    assert mine.path.exists()
    mine.remove()
    another.remove()


def test_two_stores_in_memory_do_not_meet() -> None:
    first, second = App("memory://"), App("memory://")

    for app in (first, second):

        @app.task
        def hello() -> None: ...

    first.tasks["hello"].enqueue()

    assert first.inspect.queue("default").counts.ready == 1
    assert second.inspect.queue("default").counts.ready == 0
    first.close()
    second.close()


def test_two_stores_in_memory_keep_their_blobs_apart(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 100)
    apps = [App("memory://", blobs=f"file://{tmp_path}/blobs") for _ in range(2)]

    for app in apps:

        @app.task
        def read(blob: Blob) -> None: ...

        read.enqueue(Blob.of(tmp_path / "big"))

    homes = [path.name for path in (tmp_path / "blobs").iterdir() if path.is_dir()]
    assert len(homes) == 2
    for app in apps:
        app.close()


def test_it_says_what_it_is() -> None:
    store = open_store("memory://?max=7")

    facts = store.inspection.describe()

    assert store.url == "memory://?max=7"
    assert facts["where"] == "memory://?max=7, in this process only"
    assert (facts["store"], facts["sync"]) == ("memory", "off")
    assert not store.capabilities.shared_by_processes
    store.close()


@pytest.mark.parametrize(
    ("url", "most"), [("memory://", None), ("memory:///", None), ("memory://?max=1000", 1000)]
)
def test_the_bound_stands_in_the_url(url: str, most: int | None) -> None:
    address = parse_url(url)

    assert (address.kind, address.most) == ("memory", most)


@pytest.mark.parametrize(
    "url", ["memory://host", "memory:///file.db", "memory://?max=0", "memory://?max=x", "memory://?size=3"]
)
def test_other_urls_of_memory_are_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(UsageError, match="write memory://"):
        parse_url(url)


def test_check_says_that_these_jobs_end_with_the_process() -> None:
    app = App("memory://")

    @app.task
    def hello() -> None: ...

    found = [finding.text for finding in app.check().findings if "memory" in finding.text]

    assert found == ["jobs on memory:// end with this process; write sqlite:///duly.db to keep them"]
    app.close()
