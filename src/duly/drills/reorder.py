"""The reorder drill: the same jobs, run forwards, backwards and shuffled, one after the other."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence

from duly.client.effects import Mark
from duly.core.job import JobRecord, NewJob
from duly.drills.drill import Drill
from duly.drills.duplicate import judge
from duly.drills.ground import Ground, number_of, tasks_of
from duly.drills.plan import Told
from duly.drills.report import Report


def reorder(
    drill: Drill, url: str | None, jobs: int, orders: int, seed: int, patience: float, *, yes_really: bool
) -> Report:
    """Run the drill. UsageError when its workers cannot start, InUse for a store that has jobs."""
    began = time.monotonic()
    report = Report("reorder", tasks_of([drill.draft(1)]))
    marks: list[Mark] = []
    with Ground(drill, url, yes_really=yes_really, seed=seed) as ground:
        report.facts["store"] = ground.where
        ground.start()

        def look() -> None:
            marks.extend(entry.mark for entry in ground.papers.news() if isinstance(entry, Told))

        dice = random.Random(seed)
        for at in range(orders):
            ground.put_back()
            made = [ground.job(ground.next_number()) for _ in range(jobs)]
            if at == 1:
                made = in_order(made, list(reversed(range(jobs))))
            elif at > 1:
                made = in_order(made, dice.sample(range(jobs), jobs))
            left: list[JobRecord] = []
            for done, job in enumerate(made):
                drill.advance(at * jobs + done, orders * jobs, "")
                # Workers take the next one while one runs; only one at a time has an order at all.
                ground.enqueue([job])
                records = ground.until_over(number_of(job), patience, look)
                left += [one for one in records if ground.is_live(one)]
            look()
            why = "the jobs ran " + ("in their order" if at == 0 else "backwards" if at == 1 else "shuffled")
            judge(report, ground, marks, left, why)
            if left or not report.held:
                break
    report.facts["orders"] = f"{orders}: forwards, backwards, then shuffled (seed {seed}), {jobs} jobs each"
    report.seconds = time.monotonic() - began
    return report


def in_order(jobs: Sequence[NewJob], positions: Sequence[int]) -> list[NewJob]:
    """The jobs at these positions, where those of one ordering key stay in theirs: that much duly promises."""
    made = [jobs[at] for at in positions]
    by_key: dict[tuple[str, str, str], list[NewJob]] = defaultdict(list)
    for job in jobs:
        if job.ordering_key is not None:
            by_key[job.queue, job.tenant, job.ordering_key].append(job)
    turns = {key: iter(waiting) for key, waiting in by_key.items()}
    return [
        job if job.ordering_key is None else next(turns[job.queue, job.tenant, job.ordering_key])
        for job in made
    ]
