"""Behind PgBouncer in transaction mode, where every transaction may meet another session of the server."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from duly.core.lifecycle import Event, State
from duly.stores.postgres.listener import PostgresListener
from duly.stores.postgres.store import PostgresStore
from tests.conftest import without_service
from tests.services import PostgresServer
from tests.stores.postgres.acts import MINUTE, claim, ended, put, states, together, worker
from tests.waiting import wait_until

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
unix_socket_dir =
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pooled_url(url: str, postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        without_service("pgbouncer is not installed; run: apt-get install pgbouncer")
    assert program is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    # It refuses to run as root, and must reach its folder as somebody else.
    folder = Path("/tmp") / f"duly-pgbouncer-{port}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    settings = folder / "pgbouncer.ini"
    name = url.rsplit("/", 1)[1]
    text = SETTINGS.format(server=postgres.port, port=port, folder=folder)
    settings.write_text(text.replace("* = host", f"{name} = user=postgres host"))
    process = subprocess.Popen([program, "-q", *_as_nobody(), str(settings)], stderr=subprocess.DEVNULL)
    try:
        wait_until(partial(_answers, port), what="pgbouncer listens")
        yield url.replace(f":{postgres.port}/", f":{port}/")
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _as_nobody() -> list[str]:
    return ["-u", "nobody"] if os.geteuid() == 0 else []


def test_everything_works_behind_a_transaction_pooler(pooled_url: str) -> None:
    stores = [PostgresStore(pooled_url, notify=False) for _ in range(3)]
    ids = put(stores[0], 300)
    claimed: list[int] = []

    def work(store: PostgresStore) -> None:
        me = worker(store)
        for turn in range(20):
            jobs = claim(store, me, 5)
            claimed.extend(job.id for job in jobs)
            store.leases.beat([me])
            store.jobs.report(me, [])
            store.jobs.exchange(me, [ended(job) for job in jobs], None)
            store.upkeep.promote()
            if turn % 5 == 0:
                store.upkeep.sweep(MINUTE, 3, MINUTE)
        store.leases.retire(me)

    together(*(partial(work, store) for store in stores))

    assert sorted(claimed) == ids
    assert states(stores[0], ids) == [State.completed] * 300
    for store in stores:
        store.close()


def test_the_longer_verbs_work_behind_a_transaction_pooler(pooled_url: str) -> None:
    store = PostgresStore(pooled_url, notify=False)
    me = worker(store)
    first, second = put(store, 2)
    (job,) = claim(store, me)
    store.jobs.exchange(me, [ended(job, Event.bury)], None)

    assert store.operator.redrive([first], "ann", "again") == [first]
    assert store.operator.cancel([second], "ann", "no") == {second: State.cancelled}
    with store.transaction() as connection:
        assert store.enqueue_on(connection, []) == []
    assert store.schema.migrate() == []
    assert store.inspection.counts()[0].ready == 1
    assert store.inspection.describe()["server"].startswith("PostgreSQL")
    store.close()


def test_statements_are_prepared_only_where_the_session_is_ours(url: str, pooled_url: str) -> None:
    prepared = {}
    for place, address in (("direct", url), ("pooled", pooled_url)):
        store = PostgresStore(address)
        for _ in range(10):
            put(store)
        with store.transaction() as connection:
            row = connection.execute(
                "select count(*) from pg_prepared_statements where name like '_pg3%' or name like 'duly_%'"
            ).fetchone()
        prepared[place] = row
        store.close()

    assert prepared["direct"] != (0,)
    assert prepared["pooled"] == (0,)


def test_a_listener_behind_a_pooler_leaves_the_worker_to_its_polling(pooled_url: str, url: str) -> None:
    store = PostgresStore(pooled_url)
    listener = store.listen(lambda: None)
    assert isinstance(listener, PostgresListener)

    wait_until(lambda: not listener.running)
    listener.idle(True)

    assert any("pooler" in warning for warning in store.inspection.warnings())
    direct = PostgresStore(url)
    assert not any("pooler" in warning for warning in direct.inspection.warnings())
    listener.close()
    direct.close()
    store.close()
