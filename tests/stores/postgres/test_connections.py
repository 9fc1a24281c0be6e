"""Connections of ours: what is lost with one, what a restart, a fork and a standby do, and what we say then."""

import subprocess
import sys
import textwrap
from functools import partial

import psycopg
import pytest

from duly.core.errors import LeaseLost, MigrationNeeded, StoreUnreachable, UsageError
from duly.core.filters import Filter
from duly.core.job import NewJob, Token
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault, ReadOnly, Transient
from duly.stores.postgres import schema
from duly.stores.postgres.store import PostgresStore
from tests.services import Mode, PostgresServer
from tests.stores.postgres.acts import MINUTE, Proxy, claim, ended, put, request, states, together, worker
from tests.stores.postgres.conftest import Open
from tests.waiting import wait_until


def test_an_end_whose_reply_was_lost_counts_when_told_again(
    store: PostgresStore, open_store: Open, proxied_url: str, proxy: Proxy
) -> None:
    remote = open_store(proxied_url)
    me = worker(remote)
    put(remote)
    (job,) = claim(remote, me)
    proxy.treat("cut replies")

    with pytest.raises(Transient) as lost:
        remote.jobs.exchange(me, [ended(job)], None)

    assert lost.value.outcome_unknown
    wait_until(lambda: states(store, [job.id]) == [State.completed])
    assert remote.jobs.exchange(me, [ended(job)], None).acked == {(job.id, job.run)}


def test_jobs_of_a_claim_whose_reply_was_lost_are_told_by_the_next_report(
    store: PostgresStore, open_store: Open, proxied_url: str, proxy: Proxy
) -> None:
    remote = open_store(proxied_url)
    me = worker(remote)
    (id,) = put(remote)
    proxy.treat("cut replies")

    with pytest.raises(Transient):
        remote.jobs.exchange(me, (), request(1))

    wait_until(lambda: states(store, [id]) == [State.running])
    held, _ = remote.jobs.report(me, [])
    assert held == [(id, 1)]


def test_a_store_outlives_restarts_of_its_server(store: PostgresStore, postgres: PostgresServer) -> None:
    me = worker(store)
    put(store, 3)
    modes: tuple[Mode, ...] = ("fast", "immediate")
    for mode in modes:
        (job,) = claim(store, me)
        postgres.restart(mode)

        # The dead connections are noticed before use: nothing is asked in vain.
        assert store.jobs.exchange(me, [ended(job)], None).acked == {(job.id, job.run)}


def test_a_server_that_is_away_is_named_in_one_line_with_what_to_do(postgres: PostgresServer) -> None:
    store = PostgresStore("postgresql://duly:s3cret@127.0.0.1:1/shop")

    with pytest.raises(StoreUnreachable) as told:
        put(store)

    text = str(told.value)
    assert "127.0.0.1:1/shop" in text
    assert "DULY_URL" in text
    assert "\n" not in text
    assert "s3cret" not in text
    assert isinstance(told.value, Transient)
    assert not told.value.outcome_unknown


def test_a_database_without_the_schema_says_what_to_run(empty_postgres_url: str, open_store: Open) -> None:
    store = open_store(empty_postgres_url)

    for act in (lambda: put(store), lambda: worker(store), store.inspection.counts, store.leases.beats):
        with pytest.raises(MigrationNeeded, match="run: duly migrate"):
            act()
    assert store.schema.version() == 0


def test_a_schema_of_a_newer_release_is_not_migrated_back(store: PostgresStore) -> None:
    with store.transaction() as connection:
        connection.execute("insert into duly.schema_version values (999, 'future', 'x', clock_timestamp())")

    with pytest.raises(MigrationNeeded, match="newer than this release"):
        store.schema.migrate()


def test_many_processes_may_migrate_an_empty_database_at_once(
    empty_postgres_url: str, open_store: Open
) -> None:
    stores = [open_store(empty_postgres_url) for _ in range(8)]
    applied: list[list[str]] = []

    def migrate(store: PostgresStore) -> None:
        applied.append(store.schema.migrate())

    together(*(partial(migrate, store) for store in stores))

    assert sorted(map(len, applied)) == [0] * 7 + [stores[0].schema.wanted()]
    put(stores[0])


