"""What a producer enqueues of bounded work, in ways of its own: keys in order, transactions, locks, batches in batches.

Its own keys are of one producer and one connection, so that the order of their jobs is known; shared ones are of all.
"""

import random
from typing import Any, Final

from duly import Draft
from tests.drill import controls, ledger
from tests.drill.effects import begin
from tests.drill.handlers import jobs, on_the_loop

OWN_KEYS = 3
SHARED_KEYS = 3
OWN = "own"
KEYED_QUEUES = ("waiting", "waiting", "skipping", "pausing", "quick", "quick")
BATCH_SIZE: Final = 6


class Controlled:
    """The bounded work of one producer; its numbers go up from `first`."""

    def __init__(self, first: int, dice: random.Random) -> None:
        self.n = first
        self._first = first
        self._dice = dice
        self._epoch = 0
        self._ways = (
            [self._own_key] * 4
            + [self._shared_key] * 2
            + [self._limited] * 3
            + [self._turns] * 2
            + [self._locked] * 2
            + [self._batch] * 2
            + [self._by_hand]
        )

    def broken_off(self) -> None:
        """The fate of the last step is unknown: no order is known between it and what follows."""
        self._epoch += 1
        self.n += 100

    def step(self, connection: Any) -> None:
        """Enqueue in one of the ways."""
        self._dice.choice(self._ways)(connection)

    def _next(self) -> int:
        self.n += 1
        return self.n

    def _own_key(self, connection: Any) -> None:
        key = f"{OWN}-{self._first}-{self._epoch}-{self._dice.randrange(OWN_KEYS)}"
        queue = self._dice.choice(KEYED_QUEUES)
        many = self._dice.randint(3, 8) if queue == "quick" else self._dice.randint(1, 4)
        self._store([self._keyed(queue, key) for _ in range(many)], connection)

    def _shared_key(self, connection: Any) -> None:
        self._store([self._shared()], connection)

    def _shared(self) -> tuple[int, Draft[Any]]:
        key = f"shared-{self._dice.randrange(SHARED_KEYS)}"
        return self._keyed(self._dice.choice(KEYED_QUEUES), key)

    def _limited(self, connection: Any) -> None:
        drafts: list[tuple[int, Draft[Any]]] = []
        for _ in range(3):
            n = self._next()
            ask = self._dice.random() < 0.2
            drafts.append(
                (
                    n,
                    controls.asks.draft(n)
                    if ask
                    else controls.call.draft(n, self._dice.randrange(controls.CUSTOMERS)),
                )
            )
        self._store(drafts, connection)

    def _turns(self, connection: Any) -> None:
        drafts: list[tuple[int, Draft[Any]]] = []
        for _ in range(4):
            n, tenant = self._next(), self._dice.choice(controls.TENANTS)
            key = f"shared-{self._dice.randrange(SHARED_KEYS)}"
            drafts.append((n, controls.turn.draft(n, tenant)))
            if self._dice.random() < 0.3:
                n = self._next()
                drafts.append((n, controls.keyed_turn.draft(n, tenant, key)))
        self._store(drafts, connection)

    def _locked(self, connection: Any) -> None:
        n, lock = self._next(), self._dice.choices(range(len(controls.LOCKS)), weights=[5, 1, 5])[0]
        task = controls.locked_in_a_thread if self._dice.random() < 0.2 else controls.locked
        self._store([(n, task.draft(n, lock))], connection)

    def _by_hand(self, _: Any) -> None:
        """A lock and a resource outside of handlers; a kill leaves both until their ttl."""
        number = controls.LOCKS.index("press")
        with controls.press:
            ledger.write(ledger.LOCKED, number)
            with controls.desk:
                pass
            ledger.write(ledger.UNLOCKED, number)

    def _keyed(self, queue: str, key: str) -> tuple[int, Draft[Any]]:
        """Of one key all kinds of slots, but for the quick ones, which are to follow each other in one."""
        n = self._next()
        if queue == "quick":
            return n, controls.keyed_quick.draft(n, key)
        task = self._dice.choices(
            (controls.keyed, controls.keyed_in_a_thread, controls.keyed_booked), weights=[5, 2, 1]
        )[0].using(queue=queue)
        match self._dice.randrange(12):
            case 0:
                task = task.using(delay="300ms")
            case 1:
                task = task.using(expires="1s")
        return n, task.draft(n, key)

    def _store(self, drafts: list[tuple[int, Draft[Any]]], connection: Any) -> None:
        """Half of it in a transaction, and of those one in six rolled back."""
        if self._dice.random() < 0.5:
            stored = jobs.enqueue_many(draft for _, draft in drafts)
            kind = ledger.ENQUEUED
        else:
            begin(connection)
            stored = jobs.enqueue_many([draft for _, draft in drafts], connection=connection)
            kind = ledger.COMMITTED if self._dice.random() < 5 / 6 else ledger.ROLLED_BACK
            connection.commit() if kind == ledger.COMMITTED else connection.rollback()
        for (n, _), sent in zip(drafts, stored, strict=True):
            ledger.write(kind, n, int(sent.id))

    def _batch(self, connection: Any) -> None:
        together = self._dice.random() < 0.5
        if together:
            begin(connection)
        n = self._next()
        id, stored = self._fill(n, connection if together else None)
        if together:
            connection.commit()
        ledger.write(ledger.BATCHED, n, id)
        for member, job in stored:
            ledger.write(ledger.ENQUEUED, member, job)

    def _fill(self, n: int, connection: Any) -> tuple[int, list[tuple[int, int]]]:
        """A batch, one time in three with a batch inside: its id, and (number, job) of its members."""
        stored: list[tuple[int, int]] = []
        with jobs.batch(str(n), **self._followed(n), connection=connection) as batch:
            stored += self._members(batch)
            if self._dice.random() < 0.3:
                m = self._next()
                with batch.batch(str(m), **self._followed(m)) as inner:
                    stored += self._members(inner)
        return batch.id, stored

    def _followed(self, n: int) -> dict[str, Any]:
        return {"then": [controls.after_all.draft(n)], "on_dead": [controls.after_a_death.draft(n)]}

    def _members(self, batch: Any) -> list[tuple[int, int]]:
        drafts: list[tuple[int, Draft[Any]]] = []
        for _ in range(BATCH_SIZE):
            n = self._next()
            tasks = (on_the_loop, controls.grows)
            drafts.append((n, self._dice.choices(tasks, weights=[4, 1])[0].draft(n)))
        drafts.append(self._shared())
        n = self._next()
        drafts.append((n, controls.turn.draft(n, controls.TENANTS[0])))
        sent = batch.add(*(draft for _, draft in drafts))
        return [(n, int(one.id)) for (n, _), one in zip(drafts, sent, strict=True)]
