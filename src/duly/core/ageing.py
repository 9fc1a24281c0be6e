"""Priority without starvation: which of the jobs that are given away are the oldest instead of the most urgent.

One in `AGED_SHARE`, spread so that no number of tenants in turn stays in step with it.
"""

from typing import Final

from duly.core.control import AGED_SHARE

_ALL: Final = 2**32
# The golden ratio's share of it: no sequence is spread more evenly.
_STEP: Final = 2_654_435_769
_MANY: Final = 64


def aged(given: int, wanted: int) -> int:
    """How many of the next `wanted` jobs, after `given` ones, are to be the oldest."""
    if wanted >= _MANY:
        return wanted // AGED_SHARE
    bound = _ALL - _ALL // AGED_SHARE
    return sum(number * _STEP % _ALL >= bound for number in range(given, given + wanted))
