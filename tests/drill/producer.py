"""One producer: enqueues numbers FIRST, FIRST + 1, ... until it is told to end or killed.

Of ten, four are plain enqueues, four stand in a transaction with a row of the producer's own table, one of those
transactions is rolled back, one is a batch of five. Beside them goes work that something bounds. It writes to the
ledger only after the call or commit returned.
"""

import random
import sqlite3
import sys
import threading
from typing import Any, NoReturn

from duly.stores.faults import Transient
from tests.drill import ledger
from tests.drill.audit import CONTROLLED_FROM
from tests.drill.controlled import Controlled
from tests.drill.effects import followed, in_steps, own_connection, transactional
from tests.drill.handlers import in_a_process, in_a_thread, jobs, on_the_loop

SHARE_CONTROLLED = 0.4


def task_for(n: int) -> Any:
    """Mostly on the loop; the others in threads and processes, with effects, steps and follow-ups."""
    match n % 40:
        case 0 | 20:
            return in_a_process
        case 5 | 15:
            return in_a_thread
        case 10:
            return transactional
        case 11:
            return followed(transactional)
        case 30:
            return in_steps
        case 31 | 32:
            return followed(on_the_loop)
        case _:
            return on_the_loop


def in_transaction(connection: Any, n: int, *, keep: bool) -> None:
    """Insert the row and enqueue in one transaction, then commit or roll back."""
    sqlite = isinstance(connection, sqlite3.Connection)
    if sqlite:
        connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"INSERT INTO drill_orders (n) VALUES ({n})")
    sent = task_for(n).using(connection=connection).enqueue(n)
    if keep:
        connection.commit()
        ledger.write(ledger.COMMITTED, n, int(sent.id))
    else:
        connection.rollback()
        ledger.write(ledger.ROLLED_BACK, n, int(sent.id))


def one_step(connection: Any, n: int, dice: random.Random) -> int:
    """Enqueue from n on in one of the ways; how many numbers it used."""
    way = dice.randrange(10)
    if way < 4:
        ledger.write(ledger.ENQUEUED, n, int(task_for(n).enqueue(n).id))
        return 1
    if way < 9:
        in_transaction(connection, n, keep=way != 8)
        return 1
    for offset, sent in enumerate(jobs.enqueue_many(task_for(n + i).draft(n + i) for i in range(5))):
        ledger.write(ledger.ENQUEUED, n + offset, int(sent.id))
    return 5


def main() -> NoReturn:
    """FIRST PAUSE_SECONDS URL_OF_OWN_CONNECTION."""
    first, pause, url = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    dice = random.Random(first)
    never = threading.Event()
    n = first
    controlled = Controlled(first + CONTROLLED_FROM, dice)
    while True:
        try:
            with own_connection(url) as connection:
                while True:
                    if dice.random() < SHARE_CONTROLLED:
                        controlled.step(connection)
                    else:
                        n += one_step(connection, n, dice)
                    never.wait(pause * dice.random() * 2)
        except Exception as error:
            # The store is being restarted or cut: this number's fate is unknown, the next one gets a new connection.
            if not isinstance(error, Transient) and "drill" in type(error).__module__:
                raise
            n += 5
            controlled.broken_off()
            never.wait(0.1)


if __name__ == "__main__":
    main()
