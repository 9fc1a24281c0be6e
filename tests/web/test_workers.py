"""Work for workers of other languages: claimed, ended, extended, and lost."""

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.waiting import wait_until
from tests.web.conftest import Client, Place


def enqueue(place: Place, *orders: int) -> list[int]:
    task = place.app.find_task("send_receipt")
    return [task.enqueue(order_id=order).id for order in orders]


def claim(client: Client, **more: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/claim", json={"queues": ["mail"], **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["jobs"]
    return found


def state(place: Place, id: int) -> str:
    return str(place.app.inspect.job(id).job.state)


def test_a_claimed_job_is_run_elsewhere_and_acknowledged_once(place: Place) -> None:
    client = place.client("work:mail")
    (id,) = enqueue(place, 7)

    (job,) = claim(client, limit=5)
    running = place.app.inspect.job(id).job
    results = [
        client.post("/v1/ack", json={"acks": [{"token": job["token"], "result": {"sent": True}}]}).json()[
            "results"
        ]
        for _ in range(2)
    ]

    done = place.app.inspect.job(id).job
    assert (job["id"], job["args"], job["attempt"]) == (str(id), {"order_id": 7}, 1)
    assert (str(running.state), running.deadline and running.deadline.isoformat()) == (
        "running",
        job["deadline"].replace("Z", "+00:00"),
    )
    assert results == [[{"ok": True}], [{"ok": False, "code": "lease_lost"}]]
    assert (str(done.state), done.result) == ("completed", b'{"sent": true}'.replace(b" ", b""))
    assert place.app.inspect.workers() == ()


def test_what_fails_is_tried_again_when_it_asks_or_is_dead(place: Place) -> None:
    client = place.client("work:mail")
    enqueue(place, 1, 2, 3)
    first, second, third = claim(client, limit=3)

    answer = client.post(
        "/v1/fail",
        json={
            "fails": [
                {
                    "token": first["token"],
                    "error": "no such account 17",
                    "type": "UnknownAccount",
                    "permanent": True,
                },
                {"token": second["token"], "error": "come back later", "after": "2h"},
                {"token": third["token"], "error": "timed out", "traceback": "line 1\nline 2"},
            ]
        },
    )

    assert answer.json()["results"] == [{"ok": True}] * 3
    jobs = [place.app.inspect.job(int(job["id"])).job for job in (first, second, third)]
    assert [str(job.state) for job in jobs] == ["dead", "scheduled", "scheduled"]
    assert jobs[0].error is not None
    assert (jobs[0].error.type, jobs[0].error.message) == ("UnknownAccount", "no such account 17")
    assert jobs[1].run_at is not None
    assert 7000 < (jobs[1].run_at - place.app.inspect.now()).total_seconds() <= 7200
    assert jobs[2].counters.failed == 1


def test_one_call_keeps_all_that_a_worker_holds(place: Place) -> None:
    client, other = place.client("work"), place.client("work")
    enqueue(place, 1, 2, 3)
    held = [*claim(client, limit=2, lease="10s", worker="go-1"), *claim(client, lease="10s", worker="go-2")]

    extended = client.post("/v1/extend", json={"worker": "go-1", "lease": "1h"}).json()["results"]
    foreign = other.post("/v1/extend", json={"worker": "go-1", "lease": "1h"}).json()["results"]
    one = client.post("/v1/extend", json={"tokens": [held[2]["token"], "nonsense"], "lease": "1h"}).json()[
        "results"
    ]

    assert {entry["id"] for entry in extended} == {held[0]["id"], held[1]["id"]}
    assert foreign == []
    assert (one[0]["ok"], one[1]) == (True, {"ok": False, "code": "lease_lost"})
    for job in held:
        deadline = place.app.inspect.job(int(job["id"])).job.deadline
        assert deadline is not None
        assert (deadline - place.app.inspect.now()).total_seconds() > 3500


def test_a_cancelled_job_tells_its_holder_at_the_next_word(place: Place) -> None:
    client = place.client("work", "operate")
    (id,) = enqueue(place, 1)
    (job,) = claim(client)

    client.post(f"/v1/jobs/{id}/cancel")
    told = client.post("/v1/extend", json={"tokens": [job["token"]]}).json()["results"]
    client.post("/v1/fail", json={"fails": [{"token": job["token"], "error": "stopped"}]})

    assert told[0]["cancel_wished"] is True
    assert state(place, id) == "cancelled"


def test_whoever_is_silent_past_the_lease_has_lost_the_job(place: Place) -> None:
    client = place.client("work")
    (id,) = enqueue(place, 1)
    (job,) = claim(client, lease="5s")

    # By the server's own upkeep: no worker of ours is there.
    wait_until(lambda: state(place, id) == "ready", timeout=60)
    late = client.post("/v1/ack", json={"acks": [{"token": job["token"]}]}).json()["results"]
    (again,) = claim(client)

    assert late == [{"ok": False, "code": "lease_lost"}]
    assert (again["id"], again["attempt"]) == (str(id), 2)


def test_a_claim_waits_for_work_and_leaves_nothing_behind_without(place: Place) -> None:
    client = place.client("work")

    nothing = claim(client)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(claim, client, wait="30s")
        (id,) = enqueue(place, 1)
        (job,) = waiting.result(60)

    assert nothing == []
    assert job["id"] == str(id)
    assert len(place.app.inspect.workers()) == 1


def test_jobs_of_other_tasks_are_left_to_others(place: Place) -> None:
    client = place.client("work")
    (id,) = enqueue(place, 1)

    theirs = claim(client, tasks=["another"])
    mine = claim(client, tasks=["send_receipt"])

    assert theirs == []
    assert [job["id"] for job in mine] == [str(id)]


def test_a_token_is_proof_only_for_who_may_work_there(small: Place) -> None:
    client, foreign = small.client("work"), small.client("work:reports")
    (id,) = enqueue(small, 1)
    (job,) = claim(client)
    forged = job["token"][:-2] + ("AA" if not job["token"].endswith("AA") else "BB")

    refused = foreign.post("/v1/ack", json={"acks": [{"token": job["token"]}]})
    wrong = client.post("/v1/ack", json={"acks": [{"token": forged}]}).json()["results"]

    assert refused.status_code == 403
    assert wrong == [{"ok": False, "code": "lease_lost"}]
    assert state(small, id) == "running"


@pytest.mark.parametrize(
    "body",
    [
        {"queues": []},
        {"queues": ["mail"], "lease": "1s"},
        {"queues": ["mail"], "lease": "13h"},
        {"queues": ["mail"], "limit": 1000},
        {"queues": ["a b"]},
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(small: Place, body: dict[str, Any]) -> None:
    answer = small.client("work").post("/v1/claim", json=body)

    assert answer.status_code == 422
    assert small.app.inspect.workers() == ()


def test_whoever_went_away_while_waiting_takes_nothing(place: Place) -> None:
    client = place.client("work")
    body = b'{"queues": ["mail"], "wait": "30s", "lease": "60s"}'
    head = (
        "POST /v1/claim HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {client.headers['Authorization']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    with socket.create_connection(("127.0.0.1", place.serving.port)) as gone:
        gone.sendall(head.encode() + body)
        wait_until(lambda: len(place.app.inspect.workers()) == 1)
    wait_until(lambda: place.app.inspect.workers() == ())
    (id,) = enqueue(place, 1)

    assert state(place, id) == "ready"
    assert [job["id"] for job in claim(client)] == [str(id)]


def test_a_result_that_could_not_be_read_again_is_refused(small: Place) -> None:
    client = small.client("work")
    (id,) = enqueue(small, 1)
    (job,) = claim(client)

    answers = [
        client.post(
            "/v1/ack",
            content=f'{{"acks": [{{"token": "{job["token"]}", "result": {result}}}]}}',
            headers={"Content-Type": "application/json"},
        ).status_code
        for result in ("1e999", '"' + "x" * 300_000 + '"')
    ]

    assert answers == [422, 422]
    assert state(small, id) == "running"
