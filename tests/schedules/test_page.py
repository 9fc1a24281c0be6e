"""The table of docs/schedules.md on the days the clock jumps: each row is what happens."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from duly.core.registration import Schedule
from duly.core.schedule import checked, next_due

PAGE = Path(__file__).parents[2] / "docs" / "schedules.md"
ROW = re.compile(r"\| `([^`]+)` \| (\w+/\w+) \| (\d{4}-\d\d-\d\d)([^|]*)\|([^|]*)\|")
ROWS = ROW.findall(PAGE.read_text())


def test_the_page_has_the_table() -> None:
    assert len(ROWS) == 10


@pytest.mark.parametrize(("cron", "tz", "day", "when", "due"), ROWS)
def test_a_row_of_the_table_is_what_happens(cron: str, tz: str, day: str, when: str, due: str) -> None:
    zone = ZoneInfo(tz)
    span = re.search(r"from (\S+) to (\S+)", when)
    first, last = (span[1], span[2]) if span else ("00:00", "23:59")
    schedule = checked(Schedule("s", cron=cron, tz=tz))
    moment = datetime.fromisoformat(f"{day}T{first}").replace(tzinfo=zone).astimezone(UTC) - timedelta(
        seconds=1
    )
    until = datetime.fromisoformat(f"{day}T{last}").replace(tzinfo=zone)

    found = []
    while (moment := next_due(schedule, moment)) <= until:
        found.append(moment.astimezone(zone).isoformat(timespec="minutes").partition("T")[2])

    assert found == [text.strip() for text in due.split(",") if text.strip()]
    jump = re.search(r"(\d\d:\d\d) becomes (\d\d:\d\d)", when)
    if jump:
        old, new = (datetime.fromisoformat(f"{day}T{time}") for time in jump.groups())
        before = (old - timedelta(minutes=1)).replace(tzinfo=zone).astimezone(UTC)
        assert (before + timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None) == new
