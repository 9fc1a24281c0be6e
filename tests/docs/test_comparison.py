"""docs/comparison.md: whole tables, known marks, and behind each mark of duly a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparison.md"
PEERS = [
    "Celery",
    "RQ",
    "Procrastinate",
    "PgQueuer",
    "awa",
    "Oban",
    "River",
    "Sidekiq",
    "BullMQ",
    "Beanstalkd",
    "SQS",
    "Kafka",
    "Temporal",
]
MARKS = {*"●◐○$?", chr(0x2013)}
LINK = re.compile(r"\[(?P<mark>[●◐])\]\((?P<path>[^)#]+)#(?P<name>\w+)\)")


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def capabilities() -> list[list[str]]:
    return [row for row in rows() if row[0]]


def fault(cell: str) -> str | None:
    """Why what stands under duly is kept by no test; None when it is, or is said to be missing."""
    if cell == "not yet":
        return None
    found = LINK.fullmatch(cell)
    if found is None:
        return "neither a mark with its test nor `not yet`"
    target = (PAGE.parent / found["path"]).resolve()
    if not target.is_file() or ROOT not in target.parents:
        return "there is no such file"
    kept = target.name.startswith("test_") or target.parent.name == "conformance"
    if not kept or not re.search(rf"^(?:async )?def {found['name']}\(", target.read_text(), re.MULTILINE):
        return "there is no such test"
    return None


def test_each_table_has_every_peer_and_each_cell_a_known_mark() -> None:
    assert [row[1:] for row in rows() if not row[0]] == [["duly", *PEERS]] * 4
    assert len(capabilities()) > 30
    assert {row[0]: row[2:] for row in capabilities() if len(row) != 15 or set(row[2:]) - MARKS} == {}


def test_what_duly_has_is_kept_by_a_test() -> None:
    assert {row[0]: fault(row[1]) for row in capabilities() if fault(row[1])} == {}


def test_nothing_is_told_twice() -> None:
    names = [row[0] for row in capabilities()]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("●", "neither"),
        ("[●](../tests/nowhere.py#test_it)", "file"),
        ("[●](../tests/docs/test_comparison.py#test_of_nothing)", "test"),
        ("[●](../tests/docs/pages.py#run)", "test"),
    ],
)
def test_a_mark_without_a_test_is_found_out(cell: str, why: str) -> None:
    assert why in (fault(cell) or "")
