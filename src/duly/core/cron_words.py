"""A cron expression as people say it: "every weekday at 07:30 Europe/Lisbon", for those that can be said shortly.

Pure; `core.schedule` knows when one is due, and has words for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_NTH: Final = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
_NAMED: Final = 6
"""A longer list is read by nobody."""
_WEEKDAYS: Final = frozenset(range(1, 6))


def cron_words(cron: str, tz: str) -> str | None:
    """Five fields, valid ones, in words; None for what has no short ones."""
    minute, hour, day, month, weekday = cron.lower().split()
    minutes, hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
    if minutes is None or hours is None:
        return None
    days = _days(day, month, weekday)
    if days is None:
        return None
    if len(minutes) * len(hours) <= _NAMED:
        clock = _joined([f"{h:02}:{m:02}" for h in sorted(hours) for m in sorted(minutes)])
        return f"{days} at {clock} {tz}"
    often = _often(minutes, hours)
    if often is None:
        return None
    return f"{often}, {tz}" if days == "every day" else f"{often}, {days}, {tz}"


def _often(minutes: frozenset[int], hours: frozenset[int]) -> str | None:
    """Many times a day."""
    first, last = min(minutes), max(minutes)
    start, end = min(hours), max(hours)
    step = _step(minutes, 60)
    whole = len(hours) == 24
    if len(hours) == end - start + 1:
        edges = "" if whole else f" from {start:02}:{first:02} to {end:02}:{last:02}"
        if len(minutes) == 1:
            at = f" at minute {first}" if whole and first else ""
            return f"every hour{at}{edges}"
        if step is not None:
            return f"every {'minute' if step == 1 else f'{step} minutes'}{edges}"
        if whole and len(minutes) <= _NAMED:
            return f"every hour at minutes {_joined([str(one) for one in sorted(minutes)])}"
    if len(minutes) == 1 and (apart := _step(hours, 24)) is not None:
        return f"every {apart} hours from 00:{first:02}"
    return None


def _days(day: str, month: str, weekday: str) -> str | None:
    """On which days; "every day" for all."""
    months = _months(month)
    if months is None:
        return None
    within = f" in {months}" if months else ""
    of = f" of {months}" if months else " of every month"
    if day == "*":
        return _of_week(weekday, within, of)
    monthly = _of_month(day)
    if monthly is None:
        return None
    if weekday == "*":
        return monthly + of if monthly != "every day" else monthly + within
    # With both given cron takes days that fit either; a field that begins with a star makes it both.
    weekly = None if "*" in day + weekday else _of_week(weekday, "", "")
    if weekly is None or "every day" in {weekly, monthly} or weekly.startswith("on "):
        return None
    return f"{monthly}{of}, and {weekly}{within},"


def _of_month(day: str) -> str | None:
    if day == "l":
        return "on the last day"
    if day == "lw":
        return "on the last weekday"
    numbers = _numbers(day, 1, 31)
    if numbers is None:
        return None
    first, last = min(numbers), max(numbers)
    if len(numbers) == 31:
        return "every day"
    if len(numbers) <= _NAMED:
        return f"on the {_joined([_ordinal(one) for one in sorted(numbers)])}"
    if len(numbers) == last - first + 1:
        return f"on the {_ordinal(first)} to the {_ordinal(last)}"
    return None


def _of_week(weekday: str, within: str, of: str) -> str | None:
    name, hash_, nth = weekday.partition("#")
    if hash_:
        numbers = _numbers(name, 0, 7, _DAYS)
        if nth not in _NTH or numbers is None or len(numbers) != 1:
            return None
        return f"on the {_NTH[nth]} {_DAYS[min(numbers) % 7]}{of}"
    if weekday.endswith("l") and len(weekday) > 1:
        numbers = _numbers(weekday[:-1], 0, 7, _DAYS)
        return f"on the last {_DAYS[min(numbers) % 7]}{of}" if numbers and len(numbers) == 1 else None
    numbers = _numbers(weekday, 0, 7, _DAYS)
    if numbers is None:
        return None
    found = frozenset(one % 7 for one in numbers)
    if len(found) == 7:
        return f"every day{within}"
    if found == _WEEKDAYS:
        return f"every weekday{within}"
    # The week of people begins on Monday.
    return f"every {_joined([_DAYS[one % 7] for one in sorted((one or 7) for one in found)])}{within}"


def _months(month: str) -> str | None:
    """Their names; "" for all."""
    numbers = _numbers(month, 1, 12, ("", *_MONTHS))
    if numbers is None:
        return None
    first, last = min(numbers), max(numbers)
    if len(numbers) == 12:
        return ""
    if len(numbers) > 3 and len(numbers) == last - first + 1:
        return f"{_MONTHS[first - 1]} to {_MONTHS[last - 1]}"
    return _joined([_MONTHS[one - 1] for one in sorted(numbers)]) if len(numbers) <= _NAMED else None


def _numbers(field: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int] | None:
    """What a field holds; None for what is no list of numbers and ranges."""
    found: set[int] = set()
    for term in field.split(","):
        span, slash, step = term.partition("/")
        start, dash, end = span.partition("-")
        if span == "*":
            first, last = low, high
        else:
            read = _number(start, names), _number(end, names) if dash else None
            if read[0] is None or (dash and read[1] is None):
                return None
            first = read[0]
            last = first if read[1] is None else read[1]
        if slash:
            if not step.isdecimal():
                return None
            # Steps from one number on go to the end of the field.
            last = high if last == first else last
        found.update(range(first, last + 1, int(step) if slash else 1))
    return frozenset(found) if found else None


def _number(text: str, names: Sequence[str]) -> int | None:
    if text.isdecimal():
        return int(text)
    # Their first three letters are the names that cron knows.
    return next((place for place, name in enumerate(names) if name and name[:3].lower() == text), None)


def _step(numbers: Collection[int], whole: int) -> int | None:
    """So far apart are they all, from 0 on and round."""
    step = whole // len(numbers)
    return step if sorted(numbers) == list(range(0, whole, step)) and whole % step == 0 else None


def _ordinal(number: int) -> str:
    ending = "th" if number in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
