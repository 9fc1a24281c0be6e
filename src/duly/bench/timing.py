"""Timing of acts beside each other: in turns of a fraction of a second, so that a change of weather meets them all.

Knows no store and no job; an act is a function that says how many things it did.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

Act = Callable[[], int]
"""Does something and says how often; 0 says that enough of it was done."""

_LEAST_TURNS: Final = 3


class Pace(Struct, frozen=True):
    """How fast one act was: the median over its turns, and how far those lay apart."""

    per_s: float
    spread: float
    """Half the distance of the quartiles, as a share of the median."""

    @property
    def ms(self) -> float:
        """Of one thing."""
        return 1000 / self.per_s


def beside(acts: Mapping[str, Act], *, turns: int, seconds: float) -> dict[str, Pace]:
    """Each act for `turns` turns of so many seconds (at least once a turn), one after the other."""
    rates: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(turns):
        for name, act in acts.items():
            if rate := _turn(act, seconds):
                rates[name].append(rate)
    return {name: _pace(found) for name, found in rates.items()}


def at_most(most: int, act: Act) -> Act:
    """The act until it has done so much."""
    done = 0

    def bounded() -> int:
        nonlocal done
        if done >= most:
            return 0
        now = act()
        done += now
        return now

    return bounded


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies; of an empty sequence 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def _turn(act: Act, seconds: float) -> float:
    began = time.perf_counter()
    done = 0
    while True:
        now_done = act()
        done += now_done
        spent = time.perf_counter() - began
        if spent >= seconds or not now_done:
            return done / max(spent, 1e-9)


def _pace(rates: Sequence[float]) -> Pace:
    middle = statistics.median(rates)
    if len(rates) < _LEAST_TURNS:
        return Pace(middle, 0.0)
    low, _, high = statistics.quantiles(rates, n=4)
    return Pace(middle, (high - low) / 2 / middle)
