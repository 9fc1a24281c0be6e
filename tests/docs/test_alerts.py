"""The page on alerts names every rule and every threshold, with the default that holds."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from duly.core.alerting import RULES, Thresholds
from duly.core.durations import compact_duration

PAGE = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins with this column."""
    _, _, rest = PAGE.partition(f"\n| {heading} |")
    table = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def shown(value: object) -> str:
    if isinstance(value, timedelta):
        return compact_duration(value)
    return f"{value:.0%}" if isinstance(value, float) else str(value)


def test_the_page_names_every_rule_in_order() -> None:
    assert [row[0].strip("`") for row in rows("rule")] == list(RULES)


def test_the_page_names_every_threshold_with_its_default() -> None:
    defaults = {
        name: shown(value)
        for name, value in structs.asdict(Thresholds()).items()
        if name not in {"off", "sinks"}
    }

    assert {row[0].strip("`"): row[1] for row in rows("threshold")} == defaults


def test_the_rules_name_only_thresholds_that_there_are() -> None:
    said = {word for row in rows("rule") for word in re.findall(r"`([a-z]+_[a-z_]+)`", row[1])}

    assert said <= {*(row[0].strip("`") for row in rows("threshold")), "wait_target", "max_depth", "max_age"}
