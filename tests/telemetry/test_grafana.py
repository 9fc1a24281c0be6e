"""The dashboard and the alert rules that lie in the wheel ask only for what is exposed, by names that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from duly.cli.main import COMMANDS
from duly.telemetry import events
from duly.telemetry.metrics import ALL, sample_names

FOLDER = files("duly.telemetry") / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
RULES = (FOLDER / "alerts.yaml").read_text()
NAME = re.compile(r"\bduly_[a-z_]+")
# Prometheus' own, beside those of the table: buckets, and where a sample was scraped.
EVERYWHERE = {"le", "instance", "job"}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]
    yield from re.findall(r"^ +expr: (.+)$", RULES, re.MULTILINE)


def rules() -> list[str]:
    """The text of each rule."""
    return RULES.split("      - alert: ")[1:]


@pytest.mark.parametrize("expression", [*expressions()])
def test_an_expression_names_only_metrics_and_labels_that_exist(expression: str) -> None:
    named = set(NAME.findall(expression))
    families = {name: metric for metric in ALL.values() for name in metric.samples}
    labels = {label for name in named & families.keys() for label in families[name].labels} | EVERYWHERE

    assert named
    assert named <= sample_names()
    grouped = {
        label.strip()
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
        for label in group.split(",")
    }
    assert grouped <= labels
    for name, matchers in re.findall(r"(duly_[a-z_]+)\{([^}]*)\}", expression):
        asked = set(re.findall(r"(\w+)=~?\"", matchers))
        assert asked <= {*families[name].labels, *EVERYWHERE}
    assert expression.count("(") == expression.count(")")


def test_the_dashboard_shows_every_metric_that_is_worth_a_line() -> None:
    """What is left out is said here, so that a new metric is shown or left out on purpose."""
    shown = {name for expression in expressions() for name in NAME.findall(expression)}
    hidden = {name for name, metric in ALL.items() if not metric.samples & shown}

    assert hidden == {
        "duly_worker",
        "duly_store_seconds",
        "duly_store_bytes",
        "duly_queue_paused",
        "duly_dead_oldest_seconds",
        "duly_limit_waiting",
    }


def test_panels_have_titles_of_their_own_and_do_not_overlap() -> None:
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(set(titles)) == len(titles)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(titles)


def test_each_rule_says_what_happened_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert re.search(r"labels: \{severity: (warning|critical)\}", rule), rule
        assert re.search(r'summary: "[^"]+"', rule), rule
        (remedy,) = re.findall(r'remedy: "([^"]+)"', rule)
        words = remedy.split()
        assert words[0] == "curl" or (words[0] == "duly" and words[1] in COMMANDS), remedy


def test_events_that_rules_count_exist() -> None:
    named = [name for text in re.findall(r'event=~?"([^"]+)"', RULES) for name in text.split("|")]

    assert named
    assert all(hasattr(events, name) for name in named)


def test_both_files_are_in_the_package() -> None:
    assert {entry.name for entry in FOLDER.iterdir()} == {"dashboard.json", "alerts.yaml"}
    assert Path(str(FOLDER)).is_dir()
