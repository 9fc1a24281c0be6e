"""Writes docs/job-lifecycle.md from the transition table; with --check fails when the page is out of date."""

import sys
from pathlib import Path

from duly.core.lifecycle import FINAL, TRANSITIONS, Event, State

PAGE = Path(__file__).parent.parent / "docs" / "job-lifecycle.md"

BY = {
    Event.enqueue: "client",
    Event.promote: "any worker, when the job is due",
    Event.claim: "worker",
    Event.park: "worker: unknown or paused task; behind its ordering key, a limit or a block",
    Event.unblock: "worker that knows the task; resume; whatever frees the key or the limit",
    Event.complete: "handler, `job.complete`",
    Event.fail: "executor: an error, a timeout",
    Event.snooze: "handler: `raise Snooze`",
    Event.skip: "handler: `raise Skip`; a guard; or expired",
    Event.bury: "handler: `raise Dead`",
    Event.interrupt: "shutdown",
    Event.lose: "rescue, under a lapsed lease",
    Event.cancel: "operator, client",
    Event.redrive: "operator",
    Event.run_now: "operator",
    Event.run_at: "operator",
    Event.reprioritise: "operator",
    Event.shed: "sweep: the queue or the store is too full",
    Event.abandon: "sweep: no worker has known the task for an hour",
}

COUNTS = {
    Event.claim: "run + 1",
    Event.fail: "failed + 1",
    Event.snooze: "snoozed + 1",
    Event.interrupt: "interrupted + 1",
    Event.lose: "lost + 1",
    Event.redrive: "failed, lost, interrupted, snoozed = 0",
}

HEAD = """# The life of a job

Generated from the transition table in `src/duly/core/lifecycle.py` by `scripts/lifecycle_diagram.py`. The conformance
suite walks every pair of state and event on every store: a legal pair yields what this table says, any other changes
nothing and says so.
"""

TAIL = """
In a store the state is the table that holds the job: a transition deletes a row in one and inserts it into another, in
one transaction, so a job cannot be in two states. `promote`, `fail`, `snooze`, `interrupt` and `lose` end in
`cancelled` where a cancel was wished for the job meanwhile. A cancel of a running job is such a wish: the handler sees
`job.should_stop`. A job that is neither started nor due may expire: `skip` with the reason "expired".

`attempt`, as handlers and people see it, is 1 + failed + lost: a snooze or an interrupt is not a new attempt.
"""


def _name(state: State | None) -> str:
    return "[*]" if state is None else state.value


def page() -> str:
    """The whole text of the page."""
    lines = [HEAD, "```mermaid", "stateDiagram-v2"]
    edges: dict[tuple[str, str], list[str]] = {}
    for (before, event), after in TRANSITIONS.items():
        for state in sorted(after):
            edges.setdefault((_name(before), _name(state)), []).append(event.value)
    lines += [f"    {a} --> {b}: {', '.join(events)}" for (a, b), events in edges.items()]
    lines += [f"    {state.value} --> [*]" for state in State if state in FINAL]
    lines += ["```", "", "| event | by | from → to | counts |", "|---|---|---|---|"]
    for event in Event:
        moves = [
            f"{'new' if before is None else before.value} → {' or '.join(s.value for s in State if s in after)}"
            for (before, kind), after in TRANSITIONS.items()
            if kind is event
        ]
        lines.append(f"| {event.value} | {BY[event]} | {'; '.join(moves)} | {COUNTS.get(event, '')} |")
    return "\n".join(lines) + "\n" + TAIL


def main() -> int:
    """0 when the page is up to date (or was written)."""
    if "--check" in sys.argv:
        if PAGE.read_text() != page():
            print(f"{PAGE.name} is not what the transition table says: run scripts/lifecycle_diagram.py")
            return 1
        return 0
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
