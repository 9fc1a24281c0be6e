"""What the reading commands print: status, top, jobs, job, workers, dead letters. Exact lines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duly.core.fingerprint import ErrorRecord
from duly.core.job import Counters, Incarnation, JobId, Progress
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.testing.conformance.bench import Bench, ended
from tests.cli.conftest import Terminal

SECOND = timedelta(seconds=1)
LOST = ErrorRecord(
    "SMTPServerDisconnected", "closed\x1b[2J\nby peer", "Traceback: smtp.py, line 7\n", "a91f03c2"
)
QUEUES = ("mail",)


def dead_letter(bench: Bench, worker: Incarnation, *, args: bytes = b'{"order_id":7}') -> JobId:
    """A job of the queue mail that failed for good after three seconds."""
    id = bench.put("send", queue="mail", args=args)
    job = bench.claim_one(worker, queues=QUEUES)
    bench.clock.advance(3 * SECOND)
    bench.end(
        worker,
        ended(job, Event.fail, State.dead, error=LOST, reason="gave up after 1: closed", elapsed=3 * SECOND),
    )
    return id


@pytest.fixture
def worker(bench: Bench) -> Incarnation:
    mail, send = QueuePolicy("mail", owner="growth@shop"), TaskPolicy("send", "mail", 100)
    bench.store.schema.declare(Registration("shop:jobs", "1", queues=(mail,), tasks=(send,)))
    return bench.worker("send", queues=QUEUES)


def test_status_has_a_row_for_each_queue_and_a_sentence_for_each_that_needs_a_person(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    dead_letter(bench, worker)
    bench.put_many(2, "send", queue="mail")
    bench.put("send", queue="mail", delay=5 * 60 * SECOND)
    bench.claim_one(worker, queues=QUEUES)
    bench.put("report", queue="reports")
    bench.clock.advance(90 * SECOND)

    answer = duly("status")

    head, *rest = answer.lines
    assert head.startswith("/")
    assert head.endswith("jobs.db" + head.partition("jobs.db")[2])
    assert " · 1 worker, newest progress 1m 30s ago · 12:01:33 UTC" in head
    assert rest == [
        "QUEUE    READY  SCHEDULED  BLOCKED  RUNNING  DEAD  OLDEST  IN/s  OUT/s  DRAIN  SLOPE/s",
        "default      0          0        0        0     0       -     -      -      -        -",
        "mail         1          1        0        1     1  1m 30s     -      -      ?        -",
        "reports      1          0        0        0     0  1m 30s     -      -      ?        -",
        "mail: 1 job waits, the oldest for 1m 30s; too few samples yet to say when it will be empty",
        "mail: 1 dead letter; see duly dead groups --queue mail",
        (
            "reports: no worker serves it: 1 job waits, the oldest for 1m 30s; "
            "start one with `duly worker --queues reports`"
        ),
    ]


def test_status_says_how_full_a_queue_is_and_what_it_turns_away(bench: Bench, duly: Terminal) -> None:
    bench.declare(
        queues=[
            QueuePolicy("mail", max_depth=2),
            QueuePolicy("news", max_depth=10, when_full="shed"),
            QueuePolicy("reports", max_depth=10),
        ]
    )
    bench.put_many(2, queue="mail")
    bench.put_many(8, queue="news")
    bench.put(queue="reports")
    bench.store.pressing.turned_away({"mail": 1200})
    bench.store.pressing.shed(["news"], 1, "store full")
    bench.clock.advance(5 * SECOND)

    lines = duly("status").lines

    notes = {line.split()[0]: line.rpartition("-")[2].strip() for line in lines[2:6]}
    assert notes == {"default": "", "mail": "100% full", "news": "70% full", "reports": "10% full"}
    assert (
        "mail: full: 2 jobs wait, 1 more is above max_depth=2; producers are refused; "
        "1,200 jobs were refused lately, the last 5s ago"
    ) in lines
    assert "news: 1 job was shed lately, the last 5s ago" in lines
    assert not [line for line in lines if line.startswith("reports: full")]


def test_status_of_an_empty_store_says_so(duly: Terminal) -> None:
    assert duly("status").lines[-1] == "Nothing waits, nothing runs."
    assert duly("status", "-q").lines == [
        "default  0  0  0  0  0  -  -  -  -  -",
    ]


def test_status_of_one_queue_and_of_one_that_is_not_there(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    one, none = duly("status", "mail", "-q"), duly("status", "mial")

    assert [line.split()[0] for line in one.lines] == ["mail"]
    assert (none.err, none.code) == ("error: no queue is named 'mial'; did you mean 'mail'?\n", 3)


def test_status_for_programs_has_one_name_for_each_value(bench: Bench, duly: Terminal) -> None:
    bench.put(queue="mail")
    bench.clock.advance(2 * SECOND)

    document, rows = duly("status", "-o", "json").json, duly("status", "-o", "ndjson")

    assert isinstance(document, dict)
    assert document["store"]["where"].endswith("/jobs.db")
    assert document["now"] == "2030-05-01T12:00:02Z"
    mail = document["queues"][1]
    assert mail["counts"]["queue"] == "mail"
    assert (mail["counts"]["ready"], mail["counts"]["oldest_ready_s"], mail["drain_s"]) == (1, 2.0, None)
    assert len(rows.lines) == 2


def test_top_looks_once_where_there_is_no_terminal(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    bench.put("send", queue="mail")
    job = bench.claim_one(worker, queues=QUEUES)
    bench.store.jobs.report(worker, [Progress(job.id, job.run, 3, 12, "page 3")])
    bench.clock.advance(4 * SECOND)

    answer = duly("top", "--queue", "mail")

    assert answer.lines[-2:] == [
        "RUNNING  QUEUE  TASK  ATTEMPTS  FOR  PROGRESS",
        f"      {job.id}  mail   send         1   4s  3/12 page 3",
    ]
    assert "running" in duly("top", "-o", "json").out


def test_jobs_are_listed_newest_first_with_what_one_asks_next(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    dead = dead_letter(bench, worker)
    bench.put_many(2, "send", queue="mail")
    later = bench.put("send", queue="mail", delay=5 * 60 * SECOND, tags=("night",))
    running = bench.claim_one(worker, queues=QUEUES)
    bench.store.jobs.report(worker, [Progress(running.id, running.run, 3, 12)])

    answer = duly("jobs")

    assert answer.lines == [
        "ID  STATE      QUEUE  TASK  ATTEMPTS  ENQUEUED  ABOUT",
        f" {later}  scheduled  mail   send         0  now       due in 5m 00s",
        f" {later - 1}  ready      mail   send         0  now       -",
        f" {running.id}  running    mail   send         1  now       3 of 12",
        f" {dead}  dead       mail   send         1  3s ago    SMTPServerDisconnected: closed\\x1b[2J by peer",
    ]


def test_jobs_are_chosen_by_every_filter(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    dead = dead_letter(bench, worker)
    other = bench.put(
        "report", queue="night", tenant="acme", tags=("x",), correlation_id="order-7", args=b'{"order_id":8}'
    )

    def found(*flags: str) -> list[str]:
        return [line.split()[0] for line in duly("jobs", "-q", *flags).lines]

    for flags in (
        ("--queue", "night"),
        ("--task", "report"),
        ("--tenant", "acme"),
        ("--state", "ready"),
        ("--tag", "x"),
        ("--correlation", "order-7"),
        ("--where", "args.order_id = 8"),
    ):
        assert found(*flags) == [str(other)], flags
    assert found("--fingerprint", "a91f") == [str(dead)]
    assert found("--queue", "none") == []
    assert duly("jobs", "--queue", "none").lines == ["no job fits"]


def test_jobs_are_listed_by_pages(bench: Bench, duly: Terminal) -> None:
    ids = bench.put_many(5)

    first = duly("jobs", "--limit", "2")
    second = duly("jobs", "--limit", "2", "--before", str(ids[3]), "-q")

    assert first.lines[-1] == f"2 shown; older: add --before {ids[3]}"
    assert [line.split()[0] for line in second.lines] == [str(ids[2]), str(ids[1])]


def test_jobs_are_sorted_as_asked(bench: Bench, duly: Terminal) -> None:
    bench.put("b")
    bench.put("a")
    bench.put("c", priority=1)

    by_task = [line.split()[3] for line in duly("jobs", "-q", "--sort", "task").lines]
    by_priority = [line.split()[3] for line in duly("jobs", "-q", "--sort", "priority").lines]

    assert by_task == ["a", "b", "c"]
    assert by_priority[0] == "c"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--where", "args.order_id == 7"), "write = instead of =="),
        (("--state", "buried"), "--state 'buried' is none of ready, scheduled, blocked, running"),
        (("--since", "yesterday"), "--since"),
        (("--all", "--queue", "mail"), "--all and a filter (queue=mail) say two things"),
        (("--fingerprint", "xyz"), "must be 4 to 8 digits"),
    ],
)
def test_a_filter_that_cannot_be_read_says_what_to_write(
    flags: tuple[str, ...], error: str, duly: Terminal
) -> None:
    answer = duly("jobs", *flags)

    assert error in answer.err
    assert answer.err.count("\n") == 1
    assert answer.code == 2


def test_a_job_tells_its_whole_story(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    id = bench.put("send", queue="mail", args=b'{"order_id":7}', tags=("a", "b"), correlation_id="order-7")
    first = bench.claim_one(worker, queues=QUEUES)
    bench.clock.advance(2 * SECOND)
    bench.end(worker, ended(first, Event.fail, State.scheduled, delay=SECOND, error=LOST, elapsed=2 * SECOND))
    bench.clock.advance(2 * SECOND)
    bench.store.upkeep.promote()
    second = bench.claim_one(worker, queues=QUEUES)
    bench.clock.advance(1 * SECOND)
    bench.end(
        worker,
        ended(
            second,
            Event.fail,
            State.dead,
            error=LOST,
            reason="gave up after 2: closed",
            elapsed=SECOND,
            counters=Counters(failed=2),
        ),
    )

    answer = duly("job", str(id))

    assert answer.lines == [
        f"job {id}  send in mail  dead now",
        "  enqueued     12:00:00 (5s ago)",
        "  last run     12:00:04 to 12:00:05 (1.00 s)",
        "  attempts     2 in 2 runs; 2 failed, 0 lost, 0 interrupted, 0 snoozed",
        "  priority     100",
        "  tags         a, b",
        "  correlation  order-7",
        '  arguments    {"order_id":7}',
        "  reason       gave up after 2: closed",
        "  error        SMTPServerDisconnected: closed\\x1b[2J by peer",
        "",
        "RUN  ENDED     AS      TOOK  WORKER  WHY",
        f"  1  12:00:02  fail  2.00 s       {worker}  SMTPServerDisconnected: closed\\x1b[2J by peer",
        f"  2  12:00:05  fail  1.00 s       {worker}  SMTPServerDisconnected: closed\\x1b[2J by peer",
        "",
        "  Traceback: smtp.py, line 7",
        "",
        "the work it belongs to: duly jobs --correlation order-7",
        "all of this error:      duly dead show a91f03c2",
        f"run it again:           duly dead redrive {id}",
    ]


def test_a_completed_job_shows_its_result(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker()
    id = bench.put()
    job = bench.claim_one(worker)
    bench.end(worker, ended(job, Event.complete, result=b'{"sent":true}', elapsed=SECOND))

    answer = duly("job", str(id))

    assert '  result       {"sent":true}' in answer.lines
    assert duly("job", str(id), "-o", "json").json["job"]["result"] == {"sent": True}  # type: ignore[index]


def test_a_job_is_followed_to_its_end(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker()
    good, bad = bench.put(), bench.put()
    for job in bench.claim(worker, 2):
        to = State.completed if job.id == good else State.dead
        bench.clock.advance(SECOND)
        event = Event.complete if job.id == good else Event.bury
        reason = None if job.id == good else "no such account"
        bench.end(worker, ended(job, event, to, reason=reason, elapsed=SECOND))

    ok, failed = duly("job", str(good), "--follow"), duly("job", str(bad), "--follow")

    assert (ok.lines, ok.code) == ([f"job {good}  completed  2030-05-01 12:00:01  (1.00 s)"], 0)
    assert failed.lines == [f"job {bad}  dead  2030-05-01 12:00:02  (1.00 s)"]
    assert (failed.err, failed.code) == (f"error: job {bad} is dead: no such account\n", 1)


def test_a_job_that_is_not_there_is_exit_3(duly: Terminal) -> None:
    answer = duly("job", "4711")

    assert answer.err.startswith("error: no job 4711: it never was")
    assert answer.code == 3


def test_workers_show_pulse_progress_and_what_they_hold(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    id = bench.put("send", queue="mail")
    bench.claim_one(worker, queues=QUEUES)
    bench.clock.advance(12 * SECOND)

    listed, one = duly("workers", "list"), duly("workers", "show", str(worker))

    assert listed.lines == [
        "ID  HOST     PID  RUNNING  SLOTS  PULSE  PROGRESS  STARTED  VERSION  STATE  QUEUES",
        f" {worker}  host-1  4711        1     10    12s       12s  12s ago  1.0      -      mail",
    ]
    assert one.lines[:2] == listed.lines
    assert one.lines[-1].split()[:4] == [str(id), "running", "mail", "send"]


def test_no_worker_says_how_to_start_one(duly: Terminal) -> None:
    assert duly("workers", "list").lines == ["no worker is alive; start one with duly worker MODULE"]
    assert duly("workers", "show", "7").code == 3


def test_dead_letters_are_grouped_by_error(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    first, second = dead_letter(bench, worker), dead_letter(bench, worker)

    groups, letters = duly("dead", "groups"), duly("dead", "list", "-q")

    assert groups.lines == [
        "FINGERPRINT  COUNT  FIRST   LAST  QUEUE  OWNER        STATE  TASK  ERROR",
        (
            "a91f03c2         2  3s ago  now   mail   growth@shop  new    send  "
            "SMTPServerDisconnected: closed\\x1b[2J by peer"
        ),
        "2 dead letters in 1 group",
    ]
    assert [line.split()[0] for line in letters.lines] == [str(second), str(first)]
    assert duly("dead", "groups", "-o", "json").json[0]["owner"] == "growth@shop"  # type: ignore[index]


def test_a_group_is_shown_with_its_latest_letter(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    dead_letter(bench, worker)
    latest = dead_letter(bench, worker)

    answer = duly("dead", "show", "a91f")

    assert answer.lines[1].startswith("a91f03c2         2")
    assert f"job {latest}  send in mail  dead now" in answer.lines
    assert "  Traceback: smtp.py, line 7" in answer.lines
    assert duly("dead", "show", str(latest)).lines[0] == f"job {latest}  send in mail  dead now"


def test_no_dead_letters_is_an_answer(duly: Terminal) -> None:
    assert duly("dead", "groups").lines == ["no dead letters"]
    assert duly("dead", "list").lines == ["no dead letters"]
    assert (duly("dead", "show", "beef").err, duly("dead", "show", "beef").code) == (
        "error: no dead letter has the fingerprint beef; `duly dead groups` shows them\n",
        3,
    )
    assert duly("dead", "list", "--state", "ready").code == 2


def test_trace_shows_one_request_in_time_order(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker("send", queues=QUEUES)
    id = bench.put("send", queue="mail", correlation_id="order-7")
    bench.put("send", queue="mail", correlation_id="another")
    bench.clock.advance(2 * SECOND)
    job = bench.claim_one(worker, queues=QUEUES)
    bench.clock.advance(3 * SECOND)
    bench.end(worker, ended(job, Event.complete, elapsed=3 * SECOND))

    answer = duly("trace", "order-7")

    assert answer.lines == [
        "AT                   JOB  TASK  WHAT",
        f"2030-05-01 12:00:00  {id}    send  enqueued on mail",
        f"12:00:02             {id}    send  run 1 started",
        f"12:00:05             {id}    send  completed",
        "",
        "1 job of order-7",
    ]
