"""Dead letters as a work list over HTTP: one group, marks, and a letter with other arguments."""

from tests.web.conftest import Place
from tests.web.test_acts import kill


def test_a_group_is_looked_at_and_marked(place: Place) -> None:
    ids = kill(place, 2)
    client = place.client("dead:mail")
    (listed,) = client.get("/v1/dead", params={"queue": "mail"}).json()["groups"]
    where = f"/v1/dead/{listed['fingerprint']}"

    detail = client.get(where, params={"queue": "mail"}).json()
    acked = client.post(f"{where}/acknowledge", json={"queue": "mail", "note": "seen", "reason": "INC-311"})
    assigned = client.post(f"{where}/assign", json={"queue": "mail", "owner": "bob@ops"})
    fixed = client.post(f"{where}/fixed", json={"queue": "mail"})
    (now,) = client.get("/v1/dead", params={"queue": "mail"}).json()["groups"]

    assert (listed["state"], listed["owner"], listed["by"]) == ("new", "growth@shop", None)
    assert (detail["groups"], detail["outlook"]["count"], detail["outlook"]["twins"]) == ([listed], 2, 0)
    assert (detail["latest"]["id"], detail["latest"]["error"]["type"]) == (str(ids[-1]), "UnknownAccount")
    assert [one.status_code for one in (acked, assigned, fixed)] == [200] * 3
    assert acked.json()["marks"][0]["state"] == "acknowledged"
    assert (now["state"], now["owner"], now["note"]) == ("fixed", "bob@ops", "seen")
    assert now["by"].startswith("test-")


def test_marks_and_edits_need_the_scope_for_their_queue(place: Place) -> None:
    (id,) = kill(place, 1)
    fingerprint = place.app.inspect.dead_groups()[0].fingerprint
    client, reader = place.client("dead:reports"), place.client("read:mail")

    answers = [
        client.get(f"/v1/dead/{fingerprint}").status_code,
        client.post(f"/v1/dead/{fingerprint}/fixed", json={"queue": "mail"}).status_code,
        client.post(f"/v1/dead/{fingerprint}/fixed").status_code,
        reader.post(f"/v1/dead/{fingerprint}/fixed", json={"queue": "mail"}).status_code,
        client.post("/v1/dead/edit", json={"id": str(id), "args": {"order_id": 7}}).status_code,
        reader.get(f"/v1/dead/{fingerprint}", params={"queue": "mail"}).status_code,
        place.client("dead").get("/v1/dead/feedface").status_code,
        place.client("dead").get("/v1/dead/what").status_code,
    ]

    assert answers == [403, 403, 403, 403, 404, 200, 404, 422]
    assert place.app.store.triage.marks() == []


def test_a_letter_is_edited_once_and_its_arguments_are_checked(place: Place) -> None:
    (id,) = kill(place, 1)
    client = place.client("dead:mail")
    body = {"id": str(id), "args": {"order_id": 7}, "reason": "INC-311"}

    wrong = client.post("/v1/dead/edit", json={"id": str(id), "args": {"order_id": "seven"}})
    unknown = client.post("/v1/dead/edit", json={"id": str(id), "args": {"colour": "red"}})
    empty = client.post("/v1/dead/edit", json={"id": str(id), "args": {}})
    done = client.post("/v1/dead/edit", json=body)
    again = client.post("/v1/dead/edit", json=body)

    assert [one.status_code for one in (wrong, unknown, empty, done, again)] == [422, 422, 422, 201, 409]
    new = place.app.inspect.job(int(done.json()["successor_id"])).job
    assert (new.args, new.trigger) == (b'{"order_id":7}', f"edited:{id}")
    assert done.headers["Location"].endswith(f"/v1/jobs/{new.id}")
    assert f"runs again as job {new.id}" in again.json()["detail"]
    assert client.get("/v1/dead", params={"queue": "mail"}).json()["groups"] == []
