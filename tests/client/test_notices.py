"""Being told that a job has ended: once, signed, through outages, and by nobody inside the network."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duly import App, Dead, UsageError
from duly.client.notices import Notices
from duly.core.errors import KeyReused
from duly.core.lifecycle import Event, State
from duly.core.ticket_status import TicketStatus
from duly.core.webhook_signing import check_message, read_secret
from duly.testing import DulyTest, standing
from tests.client.sinks import Sink, sink

OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "whsec_" + "bmV3IHNlY3JldCBvZiB0aGUgc2l0ZSwgMzIgYnl0ZXM="


@pytest.fixture
def told() -> Iterator[Sink]:
    with sink() as kept:
        yield kept


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setenv("DULY_SECRET", "the secret of the tests here")
    monkeypatch.setenv("NOTIFY_SECRET", NEW)
    return App("sqlite:///unused.db")


@pytest.fixture
def notices(jobs: App) -> Notices:
    return jobs.notifications(secrets=["env:NOTIFY_SECRET", OLD], private=True)


@pytest.fixture
def kit(jobs: App, tmp_path: Path) -> Iterator[DulyTest]:
    with standing(jobs, f"sqlite:///{tmp_path}/test.db") as made:
        yield made


def ends(kit: DulyTest) -> list[Event]:
    return [ran.ending for ran in kit.ran() if ran.task == "duly.notify"]


def test_the_end_of_a_job_is_told_once_with_a_signature_of_each_secret(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink
) -> None:
    @jobs.task
    def send(order_id: int) -> str:
        return "/orders/7"

    ticket = send.using(delay="1h").enqueue(7).ticket(title="Your receipt")
    first, again = notices.enqueue(ticket, told.url), notices.enqueue(ticket, told.url)

    kit.drain(scheduled=True)

    assert first.id == again.id
    (body,), (headers,) = told.bodies, told.headers
    message = json.loads(body)
    assert message["type"] == "job.done"
    assert (message["data"]["title"], message["data"]["link"]) == ("Your receipt", "/orders/7")
    assert headers["content-type"] == "application/json"
    for secret in (OLD, NEW):
        assert check_message([read_secret(secret)], headers, body, datetime.now(UTC)) == f"msg_{first.id}"
    assert set(ends(kit)) == {Event.snooze, Event.complete}


def test_looks_grow_rarer_with_the_age_of_the_job(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink
) -> None:
    @jobs.task
    def send() -> None: ...

    notices.enqueue(send.using(delay="1h").enqueue().ticket(), told.url)

    kit.drain(scheduled=True)

    # A tenth of the age, a minute at most: about 43 looks up to ten minutes, then 50.
    assert 50 < len(ends(kit)) < 110
    assert len(told.bodies) == 1


@pytest.mark.parametrize("ending", ["dead", "cancelled"])
def test_every_other_end_is_told_too(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink, ending: str
) -> None:
    @jobs.task
    def send() -> None:
        raise Dead("the internals of the shop")

    enqueued = send.enqueue()
    notices.enqueue(enqueued.ticket(), told.url)
    if ending == "cancelled":
        jobs.operate.cancel(enqueued.id, reason="INC-311")

    kit.drain(scheduled=True, raising=False)

    message = json.loads(told.bodies[0])
    assert message["type"] == {"dead": "job.failed", "cancelled": "job.cancelled"}[ending]
    assert "internals" not in told.bodies[0].decode()
    assert "INC-311" not in told.bodies[0].decode()


def test_a_receiver_that_fails_is_asked_again_with_the_same_id(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink
) -> None:
    @jobs.task
    def send() -> None: ...

    told.answers = [(500, {}), (429, {"Retry-After": "60"}), (302, {"Location": told.url})]
    notices.enqueue(send.enqueue().ticket(), told.url)

    kit.drain(scheduled=True, raising=False)

    assert len(told.bodies) == 4
    assert len({headers["webhook-id"] for headers in told.headers}) == 1
    assert [end for end in ends(kit) if end is not Event.snooze] == [Event.fail] * 3 + [Event.complete]


def test_a_receiver_that_wants_no_more_ends_it(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink
) -> None:
    @jobs.task
    def send() -> None: ...

    told.answers = [(410, {})]
    job = notices.enqueue(send.enqueue().ticket(), told.url)

    kit.drain(scheduled=True, raising=False)

    record = jobs.inspect.job(job.id).job
    assert (record.state, len(told.bodies)) == (State.dead, 1)


def test_nobody_inside_the_network_is_told(jobs: App, kit: DulyTest, told: Sink) -> None:
    @jobs.task
    def send() -> None: ...

    closed = jobs.notifications(secrets=[OLD])
    ticket = send.enqueue().ticket()

    for url in (told.url, "https://127.0.0.1/", "http://shop.example/", "https://[::1]/"):
        with pytest.raises(UsageError):
            closed.enqueue(ticket, url)
    job = closed.enqueue(ticket, "https://localhost/")
    kit.drain(scheduled=True, raising=False)

    record = jobs.inspect.job(job.id).job
    assert record.state is State.dead
    assert "no public address" in (record.reason or "")
    assert told.bodies == []


def test_a_channel_of_the_app_tells_one_address_of_each_kind(
    jobs: App, notices: Notices, kit: DulyTest
) -> None:
    @jobs.task
    def send() -> None: ...

    mails: list[tuple[str, str]] = []
    pushes: list[str] = []

    @notices.channel("mail", label="Your e-mail address", kind="email")
    async def mail(to: str, status: TicketStatus) -> None:
        mails.append((to, status.state))

    @notices.channel("push", label="Your device")
    def push(to: str, status: TicketStatus) -> None:
        pushes.append(to)

    ticket = send.enqueue().ticket()
    notices.enqueue(ticket, "ann@shop.example", channel="mail")
    notices.enqueue(ticket, "device-7", channel="push")
    with pytest.raises(KeyReused):
        notices.enqueue(ticket, "eve@shop.example", channel="mail")

    kit.drain(scheduled=True)

    assert (mails, pushes) == ([("ann@shop.example", "done")], ["device-7"])


def test_a_job_that_was_never_stored_is_told_to_nobody(
    jobs: App, notices: Notices, kit: DulyTest, told: Sink
) -> None:
    @jobs.task(queue=jobs.queue("mail", keep="5m"))
    def send() -> None: ...

    with pytest.raises(ZeroDivisionError), jobs.transaction() as connection:
        ticket = send.using(connection=connection).enqueue().ticket()
        raise ZeroDivisionError
    kit.clock.advance("1s")
    job = notices.enqueue(ticket, told.url)

    kit.drain(scheduled=True)

    record = jobs.inspect.job(job.id).job
    assert (record.state, told.bodies) == (State.skipped, [])


def test_what_cannot_be_told_is_refused_at_once(jobs: App) -> None:
    plain = jobs.notifications()

    with pytest.raises(UsageError, match="no message is sent to URLs here"):
        plain.check("https://shop.example/")
    with pytest.raises(UsageError, match="no channel 'mail'"):
        plain.check("ann@shop.example", "mail")
    with pytest.raises(UsageError, match="called before"):
        jobs.notifications()
    for wrong in ("env:NOTIFY", ["hunter2"], [7]):
        with pytest.raises(UsageError):
            App("sqlite:///unused.db").notifications(secrets=wrong)  # type: ignore[arg-type]
