"""What is kept for those who operate a store is found by its indexes, however many rows there are."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly.core.operating import AnswerAsk
from duly.stores.postgres.answers import PostgresAnswers
from duly.stores.postgres.audits import PostgresAudits
from duly.stores.postgres.database import Database
from duly.stores.postgres.tallies import PostgresTallies
from duly.stores.postgres.tokens import PostgresTokens
from duly.stores.postgres.triage import PostgresTriage
from tests.databases import migrate
from tests.services import PostgresServer
from tests.stores.postgres.explained import Explained

ROWS = 30_000
NOW = datetime(2100, 1, 1, 3, tzinfo=UTC)
LATELY = 60
"""Rows of each second table that lie in a minute."""
# One a second of each, from midnight on.
FILL = f"""
select setval('duly.pos', {ROWS});
insert into duly.job (id, queue_key, suspect_key, task_key, enqueued_at, priority, queue, task, args)
select g, 1, 2, 3, '2100-01-01Z', 100, 'other', 'ok', '' from generate_series(1, {ROWS}) g;
insert into duly.finished (id, queue_key, enqueued_at, started_at, finished_at, run, failed, lost, interrupted, snoozed,
                           status, queue, task, tenant)
select g, 1 + g % 3, '2100-01-01Z', '2100-01-01Z'::timestamptz + g * interval '1 s',
       '2100-01-01Z'::timestamptz + g * interval '1 s', 1, 0, 0, 0, 0, 'completed', 'q' || g % 3, 'ok', ''
  from generate_series(1, {ROWS}) g;
insert into duly.dead (id, queue_key, enqueued_at, died_at, run, failed, lost, interrupted, snoozed, queue, task,
                       tenant, fingerprint)
select g, duly.key_of_1('other'), '2100-01-01Z', '2100-01-01Z'::timestamptz + g * interval '1 s', 1, 0, 0, 0, 0,
       'other', 'ok', '', 'feed'
  from generate_series(1, {ROWS}) g;
insert into duly.attempt (id, run, incarnation, ended_at, event)
select g, 1, 1, '2100-01-01Z'::timestamptz + g * interval '1 s', 'fail' from generate_series(1, {ROWS}) g;
insert into duly.audit_entry (at, actor, verb, target, reason, detail)
select '2100-01-01Z'::timestamptz + g * interval '1 s', 'ann', 'redrive', '', '', '{{"ids":[' || g || ']}}'
  from generate_series(1, {ROWS}) g;
insert into duly.audit_seal (id, ids, digest, previous, at)
select g, array(select generate_series(g * 100 - 99, g * 100)), '', '', '2100-01-01Z'
  from generate_series(1, {ROWS // 100}) g;
insert into duly.answer (key, token, body_hash, status, answer, at, expires_at)
select sha256(g::text::bytea), 1, '', 202, '', '2100-01-01Z', '2100-01-01Z'::timestamptz + g * interval '1 s'
  from generate_series(1, {ROWS}) g;
insert into duly.token (name, hash, scopes, by, created_at)
select 't' || g, sha256(g::text::bytea), '{{read}}', 'ann', '2100-01-01Z' from generate_series(1, {ROWS}) g;
insert into duly.dead_group (fingerprint, queue, task, state, note, by, at)
values ('feed', 'other', 'ok', 'fixed', '', 'ann', '2100-01-01 08:19Z');
insert into duly.sweep (name, last_at) values ('tally', '2100-01-01 02:50Z');
"""

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("postgres", [15, 18], indirect=True)]


def fill(url: str) -> None:
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        # The worst: the planner knows the tables as they were when they were empty.
        connection.execute("vacuum analyze")
        connection.execute(FILL.encode())


@pytest.fixture
def explained(postgres: PostgresServer) -> Iterator[Explained]:
    with postgres.database(postgres.template("operating-plans", fill)) as url:
        database = Database(url, "duly", lambda: NOW, 1)
        yield Explained(database)
        database.close()


def touched(found: list[dict[str, Any]]) -> dict[str, int]:
    """Rows that were read of each table, those that a filter removed included."""
    rows: dict[str, int] = {}
    for node in found:
        table = node.get("Relation Name")
        if table is not None and "Scan" in node["Node Type"]:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            rows[table] = rows.get(table, 0) + round(read * node["Actual Loops"])
    return rows


def test_five_minutes_are_counted_by_reading_five_minutes(explained: Explained) -> None:
    tallies = PostgresTallies(explained.database)

    read = touched(explained.of(tallies.fold))

    bound = 5 * LATELY + 50
    assert {table: read.get(table, 0) for table in ("finished", "dead", "attempt", "audit_entry")} == {
        "finished": pytest.approx(5 * LATELY, abs=20),
        "dead": pytest.approx(5 * LATELY, abs=20),
        "attempt": pytest.approx(5 * LATELY, abs=20),
        "audit_entry": pytest.approx(5 * LATELY, abs=20),
    }
    assert read["job"] <= 2 * bound
    found = tallies.read("minute", NOW - timedelta(hours=1), queues=["other"])
    assert sum(one.dead for one in found) == sum(one.redriven for one in found) == 5 * LATELY


def test_what_is_looked_up_is_found_by_its_key(explained: Explained) -> None:
    database = explained.database
    key = bytes(32)
    answers, audits = PostgresAnswers(database, _never), PostgresAudits(database, _never)
    triage = PostgresTriage(database, _never, database.transaction)
    (seal,) = audits.seals(limit=1)
    acts: dict[str, Callable[[], object]] = {
        "a token": lambda: PostgresTokens(database).find(key),
        "an answer": lambda: answers.look(key),
        "keys": lambda: answers.take([AnswerAsk(key, 1, b"", timedelta(minutes=1))]),
        "old answers": lambda: answers.forget(10),
        "a page of the audit": lambda: audits.page(before=20_000, limit=10),
        "seals": lambda: audits.seals(limit=10),
        "entries under a seal": lambda: audits.sealed(seal),
        "unsealed entries": audits.seal,
        "marks": triage.marks,
        "regressions": triage.regressions,
    }
    far = {}
    for name, act in acts.items():
        for _ in range(6):
            act()
        rows = touched(explained.of(act))
        if max(rows.values(), default=0) > 150:
            far[name] = rows

    assert far == {}


def _never(connection: Any, call: Any) -> Any:
    raise AssertionError(f"{call} on {connection}")
