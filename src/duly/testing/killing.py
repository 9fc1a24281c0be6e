"""Dying at every step: one job is run again and again, and its process dies one store call later each time.

A death is an error that no handler of errors catches, and silence from then on; its supervisor then settles it.
`finally` blocks do run, unlike after a SIGKILL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from duly.client.draft import Draft
from duly.client.effects import Mark, by_name, happened, heard, too_often, too_rarely
from duly.client.encoding import new_job
from duly.core.errors import UsageError
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, Outcome
from duly.testing.draining import Drainer, Script
from duly.testing.tap import Killed

# What a job's own process says to the store; reads of others and upkeep change nothing that could be lost.
_STEPS: Final = ("jobs.", "steps.", "keys.")


class Reaper:
    """Counts the moments before and after each store call, and lets the process die at one of them."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0
        self.where = ""
        self.dead = False

    def before(self, call: str) -> None:
        self._moment(call, "before")

    def after(self, call: str, answer: object) -> None:
        self._moment(call, "after")

    def _moment(self, call: str, side: str) -> None:
        if self.dead:
            raise Killed
        if not (call.startswith(_STEPS) or call.endswith("_on")):
            return
        self.count += 1
        if self.count == self.at:
            self.dead, self.where = True, f"{side} {call}"
            raise Killed


def deaths(
    drainer: Drainer,
    draft: Draft[object],
    invariant: Callable[[], object],
    before: Callable[[], object],
) -> Script[int]:
    """Run the draft's job once undisturbed, then once for each moment at which its process can die."""
    whole = yield from _life(drainer, draft, invariant, before, None)
    usual = by_name(whole.marks)
    step = 0
    while True:
        step += 1
        one = yield from _life(drainer, draft, invariant, before, step)
        if not one.died:
            return step - 1
        if one.record.state is not whole.record.state:
            raise AssertionError(
                f"after a death {one.where} (step {step}) the job ended as {one.record.state} instead of "
                f"{whole.record.state}: {one.record.reason or 'no reason given'}"
            )
        here = by_name(one.marks)
        for name, times in usual.items():
            if len(here.get(name, ())) < len(times):
                raise AssertionError(f"{too_rarely(times[0])} after a death {one.where} (step {step})")


class _Life:
    def __init__(self, reaper: Reaper, record: JobRecord, marks: list[Mark]) -> None:
        self.marks = marks
        self.died = reaper.dead
        self.where = reaper.where
        self.record = record


def _life(
    drainer: Drainer,
    draft: Draft[object],
    invariant: Callable[[], object],
    before: Callable[[], object],
    at: int | None,
) -> Script[_Life]:
    before()
    id = _enqueue(draft)
    reaper = Reaper(at)
    drainer.tapped.ears.append(reaper)
    with heard() as marks:
        try:
            yield from drainer.script(None, scheduled=False, raising=at is None)
        except Killed:
            _check(invariant, f"right after a death {reaper.where} (step {at})")
        finally:
            drainer.tapped.ears.clear()
        # Whatever the death has left behind, another worker must bring to its end, retries included.
        yield from drainer.script(None, scheduled=True, raising=False)
    when = "after a run without any death" if at is None else f"after a death {reaper.where} (step {at})"
    record = drainer.app.store.inspection.lookup([id])[0]
    if record is None or record.state not in FINAL:
        state = "gone" if record is None else record.state
        raise AssertionError(f"after a death {reaper.where} (step {at}) the job never ended: it is {state}")
    _check(invariant, "after a run without any death" if at is None else f"after a death {reaper.where}")
    refuse_repetitions(marks, when)
    return _Life(reaper, record, marks)


def refuse_repetitions(marks: list[Mark], when: str) -> None:
    """AssertionError when an effect that was marked happened more than once."""
    for (_, key), times in happened(marks).items():
        if len(times) > 1:
            first = times[0]
            raise AssertionError(f"{too_often(times)} ({first.file}:{first.line}), {key}, {when}")


def _enqueue(draft: Draft[object]) -> JobId:
    if draft.options.connection is not None:
        raise UsageError(f"{draft} brings a connection; each death needs a job that is stored for itself")
    client = draft.client
    (stored,) = client.call(client.store.jobs.enqueue, [new_job(draft, None)])
    if stored.outcome is not Outcome.created:
        raise UsageError(
            f"{draft} is a {stored.outcome} of job {stored.id}; each death needs a job of its own: leave the key "
            "out of the draft, or free it in before="
        )
    return stored.id


def _check(invariant: Callable[[], object], when: str) -> None:
    try:
        holds = invariant()
    except AssertionError as error:
        error.add_note(when)
        raise
    if holds is not None and not holds:
        raise AssertionError(f"the invariant does not hold {when}")
