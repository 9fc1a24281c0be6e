"""Jobs over HTTP: asked for, looked at, followed, cancelled."""

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.web.conftest import Place

RECEIPT = {"task": "send_receipt", "args": {"order_id": 7}}


def test_a_job_is_there_as_soon_as_it_was_accepted(place: Place) -> None:
    client = place.client("enqueue:mail", "read")

    accepted = client.post("/v1/jobs", json=RECEIPT)
    seen = client.get(accepted.headers["Location"])

    assert (accepted.status_code, accepted.headers["Retry-After"]) == (202, "2")
    assert accepted.json()["status_url"] == accepted.headers["Location"]
    assert seen.status_code == 200
    assert (seen.json()["state"], seen.json()["args"]) == ("ready", {"order_id": 7})
    assert client.get(accepted.json()["ticket_url"]).status_code == 200


def test_a_repeated_request_gets_the_first_answer_and_another_one_none(place: Place) -> None:
    client = place.client("enqueue")
    key = {"Idempotency-Key": "receipt:7"}

    first = client.post(
        "/v1/jobs", json={"task": "send_receipt", "args": {"order_id": 7, "note": "a"}}, headers=key
    )
    same = client.post(
        "/v1/jobs", json={"args": {"note": "a", "order_id": 7}, "task": "send_receipt"}, headers=key
    )
    other = client.post("/v1/jobs", json=RECEIPT, headers=key)
    elsewhere = client.post("/v1/jobs/batch", json={"jobs": [RECEIPT]}, headers=key)
    foreign = place.client("enqueue").post("/v1/jobs", json=RECEIPT, headers=key)

    assert (same.status_code, same.content) == (202, first.content)
    assert same.headers["Idempotency-Replayed"] == "true"
    assert same.headers["Location"] == first.headers["Location"]
    assert [other.status_code, elsewhere.status_code] == [422, 422]
    assert foreign.json()["job_id"] != first.json()["job_id"]
    assert len(place.app.inspect.jobs().jobs) == 2


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(small: Place, key: str) -> None:
    answer = small.client("enqueue").post("/v1/jobs", json=RECEIPT, headers={"Idempotency-Key": key})

    assert answer.status_code == 400
    assert small.app.inspect.jobs().jobs == ()


def test_one_job_comes_of_many_requests_with_one_key_at_once(place: Place) -> None:
    client = place.client("enqueue")

    def ask(_: int) -> tuple[int, str]:
        answer = client.post("/v1/jobs", json=RECEIPT, headers={"Idempotency-Key": "once"})
        return answer.status_code, answer.json().get("job_id", "")

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(ask, range(24)))

    assert {status for status, _ in answers} <= {202, 409}
    assert len({id for _, id in answers if id}) == 1
    assert len(place.app.inspect.jobs().jobs) == 1


def test_many_requests_at_once_are_each_answered_for_themselves(place: Place) -> None:
    client = place.client("enqueue")
    asked = [{"task": "send_receipt", "args": {"order_id": n if n % 5 else "none"}} for n in range(40)]

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda body: client.post("/v1/jobs", json=body), asked))

    assert [answer.status_code for answer in answers] == [202 if n % 5 else 422 for n in range(40)]
    ids = {answer.json()["job_id"] for answer in answers if answer.status_code == 202}
    assert ids == {str(job.id) for job in place.app.inspect.jobs(limit=100).jobs}
    assert len(ids) == 32


def test_a_batch_is_stored_whole_or_not_at_all(place: Place) -> None:
    client = place.client("enqueue")
    bad = {"jobs": [RECEIPT, RECEIPT, {"task": "send_receipt", "args": {}}]}

    refused = [client.post("/v1/jobs/batch", json=bad) for _ in range(2)]
    before = place.app.inspect.jobs().jobs
    accepted = client.post("/v1/jobs/batch", json={"jobs": [RECEIPT] * 3})

    assert [answer.status_code for answer in refused] == [422, 422]
    assert (refused[0].json()["position"], refused[0].json()["path"]) == (2, "args.order_id")
    assert before == ()
    assert len({job["job_id"] for job in accepted.json()["jobs"]}) == 3


def test_names_that_are_not_there_come_with_the_nearest_one(place: Place) -> None:
    client = place.client("enqueue")

    task = client.post("/v1/jobs", json={"task": "send_reciept", "args": {"order_id": 7}})
    queue = client.post("/v1/jobs", json=RECEIPT | {"queue": "mial"})
    argument = client.post("/v1/jobs", json={"task": "send_receipt", "args": {"order": 7}})

    assert (task.status_code, queue.status_code, argument.status_code) == (422, 422, 422)
    assert "did you mean 'send_receipt'?" in task.json()["detail"]
    assert "did you mean 'mail'?" in queue.json()["detail"]
    assert "order_id" in argument.json()["detail"]


