"""One child of the supervisor: its process, its board, what it said, and what it leaves to be settled.

Runs no user code and touches no store.
"""

from msgspec import Struct

from duly.core.job import Ended, Incarnation, JobId
from duly.telemetry.totals import Counted
from duly.worker.board import Board, boottime
from duly.worker.channel import Channel
from duly.worker.messages import (
    Draining,
    Left,
    Refused,
    Registered,
    Reports,
    Stop,
    SuspectsWait,
    Will,
    Work,
)
from duly.worker.process import Process
from duly.worker.run import crash_text


class Estate(Struct, frozen=True):
    """What is left of a child that did not retire by itself."""

    pid: int
    incarnation: Incarnation
    ends: tuple[Ended, ...]
    started: tuple[tuple[JobId, int], ...]
    """Attempts whose handlers began and whose end nobody wrote down."""
    reason: str
    poison: int


class ChildProcess:
    """From its start to its end. Every method belongs to the supervisor's main thread."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.board = Board.create(work.records)
        self.process = Process("duly.worker.child", (self.board.descriptor,), (str(self.board.descriptor),))
        self.channel: Channel[Reports] = Channel(self.process.socket, Reports)
        self.started_at = boottime()
        self.registered: Registered | None = None
        self.refused: Refused | None = None
        self.left: Left | None = None
        self.drain: Draining | None = None
        self.stop_sent: Stop | None = None
        self.surplus = False
        """It was told to stop because fewer processes are needed: nothing takes its place."""
        self.kill_at = float("inf")
        self.stopped_since: float | None = None
        """Since when SIGSTOP holds it."""
        self.suspects_wait = False
        self.counted = Counted()
        """What it counted and nobody took yet."""
        self.why_killed = ""
        self._ends: dict[tuple[int, int], Ended] = {}
        self.channel.send(work)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_quarantine(self) -> bool:
        return self.work.quarantine

    @property
    def incarnation(self) -> Incarnation | None:
        return self.registered.incarnation if self.registered is not None else None

    def hear(self) -> None:
        """Take in what it said."""
        for report in self.channel.pending():
            match report:
                case Registered():
                    self.registered = report
                case Refused():
                    self.refused = report
                case Will(ends):
                    self._ends.update(((end.id, end.run), end) for end in ends)
                case SuspectsWait():
                    self.suspects_wait = True
                case Draining():
                    # Urgent stays urgent.
                    if self.drain is None or report.urgent:
                        self.drain = report
                case Counted():
                    self.counted.join(report)
                case Left():
                    self.left = report

    def order_stop(self, reason: str, grace: float, most: float) -> None:
        """Ask it to stop; kill it when it still lives `most` seconds after its grace."""
        self.stop_sent = Stop(reason, grace)
        self.channel.send(self.stop_sent)
        self.kill_at = min(self.kill_at, boottime() + grace + most)

    def kill(self, reason: str) -> None:
        self.why_killed = self.why_killed or reason
        self.process.kill()

    def how_it_ended(self, code: int) -> str:
        if self.why_killed:
            return self.why_killed
        if self.left is not None:
            return self.left.reason
        return f"its process {crash_text(code)}"

    def estate(self, reason: str) -> Estate | None:
        """What the supervisor has to write for it; None when it retired, or never registered."""
        if self.registered is None or (self.left is not None and self.left.retired):
            return None
        said = self._ends
        started = tuple(
            (JobId(record.id), record.run)
            for record in self.board.started()
            if (record.id, record.run) not in said
        )
        plan = self.registered.plan
        return Estate(
            self.pid, self.registered.incarnation, tuple(said.values()), started, reason, plan.poison
        )

    def close(self) -> None:
        self.channel.close()
        self.board.close()
