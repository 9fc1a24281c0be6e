"""Progress: lines in a log, a bar on a terminal, nothing for programs."""

from __future__ import annotations

import os
import pty
import sys
from importlib.util import find_spec

import pytest

from duly.cli import progress as module
from duly.cli.progress import progress


def work() -> None:
    with progress("resizing") as advance:
        for done in range(1, 21):
            advance(done, 20, "2 running")


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 100 columns shows while the work goes on."""
    reader, writer = pty.openpty()
    monkeypatch.setenv("COLUMNS", "100")
    with os.fdopen(writer, "w") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        work()
        monkeypatch.undo()
    shown = b""
    try:
        while chunk := os.read(reader, 65536):
            shown += chunk
    except OSError:
        # The end of a terminal whose other side is closed.
        pass
    os.close(reader)
    return shown.decode()


def test_a_log_gets_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    work()

    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert lines == ["resizing 1 of 20  2 running"] + [
        f"resizing {done} of 20  2 running" for done in range(2, 21, 2)
    ]


def test_programs_get_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("resizing", shown=False) as advance:
        advance(1, 2, "")

    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_without_any_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)

    shown = on_a_terminal(monkeypatch)

    assert "\r\x1b[2Kresizing  " in shown
    assert "████████████████████████████████  20/20  2 running" in shown


@pytest.mark.skipif(find_spec("rich") is None, reason="needs the extra cli")
def test_a_terminal_gets_the_bar_of_rich_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    shown = on_a_terminal(monkeypatch)

    assert "resizing" in shown
    assert "20/20" in shown
