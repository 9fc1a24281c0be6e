"""The load drill: jobs at a rate, while workers are killed at random and some jobs come twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import timedelta
from typing import Final, Self

from msgspec import Struct

from duly.client.effects import Mark
from duly.core.durations import parse_rate
from duly.core.errors import UsageError
from duly.core.lifecycle import FINAL
from duly.drills.drill import Drill
from duly.drills.duplicate import judge
from duly.drills.ground import Ground, signalled, tasks_of
from duly.drills.plan import Told, Twice
from duly.drills.report import Finding, Report

_TICK: Final = 0.02
_WHY: Final = "workers were killed, and jobs came twice"
_LOOK_EVERY: Final = 5.0
_SUPERVISOR: Final = 0.2
"""This share of the kills takes a whole worker."""


class Load(Struct, frozen=True):
    """What is put on."""

    rate: float
    """Jobs a second."""
    lasting: float
    """Seconds."""
    kills: float
    """A second."""
    duplicates: float
    processes: int
    seed: int

    @classmethod
    def read(
        cls, rate: str, lasting: timedelta, kills: str, duplicates: float, processes: int, seed: int
    ) -> Self:
        """UsageError for what cannot be read."""
        if not 0 <= duplicates <= 1:
            raise UsageError(f"duplicates={duplicates!r} is a share, 0 to 1; on the command line 1%")
        if processes < 1:
            raise UsageError(f"processes={processes!r}: it takes at least one")
        number = 0.0 if kills.strip().startswith("0/") else _rate(kills, "kills")
        return cls(_rate(rate, "rate"), lasting.total_seconds(), number, duplicates, processes, seed)


def load(drill: Drill, url: str | None, wanted: Load, patience: float, *, yes_really: bool) -> Report:
    """Run the drill. UsageError when its workers cannot start, InUse for a store that has jobs."""
    began = time.monotonic()
    report = Report("load", tasks_of([drill.draft(1)]))
    with Ground(
        drill,
        url,
        yes_really=yes_really,
        twice=wanted.duplicates,
        processes=wanted.processes,
        seed=wanted.seed,
    ) as ground:
        report.facts["store"] = ground.where
        ground.start()
        run = _Run(report, ground, wanted)
        run.produce()
        run.work_off(patience)
    report.seconds = time.monotonic() - began
    return report


class _Run:
    def __init__(self, report: Report, ground: Ground, wanted: Load) -> None:
        self._report = report
        self._ground = ground
        self._wanted = wanted
        self._dice = random.Random(wanted.seed)
        self._marks: list[Mark] = []
        self._twice = 0
        self._kills: Counter[str] = Counter()
        self._stored = 0
        self._kill_at = self._next_kill(0.0)
        self._look_at = _LOOK_EVERY

    def produce(self) -> None:
        """Store jobs at the rate, as long as was asked for."""
        began = time.monotonic()
        while (now := time.monotonic() - began) < self._wanted.lasting:
            due = int(now * self._wanted.rate) - self._stored
            if due > 0:
                ground = self._ground
                ground.enqueue([ground.job(ground.next_number()) for _ in range(min(due, 500))])
                self._stored += min(due, 500)
            self._befall(now)
            self._ground.drill.advance(int(now), int(self._wanted.lasting), f"{self._stored:,} jobs")
            self._ground.never.wait(_TICK)
        self._report.facts["rate"] = (
            f"{self._stored / (time.monotonic() - began):,.0f}/s, asked for {self._wanted.rate:g}/s"
        )

    def work_off(self, patience: float) -> None:
        """Let the rest end in peace, and judge."""
        ground, report = self._ground, self._report
        began = time.monotonic()
        left = ground.until_idle(patience, self._look)
        self._look()
        report.facts["jobs"] = (
            f"{self._stored:,} stored, all ended {time.monotonic() - began:.0f} s after the last"
        )
        if left:
            report.facts["jobs"] = f"{self._stored:,} stored"
        report.facts["kills"] = ", ".join(f"{count} {name}" for name, count in self._kills.items()) or "none"
        report.facts["twice"] = f"{self._twice:,} jobs were delivered twice"
        judge(report, ground, self._marks, left, _WHY)
        gone = self._stored - sum(len(ground.records(state)) for state in FINAL) - len(left)
        if gone > 0:
            report.add(Finding(f"jobs are gone: {_WHY}, and of {self._stored} no trace is left of {gone}"))

    def _befall(self, now: float) -> None:
        self._ground.tend()
        if now >= self._kill_at:
            self._kill_at = self._next_kill(now)
            self._kill()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY
            self._look()
            for one in self._ground.broken(ended=False):
                self._report.add(Finding(one.sentence(_WHY)))

    def _next_kill(self, now: float) -> float:
        if not self._wanted.kills:
            return float("inf")
        return now + self._dice.expovariate(self._wanted.kills)

    def _kill(self) -> None:
        supervisor, children = self._ground.worker_pids()
        if children and self._dice.random() >= _SUPERVISOR:
            name, pid = "SIGKILL to a worker process", self._dice.choice(children)
        else:
            name, pid = "SIGKILL to a whole worker", supervisor
        if pid and signalled(pid):
            self._kills[name] += 1

    def _look(self) -> None:
        for entry in self._ground.papers.news():
            if isinstance(entry, Told):
                self._marks.append(entry.mark)
            elif isinstance(entry, Twice):
                self._twice += 1


def _rate(text: str, name: str) -> float:
    found = parse_rate(text, name)
    if found is None:
        raise UsageError(f'{name}={text!r} is no rate; write "100/s"')
    return found
