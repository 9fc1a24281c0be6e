"""Tickets on a real server over each kind of store, from the enqueue over HTTP to the last event."""

import json
import threading
from datetime import UTC, datetime

from duly.core.job import Progress
from tests.client.conftest import Hands
from tests.waiting import wait_until
from tests.web.conftest import Client, Place


class Listener:
    """Reads the events of one ticket in a thread, as a browser does."""

    def __init__(self, client: Client, url: str) -> None:
        self.told: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._listen, args=(client, url), daemon=True)
        self._thread.start()

    def _listen(self, client: Client, url: str) -> None:
        with client.stream("GET", url) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self.told.append(json.loads(line.removeprefix("data: ")))

    def states(self) -> list[object]:
        return [told["state"] for told in self.told]

    def wait_for(self, state: str) -> None:
        wait_until(lambda: state in self.states(), what=f"the event {state}")

    def ended(self) -> bool:
        self._thread.join(30)
        return not self._thread.is_alive()


def test_whoever_asked_over_http_follows_the_ticket_to_the_end(place: Place) -> None:
    asked = place.client("enqueue:mail").post(
        "/v1/jobs", json={"task": "send_receipt", "args": {"order_id": 7}}
    )
    stranger = place.client()
    url = asked.json()["ticket_url"]
    listener = Listener(stranger, f"{url}/events")
    listener.wait_for("queued")
    hands = Hands(place.app.store, "send_receipt", queues=("mail",))
    (job,) = hands.claim()
    listener.wait_for("running")
    place.app.store.jobs.report(hands.incarnation, [Progress(job.id, job.run, 2, 5, "page <2>")])
    wait_until(
        lambda: any("page &lt;2&gt;" in str(told["html"]) for told in listener.told), what="the progress"
    )

    hands.complete(job, b'"/orders/7"')

    assert listener.ended()
    assert list(dict.fromkeys(listener.states())) == ["queued", "running", "done"]
    assert "/orders/7" in str(listener.told[-1]["html"])
    page = stranger.get(url, headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["referrer-policy"]) == (200, "no-referrer")
    assert stranger.get(url).json()["link"] == "/orders/7"


def test_a_ticket_opens_nothing_else(place: Place) -> None:
    asked = place.client("enqueue:mail").post(
        "/v1/jobs", json={"task": "send_receipt", "args": {"order_id": 7}}
    )
    ticket, id = asked.json()["ticket"], asked.json()["job_id"]
    stranger = place.client()

    answers = [
        stranger.get(f"/v1/jobs/{id}").status_code,
        stranger.get(f"/v1/jobs/{id}", headers={"Authorization": f"Bearer {ticket}"}).status_code,
        stranger.get(f"/t/{id}").status_code,
    ]

    assert answers == [401, 401, 404]


def test_many_listeners_cost_one_look_at_a_time(small: Place) -> None:
    send = small.app.find_task("send_receipt")
    ticket = send.enqueue(order_id=7).ticket()
    lookups = small.app.store.inspection.lookup
    asked: list[int] = []

    def counted(ids: object) -> object:
        asked.append(1)
        return lookups(ids)  # type: ignore[arg-type]

    listeners = [Listener(small.client(), f"/t/{ticket}/events") for _ in range(20)]
    for listener in listeners:
        listener.wait_for("queued")
    small.app.store.inspection.lookup = counted  # type: ignore[method-assign, assignment]
    before = datetime.now(UTC)
    wait_until(lambda: len(asked) >= 3, what="a few looks")
    seconds = (datetime.now(UTC) - before).total_seconds()

    # Twenty listeners, and no more looks than one would cost.
    assert len(asked) <= 3 + seconds / small.site.watcher._every
    hands = Hands(small.app.store, "send_receipt", queues=("mail",))
    hands.complete(hands.claim()[0])
    assert all(listener.ended() for listener in listeners)
    wait_until(lambda: small.site.watcher.listeners == 0, what="nobody is left")
