"""The pace of retention: as fast as jobs can finish, without taking the store for itself."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from duly.worker.retention import Retention

DAY = timedelta(days=1)


class Chunks:
    """An upkeep store whose chunks take so long, by a clock that only they move."""

    def __init__(self, seconds: float, deleted: int) -> None:
        self.now = 0.0
        self._seconds = seconds
        self._deleted = deleted

    def retain(
        self, keep: Mapping[str, timedelta], keep_dead: Mapping[str, timedelta], *defaults: timedelta
    ) -> int:
        self.now += self._seconds
        return self._deleted

    def clock(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("seconds", "deleted", "pause"),
    [(0.001, 2000, 0.02), (0.05, 2000, 0.1), (9.0, 2000, 5.0), (0.05, 1, 0.1), (0.05, 0, 60.0)],
)
def test_retention_takes_a_third_of_the_time_while_there_is_something_to_delete(
    seconds: float, deleted: int, pause: float
) -> None:
    chunks: Any = Chunks(seconds, deleted)
    retention = Retention(chunks, {}, DAY, DAY, chunks.clock)

    assert retention.run(0.0) == pytest.approx(pause)