def test_a_migration_that_was_changed_after_the_fact_is_refused(store: PostgresStore) -> None:
    with store.transaction() as connection:
        connection.execute("update duly.schema_version set checksum = 'other' where version = 1")

    with pytest.raises(UsageError, match="another text"):
        store.schema.migrate()


def test_a_migration_that_finds_its_lock_taken_says_so(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_PATIENCE", 0.1)
    with psycopg.connect(url) as other:
        other.execute("select pg_advisory_xact_lock(hashtextextended('duly migrate duly', 0))")

        with pytest.raises(StoreUnreachable, match="locked by another session"):
            store.schema.migrate()


def test_a_lost_holder_in_a_later_thousand_takes_all_back(store: PostgresStore) -> None:
    me = worker(store)
    (id,) = put(store)
    (job,) = claim(store, me)
    plain = NewJob("default", "ok", b"{}")
    orphan = NewJob("default", "ok", b"{}", holder=Token(me, job.id, job.run + 1))

    with pytest.raises(LeaseLost):
        store.jobs.enqueue([plain] * 1_500 + [orphan])

    assert [count.ready for count in store.inspection.counts()] == [0]
    assert states(store, [id]) == [State.running]


def test_the_text_of_the_migrations_is_all_that_a_database_needs(
    empty_postgres_url: str, open_store: Open
) -> None:
    store = open_store(empty_postgres_url, schema="other_name")
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute(store.schema.sql().encode())

    assert store.schema.version() == store.schema.wanted()
    assert store.schema.migrate() == []
    assert len(put(store, 3)) == 3


def test_two_schemas_of_one_database_do_not_meet(store: PostgresStore, open_store: Open) -> None:
    other = open_store(schema="other")
    other.schema.migrate()
    put(other, 2)

    assert claim(store, worker(store), 5) == ()
    assert len(claim(other, worker(other), 5)) == 2


@pytest.mark.parametrize("name", ["Duly", "a-b", "", "1st", "pg_duly", 'x"; drop', "a" * 60])
def test_a_schema_name_that_could_mean_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="schema"):
        PostgresStore("postgresql://", schema=name)


def test_a_reserved_word_may_name_the_schema(empty_postgres_url: str, open_store: Open) -> None:
    store = open_store(empty_postgres_url, schema="order")
    store.schema.migrate()

    assert len(put(store, 2)) == 2


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_another_default_isolation_changes_nothing(
    level: str, store: PostgresStore, open_store: Open, url: str
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f"alter database \"{name}\" set default_transaction_isolation to '{level}'".encode()
        )
    others = [open_store() for _ in range(3)]
    put(store, 300)
    claimed: list[int] = []

    def work(one: PostgresStore) -> None:
        me = worker(one)
        for _ in range(10):
            jobs = claim(one, me, 10)
            claimed.extend(job.id for job in jobs)
            one.jobs.exchange(me, [ended(job) for job in jobs], None)
            one.upkeep.promote()
            one.leases.beat([me])

    together(*(partial(work, one) for one in others))

    assert len(claimed) == len(set(claimed)) == 300
    for one in others:
        with one.transaction() as connection:
            told = connection.execute("show transaction_isolation").fetchone()
        assert told == ("read committed",)


