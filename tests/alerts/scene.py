"""A store whose clock only the test moves, an App over it, and how each rule comes true and is put right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from duly import App
from duly.alerts import Webhook
from duly.alerts.watch import AlertWatch, Round
from duly.core.control import BreakerPolicy, Calls, LimitPolicy
from duly.core.fingerprint import ErrorRecord
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.testing.conformance.bench import Bench, ended
from tests.alerts.servers import Receiver

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
QUEUES: Final = ("mail",)
CLOSED: Final = ErrorRecord("SMTPServerDisconnected", "closed by peer", "Traceback\n", "a91f03c2")
SMTP: Final = "resource:smtp"


class Scene:
    """One store and whoever looks at it."""

    def __init__(self, bench: Bench, url: str, hook: Receiver) -> None:
        self.bench = bench
        self.hook = hook
        self.url = url
        self.apps: list[App] = []
        self.workers: list[Incarnation] = []
        self.watch = self.watcher()

    def watcher(self, **settings: object) -> AlertWatch:
        """As another process that looks at this store."""
        app = App(self.url)
        app.client.clock = self.bench.clock
        app.client.override(**settings)
        self.apps.append(app)
        return AlertWatch(
            app.client, {"hook": Webhook(self.hook.url)}, clock=lambda: self.bench.clock().timestamp()
        )

    def close(self) -> None:
        for app in self.apps:
            app.close()

    def look(self) -> Round:
        return self.watch.round(always=True)

    def look_twice(self, apart: timedelta) -> None:
        """With so long in between: what has to last has lasted."""
        self.look()
        self.bench.clock.advance(apart)
        self.look()

    def told(self, rule: str) -> list[str]:
        """What the sink heard of a rule: "firing" and "clear" in turn."""
        data = [request.json["data"] for request in self.hook.requests]
        return [one["state"] for one in data if one["rule"] == rule]

    # What happens on the store.

    def worker(self) -> Incarnation:
        made = self.bench.worker("ok", queues=QUEUES)
        self.workers.append(made)
        return made

    def someone(self) -> Incarnation:
        return self.workers[-1] if self.workers else self.worker()

    def die(self) -> JobId:
        """A job goes dead."""
        id = self.bench.put(queue="mail")
        job = self.bench.claim_one(self.someone(), queues=QUEUES)
        self.bench.end(self.someone(), ended(job, Event.fail, State.dead, error=CLOSED, reason="gave up"))
        return id

    def sample(self) -> None:
        """Keep a sample and do what else is due, as workers do."""
        self.bench.store.upkeep.sweep(timedelta(days=1), 3, timedelta(days=1))

    def fold(self) -> None:
        """Count what has ended, as sweeps do a piece at a time."""
        while self.bench.store.tallies.fold():
            pass

    def drain(self) -> None:
        """Somebody does all that waits."""
        while jobs := self.bench.claim(self.someone(), 100, queues=QUEUES):
            self.bench.end(self.someone(), *(ended(job, Event.complete) for job in jobs))


def declare(scene: Scene) -> None:
    scene.bench.declare(
        LimitPolicy(SMTP, breaker=BreakerPolicy(min_calls=2)),
        queues=[QueuePolicy("mail", owner="growth@shop", wait_target=30 * SECOND, max_depth=1_000)],
    )


def arrive_dead(scene: Scene) -> None:
    scene.die()


def wait_out_dead(scene: Scene) -> None:
    scene.bench.clock.advance(11 * MINUTE)


def near_purge(scene: Scene) -> None:
    scene.die()
    scene.bench.clock.advance(24 * DAY)


def purge(scene: Scene) -> None:
    ids = [job.id for job in scene.apps[0].inspect.jobs().jobs if job.state is State.dead]
    scene.bench.store.operator.purge(ids, "ada", "seen")
    scene.bench.clock.advance(11 * MINUTE)


def be_late(scene: Scene) -> None:
    scene.someone()
    scene.bench.put(queue="mail")
    scene.bench.clock.advance(31 * SECOND)


def rise(scene: Scene) -> None:
    scene.someone()
    for number in range(48):
        scene.bench.put_many(20, queue="mail")
        scene.sample()
        scene.bench.clock.advance(10 * SECOND)
        if number == 14:
            scene.look()
    scene.look()


def nearly_fill(scene: Scene) -> None:
    scene.someone()
    scene.bench.put_many(800, queue="mail")


def leave_alone(scene: Scene) -> None:
    for worker in scene.workers:
        scene.bench.store.leases.retire(worker)
    scene.workers.clear()
    scene.bench.put(queue="mail")


def return_to_work(scene: Scene) -> None:
    scene.worker()
    scene.drain()


def hang(scene: Scene) -> None:
    scene.bench.put(queue="mail")
    scene.bench.claim_one(scene.someone(), queues=QUEUES)
    scene.bench.clock.advance(21 * MINUTE)


def restart(scene: Scene) -> None:
    scene.bench.store.leases.retire(scene.workers.pop())
    return_to_work(scene)


def heat_key(scene: Scene) -> None:
    scene.someone()
    scene.bench.put_many(120, queue="mail", ordering_key="order:7")


def cool_key(scene: Scene) -> None:
    found = scene.apps[0].inspect.jobs(limit=500).jobs
    scene.bench.store.operator.cancel([job.id for job in found if job.state is State.blocked], "ada", "split")
    scene.drain()


def trip(scene: Scene) -> None:
    scene.bench.store.control.set_breaker(SMTP, None, "ada", "")
    scene.bench.store.control.observe([Calls(SMTP, 4, 4)])


def close_breaker(scene: Scene) -> None:
    scene.bench.store.control.set_breaker(SMTP, "closed", "ada", "repaired")
    scene.bench.clock.advance(2 * MINUTE)


def lose(scene: Scene) -> None:
    for _ in range(3):
        worker = scene.worker()
        id = scene.bench.put(queue="mail")
        job = scene.bench.claim_one(worker, queues=QUEUES)
        scene.bench.store.leases.disown(worker, [(id, job.run)], "killed", 10)
        scene.workers.remove(worker)
        # What is lost runs alone; here it need not run again.
        scene.bench.store.operator.cancel([id], "ada", "")
    scene.bench.clock.advance(2 * MINUTE)
    scene.fold()


def stay_up(scene: Scene) -> None:
    scene.worker()
    scene.bench.clock.advance(13 * MINUTE)
    scene.fold()


STORIES: Final[dict[str, tuple[Callable[[Scene], None], Callable[[Scene], None]]]] = {
    "dead-letter": (arrive_dead, wait_out_dead),
    "dead-purge": (near_purge, purge),
    "late": (be_late, Scene.drain),
    "rising": (rise, Scene.drain),
    "near-bound": (nearly_fill, Scene.drain),
    "no-worker": (leave_alone, return_to_work),
    "stalled": (hang, restart),
    "hot-key": (heat_key, cool_key),
    "breaker": (trip, close_breaker),
    "lost": (lose, stay_up),
}
"""Rule -> (it comes true, it is put right). `disk` needs another budget, and has a test of its own."""
