"""The duplicate drill: every job's handler runs to its end, and then the job is delivered once more."""

from __future__ import annotations

import time
from collections import Counter

from duly.client.effects import Mark
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from duly.drills.drill import Drill
from duly.drills.ground import Ground, correlation_of, tasks_of
from duly.drills.plan import Told, Twice
from duly.drills.report import Finding, Report, repeated

_WHY = "the job was delivered twice"


def duplicate(drill: Drill, url: str | None, jobs: int, patience: float, *, yes_really: bool) -> Report:
    """Run the drill. UsageError when its workers cannot start, InUse for a store that has jobs."""
    began = time.monotonic()
    report = Report("duplicate", tasks_of([drill.draft(1)]))
    marks: list[Mark] = []
    twice: set[str] = set()
    with Ground(drill, url, yes_really=yes_really, twice=1.0) as ground:
        report.facts["store"] = ground.where
        ground.start()

        def look() -> None:
            for entry in ground.papers.news():
                match entry:
                    case Told(mark):
                        marks.append(mark)
                    case Twice(_, correlation):
                        twice.add(correlation)
                    case _:
                        pass

        made = [ground.job(ground.next_number()) for _ in range(jobs)]
        left: list[JobRecord] = []
        if any(job.ordering_key is not None for job in made):
            # The next one of a key begins when the one before has ended for good: a second delivery later would be
            # an order that duly never makes.
            for n, job in enumerate(made, start=1):
                drill.advance(n, jobs, "")
                ground.enqueue([job])
                left += [one for one in ground.until_over(n, patience, look) if ground.is_live(one)]
        else:
            ground.enqueue(made)
            left = ground.until_idle(patience, look)
        look()
        judge(report, ground, marks, left, _WHY)
        once = sum(1 for n in range(1, jobs + 1) if correlation_of(n) not in twice)
        report.facts["jobs"] = f"{jobs}, of which {jobs - once} were delivered twice"
        if once:
            report.notes.append(
                f"{once} were delivered once: a completion in a transaction of the handler's own cannot be lost, nor "
                "does a task with ack='start' run again, nor one that did not complete"
            )
    report.seconds = time.monotonic() - began
    return report


def judge(report: Report, ground: Ground, marks: list[Mark], left: list[JobRecord], why: str) -> None:
    """What must hold when all jobs of a drill have ended."""
    for one in left:
        report.add(Finding(f"{one.task} never ended: job {one.id} is {one.state}"))
    for finding in repeated(marks, why):
        report.add(finding)
    dead = Counter((one.task, one.reason or "no reason given") for one in ground.records(State.dead))
    for (task, reason), times in dead.items():
        report.add(Finding(f"{task} ended as dead: {why}; {reason}", times=times))
    for broken in ground.broken(ended=not left):
        report.add(Finding(broken.sentence(why)))
