"""Events as log lines."""

import json
import os
from pathlib import Path

import pytest

from duly.telemetry.events import ChildDied, Happening, JobDied, StoreAway, WorkerStarted
from duly.telemetry.hub import Hub
from duly.telemetry.logs import Form, Log

DEAD = JobDied(7, 2, "mail", "send", "fail", "dead", "gave up after 2: no route", 0.5)


def lines(path: Path, form: Form | None, level: str, *events: Happening) -> list[str]:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    log = Log(form, level, descriptor)
    os.close(descriptor)
    for event in events:
        log(event)
    log.close()
    return path.read_text().splitlines()


def test_text_is_a_time_a_weight_and_a_sentence(tmp_path: Path) -> None:
    (line,) = lines(tmp_path / "log", "text", "info", DEAD)

    assert line[8:] == " WARNING job 7 (send on mail) is dead: gave up after 2: no route"


def test_json_is_one_object_a_line_with_the_fields_of_the_event(tmp_path: Path) -> None:
    (line,) = lines(tmp_path / "log", "json", "info", DEAD)

    told = json.loads(line)
    assert (told["event"], told["level"], told["id"], told["queue"]) == ("JobDied", "warning", 7, "mail")
    assert told["text"] == DEAD.sentence()


def test_a_file_that_is_no_terminal_gets_json(tmp_path: Path) -> None:
    (line,) = lines(tmp_path / "log", None, "info", DEAD)

    assert json.loads(line)["event"] == "JobDied"


def test_events_below_the_level_are_left_out(tmp_path: Path) -> None:
    started = WorkerStarted("/x.db", ("default",), ("a", "b"), "50 async", 2, 1)

    shown = lines(tmp_path / "log", "text", "warning", started, StoreAway("exchange", "refused"), DEAD)

    assert len(shown) == 2


def test_the_start_block_says_what_people_compare_when_nothing_runs(tmp_path: Path) -> None:
    started = WorkerStarted(
        "/srv/shop.db", ("default", "mail:8"), ("send", "resize"), "50 async, 10 threads", 4, 2
    )

    shown = "\n".join(lines(tmp_path / "log", "text", "info", started))

    for word in ("/srv/shop.db", "mail:8", "send, resize", "50 async, 10 threads", "cores   4, processes 2"):
        assert word in shown


def test_a_log_whose_reader_went_away_does_not_disturb() -> None:
    read, write = os.pipe()
    log = Log("text", "info", write)
    os.close(read)
    os.close(write)

    log(DEAD)
    log.close()


def test_a_listener_that_fails_disturbs_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    hub, heard = Hub(), list[Happening]()

    def broken(event: Happening) -> None:
        raise RuntimeError("full")

    hub.listen(broken)
    hub.listen(heard.append)

    hub.emit(DEAD)
    hub.emit(ChildDied(1, 2, "was killed by SIGKILL", (7,)))

    assert len(heard) == 2
    assert capsys.readouterr().err.count("a listener of events failed") == 1
