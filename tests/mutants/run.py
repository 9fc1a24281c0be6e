"""Breaks duly in one place at a time and demands that a test notices: `make mutants`.

Each mutant of tests/mutants is applied to a copy of src/duly. Exit 1 when one survives, does not run or no longer fits.
WORDS: only mutants whose file or promise holds them all.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.process import LOADED, ROOT, hunt_there
from tests.services import PostgresServer

CORE_TESTS = (
    "lifecycle", "leases", "decide", "keys", "schedule", "schedule_plan", "share", "bounds", "budget", "ageing",
    "dead_breaker",
)  # fmt: skip
LONGEST = 120


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """caught, SURVIVED, SLOW, BROKEN (does not run) or UNFIT (its text is not in the code)."""
    by: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("words", nargs="*", help="all of them must occur in the file or the promise")
    options = parser.parse_args()
    chosen = [one for one in MUTANTS if all(word in f"{one.file} {one.breaks}" for word in options.words)]
    if not chosen:
        print("no mutant fits these words", file=sys.stderr)
        return 2
    began = time.monotonic()
    with ExitStack() as stack:
        server = None
        if any(mutant.hunt == "postgres" for mutant in chosen):
            server = stack.enter_context(PostgresServer(15))
        pool = stack.enter_context(ThreadPoolExecutor(options.jobs))
        verdicts = [told(verdict) for verdict in pool.map(partial(hunt, server=server), chosen)]
    bad = [verdict for verdict in verdicts if verdict.outcome != "caught"]
    print(f"{len(verdicts) - len(bad)} of {len(verdicts)} mutants caught in {time.monotonic() - began:.0f} s")
    for verdict in bad:
        print(f"{verdict.outcome}: {verdict.mutant.file}: {verdict.mutant.breaks}\n    {verdict.by}")
    return 1 if bad else 0


def told(verdict: Verdict) -> Verdict:
    mutant = verdict.mutant
    print(
        f"{verdict.outcome:8} {verdict.seconds:4.1f} s  {mutant.file}: {mutant.breaks}  <- {verdict.by}",
        flush=True,
    )
    return verdict


def hunt(mutant: Mutant, server: PostgresServer | None) -> Verdict:
    began = time.monotonic()
    if (ROOT / "src/duly" / mutant.file).read_text().count(mutant.old) != 1:
        return Verdict(mutant, "UNFIT", f"{mutant.old!r} is not there exactly once", 0.0)
    with mutated(mutant) as source:
        outcome, by = run(mutant, source, server)
    return Verdict(mutant, outcome, by, time.monotonic() - began)


@contextmanager
def mutated(mutant: Mutant) -> Iterator[Path]:
    """A folder with a copy of the package in which the mutant lives."""
    folder = Path(tempfile.mkdtemp(prefix="duly-mutant-"))
    try:
        # With what Python has compiled: else every mutant compiles everything anew, which takes as long as its tests.
        shutil.copytree(ROOT / "src/duly", folder / "duly", copy_function=linked)
        file = folder / "duly" / mutant.file
        text = file.read_text().replace(mutant.old, mutant.new)
        file.unlink()
        file.write_text(text)
        yield folder
    finally:
        shutil.rmtree(folder)


def linked(source: str, target: str) -> None:
    """One file under two names; a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def run(mutant: Mutant, source: Path, server: PostgresServer | None) -> tuple[str, str]:
    database = server.create_database() if server is not None and mutant.hunt == "postgres" else None
    tests = list(mutant.tests)
    if mutant.hunt == "core" and not tests:
        # The module's own tests first.
        names = sorted(CORE_TESTS, key=lambda name: (name not in mutant.areas, name not in mutant.file))
        tests = [f"tests/core/test_{name}.py" for name in names]
    arguments = [mutant.hunt, ",".join(mutant.areas)]
    if server is not None and database is not None:
        arguments.append(server.url(database))
    output = source / "output"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    child = context.Process(target=hunt_there, args=(source, output, tests, arguments))
    try:
        child.start()
        child.join(LONGEST)
        if child.exitcode is None:
            child.kill()
            child.join()
            return "SLOW", f"no test failed within {LONGEST} s"
    finally:
        if server is not None and database is not None:
            server.drop_database(database)
    lines = [line for line in output.read_text().splitlines() if line.strip()]
    failed = next((line for line in lines if line.startswith("FAILED")), lines[-1] if lines else "")
    match child.exitcode:
        case 0:
            return "SURVIVED", "every test passed"
        case 1 if not any(line.startswith("Traceback") for line in lines):
            return "caught", failed.removeprefix("FAILED ").partition(" - ")[0]
        case _:
            return "BROKEN", failed[-300:]
