"""When a dead child may be replaced: at once the first time, later and later while they die young."""

from typing import Final

_YOUNG: Final = 10.0
_FIRST: Final = 0.25
_LONGEST: Final = 30.0


class Restarts:
    """Times are monotonic seconds of the caller's."""

    def __init__(self, longest: float = _LONGEST) -> None:
        self._longest = longest
        self._in_a_row = 0
        self._not_before = 0.0

    def died(self, now: float, age: float) -> None:
        """A child died after `age` seconds."""
        if age >= _YOUNG:
            self._in_a_row = 0
            return
        if self._in_a_row:
            self._not_before = now + min(self._longest, _FIRST * float(1 << min(self._in_a_row, 10)))
        self._in_a_row += 1

    def allowed(self, now: float) -> bool:
        return now >= self._not_before
