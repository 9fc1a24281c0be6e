"""index.toml names each scenario of the parts that are built, and tests that are really there for it.

`later` says what of a scenario needs a part that is not built; `note` says where duly gives another sound answer.
"""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from duly.testing import conformance

ROOT = Path(__file__).parents[2]
SUITE = Path("src/duly/testing/conformance")
BUILT = "LS 11, RT 13, SH 6, PL 6, PG 9, SQ 4, CR 9, UQ 7, OR 7, FA 5, FL 8, AP 8, OV 3, HT 7, DB 3, SE 5"
AREAS = {area: int(count) for area, count in (one.split() for one in BUILT.split(", "))}
IDS = [f"{area}-{number:02}" for area, count in AREAS.items() for number in range(1, count + 1)]
KEYS = {"title", "tests", "later", "note"}
LEFT_OUT = {"skip", "skipif", "xfail", "long"}


@cache
def index() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ROOT / "tests/scenarios/index.toml").read_text())


@cache
def functions(path: str) -> dict[str, set[str]]:
    """The functions of a file, each with the names of its pytest marks."""
    tree = ast.parse((ROOT / path).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: {mark for part in node.decorator_list for mark in marks(part)} for node in found}


def marks(decorator: ast.expr) -> list[str]:
    return [part.attr for part in ast.walk(decorator) if isinstance(part, ast.Attribute)]


@cache
def cases() -> set[str]:
    return {case.name for case in conformance.cases()}


def fault(node: str) -> str | None:
    """Why a node of the index does not stand for a test that runs; None when it does."""
    path, colons, name = node.partition("::")
    if not colons or not (ROOT / path).is_file():
        return "there is no such file"
    known = functions(path)
    if name not in known:
        return "there is no such function"
    if Path(path).parent == SUITE:
        return None if name in cases() else "it is no case of the suite"
    if not (path.startswith("tests/") and Path(path).name.startswith("test_") and name.startswith("test_")):
        return "pytest does not collect it"
    return f"it is marked {known[name] & LEFT_OUT}" if known[name] & LEFT_OUT else None


def test_each_scenario_is_in_the_index_once_and_in_order() -> None:
    assert len(IDS) == 111
    assert list(index()) == IDS


@pytest.mark.parametrize("id", IDS)
def test_each_scenario_has_a_title_and_tests_or_the_reason_why_not_yet(id: str) -> None:
    entry = index()[id]

    assert set(entry) <= KEYS
    assert entry["title"].strip()
    assert entry.get("tests") or entry.get("later", "").strip()
    assert len(set(entry.get("tests", []))) == len(entry.get("tests", []))


@pytest.mark.parametrize("id", IDS)
def test_each_test_that_the_index_names_is_there_and_runs(id: str) -> None:
    assert {node: fault(node) for node in index()[id].get("tests", []) if fault(node)} == {}


def test_each_test_of_this_folder_shows_some_scenario() -> None:
    named = {node for entry in index().values() for node in entry.get("tests", [])}
    here = {
        f"tests/scenarios/{file.name}::{name}"
        for file in Path(__file__).parent.glob("test_*.py")
        if file.name != Path(__file__).name
        for name in functions(f"tests/scenarios/{file.name}")
        if name.startswith("test_")
    }

    assert here - named == set()


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("tests/scenarios/test_nothing.py::test_it", "file"),
        ("tests/scenarios/test_index.py", "file"),
        ("tests/scenarios/test_index.py::test_of_nothing", "function"),
        ("tests/scenarios/test_index.py::fault", "collect"),
        ("src/duly/testing/conformance/racing.py::_while_moving", "case"),
    ],
)
def test_a_node_that_stands_for_no_test_is_found_out(node: str, why: str) -> None:
    assert why in (fault(node) or "")
