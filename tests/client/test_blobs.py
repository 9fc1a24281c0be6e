"""Blobs: stored before their job, found again by its handler, safe against any path, and gone after the last job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly import App, Blob, NotFound, Outcome, PayloadError, UsageError
from duly.client.blobs import remove_unused
from duly.client.enqueue import new_job
from duly.core.job import JobRecord
from duly.worker.blobs import Blobs
from tests.client.conftest import Hands
from tests.waiting import await_until

DAY = timedelta(days=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobbed(sqlite_url: str, folder: Path) -> Iterator[App]:
    """An App with a folder of blobs."""
    app = App(sqlite_url, blobs=f"file://{folder}")
    yield app
    app.close()


@pytest.fixture(params=["sqlite", "postgres"])
def both_blobbed(request: pytest.FixtureRequest, folder: Path) -> Iterator[App]:
    """The same on each kind of store in turn."""
    app = App(request.getfixturevalue(f"{request.param}_url"), blobs=f"file://{folder}")
    app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """Larger than any job's arguments may be."""
    path = tmp_path / "big.npy"
    path.write_bytes(bytes(range(256)) * 4_000)
    return path


def stored_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def make_old(folder: Path, by: timedelta) -> None:
    moment = time.time() - by.total_seconds()
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (moment, moment))