def test_a_role_needs_nothing_but_to_execute_the_functions(
    store: PostgresStore, open_store: Open, url: str, postgres: PostgresServer
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop role if exists shop")
        connection.execute("create role shop login")
        connection.execute("grant usage on schema duly to shop")
    (id,) = put(store)
    shop = open_store(url.replace("//postgres@", "//shop@"))

    me = worker(shop)
    (job,) = claim(shop, me)
    shop.leases.beat([me])
    shop.jobs.report(me, [])
    shop.jobs.exchange(me, [ended(job, Event.fail, delay=MINUTE)], None)
    shop.upkeep.promote()
    with shop.transaction() as connection:
        shop.enqueue_on(connection, [NewJob("default", "ok", b"{}")])
    assert states(shop, [id]) == [State.scheduled]
    shop.leases.retire(me)
    with pytest.raises(UsageError, match="GRANT"):
        shop.inspection.workers()
    with shop.transaction() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from duly.ready")
    shop.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop owned by shop")
        connection.execute("drop role shop")


def test_the_callers_path_does_not_reach_our_functions(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create temporary table ready (id int)")
        connection.execute("create schema evil")
        connection.execute("create table evil.job (id int)")
        connection.execute("set local search_path to evil, pg_temp, public")
        (stored,) = store.enqueue_on(connection, [NewJob("default", "ok", b"{}")])
        connection.commit()

    assert states(store, [stored.id]) == [State.ready]


def test_a_node_that_takes_no_writes_is_left_for_one_that_does(store: PostgresStore, url: str) -> None:
    put(store)
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        with store._database.pool.link() as link:
            link.connection.execute("set default_transaction_read_only to on")
        with pytest.raises(ReadOnly):
            put(store)
        # The connection that led there is gone: the next one writes.
        put(store)
        connection.execute(f'alter database "{name}" set default_transaction_read_only to on'.encode())
        store.close()
        with pytest.raises(ReadOnly):
            put(PostgresStore(url))
        connection.execute("set default_transaction_read_only to off")
        connection.execute(f'alter database "{name}" reset default_transaction_read_only'.encode())


def test_of_several_hosts_the_one_that_answers_is_used(url: str, postgres: PostgresServer) -> None:
    store = PostgresStore(url.replace("@127.0.0.1:", "@127.0.0.1:1,127.0.0.1:"))

    assert put(store, 2)
    store.close()


def test_a_process_has_at_most_its_pool_of_connections(url: str) -> None:
    store = PostgresStore(url, pool=2)
    put(store, 100)
    me = worker(store)

    together(*(lambda: claim(store, me, 5) for _ in range(12)))

    with store.transaction() as connection:
        open_now = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'duly'"
        ).fetchone()
    store.close()
    assert open_now is not None
    assert open_now[0] <= 2


def test_a_forked_child_opens_connections_of_its_own(url: str) -> None:
    # In a process of its own, because a test process with threads must not fork.
    script = """
        import os, sys
        from duly.core.job import NewJob, Token
        from duly.stores.postgres.store import PostgresStore

        store = PostgresStore(sys.argv[1])
        job = NewJob("default", "ok", b"{}")
        store.jobs.enqueue([job])
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                store.jobs.enqueue([job])
                store.close()
                sys.exit(0)
            children.append(child)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
        before = store._database.pool._open
        store.jobs.enqueue([job])
        assert store._database.pool._open == before == 1
        print(store.inspection.counts()[0].ready)
        store.close()
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script), url],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "5", "")


def test_ids_beyond_31_bits_work_everywhere(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for sequence in ("pos", "incarnation", "operation_id_seq", "act_id_seq"):
            connection.execute(f"select setval('duly.{sequence}', 2147483646)".encode())
    me = worker(store)
    ids = put(store, 6)
    assert ids[-1] > 2**31
    first, second, third, fourth, *_ = claim(store, me, 6)
    ends = [ended(first), ended(second, Event.fail), ended(third, Event.bury), ended(fourth, Event.interrupt)]

    store.jobs.exchange(me, ends, None)
    store.leases.retire(me)
    store.operator.redrive([third.id], "ann", "again")
    store.operator.cancel([fourth.id], "ann", "no")
    store.operator.run_now([second.id], "ann", "now")
    store.operator.reprioritise([second.id], 3, "ann", "now")
    store.upkeep.sweep(MINUTE, 3, MINUTE)

    assert states(store, ids) == [
        State.completed,
        State.ready,
        State.ready,
        State.cancelled,
        State.ready,
        State.ready,
    ]
    page = store.inspection.page(Filter())
    assert [job.id for job in page.jobs] == ids[::-1]


def test_a_sequence_that_fell_behind_is_refused_with_the_fix(
    store: PostgresStore, url: str, open_store: Open
) -> None:
    put(store, 10)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select setval('duly.pos', 3)")

    with pytest.raises(UsageError, match=r"setval\('duly.pos'"):
        put(open_store())


def test_text_that_no_database_can_store_is_a_fault_of_that_row(store: PostgresStore) -> None:
    me = worker(store)
    put(store, 2)
    good, bad = claim(store, me, 2)

    for text in ("nul \0 inside", "half a pair \ud800"):
        with pytest.raises(DataFault):
            store.jobs.exchange(me, [ended(good), ended(bad, Event.bury, reason=text)], None)

    assert states(store, [good.id, bad.id]) == [State.running, State.running]
    assert store.jobs.exchange(me, [ended(good)], None).acked == {(good.id, 1)}
