"""Tickets over real stores: where their keys come from, and what their holders are told."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from duly import App
from duly.client.outside import Outside
from duly.client.signing import make_key
from duly.client.task import Task
from duly.client.ticketing import TicketReader, ticket_for
from duly.core.errors import NotFound, UsageError
from duly.core.job import JobId
from duly.core.signing import STORE_KIND
from duly.core.ticket_status import TicketState, TicketStatus
from tests.client.conftest import Hands
from tests.client.sinks import sink


def sender(jobs: App) -> Task[[int], str]:
    @jobs.task(name="send", queue=jobs.queue("mail"))
    def send(order_id: int) -> str:
        return "/orders/7"

    return send


def look(jobs: App, ticket: str) -> TicketStatus:
    reader = TicketReader(jobs.client)
    return reader.look(reader.open(ticket))


def test_without_a_setting_all_processes_share_the_key_of_the_store(both: App) -> None:
    ticket = sender(both).enqueue(7).ticket()
    other = App(both.settings.url)

    try:
        assert look(other, ticket).state is TicketState.queued
        assert look(other, ticket_for(other.client, JobId(10**9))).state is TicketState.pending
    finally:
        other.close()


def test_a_key_that_is_added_elsewhere_is_found_and_the_former_one_still_proves(
    both: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sender(both).enqueue(7)
    old = job.ticket()
    other = App(both.settings.url)
    both.store.tokens.rotate(STORE_KIND, b"a new key of this store, 32 bytes", "tests", "it leaked")
    new = ticket_for(other.client, job.id)
    other.close()

    monkeypatch.setattr("duly.client.signing.AGAIN", 0.0)

    assert old != new
    assert look(both, new).state is TicketState.queued
    assert look(both, old).state is TicketState.queued


def test_what_another_server_signed_with_an_added_key_proves_a_reservation(
    both: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender(both).enqueue(7)
    here = Outside(both.client)
    assert here.held(["A" * 40]) == [None]
    both.store.tokens.rotate(STORE_KIND, b"a new key of this store, 32 bytes", "tests", "it leaked")
    other = App(both.settings.url)
    there = Outside(other.client)
    incarnation = there.open(["mail"], ["send"], timedelta(seconds=30), "go", 1)
    (reserved,) = there.take(incarnation, ["mail"], 1, (), suspects=False)
    other.close()

    monkeypatch.setattr("duly.client.signing.AGAIN", 0.0)

    (held,) = here.held([reserved.token])
    assert held is not None


def test_a_forged_ticket_costs_no_look_at_the_store_after_the_first(
    both: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = sender(both).enqueue(7).ticket()
    reader = TicketReader(both.client)
    reader.open(ticket)
    asked: list[str] = []
    monkeypatch.setattr(both.store.tokens, "secret", lambda *_: asked.append("secret"))

    for forged in (ticket[:-1] + ("A" if ticket[-1] != "A" else "B"), "x" * 60, ""):
        with pytest.raises(NotFound):
            reader.open(forged)

    assert asked == []


def test_a_secret_that_serves_two_stores_opens_no_job_of_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_SECRET", "the secret of the tests here")
    (tmp_path / "same").symlink_to(tmp_path)
    here, elsewhere = App(f"sqlite:///{tmp_path}/shop.db"), App(f"sqlite:///{tmp_path}/same/shop.db")
    shard = here.at(f"sqlite:///{tmp_path}/shard.db")
    send = sender(here)
    ticket, foreign = send.enqueue(7).ticket(), send.using(app=shard).enqueue(7).ticket()

    assert look(elsewhere, ticket).state is TicketState.queued
    assert look(shard, foreign).state is TicketState.queued
    for app, text in ((here, foreign), (shard, ticket)):
        with pytest.raises(NotFound):
            look(app, text)
    here.close()
    elsewhere.close()


def test_a_place_in_the_line_is_told_on_every_store(both: App) -> None:
    send = sender(both)
    send.enqueue(1)
    send.enqueue(2)
    ticket = send.enqueue(3).ticket()
    Hands(both.store, "send", queues=("mail",))

    status = look(both, ticket)

    assert (status.state, status.position) == (TicketState.queued, 3)


@pytest.mark.parametrize("fair", [False, True])
def test_a_start_is_estimated_only_where_there_is_one_line(jobs: App, fair: bool) -> None:
    jobs.queue("mail", fair=fair)

    @jobs.task(name="send", queue="mail")
    def send() -> None: ...

    send.using(tenant="acme").enqueue()
    ticket = send.using(tenant="acme").enqueue().ticket()
    Hands(jobs.store, "send", queues=("mail",))
    reader = TicketReader(jobs.client)
    reader._rates, reader._rated = {"mail": 0.5}, float("inf")

    status = reader.look(reader.open(ticket))

    assert status.position == 2
    assert (status.starts_at is None) is fair


def test_a_job_of_an_open_transaction_is_pending_and_then_there(both: App) -> None:
    send = sender(both)
    make_key(both.store, both.settings)
    with both.transaction() as connection:
        ticket = send.using(connection=connection).enqueue(7).ticket()
        pending = look(both, ticket)

    assert pending.state is TicketState.pending
    assert look(both, ticket).state is TicketState.queued


def test_the_first_ticket_of_a_new_file_may_be_asked_for_inside_a_transaction(jobs: App) -> None:
    with jobs.transaction() as connection:
        ticket = sender(jobs).using(connection=connection).enqueue(7).ticket()

    assert look(jobs, ticket).state is TicketState.queued


def test_the_end_of_a_job_is_told_with_what_it_returned(both: App) -> None:
    send = sender(both)
    enqueued = send.enqueue(7)
    hands = Hands(both.store, "send", queues=("mail",))
    (job,) = hands.claim()
    running = look(both, enqueued.ticket())
    hands.complete(job, json.dumps("/orders/7").encode())

    done = look(both, enqueued.ticket())

    assert running.state is TicketState.running
    assert running.started_at is not None
    assert (done.state, done.link) == (TicketState.done, "/orders/7")
    assert done.finished_at is not None


def test_a_paused_queue_is_told_without_who_paused_it(both: App) -> None:
    ticket = sender(both).enqueue(7).ticket()
    Hands(both.store, "send", queues=("mail",))
    both.operate.pause("mail", reason="INC-311")

    status = look(both, ticket)

    assert "paused" in status.message
    assert "INC-311" not in str(status)


def test_a_ticket_says_how_long_its_record_is_kept_and_how_long_it_is_valid(jobs: App) -> None:
    kept = jobs.queue("short", keep="1h")

    @jobs.task(queue=kept)
    def send() -> None: ...

    ticket = TicketReader(jobs.client).open(send.enqueue().ticket(expires="90m"))

    assert ticket.kept == timedelta(hours=1)
    assert timedelta(minutes=90) <= ticket.expires - ticket.issued <= timedelta(minutes=90, seconds=2)


@pytest.mark.parametrize("expires", ["0s", "7", 7, "-1s", "101 years"])
def test_how_long_a_ticket_is_valid_is_a_duration(jobs: App, expires: str) -> None:
    job = sender(jobs).enqueue(7)

    with pytest.raises(UsageError):
        job.ticket(expires=expires)


@pytest.mark.asyncio
async def test_an_async_ticket_is_the_same(jobs: App) -> None:
    job = await sender(jobs).aenqueue(7)
    reader = TicketReader(jobs.client)

    ticket = await reader.aopen(await job.aticket(title="Your receipt"))

    assert (ticket.job, ticket.words.title) == (job.id, "Your receipt")
    assert (await reader.alook(ticket)).title == "Your receipt"


def test_the_reason_of_an_end_is_shown_only_where_the_ticket_says_so(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(
        "from duly import App, Dead\n"
        f"jobs = App('sqlite:///{tmp_path}/shop.db')\n"
        "@jobs.task\n"
        "def send() -> None:\n"
        "    raise Dead('The card was refused.')\n"
    )
    jobs = App(f"sqlite:///{tmp_path}/shop.db")

    @jobs.task
    def send() -> None: ...

    enqueued = send.enqueue()
    quiet, open_ = enqueued.ticket(), enqueued.ticket(reasons=True)
    worked = subprocess.run(
        [sys.executable, "-m", "duly.cli.main", "worker", "shop:jobs", "--until-idle"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert worked.returncode == 0, worked.stderr
    assert look(jobs, open_).message == "The card was refused."
    assert "card" not in look(jobs, quiet).message
    assert look(jobs, quiet).state is TicketState.failed
    jobs.close()


@pytest.mark.asyncio
async def test_a_worker_tells_a_real_receiver_of_the_end(both: App) -> None:
    notices = both.notifications(secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], private=True)

    @both.task
    async def send(order_id: int) -> str:
        return "/orders/7"

    with sink() as told:
        ticket = await (await send.aenqueue(7)).aticket()
        asked = await notices.aenqueue(ticket, told.url)
        async with both.working():
            status = await asked.aresult(timeout="60s")

    assert status == "204"
    assert [json.loads(body)["data"]["link"] for body in told.bodies] == ["/orders/7"]
