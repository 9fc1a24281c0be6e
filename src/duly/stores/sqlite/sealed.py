"""Encrypted payloads whose keys change: the SealedStore on SQLite."""

from collections.abc import Sequence
from typing import Final

from duly.core.envelope import PREFIX
from duly.core.job import JobId
from duly.stores.sealed import Part, Resealed, SealedPage, SealedRow
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.session import Value

_SELECT: Final[dict[Part, str]] = {
    "arguments": "select_sealed_arguments",
    "results": "select_sealed_results",
    "large results": "select_sealed_large_results",
    "steps": "select_sealed_steps",
}
_UPDATE: Final[dict[Part, str]] = {
    "arguments": "update_sealed_arguments",
    "results": "update_sealed_results",
    "large results": "update_sealed_large_results",
    "steps": "update_sealed_steps",
}


class SQLiteSealed:
    """See duly.stores.sealed.SealedStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, part: Part, after: tuple[int, str] = (0, ""), most: int = 1000) -> SealedPage:
        parameters: dict[str, Value] = {"prefix": PREFIX, "after": after[0], "most": most}
        if part == "steps":
            parameters["after_name"] = after[1]
        with self._database.read() as session:
            rows = session.rows(_SELECT[part], **parameters)
        found = tuple(
            SealedRow(JobId(id), name, queue, task, tenant, data)
            for id, name, queue, task, tenant, data in rows
            if data is not None
        )
        return SealedPage(found, (rows[-1][0], rows[-1][1]) if len(rows) == most else None)

    def replace(self, part: Part, rows: Sequence[Resealed]) -> int:
        done = 0
        with self._database.write() as session:
            for row in rows:
                parameters: dict[str, Value] = {"id": row.id, "old": row.old, "new": row.new}
                if part == "steps":
                    parameters["name"] = row.name
                done += session.run(_UPDATE[part], **parameters)
        return done

    def elsewhere(self, key: str) -> dict[str, int]:
        # The id of a key stands between the version and the text; see core.envelope.
        with self._database.read() as session:
            return dict(session.rows("select_sealed_elsewhere", key=f"1.{key}."))