def test_a_full_queue_says_when_to_come_again(place: Place) -> None:
    client = place.client("enqueue")
    body = {"task": "report", "args": {"day": "2030-01-01"}}

    answers = [client.post("/v1/jobs", json=body) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [202, 202, 202, 503, 503]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_a_store_alone_takes_jobs_of_registered_tasks(place: Place) -> None:
    from duly.worker.registration import declare

    declare(place.app)
    # As a server that was started without the App.
    place.app.client.registry.tasks.clear()
    client = place.client("enqueue")

    known = client.post("/v1/jobs", json=RECEIPT | {"delay": "P2D", "tags": ["a"], "tenant": "acme"})
    unknown = client.post("/v1/jobs", json={"task": "other"})
    placed = client.post("/v1/jobs", json={"task": "other", "queue": "mail"})

    record = place.app.inspect.job(int(known.json()["job_id"])).job
    assert (record.queue, record.tenant, record.tags, str(record.state)) == (
        "mail",
        "acme",
        ("a",),
        "scheduled",
    )
    assert (unknown.status_code, placed.status_code) == (422, 202)


def test_what_is_malformed_is_told_apart_from_what_is_not_there(small: Place) -> None:
    client = small.client("read")

    statuses = [client.get(f"/v1/jobs/{id}").status_code for id in ("12345", "abc", "0", "-1", "9" * 30)]

    assert statuses == [404, 400, 400, 400, 400]


def test_lists_are_filtered_and_go_on(place: Place) -> None:
    client = place.client("enqueue", "read")
    for n in range(5):
        client.post("/v1/jobs", json={"task": "send_receipt", "args": {"order_id": n}, "tenant": f"t{n % 2}"})

    first = client.get("/v1/jobs", params={"tenant": "t0", "limit": 2}).json()
    rest = client.get("/v1/jobs", params={"tenant": "t0", "limit": 2, "before": first["next"]}).json()
    found = client.get("/v1/jobs", params={"where": "args.order_id = 3"}).json()

    assert [job["args"]["order_id"] for job in first["jobs"] + rest["jobs"]] == [4, 2, 0]
    assert [job["args"]["order_id"] for job in found["jobs"]] == [3]
    assert client.get("/v1/jobs", params={"tenat": "t0"}).status_code == 400


def test_a_cancelled_job_cannot_be_cancelled_again(place: Place) -> None:
    client = place.client("enqueue", "operate", "read")
    id = client.post("/v1/jobs", json=RECEIPT).json()["job_id"]

    first = client.post(f"/v1/jobs/{id}/cancel", json={"reason": "not needed"})
    again = client.post(f"/v1/jobs/{id}/cancel")

    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert (again.status_code, again.json()["state"]) == (409, "cancelled")


def test_a_long_poll_answers_at_the_change_and_else_says_that_there_is_none(place: Place) -> None:
    client = place.client("enqueue", "operate", "read")
    id = client.post("/v1/jobs", json=RECEIPT).json()["job_id"]
    known = client.get(f"/v1/jobs/{id}")
    same = {"If-None-Match": known.headers["ETag"]}

    unchanged = client.get(f"/v1/jobs/{id}", headers=same, params={"wait": "50ms"})
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.get, f"/v1/jobs/{id}", headers=same, params={"wait": "60s"})
        client.post(f"/v1/jobs/{id}/cancel")
        changed = waiting.result(60)

    assert unchanged.status_code == 304
    assert (changed.status_code, changed.json()["state"]) == (200, "cancelled")


def test_a_job_is_followed_to_its_end(place: Place) -> None:
    client = place.client("enqueue", "operate", "read")
    id = client.post("/v1/jobs", json=RECEIPT).json()["job_id"]
    lines: list[str] = []

    with client.stream("GET", f"/v1/jobs/{id}/events") as stream:
        for line in stream.iter_lines():
            lines.append(line)
            if '"state":"ready"' in line:
                client.post(f"/v1/jobs/{id}/cancel")
    last = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")][-1]
    again = client.get(f"/v1/jobs/{id}/events", headers={"Last-Event-ID": last})

    assert [line for line in lines if line.startswith("event: ")] == [
        "event: job",
        "event: job",
        "event: end",
    ]
    assert any('"state":"cancelled"' in line for line in lines)
    assert again.status_code == 204


def test_whoever_asks_for_it_is_notified_of_the_end_once(place: Place) -> None:
    client = place.client("enqueue")
    body = RECEIPT | {"notify": {"url": "https://hooks.example/end"}}
    key = {"Idempotency-Key": "receipt:7"}

    nobody = client.post("/v1/jobs", json=body)
    place.app.notifications(secrets=["whsec_" + b64encode(bytes(32)).decode()])
    accepted = [client.post("/v1/jobs", json=body, headers=key) for _ in range(2)]
    nowhere = client.post("/v1/jobs", json=RECEIPT | {"notify": {"url": "ftp://hooks.example"}})

    assert (nobody.status_code, nowhere.status_code) == (422, 422)
    assert [answer.status_code for answer in accepted] == [202, 202]
    assert [job.task for job in place.app.inspect.jobs().jobs] == ["duly.notify", "send_receipt"]


def test_a_job_carries_the_ids_of_its_request(place: Place) -> None:
    client = place.client("enqueue")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    told = client.post(
        "/v1/jobs", json=RECEIPT, headers={"X-Correlation-ID": "order-7", "traceparent": trace}
    )
    own = client.post(
        "/v1/jobs", json=RECEIPT | {"correlation_id": "mine"}, headers={"X-Correlation-ID": "order-7"}
    )

    first, second = (place.app.inspect.job(int(answer.json()["job_id"])).job for answer in (told, own))
    assert (first.correlation_id, second.correlation_id) == ("order-7", "mine")
    assert first.trigger is not None
    assert trace[3:35] in first.trigger
    assert told.headers["X-Correlation-ID"] == "order-7"
