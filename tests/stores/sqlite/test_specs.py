"""Jobs and schedules as text: what comes back is what went in, whatever it holds."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from duly.core.job import RESULT_MARK, NewJob, UniqueKey
from duly.core.registration import Schedule
from duly.stores.sqlite.specs import blobs_of, job_of, schedule_of, schedule_text, text_of

NAMES = st.text(min_size=1, max_size=10)
SPANS = st.timedeltas(timedelta(0), timedelta(days=4000))
NUMBERS = st.integers(-(2**63), 2**63 - 1)
KEYS = st.binary(min_size=16, max_size=16)
PLAIN = st.builds(
    NewJob,
    queue=NAMES,
    task=NAMES,
    args=st.one_of(st.binary(max_size=20), st.just(b'{"total":' + RESULT_MARK + b"}")),
    priority=st.integers(-(2**31), 2**31 - 1),
    delay=st.none() | SPANS,
    run_at=st.none() | SPANS.map(lambda after: datetime(2000, 1, 1, tzinfo=UTC) + after),
    expires=st.none() | SPANS,
    timeout=st.none() | SPANS,
    attempts=st.none() | st.integers(1, 100),
    tenant=st.text(max_size=5),
    tags=st.lists(NAMES, max_size=2).map(tuple),
    correlation_id=st.none() | NAMES,
    idempotency=st.none() | KEYS,
    unique=st.none() | st.builds(UniqueKey, KEYS, st.booleans(), st.booleans()),
    version=st.none() | NUMBERS,
    trigger=st.none() | NAMES,
    blobs=st.lists(NAMES, max_size=2).map(tuple),
)
JOBS = st.builds(
    lambda job, then, on_dead: NewJob(
        **{
            field: getattr(job, field)
            for field in NewJob.__struct_fields__
            if field not in {"then", "on_dead"}
        },
        then=tuple(then),
        on_dead=tuple(on_dead),
    ),
    PLAIN,
    st.lists(PLAIN, max_size=2),
    st.lists(PLAIN, max_size=2),
)


@settings(max_examples=40)
@given(JOBS)
def test_a_job_comes_back_from_its_text_as_it_was(job: NewJob) -> None:
    assert job_of(text_of(job)) == job


@settings(max_examples=40)
@given(JOBS, SPANS)
def test_a_schedule_comes_back_from_its_text_as_it_was(job: NewJob, every: timedelta) -> None:
    for schedule in (
        Schedule("s", every=every, job=job, jitter=every / 2, catch_up="all", overlap="queue"),
        Schedule("s", cron="* * * * *", tz="Europe/Oslo"),
    ):
        assert schedule_of("s", schedule_text(schedule)) == schedule


def test_a_field_that_a_text_does_not_have_takes_its_default() -> None:
    text = json.dumps({"queue": "mail", "task": "send", "args": "{}", "priority": 7})

    assert job_of(text) == NewJob("mail", "send", b"{}", priority=7)


def test_a_job_needs_the_blobs_of_all_that_may_follow_it() -> None:
    last = NewJob("mail", "send", b"{}", blobs=("c",))
    next_one = NewJob("mail", "send", b"{}", blobs=("b",), on_dead=(last,))

    assert [*blobs_of(NewJob("mail", "send", b"{}", blobs=("a",), then=(next_one,)))] == ["a", "b", "c"]
