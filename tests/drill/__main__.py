"""`python -m tests.drill [--short] [--store sqlite|postgres|both] [--keep FOLDER]`: prints a ledger; 0 if all held."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from duly.stores.open import open_store
from duly.stores.protocol import Store
from tests.drill import audit, audit_batches, audit_controls, leases, ledger, migrations
from tests.drill.chaos import Chaos, Fleet, Plan
from tests.drill.effects import CREATE, ORDERS, own_connection
from tests.drill.operating import Operator
from tests.drill.proxy import Proxy
from tests.services import PostgresServer

LEASE = 2.0
SETTINGS = {
    "DULY_LEASE": "2s",
    "DULY_HEARTBEAT": "400ms",
    "DULY_GRACE": "2s",
    "DULY_POLL": "100ms",
    "DULY_POISON": "50",
}
LONG = Plan(kills=200, stops=30, restarts=20, terminations=50, hangs=10, pause=0.45, frozen_for=2 * LEASE)
SHORT = Plan(kills=20, stops=3, restarts=2, terminations=5, hangs=1, pause=0.35, frozen_for=2 * LEASE)


def processes(folder: Path, direct: str, through: str, jobs: int, seconds: float) -> Fleet:
    """Four workers, one through the proxy and one for short jobs of ordering keys alone, and two producers.

    A worker takes several jobs of a key at once while what its queues hold takes next to no time.
    """
    environment = {
        **os.environ,
        **SETTINGS,
        ledger.PATH: str(folder / "ledger"),
        "PYTHONPATH": str(Path.cwd()),
    }
    generation = iter(range(1, 1_000_000))
    log = (folder / "output.log").open("ab")

    def spawn(url: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**environment, "DULY_URL": url},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def worker(url: str, *options: str) -> Callable[[], subprocess.Popen[bytes]]:
        return lambda: spawn(
            url,
            "duly.cli.main",
            "worker",
            "tests.drill.controls:jobs",
            "--concurrency",
            "20",
            "--threads",
            "4",
            "--isolated",
            "1",
            *options,
        )

    pause = seconds / jobs

    def producer(maker: int) -> Callable[[], subprocess.Popen[bytes]]:
        return lambda: produce(maker, next(generation) * 1_000_000)

    def produce(_: int, first: int) -> subprocess.Popen[bytes]:
        return spawn(direct, "tests.drill.producer", str(first), f"{pause:.5f}", direct)

    but_quick = ("--except", "quick")
    workers = [
        worker(direct),
        worker(direct, *but_quick),
        worker(through, *but_quick),
        worker(direct, "--queues", "quick"),
    ]
    return Fleet(workers, [producer(1), producer(2)])


def drain(store: Store, fleet: Fleet, operator: Operator, seconds: float) -> None:
    """Wait until every job has ended, as long as fewer are left than ever before in the last `seconds`."""
    end, fewest = time.monotonic() + seconds, sys.maxsize
    never = threading.Event()
    while time.monotonic() < end:
        fleet.tend()
        operator.heal()
        counts = store.inspection.counts()
        live = sum(c.ready + c.scheduled + c.blocked + c.running + c.dead for c in counts)
        if live == 0 and fleet.producers_ended():
            return
        if live < fewest:
            # A busy machine is slow, not stuck.
            end, fewest = time.monotonic() + seconds, live
        never.wait(0.2)


def idle(url: str, fleet: Fleet, seconds: float) -> list[str]:
    """What bounds and batches have left behind, although the workers' sweeps had time to find it."""
    end = time.monotonic() + seconds
    never = threading.Event()
    while True:
        with own_connection(url) as connection:
            found = leases.left(connection, postgres=not url.startswith("sqlite"))
        if not found or time.monotonic() > end:
            return found
        fleet.tend()
        never.wait(0.2)


def produce_until(store: Store, fleet: Fleet, jobs: int, seconds: float) -> None:
    """Let the producers go on until `jobs` were stored, then end them."""
    end = time.monotonic() + seconds
    never = threading.Event()
    path = Path(os.environ[ledger.PATH])
    while time.monotonic() < end and not fleet.producers_ended():
        fleet.tend()
        if sum(line.kind in (ledger.ENQUEUED, ledger.COMMITTED) for line in ledger.read(path)) >= jobs:
            break
        never.wait(0.5)
    fleet.producing = False
    for pid in fleet.producer_pids():
        fleet.running[pid].terminate()


