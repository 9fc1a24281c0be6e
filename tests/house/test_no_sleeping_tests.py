"""A test waits for what it needs (tests.waiting), never for a time: a sleep is either too short or too long.

Sleeping is allowed to handlers, whose work it stands for: functions decorated as tasks, and modules of handlers.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import ROOT, Function, files, shown

HANDLER_FILES = ("handlers*.py", "*_handlers.py", "*_app.py")
HANDLER_FOLDERS = (ROOT / "tests/drill",)


def sleeps(module: ast.Module) -> list[int]:
    """The lines that sleep for a time, those inside tasks left out."""
    return sorted(
        node.lineno for node in _outside_tasks(module) if isinstance(node, ast.Call) and _sleeps(node)
    )


def _outside_tasks(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, Function) and any(_is_task(mark) for mark in child.decorator_list)):
            yield from _outside_tasks(child)


def _is_task(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and target.attr == "task"


def _sleeps(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in {"sleep", "wait_for_timeout", "pg_sleep"}:
        return False
    first = call.args[0] if call.args else None
    # sleep(0) only lets the event loop turn.
    return not (isinstance(first, ast.Constant) and first.value == 0)


def _waits_for_a_time(path: Path) -> bool:
    handlers = any(path.match(pattern) for pattern in HANDLER_FILES)
    return not handlers and not any(path.is_relative_to(folder) for folder in HANDLER_FOLDERS)


def test_no_test_sleeps() -> None:
    found = {
        shown(path): sleeps(ast.parse(path.read_text()))
        for path in files("tests", "*.py")
        if _waits_for_a_time(path)
    }

    sleeping = {name: lines for name, lines in found.items() if lines}

    assert found
    assert not sleeping, f"wait on a probe instead (tests.waiting.wait_until): {sleeping}"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("from asyncio import sleep\nasync def test() -> None:\n    await sleep(0.1)", [3]),
        ("await asyncio.sleep(0)", []),
        ("@jobs.task\ndef slow():\n    time.sleep(30)", []),
        ("@jobs.task(queue='mail')\nasync def slow():\n    await asyncio.sleep(30)", []),
        ("@pytest.fixture\ndef slow():\n    time.sleep(30)", [3]),
    ],
)
def test_a_sleep_is_seen_where_it_is_one(code: str, lines: list[int]) -> None:
    module = compile(code, "case", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    assert isinstance(module, ast.Module)
    assert sleeps(module) == lines
