"""One row that a store cannot hold fails its whole batch: find it by halving, and store it with less in it.

Works on any batch and any way to write it; knows no store.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from duly.core.job import Ended
from duly.stores.faults import DataFault

T = TypeVar("T")

_LONGEST: Final = 500


def find_bad(
    batch: Sequence[T],
    fault: DataFault,
    write: Callable[[Sequence[T]], None],
    weaken: Callable[[T, DataFault], None],
) -> None:
    """Write everything of a refused batch but the bad rows, and call `weaken` on each of those.

    Whatever `write` raises beside a DataFault passes through.
    """
    if len(batch) == 1:
        weaken(batch[0], fault)
        return
    middle = len(batch) // 2
    for half in (batch[:middle], batch[middle:]):
        try:
            write(half)
        except DataFault as inner:
            find_bad(half, inner, write, weaken)


def poorer(ended: Ended | None, fault: str) -> Ended | None:
    """The same end with less in it, for a store that refused it; None when nothing is left to leave out."""
    if ended is None:
        return None
    note = f"result not storable: {fault}"[:_LONGEST]
    if ended.result is not None:
        return msgspec.structs.replace(ended, result=None, note=note)
    if ended.error is not None or ended.reason is not None:
        said = f"its outcome could not be stored: {fault}"[:_LONGEST].encode("ascii", "replace").decode()
        return msgspec.structs.replace(ended, error=None, reason=said, note=None)
    return msgspec.structs.replace(ended, note=None) if ended.note is not None else None