def run(kind: str, plan: Plan, jobs: int, seed: int, keep: Path | None) -> bool:
    """One drill on one kind of store; whether everything held."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duly-drill-")))
        server, proxy = None, None
        if kind == "postgres":
            server = stack.enter_context(PostgresServer(15))
            direct = server.url(server.create_database())
            proxy = Proxy(server.port)
            stack.callback(proxy.close)
            through = direct.replace(f":{server.port}/", f":{proxy.port}/")
        else:
            direct = through = f"sqlite:///{folder}/drill.db"
        os.environ[ledger.PATH] = str(folder / "ledger")
        (folder / "ledger").touch()
        store = open_store(direct)
        stack.callback(store.close)
        prepare(store, direct)
        acts = plan.kills + plan.stops + (plan.restarts + plan.terminations + plan.hangs if server else 0)
        fleet = processes(folder, direct, through, jobs, acts * plan.pause + plan.stops * plan.frozen_for)
        chaos = Chaos(fleet, plan if server else plan_without_server(plan), seed, server, proxy)
        operator = Operator(store, seed)
        started = time.monotonic()
        fleet.start()
        operator.start()
        try:
            chaos.run()
            produce_until(store, fleet, jobs, seconds=600)
            operator.end()
            drain(store, fleet, operator, seconds=120)
            leftovers = idle(direct, fleet, seconds=20)
        finally:
            operator.end()
            fleet.stop()
        findings, bounded = audited(store, direct, folder, chaos)
        if keep is not None:
            shutil.copytree(folder, keep / kind, dirs_exist_ok=True)
        bounded.broken += [f"left behind in {rows}" for rows in leftovers]
        migrations.drill(kind, folder, server, seed, 3 if plan is SHORT else 20, findings.broken)
        report(kind, findings, chaos, fleet, time.monotonic() - started)
        report_bounded(bounded, operator)
        held = not findings.broken and not bounded.broken
        if not held:
            print((folder / "output.log").read_text(errors="replace")[-4000:], file=sys.stderr)
        return held


def prepare(store: Store, url: str) -> None:
    """The store's schema, the user's own tables, and the triggers that see every lease."""
    store.schema.migrate()
    with own_connection(url) as connection:
        connection.execute(ORDERS)
        connection.execute(CREATE)
        leases.watch(connection, postgres=not url.startswith("sqlite"))
        connection.commit()


def audited(
    store: Store, url: str, folder: Path, chaos: Chaos
) -> tuple[audit.Findings, audit_controls.Bounded]:
    """Everything that the drill has left behind, compared."""
    with own_connection(url) as connection:
        orders = {row[0] for row in connection.execute("SELECT n FROM drill_orders").fetchall()}
        effects = Counter(connection.execute("SELECT kind, n FROM drill_effects").fetchall())
        events = leases.events(connection)
    (folder / "leases").write_text("".join(f"{event}\n" for event in events))
    lines, records = ledger.read(folder / "ledger"), audit.all_jobs(store)
    findings = audit.audit(store, records, lines, chaos.stopped_pids, orders, effects)
    bounded = audit_controls.audit(records, events, lines, findings.died, chaos.stopped_pids)
    audit_batches.audit(bounded, store, records, lines, findings.died)
    return findings, bounded


def plan_without_server(plan: Plan) -> Plan:
    return Plan(plan.kills, plan.stops, 0, 0, 0, plan.pause, plan.frozen_for)


def report(kind: str, findings: audit.Findings, chaos: Chaos, fleet: Fleet, seconds: float) -> None:
    """Print the ledger of one drill."""
    print(f"\n{kind}: {findings.jobs} jobs, {findings.handler_runs} handler runs in {seconds:.0f} s")
    for name, count in sorted(chaos.done.items()):
        print(f"  {count:6}  {name}")
    print(f"  states          {dict(findings.states)}")
    print(f"  ended attempts  {dict(findings.attempts)} (completions at the first run are not listed)")
    print(f"  failures        {dict(findings.failures)}")
    print(f"  processes       {dict(fleet.exits)}")
    print(
        f"  duplicate runs  {findings.duplicate_runs}, each explained by a recorded attempt unless listed below"
    )
    longest = f"longest {findings.overlap_longest_ms:.0f} ms"
    print(f"  overlaps        {findings.overlaps_frozen} with a frozen process ({longest})")
    print(f"  effects         {dict(findings.effects)}")
    print(f"  due times       {findings.due_times} of one schedule, each fired once")
    print(f"  broken promises {len(findings.broken)}")
    for text in findings.broken[:20]:
        print(f"    {text}")


def report_bounded(bounded: audit_controls.Bounded, operator: Operator) -> None:
    """Print what was bounded, and how far handlers were inside together all the same."""
    print(
        f"  by hand         {dict(operator.done)}; {bounded.died} jobs died, {bounded.cancelled} are cancelled"
    )
    print(
        f"  ordering keys   {bounded.keyed} jobs of {bounded.keys} keys, {bounded.chained} claimed in a chain"
    )
    print(f"  limits          {bounded.limited} jobs; the breaker opened {bounded.breaker_opened} times")
    print(f"  locks           taken {bounded.locks_taken} times")
    print(f"  batches         {bounded.batches}")
    for what, overlap in bounded.overlaps.items():
        print(f"  true overlap    {what}: {overlap.times} times (longest {overlap.longest_ms:.0f} ms)")
    print(f"  broken bounds   {len(bounded.broken)}")
    for text in bounded.broken[:20]:
        print(f"    {text}")


def main() -> int:
    """0 when every promise held on every store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="about two minutes: a tenth of everything")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="copy the ledger, the leases and the processes' output there"
    )
    options = parser.parse_args()
    plan, jobs = (SHORT, 1_600) if options.short else (LONG, 20_000)
    kinds = ["sqlite", "postgres"] if options.store == "both" else [options.store]
    held = [run(kind, plan, options.jobs or jobs, options.seed, options.keep) for kind in kinds]
    print("\nAll promises held." if all(held) else "\nA promise was broken.")
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
