"""Who decides, who sends, and what becomes of it when somebody dies in between: never none, at most one repeat."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duly.alerts import Alert, Notification, SinkFailed, Webhook
from duly.alerts.watch import AlertWatch
from duly.core.defaults import ALERT_EVERY
from duly.core.errors import NotFound, UsageError
from duly.stores.faults import Transient
from tests.alerts.scene import MINUTE, STORIES, Scene


class Killed(BaseException):
    """Ends a process, so far as its own code can tell."""


class Deadly:
    """A sink in whose hands the process is killed, before or after the notification has gone."""

    def __init__(self, url: str, *, after: bool) -> None:
        self._hook = Webhook(url)
        self._after = after

    def send(self, note: Notification) -> None:
        if self._after:
            self._hook.send(note)
        raise Killed


def dying(scene: Scene, *, after: bool) -> AlertWatch:
    return AlertWatch(scene.apps[0].client, {"hook": Deadly(scene.hook.url, after=after)})


def test_two_that_look_at_once_decide_and_send_once(scene: Scene) -> None:
    other = scene.watcher()
    scene.die()

    scene.look()
    other.round(always=True)

    assert scene.told("dead-letter") == ["firing"]


def test_one_of_all_looks_in_so_long_a_time(scene: Scene) -> None:
    other = scene.watcher()

    first, second = scene.watch.round(), other.round()
    scene.bench.clock.advance(ALERT_EVERY)
    third = other.round()

    assert [done.verdict is not None for done in (first, second, third)] == [True, False, True]


def test_killed_before_sending_the_notification_is_sent_once_by_the_next(scene: Scene) -> None:
    scene.die()
    with pytest.raises(Killed):
        dying(scene, after=False).round(always=True)
    other = scene.watcher()

    other.round(always=True)
    too_early = len(scene.hook.requests)
    scene.bench.clock.advance(MINUTE)
    other.round(always=True)

    assert (too_early, scene.told("dead-letter")) == (0, ["firing"])


def test_killed_after_sending_it_is_sent_once_more_under_the_same_id(scene: Scene) -> None:
    scene.die()
    with pytest.raises(Killed):
        dying(scene, after=True).round(always=True)
    other = scene.watcher()

    for _ in range(3):
        scene.bench.clock.advance(MINUTE)
        other.round(always=True)

    first, second = scene.hook.ids()
    assert first == second


def test_a_sink_that_refuses_gets_it_again_later_each_time(scene: Scene) -> None:
    scene.hook.answers = [500, 503]
    scene.die()

    failed = scene.look().sent.failed
    at_once = scene.look().sent
    scene.bench.clock.advance(timedelta(seconds=10))
    scene.look()
    scene.bench.clock.advance(timedelta(seconds=30))
    last = scene.look().sent

    assert failed == ("hook: 127.0.0.1 answers 500 Internal Server Error",)
    assert (at_once.sent, at_once.failed) == (0, ())
    assert (last.sent, last.failed) == (1, ())
    assert len(set(scene.hook.ids())) == 1
    assert len(scene.hook.ids()) == 3


def test_one_sink_that_fails_keeps_no_other_waiting(scene: Scene) -> None:
    class Broken:
        def send(self, note: Notification) -> None:
            raise SinkFailed("no line")

    watch = AlertWatch(scene.apps[0].client, {"broken": Broken(), "hook": Webhook(scene.hook.url)})
    scene.die()

    done = watch.round(always=True)

    assert done.sent.failed == ("broken: no line",)
    assert scene.told("dead-letter") == ["firing"]


def test_a_broken_sink_is_tried_once_a_round_however_much_waits_for_it(scene: Scene) -> None:
    class Broken:
        tries = 0

        def send(self, note: Notification) -> None:
            self.tries += 1
            raise SinkFailed("no line")

    broken = Broken()
    watch = AlertWatch(scene.apps[0].client, {"broken": broken, "hook": Webhook(scene.hook.url)})
    scene.die()
    scene.bench.put(queue="other")

    watch.round(always=True)
    scene.bench.clock.advance(MINUTE)
    watch.round(always=True)

    assert [request.json["data"]["rule"] for request in scene.hook.requests] == ["dead-letter", "no-worker"]
    assert broken.tries == 2


def test_that_it_fires_is_never_told_after_that_it_is_over(scene: Scene) -> None:
    come_true, put_right = STORIES["late"]
    scene.hook.answers = [500] * 4
    come_true(scene)
    scene.look_twice(MINUTE)
    for seconds in (10, 30, 60):
        scene.bench.clock.advance(timedelta(seconds=seconds))
        scene.look()
    put_right(scene)
    scene.look_twice(3 * MINUTE)
    over = scene.told("late")

    scene.bench.clock.advance(10 * MINUTE)
    scene.look()

    assert over == ["firing"] * 4 + ["clear"]
    assert scene.told("late") == over


def test_what_a_silence_covers_is_told_at_its_end_if_it_still_holds(scene: Scene) -> None:
    come_true, put_right = STORIES["late"]
    operate = scene.apps[0].operate
    operate.silence("queue:mail", lasting="10m", reason="INC-311")

    come_true(scene)
    scene.look_twice(2 * MINUTE)
    silent = scene.told("late")
    scene.bench.clock.advance(10 * MINUTE)
    scene.look()
    told = scene.told("late")
    operate.silence("*", lasting="1h", rule="late")
    put_right(scene)
    scene.look_twice(3 * MINUTE)

    assert silent == []
    assert told == ["firing"]
    assert scene.told("late") == ["firing", "clear"]


def test_a_silence_can_be_ended_and_names_only_what_there_is(scene: Scene) -> None:
    operate, inspect = scene.apps[0].operate, scene.apps[0].inspect
    made = operate.silence("queue:mail", lasting="1h", rule="late", reason="INC-311")

    assert [one.id for one in inspect.silences()] == [made.id]
    operate.unsilence(made.id)
    assert inspect.silences() == ()
    with pytest.raises(NotFound, match="no silence"):
        operate.unsilence(made.id)
    with pytest.raises(UsageError, match="no target of alerts"):
        operate.silence("mail", lasting="1h")
    with pytest.raises(UsageError, match="is none of dead-letter"):
        operate.silence("queue:mail", lasting="1h", rule="tardy")


def test_what_an_app_says_of_its_queue_holds_for_whoever_looks(scene: Scene) -> None:
    scene.apps[0].queue("mail", wait_target="30s", alert=Alert(off=["late"]))
    stranger = scene.watcher()
    scene.look()

    STORIES["late"][0](scene)
    stranger.round(always=True)
    scene.bench.clock.advance(5 * MINUTE)
    verdict = stranger.round(always=True).verdict

    assert verdict is not None
    assert "late" not in {finding.rule for finding in verdict.holds}


@pytest.mark.parametrize("part", ["alerts", "inspection"])
def test_a_store_that_does_not_answer_is_a_passing_fault_of_the_duty(
    scene: Scene, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> object:
        raise Transient("no route")

    method = {"alerts": "records", "inspection": "counts"}[part]
    monkeypatch.setattr(getattr(scene.apps[0].store, part), method, away)

    with pytest.raises(Transient, match="no route"):
        scene.watch.run(0.0)
