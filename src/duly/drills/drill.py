"""`Drill`: which jobs are drilled, and what must hold whatever befalls them. Starts nothing before one of its verbs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from duly.app import App
from duly.client.draft import Draft
from duly.client.task import Task
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.drills.report import Report
from duly.worker.source import import_module

C = TypeVar("C", bound=Callable[..., Any])

PATIENCE = "60s"
_HOW = (
    "write there: receipts = Drill(jobs, lambda n: send_receipt.draft(order_id=n)), or name a task and its arguments: "
    "{}:TASK --args '{{…}}'"
)


class Drill:
    """What is drilled: jobs by number, and invariants. Give it a name at the top of a module of its own::

        receipts = Drill(jobs, lambda n: send_receipt.draft(order_id=n))

        @receipts.invariant
        def nobody_pays_twice() -> bool: ...

    The handlers really run, in worker processes that import that module: put doubles for gateways there.
    """

    def __init__(self, app: App, draft: Callable[[int], Draft[Any]]) -> None:
        if not isinstance(app, App):
            raise UsageError(f"Drill({app!r:.80}, …): the first argument is the App, as `jobs`")
        self.app = app
        self._draft = draft
        self.befores: list[Callable[..., Any]] = []
        self.invariants: list[Callable[..., Any]] = []
        self.outcomes: list[Callable[..., Any]] = []
        self.advance: Callable[[int, int, str], None] = _silent
        """Told how far a drill is: (done, of, what is done now)."""
        self.reference = ""
        """Where workers find it; known once it was looked for."""

    def draft(self, n: int) -> Draft[Any]:
        """The n-th job, counted from 1. UsageError when it is no draft of this App."""
        made = self._draft(n)
        if not isinstance(made, Draft):
            raise UsageError(
                f"the drill's function answers {type(made).__name__} for {n}; return task.draft(…)"
            )
        if made.client is not self.app.client:
            raise UsageError(f"{made} belongs to another App than the drill, or to another store of it")
        if made.options.connection is not None:
            raise UsageError(f"{made} brings a connection; a drill stores its jobs for itself")
        return made

    def invariant(self, fn: C) -> C:
        """`@drill.invariant`: holds at any time, also right after a death. False or an AssertionError breaks it.

        Called in the drill's own process, without arguments or with the numbers of the jobs so far: look at tables and
        files, as memory of the workers is not seen from there.
        """
        self.invariants.append(fn)
        return fn

    def outcome(self, fn: C) -> C:
        """`@drill.outcome`: holds when the jobs have ended. Called as an invariant is."""
        self.outcomes.append(fn)
        return fn

    def before(self, fn: C) -> C:
        """`@drill.before`: puts the user's own data back, before a drill begins."""
        self.befores.append(fn)
        return fn

    def kill(
        self,
        *,
        url: str | None = None,
        most: int = 60,
        patience: Duration = PATIENCE,
        yes_really: bool = False,
    ) -> Report:
        """Let a real worker be killed with SIGKILL at each moment in the life of a job, one job for each. Blocks.

        Args:
            url: the store; a temporary SQLite file unless given. On PostgreSQL a schema of the drill's own.
            most: deaths at most; where there are more moments, some of them are left out, and the report says so.
            patience: for a job to end after its worker's death.
            yes_really: also on a store that has jobs already, which its workers then run, too.

        """
        from duly.drills.kill import kill

        return kill(self, url, most, _seconds(patience), yes_really=yes_really)

    def duplicate(
        self,
        *,
        url: str | None = None,
        jobs: int = 20,
        patience: Duration = PATIENCE,
        yes_really: bool = False,
    ) -> Report:
        """Deliver each job twice: its handler runs to its end, and runs again. Blocks."""
        from duly.drills.duplicate import duplicate

        return duplicate(self, url, jobs, _seconds(patience), yes_really=yes_really)

    def reorder(
        self,
        *,
        url: str | None = None,
        jobs: int = 20,
        orders: int = 4,
        seed: int = 1,
        patience: Duration = PATIENCE,
        yes_really: bool = False,
    ) -> Report:
        """Run the same jobs backwards and shuffled. Those of one ordering key keep theirs, as duly does. Blocks."""
        from duly.drills.reorder import reorder

        return reorder(self, url, jobs, orders, seed, _seconds(patience), yes_really=yes_really)

    def load(
        self,
        *,
        rate: str = "100/s",
        lasting: Duration = "30s",
        kills: str = "0/min",
        duplicates: float = 0.0,
        processes: int = 2,
        url: str | None = None,
        seed: int = 1,
        patience: Duration = PATIENCE,
        yes_really: bool = False,
    ) -> Report:
        """Enqueue at a rate while workers are killed and some jobs come twice. Blocks.

        Args:
            rate: jobs, as "500/s".
            lasting: for so long; then all must end within `patience`.
            kills: SIGKILLs at random moments, as "10/min".
            duplicates: this share of the jobs is delivered twice, 0 to 1.
            processes: worker processes.
            url: as in `kill`.
            seed: of the dice.
            patience: for the backlog to be worked off.
            yes_really: as in `kill`.

        """
        from duly.drills.load import Load, load

        wanted = Load.read(
            rate, parse_duration(lasting, "lasting", positive=True), kills, duplicates, processes, seed
        )
        return load(self, url, wanted, _seconds(patience), yes_really=yes_really)

    def run_befores(self) -> None:
        for fn in self.befores:
            fn()

    def broken(self, numbers: Sequence[int], *, ended: bool) -> list[Broken]:
        """What does not hold."""
        found: list[Broken] = []
        for fn in [*self.invariants, *(self.outcomes if ended else ())]:
            try:
                holds = fn(list(numbers)) if _takes_numbers(fn) else fn()
            except AssertionError as error:
                found.append(Broken(fn.__name__, " ".join(str(error).split())))
                continue
            except Exception as error:
                found.append(Broken(fn.__name__, f"{type(error).__name__}: {error}"))
                continue
            if holds is not None and not holds:
                found.append(Broken(fn.__name__))
        return found


