"""Each promise of docs/guarantees.md names tests, and each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"


def promises() -> list[tuple[str, list[str]]]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    return [(row[1].strip(), re.findall(r"`(\w+)`", row[3])) for row in rows]


def known_tests() -> set[str]:
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/duly/testing").rglob("*.py")]
    return {name for source in sources for name in re.findall(r"def (\w+)\(", source.read_text())}


def test_every_promise_names_a_test() -> None:
    assert [number for number, tests in promises() if not tests] == []


def test_every_named_test_exists() -> None:
    known = known_tests()

    assert {name for _, tests in promises() for name in tests} - known == set()
