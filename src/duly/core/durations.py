"""Durations, sizes and rates as people write them: "30s", "256KiB", "20/s".

Owns their grammar in both directions; knows nothing of what they are used for.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

from duly.core.errors import UsageError

Duration = str | timedelta

LONGEST: Final = timedelta(days=36_525)

_UNITS: Final = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
_SHOWN: Final = ("d", "h", "m", "s", "ms")
_PART: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(ms|[wdhms])(?![A-Za-z])\s*")

_SIZES: Final = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgt]?i?b)", re.IGNORECASE)
_LARGEST_SIZE: Final = 2**63 - 1

_RATE_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}
_RATE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*/\s*(s|min|m|h|d)")


def parse_duration(value: Duration, what: str = "delay", *, positive: bool = False) -> timedelta:
    """Read "30s", "15m", "2d", "1h30m", "250ms", "1w" or a timedelta of 0 to 100 years.

    `what` is the option's name for the message; `positive` refuses zero as well. Raises
    UsageError with the text to write instead.
    """
    duration = _read(value, what)
    if duration < timedelta(0):
        raise UsageError(f"{what}={_shown(value)} is negative; write a duration such as '30s'")
    if duration > LONGEST:
        raise UsageError(f"{what}={_shown(value)} is longer than 100 years; write a shorter one")
    if positive and not duration:
        raise UsageError(f"{what}={_shown(value)} must be longer than zero, such as '30s'")
    return duration


def _read(value: object, what: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return _read_text(value, what)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        example = f"{value}s" if 0 <= value < 10**9 else "30s"
        raise UsageError(f"{what}={value!r} has no unit; write '{example}'")
    raise UsageError(f"{what} must be a duration such as '30s' or a timedelta, not {_shown(value)}")


def _read_text(text: str, what: str) -> timedelta:
    stripped = text.strip()
    position, microseconds, last = 0, Fraction(0), float("inf")
    while part := _PART.match(stripped, position):
        unit = _UNITS[part[2]]
        if unit >= last:
            break
        microseconds += Fraction(part[1]) * unit
        position, last = part.end(), unit
    if not stripped or position != len(stripped):
        raise UsageError(_unreadable(text, what))
    if microseconds.denominator != 1:
        raise UsageError(f"{what}={_shown(text)} is finer than a microsecond; round it")
    if microseconds > LONGEST // timedelta(microseconds=1):
        raise UsageError(f"{what}={_shown(text)} is longer than 100 years; write a shorter one")
    return timedelta(microseconds=int(microseconds))


def _unreadable(text: str, what: str) -> str:
    if re.fullmatch(r"\s*[0-9.]+\s*", text):
        return f"{what}={_shown(text)} has no unit; write '{text.strip()}s'"
    if text.lstrip().startswith("-"):
        return f"{what}={_shown(text)} is negative; write a duration such as '30s'"
    return (
        f"{what}={_shown(text)} is no duration; write whole parts from large to small with the "
        "units w, d, h, m, s, ms, such as '30s', '15m', '1h30m'"
    )


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return f"'{compact_duration(value)}'"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def compact_duration(duration: timedelta) -> str:
    """Write a duration so that `parse_duration` reads exactly the same: "1h30m", "0.5ms"."""
    return "".join(_parts(duration)) or "0s"


def format_duration(duration: timedelta) -> str:
    """Write a duration for people, its two largest units: "1m 30s", "2d 3h", "250ms"."""
    if abs(duration) >= timedelta(seconds=10):
        duration = timedelta(seconds=round(duration.total_seconds()))
    parts = _parts(duration)
    return " ".join(parts[:2]) or "0s"


def _parts(duration: timedelta) -> list[str]:
    rest = abs(duration) // timedelta(microseconds=1)
    parts: list[str] = []
    for unit in _SHOWN:
        whole, rest = divmod(rest, _UNITS[unit])
        if unit == "ms" and rest:
            parts.append(f"{whole}.{rest:03d}".rstrip("0") + unit)
        elif whole:
            parts.append(f"{whole}{unit}")
    if parts and duration < timedelta(0):
        parts[0] = f"-{parts[0]}"
    return parts


def parse_size(value: str, what: str = "size") -> int:
    """Read "256KiB", "1GiB", "10MB" or "512B" as bytes. Raises UsageError with the fix."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise UsageError(f"{what}={value!r} has no unit; write '{value}B' or '256KiB'")
    if not isinstance(value, str):
        raise UsageError(f"{what} must be a size such as '256KiB', not {_shown(value)}")
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        hint = f"'{value.strip()}B' or '256KiB'" if value.strip().isdecimal() else "'256KiB'"
        raise UsageError(f"{what}={_shown(value)} is no size; write one such as {hint}")
    size = Fraction(found[1]) * _SIZES[found[2].lower()]
    if size.denominator != 1 or not 0 < size <= _LARGEST_SIZE:
        raise UsageError(f"{what}={_shown(value)} is no whole, positive number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """Write a number of bytes for people: "512 B", "256 KiB", "1.5 GiB"."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        # 1023.95 and up would be shown as "1024.0" of the smaller unit.
        if amount < 1023.95:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def parse_rate(value: str, what: str = "rate") -> float | None:
    """Read "20/s", "600/min" or "100/h" as a number per second, "max" as None (no bound)."""
    if not isinstance(value, str):
        raise UsageError(f"{what}={_shown(value)} has no unit; write a rate such as '20/s'")
    text = value.strip()
    if text == "max":
        return None
    found = _RATE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{what}={_shown(value)} is no rate; write one such as '20/s', '600/min', '100/h', "
            "or 'max' for no bound"
        )
    number = float(found[1])
    if number == 0:
        raise UsageError(f"{what}={_shown(value)} would never move; pause it instead")
    return number / _RATE_UNITS[found[2]]
