"""The tables and what is declared in them: the SchemaStore on SQLite."""

from collections.abc import Mapping

from duly.core.names import key_of
from duly.stores.sqlite import migrating
from duly.stores.sqlite.database import Database


class SQLiteSchema:
    """See duly.stores.protocol.SchemaStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """Creates neither file nor tables."""
        return self._database.version()

    def wanted(self) -> int:
        return migrating.wanted()

    def migrate(self) -> list[str]:
        """One transaction for all that is missing."""
        return self._database.migrate()

    def sql(self) -> str:
        return migrating.script(self._database.prefix)

    def declare(self, queues: Mapping[str, str], tasks: Mapping[str, str]) -> None:
        """Writes only what differs from what is stored."""
        known_queues, known_tasks = self.declared()
        if queues.items() <= known_queues.items() and tasks.items() <= known_tasks.items():
            return
        with self._database.write() as session:
            session.many(
                "upsert_queue",
                [{"name": name, "key": key_of(name), "owner": owner} for name, owner in queues.items()],
            )
            session.many("upsert_task", [{"name": name, "queue": queue} for name, queue in tasks.items()])

    def declared(self) -> tuple[dict[str, str], dict[str, str]]:
        with self._database.read(snapshot=True) as session:
            return dict(session.rows("select_queues")), dict(session.rows("select_tasks"))
