"""What a drill tells its workers, and what they write down: files of one folder. Knows no store and no process.

A worker may be dead at any moment, so every word is one line, written at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from duly.client.effects import Mark

PLACE: Final = "DRILL_FOLDER_OF_DULY"
"""The environment variable that names the folder; no setting, so it does not begin like one."""

Kind = Literal[
    "line",
    "inside",
    "claimed",
    "before ack",
    "after ack",
    "before step",
    "after step",
    "before extend",
    "after extend",
    "extending",
]


class Plan(Struct, frozen=True):
    """One drill, as its workers see it."""

    reference: str
    """MODULE:NAME of what is drilled."""
    path: tuple[str, ...]
    """For imports."""
    roots: tuple[str, ...]
    """Folders with the user's own code: its lines are moments to die at."""
    url: str
    schema: str
    durable: bool
    trace: bool
    twice: float
    """This share of jobs is delivered twice."""
    processes: int
    seed: int


class Point(Struct, frozen=True, tag="point"):
    """A moment in the life of a job at which its worker can die."""

    kind: Kind
    file: str = ""
    line: int = 0
    function: str = ""
    occurrence: int = 1
    """The line is reached for so many times in this attempt."""
    after: float = 0.0
    """Seconds into the line."""

    def __str__(self) -> str:
        match self.kind:
            case "line":
                again = "" if self.occurrence == 1 else f", the {self.occurrence}nd time"
                return f"before line {self.line} of {self.function}{again}"
            case "inside":
                return f"inside line {self.line} of {self.function}"
            case "claimed":
                return "after the claim, before the handler"
            case "before ack":
                return "after the handler, before its end was stored"
            case "after ack":
                return "right after its end was stored"
            case "extending":
                return "while its lease was extended, with its whole worker"
            case "before step" | "after step":
                return f"{self.kind.split()[0]} a step was stored"
            case _:
                return f"{self.kind.split()[0]} job.extend() was stored"


class Order(Struct, frozen=True):
    """What is to become of the jobs of one correlation id."""

    point: Point | None = None
    """Die there, once; None: live, and write down the moments there are."""


class Struck(Struct, frozen=True, tag="struck"):
    """A worker is about to die."""

    correlation: str
    point: Point
    pid: int


class Twice(Struct, frozen=True, tag="twice"):
    """A job whose handler had ended is delivered once more."""

    job: int
    correlation: str


class Told(Struct, frozen=True, tag="mark"):
    """A word about an effect."""

    mark: Mark


class Seen(Struct, frozen=True, tag="seen"):
    """A moment that a job has passed."""

    correlation: str
    point: Point


class Outward(Struct, frozen=True, tag="outward"):
    """A line of a handler has done something to the world outside."""

    correlation: str
    what: str
    file: str
    line: int
    function: str


Entry = Struck | Twice | Told | Seen | Outward


class Papers:
    """The folder of one drill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "worker.log"
        self._ledger = folder / "ledger"
        self._orders = folder / "orders"
        self._descriptor: tuple[int, int] | None = None
        self._read = 0

    @classmethod
    def of_environment(cls) -> Papers:
        return cls(Path(os.environ[PLACE]))

    def lay_out(self, plan: Plan) -> None:
        """Make everything that workers look for."""
        self._orders.mkdir()
        self._ledger.touch()
        self.log.touch()
        self.plan_again(plan)

    def plan_again(self, plan: Plan) -> None:
        (self.folder / "plan").write_bytes(msgspec.json.encode(plan))

    def plan(self) -> Plan:
        return msgspec.json.decode((self.folder / "plan").read_bytes(), type=Plan)

    def order(self, correlation: str, order: Order) -> None:
        (self._orders / correlation).write_bytes(msgspec.json.encode(order))

    def order_of(self, correlation: str) -> Order | None:
        """None when there is none, or it was carried out."""
        if "/" in correlation:
            return None
        try:
            data = (self._orders / correlation).read_bytes()
        except OSError:
            return None
        return msgspec.json.decode(data, type=Order)

    def take(self, correlation: str, point: Point) -> bool:
        """Carry an order out: true for one caller only, after it is written down."""
        try:
            (self._orders / correlation).rename(self._orders / f"{correlation}.done")
        except FileNotFoundError:
            return False
        self.write(Struck(correlation, point, os.getpid()))
        return True

    def hold(self, correlation: str) -> None:
        """Say that a handler waits for the next heartbeat."""
        (self._orders / f"{correlation}.held").touch()

    def held(self) -> list[str]:
        return [path.stem for path in self._orders.glob("*.held")]

    def write(self, entry: Entry) -> None:
        """One write to a file that only grows: lines of many processes never mix."""
        pid = os.getpid()
        if self._descriptor is None or self._descriptor[0] != pid:
            self._descriptor = (pid, os.open(self._ledger, os.O_WRONLY | os.O_APPEND))
        os.write(self._descriptor[1], msgspec.json.encode(entry) + b"\n")

    def news(self) -> Iterable[Entry]:
        """What was written since the last look."""
        with self._ledger.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                yield _DECODER.decode(line)

    def log_tail(self, most: int = 2000) -> str:
        return self.log.read_text(errors="replace")[-most:].strip()


_DECODER: Final = msgspec.json.Decoder(Entry)
