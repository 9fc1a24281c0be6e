"""What a value would lose on its way through JSON: the difference between what was sent and what would arrive.

Knows nothing of encoding: it compares two values and says where and how they differ.
"""

import enum
import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Final
from uuid import UUID

from duly.core.unstorable import (
    Fault,
    advice,
    article,
    enum_reason,
    is_row,
    key_step,
    parts_of,
    scalar_reason,
)

_LEAVES: Final = frozenset({str, bool, float, type(None), bytes, date, time, timedelta, UUID})

_FIXES: Final[dict[tuple[type, type], str]] = {
    (tuple, list): "annotate it tuple[...], or pass a list",
    (set, list): "annotate it set[...], or pass sorted(...) of it",
    (frozenset, list): "annotate it frozenset[...], or pass sorted(...) of it",
    (list, tuple): "pass a tuple",
    (list, set): "pass a set",
    (str, bytes): "pass bytes",
}


def changed(sent: object, got: object, *, strict: bool) -> Fault | None:
    """Return the first place where what arrives is not what was sent; None when all of it survives.

    `strict`: some of the annotation leaves the type open (Any, bare list), so that a subclass of text or number would
    silently become plain. Without it the annotation has asked for just that.
    """
    kind = type(sent)
    if kind is not type(got):
        return _of_another_type(sent, got, strict)
    if kind in _LEAVES:
        return None if sent == got else Fault(f"would arrive as {got!r:.60}")
    if isinstance(sent, (list, tuple)) and isinstance(got, (list, tuple)):
        return _items(sent, got, strict)
    if isinstance(sent, dict) and isinstance(got, dict):
        return _entries(sent, got, strict)
    if isinstance(sent, (int, datetime, Decimal)) and (reason := scalar_reason(sent)):
        return Fault(reason)
    if kind is int:
        return None if sent == got else Fault(f"would arrive as {got!r:.60}")
    if kind is datetime:
        return None if _same(sent, got) else Fault(f"would arrive as {got!r:.60}")
    return _whole(sent, got, strict)


def _items(sent: list[object] | tuple[object, ...], got: Iterable[object], strict: bool) -> Fault | None:
    for index, (before, after) in enumerate(zip(sent, got, strict=True)):
        same = type(before) in _LEAVES and type(before) is type(after) and before == after
        if not same and (fault := changed(before, after, strict=strict)):
            return fault.under(f"[{index}]")
    return None


def _entries(sent: dict[object, object], got: dict[object, object], strict: bool) -> Fault | None:
    arrived = {key: key for key in got}
    for key, part in sent.items():
        after = arrived.get(key)
        if key not in got or (strict and type(after) is not type(key)):
            fix = f"annotate the keys dict[{type(key).__name__}, ...], or use text as keys"
            return Fault(f"has the key {key!r:.40} ({type(key).__name__}), which would arrive as text; {fix}")
        if fault := changed(part, got[key], strict=strict):
            return fault.under(key_step(key))
    return None


def _whole(sent: object, got: object, strict: bool) -> Fault | None:
    before, after = parts_of(sent), parts_of(got)
    if before is None or after is None:
        return None if _same(sent, got) else Fault(f"would arrive as {got!r:.60}")
    for name, part in before.items():
        if fault := changed(part, after.get(name), strict=strict):
            return fault.under(key_step(name))
    return None


def _of_another_type(sent: object, got: object, strict: bool) -> Fault | None:
    if is_row(sent):
        return Fault(advice(sent))
    if isinstance(sent, enum.Enum) and (reason := enum_reason(sent)):
        return Fault(reason)
    if isinstance(sent, float) and not math.isfinite(sent):
        return Fault(f"is {sent}, which JSON cannot hold; pass None or leave it out")
    # An int where a float is declared is what Python's own typing allows; 2**53 + 1 is not equal to what arrives.
    if type(sent) is int and type(got) is float:
        return (
            None if sent == got else Fault("is an integer that a float cannot hold exactly; annotate it int")
        )
    if not strict and isinstance(sent, type(got)) and _equal(sent, got):
        reason = scalar_reason(sent) if isinstance(sent, datetime) else None
        return Fault(reason) if reason else None
    before, after = type(sent).__name__, type(got).__name__
    return Fault(f"is {article(before)} and would arrive as {article(after)}; {_fix(sent, got)}")


def _equal(sent: object, got: object) -> bool:
    # A subclass of a class with fields may hold more of them than arrive.
    return parts_of(sent) is None and not isinstance(sent, (dict, list, tuple)) and _same(sent, got)


def _same(sent: object, got: object) -> bool:
    if isinstance(sent, datetime) and isinstance(got, datetime):
        # In the hour that a clock change repeats, Python calls moments of different zones unequal, whatever they are.
        return not sent - got
    return sent == got


def _fix(sent: object, got: object) -> str:
    kinds: tuple[type, type] = (type(sent), type(got))
    if kinds in _FIXES:
        return _FIXES[kinds]
    if isinstance(sent, enum.Enum):
        return f"annotate it {kinds[0].__name__}, or pass its .value"
    if isinstance(sent, PurePath):
        return "annotate it Path"
    if kinds[1] in {str, int, float, list, dict, tuple, bytes} and isinstance(
        sent, (kinds[1], bytearray, memoryview)
    ):
        return f"write {kinds[1].__name__}(...) around it"
    if isinstance(got, (str, int, float, list, dict)):
        return f"annotate it {kinds[0].__name__}, so that it arrives as one"
    return f"pass {article(kinds[1].__name__)}"
