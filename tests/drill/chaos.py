"""What befalls the processes and the database: kills, freezes, restarts, cut and hanging connections, by a seeded plan.

Knows process ids and the server; nothing of jobs.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.drill.proxy import Proxy
from tests.services import PostgresServer


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def tree(pid: int) -> list[int]:
    """A process and all below it, itself first."""
    found = [pid]
    for child in children(pid):
        found += tree(child)
    return found


@dataclass
class Fleet:
    """The processes of one drill; any that ended is started again by `tend`."""

    workers: list[Callable[[], subprocess.Popen[bytes]]]
    producers: list[Callable[[], subprocess.Popen[bytes]]]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    made: dict[int, Callable[[], subprocess.Popen[bytes]]] = field(default_factory=dict)
    frozen: set[int] = field(default_factory=set)
    producing: bool = True
    exits: Counter[str] = field(default_factory=Counter)

    def start(self) -> None:
        """Start every worker and producer."""
        for make in [*self.workers, *self.producers]:
            self._start(make)

    def tend(self) -> None:
        """Start again what has ended."""
        for pid, process in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            make = self.made.pop(pid)
            del self.running[pid]
            kind = "worker" if make in self.workers else "producer"
            self.exits[f"{kind} exit {code}"] += 1
            if kind == "worker" or (self.producing and code != 0):
                self._start(make)

    def supervisors(self) -> list[int]:
        return [pid for pid, make in self.made.items() if make in self.workers and pid not in self.frozen]

    def producer_pids(self) -> list[int]:
        return [pid for pid, make in self.made.items() if make in self.producers]

    def producers_ended(self) -> bool:
        return not self.producer_pids()

    def stop(self) -> None:
        """SIGTERM to all, SIGKILL to what does not end within 20 s."""
        for pid in self.running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for process in self.running.values():
            try:
                code = process.wait(20)
                self.exits[f"SIGTERM -> {code}"] += 1
            except subprocess.TimeoutExpired:
                self.exits["SIGTERM ignored"] += 1
                for pid in tree(process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
        self.running.clear()

    def _start(self, make: Callable[[], subprocess.Popen[bytes]]) -> None:
        process = make()
        self.running[process.pid] = process
        self.made[process.pid] = make


@dataclass
class Plan:
    """How many of each act, and the pause between two acts in seconds."""

    kills: int
    stops: int
    restarts: int
    terminations: int
    hangs: int
    pause: float
    frozen_for: float


class Chaos:
    """Carries out a plan over a fleet, each act at a random moment, and counts what really happened."""

    def __init__(
        self, fleet: Fleet, plan: Plan, seed: int, server: PostgresServer | None, proxy: Proxy | None
    ) -> None:
        self.fleet, self.plan, self.server, self.proxy = fleet, plan, server, proxy
        self.dice = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.stopped_pids: set[int] = set()
        self._thaws: list[tuple[float, int, list[int]]] = []

    def run(self) -> None:
        """Blocks until every act is done."""
        left = Counter(
            kill=self.plan.kills,
            stop=self.plan.stops,
            restart=self.plan.restarts,
            terminate=self.plan.terminations,
            hang=self.plan.hangs,
        )
        left = +left
        never = threading.Event()
        acts = {
            "kill": self._kill,
            "stop": self._stop,
            "restart": self._restart,
            "terminate": self._terminate,
            "hang": self._hang,
        }
        while left:
            never.wait(self.plan.pause * self.dice.expovariate(1))
            self.fleet.tend()
            self._thaw(time.monotonic())
            act = self.dice.choices(list(left), weights=list(left.values()))[0]
            if acts[act]():
                left[act] -= 1
                left = +left
            if sum(self.done.values()) % 20 == 0:
                print(
                    f"  {sum(self.done.values())} acts, {sum(left.values())} to go",
                    file=sys.stderr,
                    flush=True,
                )
        while self._thaws:
            never.wait(0.05)
            self._thaw(time.monotonic())

    def _kill(self) -> bool:
        kind = self.dice.choices(["child", "supervisor", "isolated", "producer"], weights=[5, 3, 3, 3])[0]
        supervisors = self.fleet.supervisors()
        pids = {
            "supervisor": supervisors,
            "child": [child for pid in supervisors for child in children(pid)],
            "isolated": [one for pid in supervisors for child in children(pid) for one in children(child)],
            "producer": self.fleet.producer_pids(),
        }[kind]
        if not pids:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.dice.choice(pids), signal.SIGKILL)
            self.done[f"SIGKILL {kind}"] += 1
            return True
        return False

    def _stop(self) -> bool:
        supervisors = self.fleet.supervisors()
        # One that has just been started holds nothing yet; the oldest come first.
        working = [pid for pid in supervisors if children(pid)][:2]
        if len(self._thaws) >= 1 or len(supervisors) < 2 or not working:
            return False
        pid = self.dice.choice(working)
        pids = tree(pid)
        for one in pids:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        self.stopped_pids |= set(pids)
        self.fleet.frozen.add(pid)
        self._thaws.append((time.monotonic() + self.plan.frozen_for, pid, pids))
        self.done["SIGSTOP of two leases"] += 1
        return True

    def _thaw(self, now: float) -> None:
        for thaw in [thaw for thaw in self._thaws if thaw[0] <= now]:
            self._thaws.remove(thaw)
            self.fleet.frozen.discard(thaw[1])
            for one in thaw[2]:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGCONT)

    def _restart(self) -> bool:
        if self.server is None:
            return False
        self.server.restart("immediate" if self.dice.random() < 0.5 else "fast")
        self.done["database restart"] += 1
        return True

    def _terminate(self) -> bool:
        if self.server is None:
            return False
        with suppress(Exception):
            rows = self.server.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname LIKE 'duly%' AND pid <> pg_backend_pid()"
            )
            if rows:
                self.server.execute(f"SELECT pg_terminate_backend({self.dice.choice(rows)[0]})")
                self.done["connection terminated"] += 1
                return True
        return False

    def _hang(self) -> bool:
        if self.proxy is None:
            return False
        fell = self.proxy.hang()
        if fell == 0:
            return False
        proxy = self.proxy
        threading.Timer(self.plan.frozen_for * 2, proxy.end_hang).start()
        self.done["connections hung"] += 1
        return True
