"""What every module says about itself, and what no file of the project may hold."""

import ast
import re
import sys
from pathlib import Path

from tests.house.tree import ROOT, SOURCE, everything, files, parsed, shown

MODULE_FOLDERS = ("src", "tests", "scripts", "bench")
DOCSTRING_LINES = 5
LONGER = {
    "src/duly/core/errors.py": "the tree of errors is drawn there",
    "src/duly/stores/protocol.py": "the lock order and the rules of all stores are argued there",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
TEXT = {"", ".py", ".sql", ".md", ".toml", ".txt", ".sh", ".json", ".yml", ".yaml", ".html", ".css", ".js"}


def test_every_module_opens_by_saying_what_it_owns() -> None:
    silent, talkative = [], []
    for path in (path for folder in MODULE_FOLDERS for path in files(folder, "*.py")):
        module = parsed(path)
        docstring = ast.get_docstring(module)
        if not module.body:
            continue
        if not docstring:
            silent.append(shown(path))
        elif len(docstring.splitlines()) > DOCSTRING_LINES and shown(path) not in LONGER:
            talkative.append(shown(path))

    assert not silent, f"these modules have no docstring: {silent}"
    assert not talkative, f"these module docstrings are longer than {DOCSTRING_LINES} lines: {talkative}"


def test_nothing_in_the_source_is_unfinished() -> None:
    found = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in files(SOURCE)
        if path.suffix in TEXT
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if UNFINISHED.search(line)
    ]

    assert not found, f"finish these or leave them out: {found}"


def test_the_source_silences_no_type_error() -> None:
    marks = ("# type: ignore", "# pyright: ignore", "# mypy: ignore")

    found = [shown(path) for path in files(SOURCE, "*.py") if any(mark in path.read_text() for mark in marks)]

    assert not found, f"give the types their true names instead: {found}"


def test_no_file_names_a_place_on_this_machine() -> None:
    home = str(Path.home())
    places = {str(ROOT), sys.base_prefix, *([] if home == "/" else [home + "/"])} - {
        "/",
        "/usr",
        "/usr/local",
    }

    found = [
        f"{shown(path)} holds {place}"
        for path in everything()
        if path.suffix in TEXT
        for place in places
        if place in path.read_text(errors="replace")
    ]

    assert not found
