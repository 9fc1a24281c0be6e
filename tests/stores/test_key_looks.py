"""What a look at the ordering keys costs does not grow with what is keyed."""

import sqlite3
from contextlib import closing
from pathlib import Path

from duly.core.job import NewJob
from duly.stores.open import open_store
from duly.stores.postgres.control import PostgresControl
from duly.stores.postgres.database import Database
from tests.stores.postgres.explained import Explained

PLACES = 1_000
"""Of each key. The bounds are passed with 60 keys."""
FILLER = 10**12


def test_on_a_file_it_takes_as_many_steps_for_three_times_the_jobs(
    sqlite_url: str, sqlite_path: Path
) -> None:
    with closing(open_store(sqlite_url)) as store:
        stored = store.jobs.enqueue([NewJob("mail", "ok", b"{}") for _ in range(240)])
    query = Path(__file__).parents[2] / "src/duly/stores/sqlite/queries/select_longest_keys.sql"
    sql = query.read_text().replace("{prefix}", "duly")
    steps = []

    with closing(sqlite3.connect(sqlite_path)) as connection:
        for first, last in ((0, 80), (80, 240)):
            connection.executemany(
                "insert into duly_keyed (key, id) values (?, ?)",
                (
                    (key, stored[key].id if place == 0 else FILLER + place)
                    for key in range(first, last)
                    for place in range(PLACES)
                ),
            )
            connection.commit()
            steps.append(_steps(connection, sql))

    assert steps[0] > 1_000
    assert steps[1] <= steps[0] * 1.05


def test_on_a_server_it_reads_as_many_rows_for_three_times_the_jobs(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        stored = store.jobs.enqueue([NewJob("mail", "ok", b"{}") for _ in range(240)])
    rows = []

    with closing(Database(postgres_url, "duly", None, 1)) as database:
        explained, control = Explained(database), PostgresControl(database)
        for first, last in ((0, 80), (80, 240)):
            with database.pool.link() as link:
                for key in range(first, last):
                    link.connection.execute(
                        "insert into duly.keyed (key, id) select %s, %s + n from generate_series(1, %s) n",
                        (key, FILLER, PLACES - 1),
                    )
                    link.connection.execute(
                        "insert into duly.keyed (key, id) values (%s, %s)", (key, stored[key].id)
                    )
                link.connection.execute("analyze duly.keyed")
            rows.append(sum(_read(node) for node in explained.of(lambda: control.keys(most=500))))

    assert rows[0] > 60_000
    assert rows[1] <= rows[0] * 1.05


def _steps(connection: sqlite3.Connection, sql: str) -> int:
    """Hundreds of instructions of SQLite's machine."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(count, 100)
    found = connection.execute(sql, {"queue": None, "most": 500}).fetchall()
    connection.set_progress_handler(None, 0)
    assert len(found) >= 50
    return taken


def _read(node: dict[str, object]) -> int:
    if node.get("Relation Name") != "keyed":
        return 0
    return int(str(node["Actual Rows"])) * int(str(node["Actual Loops"]))
