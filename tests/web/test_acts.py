"""Queues, dead letters, operations and the scaler's numbers over HTTP."""

from datetime import timedelta

from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import told
from duly.core.job import ClaimRequest, QueueClaim, WorkerInfo
from tests.web.conftest import Place


def kill(place: Place, count: int) -> list[int]:
    """So many dead letters in mail."""
    task = place.app.find_task("send_receipt")
    ids = [one.id for one in place.app.enqueue_many(task.draft(order_id=n) for n in range(count))]
    store = place.app.store
    owner = store.leases.register(
        WorkerInfo(
            "here",
            1,
            "here:1",
            ("mail",),
            {"send_receipt": timedelta(minutes=1)},
            timedelta(seconds=30),
            timedelta(seconds=5),
            count,
            "0",
        )
    )
    claimed = store.jobs.exchange(owner, [], ClaimRequest((QueueClaim("mail", count),), count)).claimed
    policy = Policy(10, place.app.client.backoff, 10)
    error = told("UnknownAccount", "no such account")
    ends = [failed(job, Verdict("permanent"), policy, 0.5, error, timedelta(0)) for job in claimed]
    store.jobs.exchange(owner, ends, None)
    store.leases.retire(owner)
    return list(ids)


def test_a_queue_is_paused_under_the_name_of_the_token(place: Place) -> None:
    client = place.client("operate:mail", "read:mail")

    paused = client.post("/v1/queues/mail/pause", json={"lasting": "30m", "reason": "INC-311"})
    seen = client.get("/v1/queues/mail").json()
    resumed = [client.post("/v1/queues/mail/resume").json()["resumed"] for _ in range(2)]

    assert paused.status_code == 200
    assert (paused.json()["reason"], paused.json()["by"][:5]) == ("INC-311", "test-")
    assert (seen["paused"], seen["owner"]) == (True, "growth@shop")
    assert resumed == [True, False]
    assert client.get("/v1/queues/reports").status_code == 404


def test_dead_letters_are_grouped_and_run_again(place: Place) -> None:
    ids = kill(place, 3)
    client = place.client("dead:mail")

    (group,) = client.get("/v1/dead", params={"queue": "mail"}).json()["groups"]
    counted = client.post("/v1/dead/redrive", json={"filter": {"queue": "mail"}, "dry_run": True}).json()
    bare = client.post("/v1/dead/redrive", json={"filter": {"queue": "mail"}})
    one = client.post("/v1/dead/redrive", json={"ids": [str(ids[0])]}).json()
    purged = client.post("/v1/dead/purge", json={"filter": {"queue": "mail"}, "reason": "test mails"}).json()

    assert (group["count"], group["task"]) == (3, "send_receipt")
    assert (counted["matched"], counted["moved"]) == (3, [])
    assert (bare.status_code, "reason" in bare.json()["detail"]) == (422, True)
    assert one["moved"] == [str(ids[0])]
    assert set(purged["moved"]) == {str(id) for id in ids[1:]}
    assert client.get("/v1/dead").status_code == 403
    assert client.post("/v1/dead/redrive", json={}).status_code == 422


def test_a_large_redrive_is_an_operation_that_can_be_held(place: Place) -> None:
    kill(place, 101)
    client = place.client("dead")
    body = {"filter": {"queue": "mail"}, "reason": "fixed in 41", "rate": "5/s"}

    started = client.post("/v1/dead/redrive", json=body)
    where = started.headers["Location"]
    states = [client.post(f"{where}/{verb}").json()["state"] for verb in ("pause", "resume", "cancel")]
    ended = client.post(f"{where}/pause")

    assert (started.status_code, started.json()["operation"]["total"]) == (202, 101)
    assert states == ["paused", "running", "cancelled"]
    assert (ended.status_code, ended.json()["state"]) == (409, "cancelled")
    assert [one["id"] for one in client.get("/v1/operations").json()["operations"]] == [
        where.rpartition("/")[2]
    ]
    assert place.client("dead:reports").get(where).status_code == 404
    assert client.get("/v1/operations/77").status_code == 404


def test_a_scaler_reads_numbers(place: Place) -> None:
    task = place.app.find_task("send_receipt")
    place.app.enqueue_many(task.draft(order_id=n) for n in range(4))
    client = place.client("read:mail")

    scale = client.get("/v1/scale", params={"queue": "mail"})

    assert scale.status_code == 200
    assert (scale.json()["ready"], scale.json()["workers"]) == (4, 0)
    assert isinstance(scale.json()["workers_needed"], int)
    assert scale.json()["sentence"]
    assert client.get("/v1/scale", params={"queue": "reports"}).status_code == 404
    assert client.get("/v1/scale").status_code == 400
