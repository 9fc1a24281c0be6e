"""How full queues are, on PostgreSQL: sampled once a second for all producers together. Decides nothing."""

from collections.abc import Mapping
from datetime import timedelta

from duly.core.bounds import Fill
from duly.stores.postgres.columns import queue_key
from duly.stores.postgres.database import Database


class PostgresPressing:
    """See duly.stores.control.PressingStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        names = {queue_key(name): name for name in queues}
        parameters = {"keys": [*names], "most": [*queues.values()], "now": self._database.now()}
        return {
            names[key]: Fill(
                depth, None if oldest is None else timedelta(seconds=max(oldest, 0.0)), out_per_s, at
            )
            for key, depth, oldest, out_per_s, at in self._database.call("read_fills", parameters)
        }
