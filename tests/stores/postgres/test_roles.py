"""Database roles: each may do what its programs do, and nothing else. Every test connects as that role."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import App, UsageError
from duly.core.errors import StoreUnreachable
from duly.core.filters import Filter
from duly.core.job import NewJob
from duly.core.operating import AnswerAsk
from duly.core.registration import Schedule
from duly.stores.postgres.roles import FUNCTIONS, INTERNAL, ROLES, bare
from duly.stores.postgres.store import PostgresStore
from tests.cli.conftest import run
from tests.stores.postgres.conftest import Open

HOUR = timedelta(hours=1)


@pytest.fixture
def roles_url(url: str, open_store: Open) -> Iterator[str]:
    """A database with the roles, and a login for each of them."""
    open_store().schema.grant_roles()
    with psycopg.connect(url, autocommit=True) as owner:
        for role in ROLES:
            owner.execute(f"drop role if exists {role}_login".encode())
            owner.execute(f"create role {role}_login login in role {role}".encode())
    yield url
    with psycopg.connect(url, autocommit=True) as owner:
        for role in ROLES:
            owner.execute(f"drop owned by {role}_login, {role}".encode())
            owner.execute(f"drop role {role}_login".encode())


@pytest.fixture
def as_role(roles_url: str, open_store: Open) -> Callable[[str], PostgresStore]:
    return lambda role: open_store(login(roles_url, role))


def login(url: str, role: str) -> str:
    return url.replace("//postgres@", f"//duly_{role}_login@")


def refused(acts: dict[str, Callable[[], object]]) -> None:
    for name, act in acts.items():
        with pytest.raises(UsageError, match="may not do this"):
            act()
            pytest.fail(f"it could {name}")


def job(**more: Any) -> NewJob:
    return NewJob("default", "ok", b"{}", **more)


def test_every_function_is_somebodys(url: str, open_store: Open) -> None:
    open_store()
    with psycopg.connect(url) as owner:
        rows = owner.execute(
            "select proname, prosecdef from pg_proc where pronamespace = 'duly'::regnamespace"
        ).fetchall()

    given = frozenset().union(*FUNCTIONS.values())
    # What runs with the rights of its caller does its work inside of functions that do not.
    nobodys = {name for name, definer in rows if definer and bare(name) not in given | INTERNAL}
    unknown = (given | INTERNAL) - {bare(name) for name, _ in rows}
    assert nobodys == set()
    assert unknown == set()


def test_a_role_may_execute_just_what_the_table_says(roles_url: str) -> None:
    with psycopg.connect(roles_url) as owner:
        rows = owner.execute(
            "select r.rolname, p.proname, has_function_privilege(r.oid, p.oid, 'execute') from pg_proc p, pg_roles r "
            "where p.pronamespace = 'duly'::regnamespace and r.rolname = any(%s)",
            [[*ROLES]],
        ).fetchall()
        public = owner.execute(
            "select count(*) from pg_proc p, aclexplode(p.proacl) a "
            "where p.pronamespace = 'duly'::regnamespace and a.grantee = 0"
        ).fetchone()

    wrong = [(role, name) for role, name, has in rows if has != (bare(name) in FUNCTIONS[role])]
    assert wrong == []
    assert public == (0,)


def test_a_producer_enqueues_and_sees_what_became_of_it(as_role: Callable[[str], PostgresStore]) -> None:
    store = as_role("producer")

    (stored,) = store.jobs.enqueue([job()])
    keyed = job(tags=("a",), ordering_key="k", delay=HOUR, then=(job(),))
    more = store.jobs.enqueue([keyed, job(tenant="acme")])
    with store.transaction() as connection:
        inside = store.enqueue_on(connection, [job()])

    found = store.inspection.lookup([stored.id, more[0].id, inside[0].id])
    assert [record is not None for record in found] == [True] * 3
    store.schedules.put(Schedule("nightly", every=HOUR, job=job()), store.inspection.now() + HOUR)
    refused(
        {
            "claim": lambda: store.leases.beat([]),
            "cancel": lambda: store.operator.cancel([stored.id], "eve", "x"),
            "redrive": lambda: store.operator.redrive([stored.id], "eve", "x"),
            "pause": lambda: store.operator.pause("queue:default", None, "eve", "x"),
            "look at all jobs": lambda: store.inspection.page(Filter(), limit=10),
            "count": store.inspection.counts,
            "read the audit": store.audits.page,
            "write the audit": lambda: store.audits.append("lie", "", "eve", "x"),
            "make a token": lambda: store.tokens.put("eve", b"d", ("admin",), None, "eve", "x"),
            "read a key": lambda: store.tokens.secrets("signing"),
        }
    )


@pytest.mark.parametrize(
    "statement",
    [
        "select * from duly.job",
        "delete from duly.ready",
        "select * from duly.secret",
        "update duly.audit_entry set reason = 'x'",
        "truncate duly.dead",
        "select duly.note_act_2('a','b','c','d','{}',null)",
    ],
)
@pytest.mark.parametrize("role", ["producer", "worker", "viewer", "operator", "server"])
def test_no_role_touches_a_table(roles_url: str, role: str, statement: str) -> None:
    with psycopg.connect(login(roles_url, role)) as connection:
        if statement == "select * from duly.job" and role != "producer":
            connection.execute(statement.encode())
            return
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_a_worker_works(roles_url: str) -> None:
    app = App(login(roles_url, "worker"))
    app.queue("mail", max_running=5, rate="100/s", owner="ops")
    ran: list[int] = []

    @app.task(queue="mail", unique="{n}", audit=True)
    def send(n: int) -> int:
        ran.append(n)
        return n

    @app.task(attempts=1)
    def fail() -> None:
        raise ValueError("no")

    @app.every("1d")
    @app.task
    def daily() -> None: ...

    async def main() -> int:
        made = await send.aenqueue(7)
        lost = await fail.aenqueue()
        async with app.working():
            with pytest.raises(Exception, match="no"):
                await lost.aresult(timeout="60s")
            result: int = await made.aresult(timeout="60s")
            return result

    result = asyncio.run(main())

    store = app.store
    assert (result, ran) == (7, [7])
    assert store.upkeep.sweep(HOUR, 3, HOUR) is not None
    store.upkeep.promote()
    store.upkeep.retain({}, {}, HOUR, HOUR)
    store.audits.follow()
    store.audits.seal()
    store.tallies.fold()
    store.alerts.turn(HOUR)
    assert app.inspect.status().queues
    refused(
        {
            "read the audit": store.audits.page,
            "verify the audit": store.audits.verify,
            "make a token": lambda: store.tokens.put("eve", b"d", ("admin",), None, "eve", "x"),
            "find a token": lambda: store.tokens.find(b"d"),
            "silence an alert": lambda: store.alerts.silence("*", "*", HOUR, "eve", "x"),
            "cap a tenant": lambda: store.control.lift(1, "eve", "x"),
        }
    )
    app.close()


def test_a_viewer_sees_everything_and_changes_nothing(roles_url: str, open_store: Open) -> None:
    owner = open_store()
    (stored,) = owner.jobs.enqueue([job(tags=("a",))])
    app = App(login(roles_url, "viewer"))

    assert app.inspect.status().queues
    assert app.inspect.job(stored.id).job.id == stored.id
    assert [one.id for one in app.inspect.jobs(Filter(tag="a")).jobs] == [stored.id]
    assert app.inspect.why(stored.id).reasons
    for read in (
        app.inspect.dead_groups,
        app.inspect.workers,
        app.inspect.operations,
        app.inspect.alerts,
        app.inspect.silences,
        app.inspect.schedules,
        app.inspect.pauses,
        app.inspect.overrides,
    ):
        read()
    store = app.store
    refused(
        {
            "enqueue": lambda: store.jobs.enqueue([job()]),
            "cancel": lambda: store.operator.cancel([stored.id], "eve", "x"),
            "pause": lambda: store.operator.pause("queue:default", None, "eve", "x"),
            "read the audit": store.audits.page,
            "read a key": lambda: store.tokens.secrets("signing"),
            "see tokens": store.tokens.all,
        }
    )
    app.close()


def test_an_operator_acts_and_does_not_work(roles_url: str, open_store: Open) -> None:
    owner = open_store()
    ids = [one.id for one in owner.jobs.enqueue([job(), job(), job(delay=HOUR)])]
    app = App(login(roles_url, "operator"))

    app.operate.pause("default", reason="INC-1")
    app.operate.resume("default", reason="INC-1")
    app.operate.cancel(ids[0], reason="INC-1")
    app.operate.run_now(ids[2], reason="INC-1")
    token = app.operate.create_token(["read"], reason="for ann")
    app.operate.revoke_token(token.record.id, reason="left")
    app.operate.silence("queue:default", lasting="1h", reason="INC-1")

    assert {entry.verb for entry in app.inspect.audit()} >= {"pause", "resume", "cancel", "run_now"}
    assert app.inspect.verify_audit().faults == ()
    store = app.store
    refused(
        {
            "claim": lambda: store.leases.beat([]),
            "read a key": lambda: store.tokens.secrets("signing"),
            "answer requests": lambda: store.answers.take([AnswerAsk(b"k", 1, b"h", HOUR)]),
            "sweep": lambda: store.upkeep.sweep(HOUR, 3, HOUR),
        }
    )
    app.close()


def test_a_server_answers_for_tokens(as_role: Callable[[str], PostgresStore]) -> None:
    store = as_role("server")

    assert store.tokens.find(b"digest") is None
    store.tokens.touch([1])
    assert store.tokens.secret("signing", b"0" * 32).value == b"0" * 32
    assert store.answers.take([AnswerAsk(b"k", 1, b"h", HOUR)]) == [None]
    assert store.jobs.enqueue([job()])
    store.operator.pause("queue:default", None, "token", "x")


def test_roles_are_given_again_after_a_migration(roles_url: str, open_store: Open) -> None:
    with psycopg.connect(roles_url, autocommit=True) as owner:
        owner.execute("grant execute on function duly.audit_totals_1 to duly_producer")

    open_store().schema.grant_roles()

    with (
        pytest.raises((UsageError, StoreUnreachable)),
        psycopg.connect(login(roles_url, "producer")) as connection,
    ):
        try:
            connection.execute("select * from duly.audit_totals_1()")
        except psycopg.errors.InsufficientPrivilege as error:
            raise UsageError("may not") from error


def test_the_command_makes_them_and_prints_how(url: str, open_store: Open) -> None:
    open_store()

    made = run("migrate", "--roles", "--url", url)
    printed = run("migrate", "--roles", "--sql", "--url", url)

    assert (made.code, "grant duly_producer to shop" in made.out) == (0, True)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("drop schema duly cascade")
        owner.execute(printed.out.encode())
        wrong = owner.execute(
            "select p.proname from pg_proc p where p.pronamespace = 'duly'::regnamespace "
            "and has_function_privilege('duly_producer', p.oid, 'execute') <> (p.proname ~ %s)",
            ["^(" + "|".join(sorted(FUNCTIONS["duly_producer"])) + ")(_[0-9]+)?$"],
        ).fetchall()
    assert wrong == []


def test_a_file_has_no_roles(sqlite_url: str) -> None:
    answer = run("migrate", "--roles", "--url", sqlite_url)

    assert (answer.code, "whoever may write the file may do everything" in answer.err) == (2, True)
