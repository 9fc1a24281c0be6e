"""What every store of jobs must do, as plain functions: the suite that duly's own stores pass; see `check`.

Knows the store protocols only. Cases use assert: do not run them under `python -O`.
"""

from collections.abc import Callable
from inspect import isfunction
from types import ModuleType
from typing import NamedTuple

from . import (
    admitting,
    alerting,
    answering,
    asynchronous,
    auditing,
    batching,
    budgeting,
    chaining,
    changing,
    claiming,
    contending,
    editing,
    ending,
    enqueueing,
    explaining,
    fairness,
    following,
    keying,
    lateness,
    leasing,
    leaving,
    limiting,
    minding,
    mixing,
    nesting,
    operating,
    ordering,
    pacing,
    parking,
    permitting,
    pressing,
    racing,
    reading,
    registering,
    releasing,
    replacing,
    scheduling,
    sealing,
    sharing,
    stepping,
    tallying,
    telling,
    transitions,
    triaging,
    uniqueness,
    upkeep,
    wishing,
)
from .bench import Bench, Database

AREAS = (
    enqueueing,
    claiming,
    parking,
    ending,
    wishing,
    leasing,
    upkeep,
    reading,
    explaining,
    operating,
    keying,
    uniqueness,
    replacing,
    mixing,
    contending,
    following,
    stepping,
    scheduling,
    registering,
    ordering,
    leaving,
    chaining,
    limiting,
    releasing,
    pacing,
    permitting,
    fairness,
    sharing,
    changing,
    telling,
    pressing,
    lateness,
    budgeting,
    batching,
    minding,
    nesting,
    asynchronous,
    racing,
    admitting,
    answering,
    triaging,
    editing,
    auditing,
    sealing,
    alerting,
    tallying,
)


class Case(NamedTuple):
    """One promise, named by the behaviour."""

    area: str
    name: str
    run: Callable[[Bench], None]


def cases() -> list[Case]:
    """Every case, in a fixed order."""
    found = [case for area in AREAS for case in _cases_of(area)]
    return found + [Case("transitions", name, run) for name, run in transitions.pairs()]


def check(case: Case, database: Database) -> None:
    """Run one case on an empty database; AssertionError when the store does not keep this promise.

    For a store of your own, in any test runner:

        for case in conformance.cases():
            conformance.check(case, database)  # a new, empty one for each case

    where `database` opens handles on the store under test (see `Database`).
    """
    bench = Bench(database)
    try:
        case.run(bench)
    finally:
        bench.close()


def _cases_of(area: ModuleType) -> list[Case]:
    name = area.__name__.rpartition(".")[2]
    return [
        Case(name, member.__name__, member)
        for member in vars(area).values()
        if isfunction(member) and member.__module__ == area.__name__ and not member.__name__.startswith("_")
    ]


__all__ = ["Bench", "Case", "Database", "cases", "check"]
