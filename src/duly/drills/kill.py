"""The kill drill: one job undisturbed, then one for each moment of its life, whose worker dies there by SIGKILL."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from duly.client.effects import Mark, by_name
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from duly.drills.drill import Broken, Drill
from duly.drills.ground import Ground, tasks_of
from duly.drills.plan import Order, Outward, Point, Seen, Struck, Told
from duly.drills.report import Finding, Report, missing, repeated, shown

_LAST_WORDS: Final = 5.0
_KINDS: Final = {
    "line": "before a line",
    "inside": "inside a line",
    "extending": "while the lease was extended",
}


class _Life(Struct):
    """What became of one job."""

    records: list[JobRecord]
    marks: list[Mark]
    points: list[Point]
    struck: Point | None
    unmarked: dict[Outward, None]
    """What its handler has done to the world outside of any marked block."""
    broken: list[Broken]
    """Invariants that did not hold right after the death."""

    @property
    def record(self) -> JobRecord | None:
        return self.records[0] if self.records else None


def kill(drill: Drill, url: str | None, most: int, patience: float, *, yes_really: bool) -> Report:
    """Run the drill. UsageError when its workers cannot start, InUse for a store that has jobs."""
    began = time.monotonic()
    report = Report("kill", tasks_of([drill.draft(1)]))
    with Ground(drill, url, yes_really=yes_really, trace=True) as ground:
        ground.start()
        usual = _live(ground, Order(), patience)
        report.facts["store"] = ground.where
        for call in usual.unmarked:
            place = f"{call.function}, line {call.line} ({shown(call.file)})"
            report.notes.append(f"not marked: {place} {call.what}; with effect(…) the drill counts it")
        if _is_fit(report, ground, usual):
            points, left_out = choose(usual.points, most)
            if left_out:
                report.notes.append(
                    f"{left_out} more moments were left out; --most {left_out + len(points)} has them all"
                )
            _die(report, ground, usual, points, patience)
    report.seconds = time.monotonic() - began
    return report


def choose(points: Sequence[Point], most: int) -> tuple[list[Point], int]:
    """(at most so many, how many are left out): those at the store first, of the lines some all along the way."""
    known = list(dict.fromkeys(points))
    at_store = [Point("extending"), *(one for one in known if one.kind not in _KINDS)][:most]
    lines = [one for one in known if one.kind in _KINDS]
    room = most - len(at_store)
    fits = len(lines) <= room
    chosen = lines if fits else [lines[at * len(lines) // room] for at in range(room)]
    return [*at_store, *chosen], len(lines) - len(chosen)


def _is_fit(report: Report, ground: Ground, usual: _Life) -> bool:
    """Whether the job does well when nobody disturbs it."""
    record = usual.record
    if record is None or record.state is not State.completed:
        state = "was not found" if record is None else f"is {record.state}"
        reason = "" if record is None or not record.reason else f": {record.reason}"
        report.add(Finding(f"undisturbed, the job {state}{reason}; a drill needs one that completes"))
        return False
    for one in ground.broken(ended=True):
        report.add(Finding(one.sentence("nobody has disturbed the job")))
    for finding in repeated(usual.marks, "nobody had disturbed it"):
        report.add(finding)
    return report.held


def _die(report: Report, ground: Ground, usual: _Life, points: Sequence[Point], patience: float) -> None:
    deaths: Counter[str] = Counter()
    unmet = 0
    marks = by_name(usual.marks)
    for at, point in enumerate(points):
        ground.drill.advance(at, len(points), str(point))
        life = _live(ground, Order(point), patience)
        if life.struck is None:
            unmet += 1
        else:
            deaths[_KINDS.get(point.kind, "at the store")] += 1
        _judge(report, ground, life, point, marks)
    report.facts["deaths"] = ", ".join(f"{count} {name}" for name, count in deaths.items()) or "none"
    report.facts["effects"] = ", ".join(marks) or "none is marked; invariants alone have judged"
    if unmet:
        report.notes.append(f"{unmet} moments did not come again in another run of the job")


def _judge(report: Report, ground: Ground, life: _Life, point: Point, usual: dict[str, list[Mark]]) -> None:
    why = f"its worker was killed {point}"
    file, line = shown(point.file), point.line
    record = life.record
    over = record is not None and not any(ground.is_live(one) for one in life.records)
    for one in life.broken:
        report.add(Finding(one.sentence(f"right after {why}"), file, line))
    for finding in repeated(life.marks, why):
        report.add(finding)
    if record is None or not over:
        state = "gone" if record is None else record.state
        report.add(Finding(f"the job never ended: {why}, and it is {state}", file, line))
        return
    if record.state is not State.completed:
        reason = record.reason or "no reason given"
        report.add(Finding(f"the job ended as {record.state}: {why}; {reason}", file, line))
        return
    for finding in missing(life.marks, usual, why):
        report.add(finding)
    for one in ground.broken(ended=True):
        report.add(Finding(one.sentence(why), file, line))


def _is_told(life: _Life, order: Order) -> bool:
    """Whether the worker has written down the last that can come of this order."""
    if order.point is not None:
        return life.struck is not None
    return any(point.kind == "after ack" for point in life.points)


def _live(ground: Ground, order: Order, patience: float) -> _Life:
    ground.put_back()
    n = ground.next_number()
    job = ground.job(n, order)
    life = _Life([], [], [], None, {}, [])
    inside: set[str] = set()

    def look() -> None:
        for entry in ground.papers.news():
            match entry:
                case Told(mark):
                    life.marks.append(mark)
                    (inside.add if mark.phase == "begun" else inside.discard)(mark.use)
                case Outward() if not inside:
                    life.unmarked[entry] = None
                case Seen(_, point):
                    life.points.append(point)
                case Struck(_, point, _):
                    life.struck = point
                    life.broken = ground.broken(ended=False)
                case _:
                    pass

    ground.enqueue([job])
    life.records = ground.until_over(n, patience, look)
    # A job's end may be visible before its worker has died, or said its last words.
    end = time.monotonic() + _LAST_WORDS
    look()
    while not _is_told(life, order) and time.monotonic() < end:
        ground.never.wait(0.02)
        look()
    return life
