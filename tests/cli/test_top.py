"""`duly top`: frames that fit the terminal, and a person at the keys of a real pseudo-terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from duly import App
from duly.cli.output import width_of
from duly.cli.top_frame import KEYS, View, frame, number, order
from duly.client.inspect import QueueStatus, Status
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.stores.protocol import QueueCount
from duly.testing.conformance.bench import Bench
from tests.waiting import wait_until

NOW = datetime(2030, 5, 1, 9, 0, tzinfo=UTC)


def queue(name: str, *, ready: int = 0, dead: int = 0, health: str = "idle", **counts: object) -> QueueStatus:
    return QueueStatus(
        counts=QueueCount(name, ready=ready, dead=dead, **counts),  # type: ignore[arg-type]
        owner=None,
        workers=1,
        rates_known=True,
        drain=timedelta(hours=3) if ready else None,
        health=health,
    )


def status(*queues: QueueStatus) -> Status:
    return Status({"where": "/srv/shop/" + "deep/" * 20 + "duly.db"}, NOW, queues, 3, timedelta(seconds=2))


BUSY = queue(
    "invoices-of-all-the-years",
    ready=5_234_567,
    dead=40_000,
    health="growing by 12 a second, full in 3 h 10 min, then new work is rejected; 4 more processes would hold 30 s",
    running=20_000,
    scheduled=99_999,
    oldest_ready=timedelta(days=12),
    in_per_s=12_345.0,
    out_per_s=12_333.0,
    slope_per_s=12.4,
    paused=True,
    estimated=("ready",),
)


def shown(
    found: Status, jobs: tuple[JobRecord, ...] = (), *, columns: int = 80, rows: int = 24, **view: str
) -> list[str]:
    return [click.unstyle(line) for line in frame(found, jobs, View(columns, rows, **view))]


def test_a_full_screen_fits_eighty_columns_and_twenty_four_rows(bench: Bench) -> None:
    bench.put("send", queue="mail")
    bench.claim_one(bench.worker("send", queues=("mail",)), queues=("mail",))
    jobs = bench.store.inspection.page(Filter()).jobs * 30
    many = [queue(f"queue-{n:02}", ready=n) for n in range(40)]

    lines = shown(status(BUSY, *many), jobs)

    assert len(lines) == 24
    assert max(map(width_of, lines)) <= 80
    assert lines[-1] == KEYS
    busy = next(line for line in lines if line.startswith("invoices"))
    assert busy.split()[:9] == [
        "invoices-of-all…", "~5.2M", "99,999", "20,000", "40,000", "12d", "12,345", "12,333", "+12",
    ]  # fmt: skip
    assert any(line.startswith("and ") and line.endswith("queues more") for line in lines)
    assert sum("send" in line for line in lines) >= 3


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (40, 10), (200, 60)])
def test_every_terminal_gets_what_it_can_hold(columns: int, rows: int) -> None:
    lines = shown(status(BUSY, queue("mail")), columns=columns, rows=rows)

    assert len(lines) == rows
    assert max(map(width_of, lines)) <= columns


def test_queues_that_need_somebody_stand_first() -> None:
    calm, late = queue("a", ready=9, health="keeping up"), queue("z", health="nobody works on it")
    dead = queue("m", dead=1)

    assert [one.counts.queue for one in order([calm, late, dead])] == ["m", "z", "a"]


def test_the_chosen_queue_stays_in_sight() -> None:
    many = [queue(f"queue-{n:02}", ready=100 - n) for n in range(40)]

    lines = shown(status(*many), rows=12, chosen="queue-35")

    assert any(line.startswith("queue-35") for line in lines)


def test_names_cannot_steer_the_terminal() -> None:
    lines = frame(status(queue("a\x1b[2Jb", health="nobody works on it")), (), View(80, 24))

    assert not any("\x1b[2J" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (99_999, "99,999"), (100_000, "100k"), (5_234_567, "5.2M"), (123_456_789, "123M")],
)
def test_numbers_take_six_columns(value: int, text: str) -> None:
    assert number(value) == text
    assert number(value, estimated=True) == f"~{text}"


class Keys:
    """`duly top` in a pseudo-terminal of 80 by 24."""

    def __init__(self, reader: int, process: subprocess.Popen[bytes]) -> None:
        self._reader = reader
        self.process = process
        self.seen = b""
        self._pressed_at = 0

    def press(self, keys: str) -> None:
        self._pressed_at = len(self._read())
        os.write(self._reader, keys.encode())

    def shows(self, text: str) -> None:
        """In a frame since the last key."""
        wait_until(lambda: text.encode() in self._read()[self._pressed_at :], timeout=45, what=text)

    def _read(self) -> bytes:
        while select.select([self._reader], [], [], 0)[0]:
            try:
                data = os.read(self._reader, 65536)
            except OSError:
                break
            if not data:
                break
            self.seen += data
        return self.seen


@contextmanager
def at_keys(url: str) -> Iterator[tuple[Keys, int]]:
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "duly.cli.main", "top", "--url", url]
    environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(command, stdout=writer, stderr=writer, stdin=writer, env=environment)
    try:
        yield Keys(reader, process), writer
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


@pytest.mark.process
@pytest.mark.timeout(240)
def test_a_person_pauses_and_resumes_a_queue_and_leaves(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/duly.db"
    app = App(url)

    @app.task
    def send() -> None: ...

    send.enqueue()
    with at_keys(url) as (keys, writer):
        before = termios.tcgetattr(writer)
        keys.shows("q quit")
        keys.press("p")
        keys.shows("choose a queue with up and down")
        keys.press("j")
        keys.press("p")
        keys.shows("why pause default?")
        keys.press("\r")
        keys.press("INC-31x\x7f1\r")
        keys.shows("default is paused")
        paused = app.inspect.status().queues[0].counts.paused
        keys.press("r")
        keys.shows("why resume default?")
        keys.press("never mind\x1b")
        keys.shows("q quit")
        keys.press("r")
        keys.press("mended\r")
        keys.shows("default goes on")
        keys.press("q")
        code = keys.process.wait(60)
        after = termios.tcgetattr(writer)

    entries = app.store.audits.page()
    app.close()
    assert code == 0
    assert paused
    assert [(entry.verb, entry.reason) for entry in entries][:2] == [
        ("resume", "mended"),
        ("pause", "INC-311"),
    ]
    assert after == before
    assert b"Traceback" not in keys.seen
