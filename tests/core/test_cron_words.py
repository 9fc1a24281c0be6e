"""What is said of a cron expression is what cronsim does with it: the words are read back, and compared."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

import pytest
from cronsim import CronSim
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from duly.core.cron_words import cron_words

Fits = Callable[[date], bool]
FIRST = datetime(2027, 1, 1, tzinfo=UTC)
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December"]  # fmt: skip
NTH = ["first", "second", "third", "fourth", "fifth"]


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("30 7 * * 1-5", "every weekday at 07:30 Europe/Lisbon"),
        ("*/5 * * * *", "every 5 minutes, Europe/Lisbon"),
        ("* * * * *", "every minute, Europe/Lisbon"),
        ("0 * * * *", "every hour, Europe/Lisbon"),
        ("7 * * * *", "every hour at minute 7, Europe/Lisbon"),
        ("0 */2 * * *", "every 2 hours from 00:00, Europe/Lisbon"),
        ("0 9-17 * * 1-5", "every hour from 09:00 to 17:00, every weekday, Europe/Lisbon"),
        (
            "*/15 9-17 * * MON-FRI",
            "every 15 minutes from 09:00 to 17:45, every weekday, Europe/Lisbon",
        ),
        ("15,45 8,20 * * *", "every day at 08:15, 08:45, 20:15 and 20:45 Europe/Lisbon"),
        ("0 0 1 * *", "on the 1st of every month at 00:00 Europe/Lisbon"),
        ("0 3 L * *", "on the last day of every month at 03:00 Europe/Lisbon"),
        ("0 3 * * 1#2", "on the second Monday of every month at 03:00 Europe/Lisbon"),
        ("0 18 * 3,6 5L", "on the last Friday of March and June at 18:00 Europe/Lisbon"),
        ("5 4 * * SUN,wed", "every Wednesday and Sunday at 04:05 Europe/Lisbon"),
        ("0 22 1,15 * 5", "on the 1st and 15th of every month, and every Friday, at 22:00 Europe/Lisbon"),
        ("*/7 3 * 2-4 *", None),
        ("0 0 */2 * 1", None),
    ],
)
def test_common_expressions_have_short_words(cron: str, words: str | None) -> None:
    assert cron_words(cron, "Europe/Lisbon") == words


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    one = st.integers(low, high)
    pair = st.tuples(one, one).map(lambda two: f"{min(two)}-{max(two)}")
    steps = st.integers(1, high)
    return st.one_of(
        st.just("*"),
        one.map(str),
        st.lists(one.map(str), min_size=2, max_size=4).map(",".join),
        pair,
        st.builds("{}/{}".format, st.one_of(st.just("*"), one, pair), steps),
    )


EXPRESSIONS = st.tuples(
    numbers(0, 59),
    numbers(0, 23),
    st.one_of(st.just("*"), numbers(1, 31), st.sampled_from(["L", "LW"])),
    st.one_of(st.just("*"), numbers(1, 12), st.sampled_from(["JAN", "mar-may"])),
    st.one_of(st.just("*"), numbers(0, 7), st.sampled_from(["mon-fri", "SAT,SUN", "1#2", "5L", "0#5"])),
).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
@example("5-5/20 3 * * *")
@example("0 0 31 2-3 *")
@example("0 9 1-31 6 *")
@example("0 9 13 * 5")
@example("0 9 * * 5-7")
def test_the_words_mean_what_cronsim_does(cron: str) -> None:
    words = cron_words(cron, "UTC")
    assume(words is not None)
    assert words is not None
    minute, hour, *days = cron.split()

    times, fits = read(words.removesuffix("UTC").rstrip(" ,"))

    day = FIRST + timedelta(days=1)
    due = takewhile(lambda at: at < day, CronSim(f"{minute} {hour} * * *", FIRST - timedelta(minutes=1)))
    assert times == {(at.hour, at.minute) for at in due}
    end = FIRST + timedelta(days=900)
    due = takewhile(lambda at: at < end, CronSim(f"0 0 {' '.join(days)}", FIRST - timedelta(minutes=1)))
    told = [FIRST.date() + timedelta(days=n) for n in range(900)]
    assert [day for day in told if fits(day)] == [at.date() for at in due]


# Reading the words back.


def read(words: str) -> tuple[set[tuple[int, int]], Fits]:
    """(the minutes of a day, whether a day is one of them)."""
    clock = re.fullmatch(r"(.*) at ((?:\d\d:\d\d(?:, | and )?)+)", words)
    if clock is not None:
        found = {(int(h), int(m)) for h, m in re.findall(r"(\d\d):(\d\d)", clock[2])}
        return found, day_of(clock[1].rstrip(","))
    often = re.fullmatch(
        r"every (?:(?P<n>\d+) )?(?P<unit>minutes?|hours?)"
        r"(?: at minutes? (?P<at>\d+(?:(?:, | and )\d+)*))?"
        r"(?: from (?P<h>\d\d):(?P<m>\d\d)(?: to (?P<h2>\d\d):(?P<m2>\d\d))?)?(?:, (?P<days>.*))?",
        words,
    )
    assert often is not None, words
    n, start = int(often["n"] or 1), int(often["h"] or 0) * 60 + int(often["m"] or 0)
    end = int(often["h2"]) * 60 + int(often["m2"]) if often["h2"] else 24 * 60 - 1
    marks = [int(one) for one in re.findall(r"\d+", often["at"])] if often["at"] else [0]
    step = n if often["unit"].startswith("minute") else 60 * n
    found = {
        (at // 60, at % 60)
        for mark in marks
        for at in range(start + mark, end + 1, step)
    }  # fmt: skip
    return found, day_of(often["days"] or "every day")


def day_of(words: str) -> Fits:
    both = re.fullmatch(r"(on the .*), and (every .*)", words)
    if both is not None:
        first, second = day_of(both[1]), day_of(both[2])
        return lambda day: first(day) or second(day)
    month = re.search(r" (?:of|in) (.*)$", words)
    months = months_of(month[1]) if month is not None else range(1, 13)
    rest = words if month is None else words[: month.start()]
    fits = within_month(rest)
    return lambda day: day.month in months and fits(day)


def months_of(text: str) -> list[int]:
    if text == "every month":
        return list(range(1, 13))
    span = re.fullmatch(r"(\w+) to (\w+)", text)
    if span is not None:
        return list(range(MONTHS.index(span[1]) + 1, MONTHS.index(span[2]) + 2))
    return [MONTHS.index(name) + 1 for name in re.split(r", | and ", text)]


def within_month(text: str) -> Fits:
    if text == "every day":
        return lambda day: True
    if text == "every weekday":
        return lambda day: day.weekday() < 5
    if text.startswith("every "):
        names = re.split(r", | and ", text.removeprefix("every "))
        assert set(names) <= set(DAYS)
        return lambda day: DAYS[day.weekday()] in names
    if text == "on the last day":
        return lambda day: left(day) == 0
    if text == "on the last weekday":
        return lambda day: (
            day.weekday() < 5
            and not any((day + timedelta(days=n)).weekday() < 5 for n in range(1, left(day) + 1))
        )
    nth = re.fullmatch(rf"on the (last|{'|'.join(NTH)}) (\w+)", text)
    if nth is not None:
        return lambda day: (
            DAYS[day.weekday()] == nth[2]
            and (left(day) < 7 if nth[1] == "last" else (day.day - 1) // 7 == NTH.index(nth[1]))
        )
    found = [int(one) for one in re.findall(r"(\d+)(?:st|nd|rd|th)", text)]
    if " to the " in text:
        return lambda day: found[0] <= day.day <= found[1]
    return lambda day: day.day in found


def left(day: date) -> int:
    """Days of its month after it."""
    following = date(day.year + (day.month == 12), day.month % 12 + 1, 1)
    return (following - day).days - 1
