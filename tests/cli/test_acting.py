"""What the acting commands do and refuse: cancel, pause, resume, redrive, purge, operations, drain."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.protocol import OperationRecord
from duly.testing.conformance.bench import BOOM, Bench, ended, unique
from tests.cli.conftest import Answer, Terminal
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)
WHY = ("--reason", "INC-311")


@pytest.fixture
def worker(bench: Bench) -> Incarnation:
    return bench.worker()


def dead_letters(bench: Bench, worker: Incarnation, count: int) -> list[JobId]:
    ids = bench.put_many(count)
    jobs = bench.claim(worker, count)
    bench.end(worker, *(ended(job, Event.bury, State.dead, error=BOOM, reason="boom") for job in jobs))
    return ids


def operations(bench: Bench) -> list[OperationRecord]:
    return bench.store.inspection.operations()


def test_one_waiting_job_is_cancelled_without_a_reason(bench: Bench, duly: Terminal) -> None:
    id = bench.put()

    answer = duly("cancel", str(id))

    assert (answer.out, answer.code) == ("1 job cancelled\n", 0)
    assert bench.state(id) is State.cancelled


def test_a_running_job_is_asked_to_stop(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    id = bench.put()
    bench.claim_one(worker)

    answer = duly("cancel", str(id))

    assert answer.out == "1 running job asked to stop\n"
    assert bench.row(id).cancel_wished


def test_several_jobs_need_a_reason_and_a_yes(bench: Bench, duly: Terminal) -> None:
    ids = bench.put_many(3)

    silent = duly("cancel", "--task", "ok", "--yes")
    unasked = duly("cancel", "--task", "ok", *WHY)
    done = duly("cancel", "--task", "ok", *WHY, "--yes")

    assert silent.err == "error: 3 jobs: say why with --reason TEXT; it is kept with the act\n"
    assert unasked.err == "error: 3 jobs would be cancelled. Nobody is here to confirm: add --yes\n"
    assert (silent.code, unasked.code, done.code) == (2, 2, 0)
    assert done.out == "3 jobs cancelled\n"
    assert set(bench.states(ids)) == {State.cancelled}
    assert bench.row(ids[0]).reason is not None
    assert "INC-311" in str(bench.row(ids[0]).reason)


def test_a_dry_run_only_counts(bench: Bench, duly: Terminal) -> None:
    ids = bench.put_many(3)

    answer = duly("cancel", "--all", "--dry-run")

    assert answer.out == "3 jobs would be cancelled; nothing was done\n"
    assert set(bench.states(ids)) == {State.ready}
    assert duly("cancel", "--all", "--dry-run", "-o", "ndjson").json == {
        "verb": "cancel",
        "matched": 3,
        "dry_run": True,
    }


def test_an_act_must_be_told_which_jobs(duly: Terminal) -> None:
    nothing, both = duly("cancel"), duly("cancel", "7", "--queue", "mail")

    assert nothing.err == "error: which jobs? Give ids, a filter such as --queue mail, or --all\n"
    assert both.err == "error: ids and a filter say two things; give one of them\n"
    assert nothing.code == both.code == 2


def test_an_act_on_a_job_that_is_not_there_or_has_changed(bench: Bench, duly: Terminal) -> None:
    id = bench.put()
    duly("cancel", str(id))

    gone, changed, nothing = (
        duly("cancel", "4711"),
        duly("cancel", str(id)),
        duly("cancel", "--queue", "none"),
    )

    assert (gone.code, changed.code) == (3, 4)
    assert changed.err == f"error: job {id} is cancelled; cancel needs one that waits or runs\n"
    assert (nothing.out, nothing.code) == ("no job fits; nothing was done\n", 0)


def test_more_than_a_hundred_jobs_need_a_rate_and_become_an_operation(bench: Bench, duly: Terminal) -> None:
    ids = bench.put_many(150)

    unpaced = duly("cancel", "--all", *WHY, "--yes")
    started = duly("cancel", "--all", *WHY, "--yes", "--rate", "20/s")

    assert unpaced.err == (
        "error: 150 jobs: say how fast with --rate, such as 20/s; --rate max means at once\n"
    )
    assert unpaced.code == 2
    assert started.lines == [
        "operation 1 started: 150 jobs, about 8s. The workers carry it out.",
        "duly operations show 1 · pause 1 · cancel 1",
    ]
    assert [(one.verb, one.state, one.rate, one.total, one.by) for one in operations(bench)] == [
        ("cancel", "running", 20.0, 150, "ada@ops")
    ]
    assert set(bench.states(ids)) == {State.ready}


def test_a_dead_letter_whose_unique_key_another_job_has_says_so(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    old = bench.put(unique=unique())
    (job,) = bench.claim(worker, 1)
    bench.end(worker, ended(job, Event.bury, State.dead, error=BOOM, reason="boom"))
    bench.put(unique=unique())

    refused = duly("dead", "redrive", str(old))

    assert refused.code == 4
    assert refused.err.startswith(f"error: job {old} stays dead: its unique key is another job's by now;")


@pytest.mark.parametrize("rate", ["20", "fast", "0/s"])
def test_a_rate_that_cannot_be_read_says_what_to_write(rate: str, duly: Terminal) -> None:
    answer = duly("cancel", "--all", "--rate", rate)

    assert answer.code == 2
    assert "--rate" in answer.err
    assert answer.err.count("\n") == 1


def test_a_dead_letter_runs_again_once_even_if_asked_twice(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    (id,) = dead_letters(bench, worker, 1)

    first, second = duly("dead", "redrive", str(id)), duly("dead", "redrive", str(id))

    assert (first.out, first.code) == ("1 job will run again\n", 0)
    assert second.err == f"error: job {id} is ready; redrive needs one that is dead, cancelled or skipped\n"
    assert second.code == 4


def test_the_oldest_dead_letter_is_tried_first(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    ids = dead_letters(bench, worker, 3)

    answer = duly("dead", "redrive", "--fingerprint", BOOM.fingerprint, "--first", "1", "--priority", "7")

    assert answer.out == "1 job will run again\n"
    assert bench.states(ids) == [State.ready, State.dead, State.dead]
    assert bench.row(ids[0]).priority == 7


def test_a_redriven_job_is_followed_to_its_end(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    (id,) = dead_letters(bench, worker, 1)
    answers: list[Answer] = []
    follower = threading.Thread(
        target=lambda: answers.append(duly("dead", "redrive", str(id), "--follow")), daemon=True
    )

    follower.start()
    (job,) = wait_until(lambda: bench.claim(worker), what="the redriven job")
    bench.end(worker, ended(job, Event.complete, elapsed=SECOND))
    follower.join(10)

    assert answers[0].code == 0
    assert answers[0].lines[0] == "1 job will run again"
    assert answers[0].lines[-1].startswith(f"job {id}  completed  2030-05-01 12:00:00")


def test_several_redriven_jobs_are_followed_and_a_bad_end_is_exit_1(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    ids = dead_letters(bench, worker, 2)
    answers: list[Answer] = []
    follower = threading.Thread(
        target=lambda: answers.append(duly("dead", "redrive", "--all", *WHY, "--yes", "--follow")),
        daemon=True,
    )

    follower.start()
    for id in ids:
        (job,) = wait_until(lambda: bench.claim(worker), what="a redriven job")
        to = State.completed if id == ids[0] else State.dead
        bench.end(worker, ended(job, Event.complete if to is State.completed else Event.bury, to))
    follower.join(10)

    assert answers[0].code == 1
    assert answers[0].err.endswith(f"error: 1 job of 2 ended dead or cancelled: {ids[1]}\n")


def test_a_large_redrive_stands_behind_todays_work(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    dead_letters(bench, worker, 101)

    answer = duly("dead", "redrive", "--all", "--rate", "max", *WHY, "--yes")

    assert answer.lines[0] == "operation 1 started: 101 jobs, at priority 200. The workers carry it out."
    assert operations(bench)[0].priority == 200


def test_purged_letters_are_gone(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    ids = dead_letters(bench, worker, 2)

    answer = duly("dead", "purge", "--all", *WHY, "--yes")

    assert answer.out == "2 jobs deleted for good\n"
    assert bench.states(ids) == [None, None]


def test_an_operation_is_listed_held_and_ended(bench: Bench, duly: Terminal) -> None:
    bench.put_many(150)
    duly("cancel", "--queue", "default", *WHY, "--yes", "--rate", "20/s")

    listed = duly("operations", "list")
    paused, resumed = duly("operations", "pause", "1"), duly("operations", "resume", "1")
    dry, ended_, again = (
        duly("operations", "cancel", "1", "--dry-run"),
        duly("operations", "cancel", "1"),
        duly("operations", "resume", "1"),
    )

    assert listed.lines == [
        "N  VERB    STATE    DONE   OF  RATE/s  LEFT  STARTED  BY       FILTER         REASON",
        "1  cancel  running     0  150      20    8s  now      ada@ops  queue=default  INC-311",
    ]
    assert paused.out == "operation 1 is paused; 0 jobs of 150 done\n"
    assert resumed.out == "operation 1 is running; 0 jobs of 150 done\n"
    assert dry.out == "operation 1 would be cancelled; nothing was done\n"
    assert ended_.out == "operation 1 is cancelled; 0 jobs of 150 done\n"
    assert (again.err, again.code) == ("error: operation 1 is cancelled already\n", 4)
    assert duly("operations", "show", "1", "-q").lines[0].split()[2] == "cancelled"


def test_an_operation_that_is_not_there_is_exit_3(duly: Terminal) -> None:
    assert duly("operations", "show", "7").code == 3
    assert duly("operations", "pause", "7").code == 3
    assert duly("operations", "list").lines == ["no operations"]


def test_a_queue_and_a_task_are_paused_and_resumed(bench: Bench, duly: Terminal) -> None:
    mail, send = QueuePolicy("mail"), TaskPolicy("send", "mail", 100)
    bench.store.schema.declare(Registration("shop:jobs", "1", queues=(mail,), tasks=(send,)))

    paused = duly("pause", "mail", "task:send", "--for", "30m", *WHY)
    listed = duly("pause")
    resumed = duly("resume", "mail", "task:send")
    again = duly("resume", "mail")

    assert paused.lines == [
        "mail paused until 2030-05-01 12:30:00 UTC by ada@ops (INC-311). Undo: duly resume mail",
        "task:send paused until 2030-05-01 12:30:00 UTC by ada@ops (INC-311). Undo: duly resume task:send",
    ]
    assert sorted(listed.lines[1:]) == [
        "mail       in 30m  ada@ops  now    INC-311",
        "task:send  in 30m  ada@ops  now    INC-311",
    ]
    assert resumed.lines == ["mail resumed", "task:send resumed"]
    assert (again.err, again.code) == ("error: mail: not paused\n", 4)


def test_a_paused_queue_shows_in_the_status(bench: Bench, duly: Terminal) -> None:
    bench.put()
    duly("pause", "default")

    answer = duly("status")

    assert answer.lines[2].endswith("paused")
    assert answer.lines[3] == "default: paused: 1 job waits, the oldest for 0s until `duly resume default`"


def test_what_cannot_be_paused_is_named(bench: Bench, duly: Terminal) -> None:
    bench.store.schema.declare(Registration("shop:jobs", "1", queues=(QueuePolicy("mail"),)))

    unknown, dry, odd = duly("pause", "mial"), duly("pause", "mail", "--dry-run"), duly("pause", "lane:x")

    assert (unknown.err, unknown.code) == ("error: no queue is named 'mial'; did you mean 'mail'?\n", 3)
    assert dry.out == "mail would be paused; nothing was done\n"
    assert odd.code == 2
    assert duly("pause").lines == ["nothing is paused"]
    assert duly("pause", "mail", "--for", "30").code == 2


def test_a_worker_is_asked_to_drain(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    dry, asked, none = (
        duly("workers", "drain", str(worker), "--dry-run"),
        duly("workers", "drain", str(worker)),
        duly("workers", "drain", "4711"),
    )

    assert dry.out == f"worker {worker} would be asked to end when its jobs have\n"
    assert asked.out == f"worker {worker} is asked to end when its jobs have\n"
    assert none.code == 3
    assert bench.store.operator.draining([worker]) == {worker}
    assert duly("workers", "list").lines[1].split()[-2] == "draining"
