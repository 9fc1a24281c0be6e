"""Encrypted payloads whose keys change: the SealedStore on PostgreSQL."""

from collections.abc import Sequence

from duly.core.envelope import PREFIX
from duly.core.job import JobId
from duly.stores.postgres.database import Database
from duly.stores.sealed import Part, Resealed, SealedPage, SealedRow


class PostgresSealed:
    """See duly.stores.sealed.SealedStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, part: Part, after: tuple[int, str] = (0, ""), most: int = 1000) -> SealedPage:
        parameters = {"part": part, "prefix": PREFIX, "after": after[0], "after_name": after[1], "most": most}
        rows = self._database.call("read_sealed_payloads", parameters)
        found = tuple(
            SealedRow(JobId(id), name, queue, task, tenant, bytes(data))
            for id, name, queue, task, tenant, data in rows
            if data is not None
        )
        return SealedPage(found, (rows[-1][0], rows[-1][1]) if len(rows) == most else None)

    def replace(self, part: Part, rows: Sequence[Resealed]) -> int:
        parameters = {
            "part": part,
            "ids": [row.id for row in rows],
            "names": [row.name for row in rows],
            "old": [row.old for row in rows],
            "new": [row.new for row in rows],
        }
        return int(self._database.call("replace_sealed", parameters)[0][0])

    def elsewhere(self, key: str) -> dict[str, int]:
        # The id of a key stands between the version and the text; see core.envelope.
        return dict(self._database.call("count_sealed_elsewhere", {"key": f"1.{key}."}))
