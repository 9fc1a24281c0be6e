"""Each rule on a real store and a real HTTP sink: told once when it comes true, and again only after it was over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duly.core.alerting import RULES
from tests.alerts.scene import MINUTE, STORIES, Scene


@pytest.mark.parametrize("rule", STORIES)
def test_a_rule_is_told_once_and_again_only_after_it_was_over(any_scene: Scene, rule: str) -> None:
    scene, (come_true, put_right) = any_scene, STORIES[rule]

    come_true(scene)
    scene.look_twice(6 * MINUTE)
    scene.look()
    first = scene.told(rule)
    put_right(scene)
    scene.look_twice(3 * MINUTE)
    scene.look()
    second = scene.told(rule)
    come_true(scene)
    scene.look_twice(6 * MINUTE)

    assert first == ["firing"]
    assert second == ["firing", "clear"]
    assert scene.told(rule) == ["firing", "clear", "firing"]
    assert len({request.headers["webhook-id"] for request in scene.hook.requests}) == len(scene.hook.requests)


def test_a_store_near_its_budget_is_told_until_the_budget_is_raised(scene: Scene) -> None:
    poor, rich = scene.watcher(max_bytes="64KiB"), scene.watcher(max_bytes="1GiB")

    for watch in (poor, poor, rich, rich, poor, poor):
        watch.round(always=True)
        scene.bench.clock.advance(3 * MINUTE)

    assert scene.told("disk") == ["firing", "clear", "firing"]


def test_every_rule_is_tried_here() -> None:
    assert {*STORIES, "disk"} == set(RULES)


def test_what_is_told_names_the_owner_and_what_to_do(scene: Scene) -> None:
    scene.die()

    scene.look()

    (request,) = scene.hook.requests
    data = request.json["data"]
    assert (data["target"], data["owner"]) == ("queue:mail", "growth@shop")
    assert data["text"] == (
        "1 dead letter, the latest of ok: SMTPServerDisconnected: closed by peer. duly dead groups --queue mail"
    )


def test_a_deploy_of_half_a_minute_wakes_nobody(scene: Scene) -> None:
    come_true, put_right = STORIES["no-worker"]

    come_true(scene)
    scene.look_twice(timedelta(seconds=30))
    put_right(scene)
    scene.look_twice(5 * MINUTE)

    assert scene.hook.requests == []