class Broken(NamedTuple):
    """An invariant that does not hold."""

    name: str
    said: str = ""

    def sentence(self, why: str) -> str:
        return f"{self.name} does not hold: {why}" + (f": {self.said:.300}" if self.said else "")


def load_drill(reference: str, args: Mapping[str, Any] | None = None) -> Drill:
    """The Drill that `MODULE[:NAME]` means, or one of the Task that it means, with these arguments.

    UsageError says what to write instead.
    """
    found, drill_reference = _found(reference)
    if isinstance(found, Drill):
        if args is not None:
            raise UsageError(f"{reference} is a Drill and makes its arguments by itself; leave --args out")
        drill = found
    else:
        task, given = found, dict(args or {})
        drill = Drill(_app_of(task), lambda _: task.draft(**given))
    drill.reference = drill_reference
    return drill


def app_behind(reference: str) -> App:
    """The App whose tasks `load_drill` would drill."""
    found, _ = _found(reference)
    return found.app if isinstance(found, Drill) else _app_of(found)


def _found(reference: str) -> tuple[Drill | Task[..., Any], str]:
    module_name, _, name = reference.partition(":")
    module = import_module(module_name)
    if not name:
        drills = sorted(key for key, value in vars(module).items() if isinstance(value, Drill))
        if len(drills) > 1:
            named = " or ".join(f"{module_name}:{key}" for key in drills)
            raise UsageError(f"{module_name} holds {len(drills)} Drills; write {named}")
        if not drills:
            raise UsageError(f"{module_name} holds no Drill; {_HOW.format(module_name)}")
        name = drills[0]
    found = getattr(module, name, None)
    if isinstance(found, (Drill, Task)):
        return found, f"{module_name}:{name}"
    what = "is nothing there" if found is None else f"is {type(found).__name__}"
    raise UsageError(f"{reference} {what}, neither a Drill nor a task; {_HOW.format(module_name)}")


def reference_of(drill: Drill) -> str:
    """Where a worker process finds a drill. UsageError for one that stands at the top of no module."""
    if drill.reference:
        return drill.reference
    for name, module in list(sys.modules.items()):
        if name == "__main__":
            continue
        for key, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
            if value is drill:
                return f"{name}:{key}"
    raise UsageError(
        "the drill's workers are processes of their own and must be able to import it: write it at the top of a "
        "module, as `receipts = Drill(jobs, …)` in shop_drill.py"
    )


def _app_of(task: Task[..., Any]) -> App:
    for module in list(sys.modules.values()):
        for app in list(getattr(module, "__dict__", {}).values()):
            if isinstance(app, App) and task.name in app.tasks and app.tasks[task.name].fn is task.fn:
                return app
    raise UsageError(f"no module that was imported holds the App of the task {task.name}; write a Drill")


def _silent(done: int, of: int, note: str) -> None:
    """For programs."""


def _takes_numbers(fn: Callable[..., Any]) -> bool:
    return bool(inspect.signature(fn).parameters)


def _seconds(text: Duration) -> float:
    span: timedelta = parse_duration(text, "patience", positive=True)
    return span.total_seconds()
