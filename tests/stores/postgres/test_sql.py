"""Enqueue from SQL: triggers, plain text, what is refused and with which words, and keys shared with Python."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sybil.document import Document
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

from duly.core.defaults import MAX_NESTING, MAX_PAYLOAD
from duly.core.errors import KeyReused, UsageError
from duly.core.job import NewJob, Stored, UniqueKey
from duly.core.keys import idempotency_digest, unique_digest
from duly.core.lifecycle import Outcome, State
from duly.core.names import LENGTHS, Kind, check_name
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.postgres.store import PostgresStore
from tests.databases import migrate
from tests.services import PostgresServer
from tests.stores.postgres.acts import MINUTE, claim, ended, states, worker

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "sql.md"


@pytest.fixture
def session(store: PostgresStore, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection, each statement a transaction, in a database whose App has declared its tasks."""
    store.schema.declare(
        Registration(
            "shop:jobs",
            "1",
            (QueuePolicy("receipts"),),
            (TaskPolicy("ok", "default", 100), TaskPolicy("mail", "receipts", 7, expires=MINUTE)),
        )
    )
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def one(session: psycopg.Connection[Any], statement: str) -> dict[str, Any]:
    row: dict[str, Any] | None = session.execute(statement.encode()).fetchone()
    assert row is not None
    return row


