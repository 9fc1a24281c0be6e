"""What NOTIFY costs 32 connections that enqueue beside a fleet: the bell as shipped, cut off, and always rung.

The three take turns in one database; each is the shipped schema with another body of its function `ring_1`.
"""

import select
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.flatness.product import Product
from bench.flatness.report import Report
from bench.nearby.application import Application

CONNECTIONS = 32
LOSS = 0.10
CALL = "select duly.enqueue('brief', '{\"x\": 1}', queue => 'brief');\n"
SILENT = "begin end"
ALWAYS = "begin perform pg_notify('duly_' || 'duly.worker'::regclass::oid, ''); end"
_REPLACE = "create or replace function duly.ring_1() returns void language plpgsql as $$ %s $$"


class Bells:
    """Counts what a listener hears."""

    def __init__(self, url: str) -> None:
        self.heard = 0
        self._stopping = False
        self._connection = psycopg.connect(url, autocommit=True)
        row = self._connection.execute("select 'duly_' || 'duly.worker'::regclass::oid").fetchone()
        assert row is not None
        self._connection.execute(f'listen "{row[0]}"'.encode())
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._thread.join(10)
        self._connection.close()

    def _listen(self) -> None:
        generator = self._connection.pgconn
        while not self._stopping:
            if not select.select([generator.socket], [], [], 0.1)[0]:
                continue
            generator.consume_input()
            while generator.notifies() is not None:
                self.heard += 1


def run(
    made: Product, application: Application, report: Report, turns: int, seconds: float, *, fleet: str
) -> float:
    """With whatever workers are running; the share of enqueues that the shipped bell costs."""
    shipped = _body(made)
    bodies = {"as shipped": shipped, "cut off": _REPLACE % SILENT, "always rung": _REPLACE % ALWAYS}
    rates: dict[str, list[float]] = {name: [] for name in bodies}
    rung: dict[str, list[float]] = {name: [] for name in bodies}
    try:
        with _script() as script:
            order = list(bodies)
            for _ in range(turns):
                # Who comes first meets the tables that the one before has left.
                order.append(order.pop(0))
                for name in order:
                    made.execute(bodies[name])
                    bells = Bells(made.url)
                    felt = application.run(seconds, clients=CONNECTIONS, script=script)
                    bells.stop()
                    rates[name].append(felt.per_s)
                    rung[name].append(bells.heard / max(1.0, felt.per_s * seconds))
    finally:
        made.execute(shipped)
    quiet = statistics.median(rates["cut off"])
    report.title(f"NOTIFY: {CONNECTIONS} connections enqueue one job a transaction, {fleet}")
    report.table(
        ("bell", "enqueues/s", "of cut off", "notifications per enqueue"),
        (
            (
                name,
                f"{statistics.median(found):,.0f}",
                f"{statistics.median(found) / quiet:.0%}",
                f"{statistics.median(rung[name]):.3f}",
            )
            for name, found in rates.items()
        ),
    )
    # Of pairs from the same turn: the disk's weather changes between turns.
    pairs = [own / cut for own, cut in zip(rates["as shipped"], rates["cut off"], strict=True)]
    return 1 - statistics.median(pairs)


def _body(made: Product) -> str:
    return str(made.execute("select pg_get_functiondef('duly.ring_1'::regproc)")[0][0])


@contextmanager
def _script() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="duly-beside-") as folder:
        path = Path(folder) / "enqueue.sql"
        path.write_text(CALL)
        yield path