def test_a_handler_reads_what_was_there_at_the_enqueue(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    def load(blob: Blob, note: str = "") -> int:
        return blob.size

    content = big.read_bytes()
    enqueued = load.enqueue(Blob.of(big))
    big.write_bytes(b"changed meanwhile")

    job = record(blobbed, enqueued.id)
    (blob,) = load.arguments.decode(job.args).values()
    with blob.open() as opened:
        assert opened.read() == content
    assert blob.size == len(content)
    assert len(job.args) < 200
    assert [path.read_bytes() for path in stored_files(folder)] == [content]


@pytest.mark.asyncio
async def test_a_worker_opens_it_in_every_kind_of_slot(both_blobbed: App, big: Path) -> None:
    @both_blobbed.task
    def in_a_thread(parts: dict[str, list[Blob]]) -> int:
        with parts["a"][0].open() as opened:
            return len(opened.read())

    @both_blobbed.task
    async def on_the_loop(blob: Blob) -> int:
        passed_on = await in_a_thread.aenqueue({"a": [blob]})
        assert passed_on.outcome is Outcome.created
        return blob.size

    async with both_blobbed.working():
        first = await on_the_loop.aenqueue(Blob.of(big))
        size = await first.aresult(timeout="30s")
        second = await in_a_thread.aenqueue({"a": [Blob.of(big)]})
        read = await second.aresult(timeout="30s")

    assert size == read == 1_024_000


def test_one_content_is_stored_once_and_is_the_same_argument(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    keyed = load.using(idempotency_key="k")
    copy = big.with_name("copy")
    copy.write_bytes(big.read_bytes())

    first, second = keyed.enqueue(Blob.of(big)), keyed.enqueue(Blob.of(copy))

    assert (second.outcome, second.id) == (Outcome.duplicate, first.id)
    assert len(stored_files(folder)) == 1


def test_a_file_that_changes_between_two_enqueues_of_one_blob_is_stored_anew(
    blobbed: App, big: Path, folder: Path
) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    blob = Blob.of(big)
    load.enqueue(blob)
    big.write_bytes(b"new content")
    enqueued = load.enqueue(blob)

    (arrived,) = load.arguments.decode(record(blobbed, enqueued.id).args).values()
    with arrived.open() as opened:
        assert opened.read() == b"new content"
    assert len(stored_files(folder)) == 2


def test_a_blob_stays_as_long_as_a_job_names_it(both_blobbed: App, big: Path, folder: Path) -> None:
    @both_blobbed.task
    def load(blob: Blob) -> None: ...

    hands = Hands(both_blobbed.store, "load")
    load.enqueue(Blob.of(big))
    make_old(folder, 2 * DAY)
    while_waiting = remove_unused(folder, both_blobbed.store, DAY)
    hands.complete(hands.claim()[0])
    while_kept = remove_unused(folder, both_blobbed.store, DAY)
    while both_blobbed.store.upkeep.retain({}, {}, timedelta(0), DAY):
        pass

    make_old(folder, DAY / 2)
    in_the_grace = remove_unused(folder, both_blobbed.store, DAY)
    make_old(folder, 2 * DAY)
    afterwards = remove_unused(folder, both_blobbed.store, DAY)

    assert (while_waiting, while_kept, in_the_grace, afterwards) == (0, 0, 0, 1)
    assert stored_files(folder) == []


def test_enqueueing_an_old_content_again_keeps_it(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    load.enqueue(Blob.of(big))
    make_old(folder, 2 * DAY)
    with pytest.raises(ZeroDivisionError), blobbed.transaction() as connection:
        load.using(connection=connection).enqueue(Blob.of(big))
        raise ZeroDivisionError

    (path,) = stored_files(folder)
    assert time.time() - path.stat().st_mtime < 3600


def test_the_blobs_of_another_store_are_left_alone(tmp_path: Path, folder: Path, big: Path) -> None:
    one = App(f"sqlite:///{tmp_path}/one.db", blobs=f"file://{folder}")
    two = App(f"sqlite:///{tmp_path}/two.db", blobs=f"file://{folder}")

    @one.task
    def load(blob: Blob) -> None: ...

    load.enqueue(Blob.of(big))
    make_old(folder, 2 * DAY)

    removed = remove_unused(folder, two.store, DAY)
    own = remove_unused(folder, one.store, DAY)
    again = remove_unused(folder, two.store, DAY)

    assert (removed, own, again) == (0, 0, 0)
    assert len(stored_files(folder)) == 1
    one.close()
    two.close()


def test_a_copy_that_was_cut_off_goes_as_well(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    load.enqueue(Blob.of(big))
    (home,) = [entry for entry in folder.iterdir() if entry.is_dir()]
    (home / ".new-cut").write_bytes(b"half")
    make_old(folder, 2 * DAY)

    assert remove_unused(folder, blobbed.store, DAY) == 1
    assert len(stored_files(folder)) == 1
    assert not (home / ".new-cut").exists()


def test_the_duty_of_a_worker_goes_through_the_folder_and_rests(
    blobbed: App, big: Path, folder: Path
) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    hands = Hands(blobbed.store, "load")
    load.enqueue(Blob.of(big))
    duty = Blobs(folder, blobbed.store)

    pauses = list(iter(lambda: duty.run(0.0), 3600.0))
    hands.complete(hands.claim()[0])
    while blobbed.store.upkeep.retain({}, {}, timedelta(0), DAY):
        pass
    make_old(folder, 2 * DAY)
    duty.failed()
    pauses += iter(lambda: duty.run(0.0), 3600.0)

    assert all(pause < 1 for pause in pauses)
    assert stored_files(folder) == []


@pytest.mark.asyncio
async def test_a_worker_removes_what_no_job_names(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    async def load(blob: Blob) -> int:
        return blob.size

    small = big.with_name("small")
    small.write_bytes(b"small")
    await load.using(delay="1h").aenqueue(Blob.of(small))
    passing = await load.using(delay="1h").aenqueue(Blob.of(big))
    await blobbed.operate.acancel(passing, reason="not needed")
    while blobbed.store.upkeep.retain({}, {}, timedelta(0), DAY):
        pass
    make_old(folder, 2 * DAY)

    async with blobbed.working():
        await await_until(lambda: len(stored_files(folder)) == 1, timeout=30)

    assert [path.read_bytes() for path in stored_files(folder)] == [b"small"]


REFERENCE = "0123456789abcdef/" + "0" * 64


@pytest.mark.parametrize(
    "value",
    [
        {"blob": "../../etc/passwd", "size": 1},
        {"blob": "/etc/passwd", "size": 1},
        {"blob": f"{REFERENCE}/../../x", "size": 1},
        {"blob": "0123456789abcdef/" + "0" * 63 + "\n", "size": 1},
        {"blob": REFERENCE},
        "/etc/passwd",
        7,
        None,
    ],
)
def test_a_stored_reference_that_is_none_opens_no_file(jobs: App, value: object) -> None:
    @jobs.task
    def load(blob: Blob) -> None: ...

    with pytest.raises(PayloadError, match="'blob' does not fit its annotation"):
        load.arguments.decode(msgspec.json.encode({"blob": value}))


def test_a_link_in_the_folder_is_not_followed(blobbed: App, big: Path, folder: Path, tmp_path: Path) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    job = new_job(load.draft(Blob.of(big)), None)
    (path,) = stored_files(folder)
    path.unlink()
    path.symlink_to("/etc/passwd")

    (blob,) = load.arguments.decode(job.args).values()
    with pytest.raises(NotFound, match="cannot be opened"):
        blob.open()


def test_a_blob_that_is_gone_says_which_folder_was_looked_in(blobbed: App, big: Path, folder: Path) -> None:
    @blobbed.task
    def load(blob: Blob) -> None: ...

    job = new_job(load.draft(Blob.of(big)), None)
    (path,) = stored_files(folder)
    path.unlink()

    (blob,) = load.arguments.decode(job.args).values()
    with pytest.raises(NotFound, match=f"{path} cannot be opened: No such file.*blobs="):
        blob.open()
    with pytest.raises(NotFound, match="no longer in"):
        load.enqueue(blob)


def test_a_blob_where_there_is_no_folder_or_no_file_says_what_to_write(
    jobs: App, big: Path, tmp_path: Path
) -> None:
    @jobs.task
    def load(blob: Blob) -> None: ...

    with pytest.raises(UsageError, match="DULY_BLOBS"):
        load.enqueue(Blob.of(big))
    with pytest.raises(UsageError, match="there is no such file"):
        Blob.of(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="there is no such file"):
        Blob.of(tmp_path)
    with pytest.raises(UsageError, match="takes the path of a file"):
        Blob.of(b"content")  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match=r"expected a blob, such as Blob\.of\(path\), got big\.bin"):
        load.enqueue("big.bin")  # type: ignore[arg-type]
    assert jobs.inspect.jobs().jobs == ()


def test_check_finds_a_task_with_blobs_and_no_folder(jobs: App, blobbed: App) -> None:
    def load(parts: dict[str, list[Blob]]) -> None: ...

    for app in (jobs, blobbed):
        app.task(load)

    def told(app: App) -> list[str]:
        return [finding.text for finding in app.check().findings if "Blob" in finding.text]

    assert [text.partition(";")[0] for text in told(jobs)] == [
        "task 'load' takes a Blob, and no folder holds any"
    ]
    assert told(blobbed) == []


def test_a_blob_in_an_open_parameter_or_as_a_result_is_refused(jobs: App, blobbed: App, big: Path) -> None:
    @blobbed.task
    def loose(value: Any) -> None: ...

    @blobbed.task
    def typed(blob: Blob) -> None: ...

    path: Any = str(big)

    with pytest.raises(PayloadError, match=r"'value' is a Blob .*annotate it Blob"):
        loose.enqueue(Blob.of(big))
    with pytest.raises(PayloadError, match="'blob'"):
        typed.enqueue(path)
    data, note = typed.handler.encode_result(Blob.of(big))
    assert data is None
    assert "no argument of a job" in str(note)


def test_a_direct_call_reads_the_file_itself(jobs: App, big: Path) -> None:
    @jobs.task
    def load(blob: Blob) -> int:
        with blob.open() as opened:
            return len(opened.read())

    assert load(Blob.of(str(big))) == 1_024_000


def test_two_blobs_of_one_content_are_equal(blobbed: App, big: Path) -> None:
    @blobbed.task
    def load(blobs: list[Blob]) -> None: ...

    first, second = Blob.of(big), Blob.of(big)
    job = new_job(load.draft([first, second]), None)

    (arrived,) = load.arguments.decode(job.args).values()
    assert len(job.blobs) == 1
    assert {first, second, *arrived} == {first}


def test_too_large_arguments_are_told_of_blobs(jobs: App) -> None:
    @jobs.task
    def load(data: str) -> None: ...

    with pytest.raises(PayloadError, match=r"pass a path or Blob\.of\(path\)"):
        load.enqueue("x" * 300_000)


def record(app: App, id: Any) -> JobRecord:
    found = app.store.inspection.lookup([id])[0]
    assert found is not None
    return found