def test_what_is_not_said_comes_from_the_declared_task(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    told = one(session, "select * from duly.enqueue('mail', '{\"to\": \"ann\"}')")

    (record,) = store.inspection.lookup([told["id"]])
    assert (told["outcome"], told["run_at"]) == ("created", None)
    assert record is not None
    assert (record.queue, record.task, record.priority, record.state) == ("receipts", "mail", 7, State.ready)
    assert record.expires_at == record.enqueued_at + MINUTE
    assert record.args == b'{"to": "ann"}'
    assert (record.timeout, record.attempts, record.tags) == (None, None, ())


def test_what_is_said_goes_before_what_is_declared(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    told = one(
        session,
        "select * from duly.enqueue('mail', queue => 'default', priority => -3, delay => '1 hour', "
        "expires => '2 hours', timeout => '90 seconds', attempts => 4, "
        "tenant => 'acme', tags => '{a,b}', correlation_id => 'request 7')",
    )

    (record,) = store.inspection.lookup([told["id"]])
    assert record is not None
    assert (record.queue, record.priority, record.tenant) == ("default", -3, "acme")
    assert (record.tags, record.correlation_id) == (("a", "b"), "request 7")
    assert (record.timeout, record.attempts) == (timedelta(seconds=90), 4)
    assert record.run_at == told["run_at"] == record.enqueued_at + timedelta(hours=1)
    assert record.expires_at == record.enqueued_at + timedelta(hours=3)


def test_a_job_from_sql_is_run_like_any_other(session: psycopg.Connection[Any], store: PostgresStore) -> None:
    told = one(session, "select * from duly.enqueue('ok', '{\"n\": 1}')")
    me = worker(store)

    (held,) = claim(store, me)

    assert (held.id, held.args, held.correlation_id) == (told["id"], b'{"n": 1}', str(told["id"]))
    assert store.jobs.exchange(me, [ended(held)], None).acked == {(held.id, 1)}


def test_the_longest_time_to_run_keeps_no_worker_from_claiming(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    one(session, "select * from duly.enqueue('ok', timeout => '1000000 years')")
    one(session, "select * from duly.enqueue('ok', timeout => '292260 years')")

    assert len(claim(store, worker(store), 10)) == 2


def test_tags_are_kept_once_each_whatever_shape_their_array_has(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    told = one(session, "select * from duly.enqueue('ok', tags => '{{b,a},{a,c}}')")
    none = one(session, "select * from duly.enqueue('ok', tags => '{}')")

    found = store.inspection.lookup([told["id"], none["id"]])
    assert [record and record.tags for record in found] == [("b", "a", "c"), ()]


def test_a_trigger_enqueues_in_the_transaction_of_the_row(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    session.execute(
        """
        create table orders (id int primary key);
        create function receipt() returns trigger language plpgsql as $$
        begin
            perform duly.enqueue('ok', jsonb_build_object('order', new.id), unique_key => 'order:' || new.id);
            return new;
        end $$;
        create trigger receipt before insert on orders for each row execute function receipt();
        """
    )

    with pytest.raises(psycopg.errors.DivisionByZero), session.transaction():
        session.execute("insert into orders values (1)")
        session.execute("select 1 / 0")
    session.execute("insert into orders values (1), (2)")

    held = claim(store, worker(store), 10)
    assert [job.args for job in held] == [b'{"order": 1}', b'{"order": 2}']


def test_a_time_in_the_past_is_ready_at_once_and_one_to_come_is_waited_for(
    session: psycopg.Connection[Any],
) -> None:
    past = one(session, "select * from duly.enqueue('ok', run_at => '2020-01-01Z')")
    later = one(session, "select * from duly.enqueue('ok', run_at => '2100-01-01Z')")

    assert past["run_at"] is None
    assert later["run_at"] == datetime(2100, 1, 1, tzinfo=UTC)


def test_unique_keys_are_shared_with_python(session: psycopg.Connection[Any], store: PostgresStore) -> None:
    ours = NewJob("default", "ok", b"{}", tenant="acme", unique=UniqueKey(unique_digest("ok", "acme", "Zoë")))
    (first,) = store.jobs.enqueue([ours])

    same = one(session, "select * from duly.enqueue('ok', tenant => 'acme', unique_key => 'Zoë')")
    other = one(session, "select * from duly.enqueue('ok', unique_key => 'Zoë')")
    newer = one(
        session,
        "select * from duly.enqueue('ok', tenant => 'acme', unique_key => 'Zoë', on_conflict => 'replace')",
    )

    assert (same["id"], same["outcome"]) == (first.id, "duplicate")
    assert (other["outcome"], newer["outcome"]) == ("created", "created")
    assert states(store, [first.id, newer["id"]]) == [State.skipped, State.ready]
    assert store.jobs.enqueue([ours]) == [Stored(newer["id"], Outcome.duplicate)]


def test_a_live_key_from_sql_is_held_until_the_job_has_ended(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    enqueue = "select * from duly.enqueue('ok', unique_key => 'k', unique_scope => 'live')"
    first = one(session, enqueue)
    me = worker(store)
    (held,) = claim(store, me)

    assert one(session, enqueue)["id"] == first["id"]
    store.jobs.exchange(me, [ended(held)], None)
    assert one(session, enqueue)["outcome"] == "created"


def test_a_version_from_sql_makes_older_ones_stale(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    enqueue = "select * from duly.enqueue('ok', unique_key => 'k', version => {})"
    me = worker(store)
    one(session, enqueue.format(8))
    (held,) = claim(store, me)
    store.jobs.exchange(me, [ended(held)], None)

    old = one(session, enqueue.format(7))

    assert claim(store, me) == ()
    (record,) = store.inspection.lookup([old["id"]])
    assert record is not None
    assert (record.state, record.reason) == (State.skipped, "stale")


@pytest.mark.parametrize("args", [b'{"n":1,"m":[2]}', b'{"m": [2], "n": 1}'])
def test_idempotency_keys_are_shared_with_python_however_each_writes_the_arguments(
    session: psycopg.Connection[Any], store: PostgresStore, args: bytes
) -> None:
    digest = idempotency_digest("ok", "", "request 1")
    (first,) = store.jobs.enqueue([NewJob("default", "ok", args, idempotency=digest)])

    again = one(
        session, "select * from duly.enqueue('ok', '{\"n\": 1, \"m\": [2]}', idempotency_key => 'request 1')"
    )

    assert (again["id"], again["outcome"]) == (first.id, "duplicate")
    with pytest.raises(KeyReused):
        store.jobs.enqueue([NewJob("default", "ok", b'{"n":2}', idempotency=digest)])
    with pytest.raises(
        psycopg.Error, match=f"'request 1' was used before, for job {first.id} with other"
    ) as caught:
        session.execute("select duly.enqueue('ok', '{\"n\": 2}', idempotency_key => 'request 1')")
    assert caught.value.sqlstate == "DY002"


REFUSED = {
    "task nobody knows": ("'mial'", "no App has declared the task 'mial'"),
    "no task": ("null", "task NULL must not be empty"),
    "empty task": ("'  '", "must not be empty"),
    "task with a comma": ("'a,b', queue => 'default'", "holds a comma"),
    "task too long": ("repeat('x', 201), queue => 'default'", "has 201 characters; at most 200 fit"),
    "queue with a blank": ("'ok', queue => 'my queue'", "queue 'my queue' holds a comma, a colon or a blank"),
    "queue with a line end": ("'ok', queue => E'a\\nb'", "holds a control character"),
    "queue too long": ("'ok', queue => repeat('q', 101)", "at most 100 fit"),
    "tenant with blanks around": ("'ok', tenant => ' acme'", "has blanks around it"),
    "empty tag": ("'ok', tags => '{a,\"\"}'", "tag '' must not be empty"),
    "too many tags": (
        "'ok', tags => array(select n::text from generate_series(1, 21) n)",
        "21 tags on one job; at most 20 fit",
    ),
    "missing tag": ("'ok', tags => '{a,null}'", "tag NULL must not be empty"),
    "correlation id with a control": ("'ok', correlation_id => E'a\\u2028b'", "holds a control character"),
    "key too long": ("'ok', unique_key => repeat('k', 256)", "at most 255 fit"),
    "empty key": ("'ok', idempotency_key => ''", "key '' must not be empty"),
    "other scope": ("'ok', unique_key => 'k', unique_scope => 'forever'", "'queued' or 'live'"),
    "no scope": ("'ok', unique_key => 'k', unique_scope => null", "'queued' or 'live'"),
    "other policy": ("'ok', unique_key => 'k', on_conflict => 'ignore'", "'return' or 'replace'"),
    "version alone": ("'ok', version => 3", "version needs a unique_key"),
    "delay and time": ("'ok', delay => '1 s', run_at => now()", "delay and run_at exclude each other"),
    "delay into the past": ("'ok', delay => '-1 s'", "delay => '-00:00:01' is negative; write an interval"),
    "delay without end": ("'ok', delay => '101 years'", "is longer than 100 years; write a shorter one"),
    "never": (
        "'ok', run_at => 'infinity'",
        "run_at => 'infinity' is no due time: write a year from 1970 to 8999",
    ),
    "always": ("'ok', run_at => '-infinity'", "run_at => '-infinity' is no due time"),
    "before all": ("'ok', run_at => '1969-12-31Z'", "is no due time: write a year from 1970 to 8999"),
    "after all": ("'ok', run_at => '9000-01-01Z'", "is no due time: write a year from 1970 to 8999"),
    "queue nobody declared": (
        "'ok', queue => 'mial'",
        "uses the queue 'mial', which is not declared; declare it with jobs.queue('mial') and start its worker once",
    ),
    "queue among several": ("'ok', queue => 'mial'", "known: default, mail"),
    "empty queue": ("'ok', queue => ''", "queue '' must not be empty"),
    "no attempts": ("'ok', attempts => 0", "attempts must be 1 or more"),
    "no time to run": ("'ok', timeout => '0 s'", "timeout must be longer than nothing"),
    "expires at once": ("'ok', expires => '-1 s'", "expires must be longer than nothing"),
    "no object": ("'ok', '[1]'", "args must be a JSON object {parameter: value}, not array"),
    "no arguments at all": ("'ok', null", "not NULL"),
    "huge integer": ("'ok', '{\"a\": [9007199254740993]}'", "hold the number 9007199254740993, beyond 2^53"),
    "huge float": ("'ok', '{\"a\": -1e300}'", "beyond 2^53"),
    "too large": (f"'ok', jsonb_build_object('a', repeat('x', {MAX_PAYLOAD}))", "at most 262144 fit"),
    "too deep": (
        f"'ok', (repeat('{{\"a\":', {MAX_NESTING + 1}) || '{{}}' || repeat('}}', {MAX_NESTING + 1}))::jsonb",
        "nested more than 64 deep",
    ),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_what_no_worker_could_run_is_refused_with_the_reason(
    refusing: psycopg.Connection[Any], call: str, words: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        refusing.execute(f"select duly.enqueue({call})".encode())

    assert words in str(caught.value)
    assert caught.value.sqlstate == "22023"


@pytest.mark.parametrize(
    ("args", "state"), [('{"a": "\\u0000"}', "22P05"), ('{"a": "\\ud800"}', "22P02"), ('{"a": NaN}', "22P02")]
)
def test_what_jsonb_does_not_take_is_refused_by_jsonb(
    refusing: psycopg.Connection[Any], args: str, state: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        refusing.execute(f"select duly.enqueue('ok', '{args}')".encode())

    assert caught.value.sqlstate == state


@pytest.fixture(scope="module")
def shared(postgres15: PostgresServer) -> Iterator[str]:
    """One database for what stores nothing."""
    if not postgres15.running:
        postgres15.resume()
    with postgres15.database(postgres15.template("duly", migrate)) as url:
        store = PostgresStore(url)
        store.schema.declare(
            Registration("shop:jobs", "1", (QueuePolicy("mail"),), (TaskPolicy("ok", "default", 100),))
        )
        store.close()
        yield url


@pytest.fixture
def refusing(shared: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shared, autocommit=True) as connection:
        yield connection


def test_the_largest_and_deepest_arguments_that_python_takes_are_taken(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    large = one(
        session, f"select * from duly.enqueue('ok', jsonb_build_object('a', repeat('x', {MAX_PAYLOAD - 9})))"
    )
    deep = "[" * MAX_NESTING + "]" * MAX_NESTING
    one(session, f"select * from duly.enqueue('ok', '{{\"a\": {deep}, \"b\": 9007199254740992}}')")

    (found,) = store.jobs.arguments([large["id"]]).values()
    assert len(found) == MAX_PAYLOAD


NAMES = [
    "ok", "a b", "a,b", "a:b", " a", "a ", "", " ", "\u3000", "a\u2028b", "a\x85b", "a\x7fb", "\u00a0a", "é", "a\tb",
    "x" * 100, "x" * 101, "x" * 200, "x" * 201, "x" * 255, "x" * 256, "a\u2003b", "\u200bx",
]  # fmt: skip


def test_names_are_refused_exactly_where_python_refuses_them(refusing: psycopg.Connection[Any]) -> None:
    separators: dict[Kind, str] = {"task": ",", "queue": ",:"}
    kinds: list[Kind] = ["task", "queue", "tenant", "tag", "key", "correlation id"]
    differ = []
    for kind in kinds:
        for name in NAMES:
            try:
                check_name(kind, name)
                ours = True
            except UsageError:
                ours = False
            try:
                refusing.execute(
                    "select duly.check_name_1(%s, %s, %s, %s)",
                    (kind, name, LENGTHS[kind], separators.get(kind, "")),
                )
                theirs = True
            except psycopg.Error:
                theirs = False
            if ours != theirs:
                differ.append((kind, name, ours))

    assert not differ


def test_what_python_takes_for_a_due_time_is_taken(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    calls = [
        "'ok', delay => '0'",
        "'ok', delay => '100 years'",
        "'ok', run_at => '1970-01-01Z'",
        "'ok', run_at => '8999-12-31Z'",
        "'ok', queue => 'receipts'",
        "'new', queue => 'receipts'",
        "'new', queue => 'tomorrow'",
    ]

    ids = [one(session, f"select id from duly.enqueue({call})")["id"] for call in calls]

    here, later = State.ready, State.scheduled
    assert states(store, ids) == [here, later, here, later, here, here, here]


def test_a_role_with_usage_alone_may_enqueue_and_touch_no_table(session: psycopg.Connection[Any]) -> None:
    session.execute("create role clerk")
    session.execute("grant usage on schema duly to clerk")
    try:
        session.execute("set role clerk")
        assert one(session, "select * from duly.enqueue('ok', unique_key => 'k')")["outcome"] == "created"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("delete from duly.ready")
        # What functions are made of runs with the rights of whoever calls it, and finds nothing.
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("set search_path = duly; select * from store_jobs_1('[]', null, false, now())")
    finally:
        session.execute("reset role")
        session.execute("drop owned by clerk")
        session.execute("drop role clerk")


def test_a_search_path_of_the_caller_does_not_lead_astray(session: psycopg.Connection[Any]) -> None:
    session.execute("create schema evil; create table evil.job (id int); create table evil.task (name text)")
    session.execute("set search_path = evil, public")

    assert one(session, "select * from duly.enqueue('ok')")["outcome"] == "created"


@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_the_examples_of_the_page_run_and_answer_what_it_says(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    text = PAGE.read_text()
    blocks = [
        (text.index(str(region.lexemes["source"])), language, str(region.lexemes["source"]))
        for language in ("python", "sql", "text")
        for region in FencedCodeBlockLexer(language)(Document(text, str(PAGE)))
    ]
    ran = 0
    with postgres.database() as url:
        answer = ""
        try:
            for _, language, source in sorted(blocks):
                if language == "python":
                    (tmp_path / "background.py").write_text(source)
                    migrated = duly(tmp_path, "migrate", "background", "--url", url)
                    assert migrated.returncode == 0, migrated.stdout + migrated.stderr
                elif language == "sql":
                    answer = said(url, source)
                    ran += 1
                elif answer:
                    assert answer == source.strip()
                    answer = ""
        finally:
            # Roles belong to the whole server.
            postgres.execute("drop owned by till", database=url.rpartition("/")[2])
            postgres.execute("drop role till")

    assert ran >= 8


def duly(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=f"{ROOT / 'src'}{os.pathsep}{folder}", NO_COLOR="1")
    return subprocess.run(
        [sys.executable, "-m", "duly.cli.main", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
    )


def said(url: str, source: str) -> str:
    """What the last statement that answers rows answers, as text."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(source.encode())
        told = ""
        while True:
            if cursor.description is not None:
                rows = cursor.fetchall()
                lines = [[column.name for column in cursor.description], *rows]
                told = "\n".join(
                    " | ".join("" if value is None else str(value) for value in line) for line in lines
                )
            if not cursor.nextset():
                return told.strip()
