"""What each drill finds in handlers that break their promises, and that it finds nothing in those that keep them."""

import re

import pytest

from tests.drills import shop
from tests.drills.conftest import line_of

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_kill_after_the_handler_shows_the_effect_that_happens_twice_with_its_line() -> None:
    report = shop.twice.kill(most=4)

    found = {(finding.line, finding.text.partition(":")[0]) for finding in report.findings}
    assert (
        line_of("CHARGED"),
        f"effect charge happened twice in careless, line {line_of('CHARGED')}",
    ) in found
    assert any(text.startswith("nobody_pays_twice does not hold") for _, text in found)
    assert not report.held
    assert not any(note.startswith("not marked") for note in report.notes), "it writes inside a marked block"
    with pytest.raises(AssertionError, match="happened twice in careless"):
        report.check()


def test_a_handler_that_gives_its_receiver_one_key_survives_every_death() -> None:
    report = shop.once.kill(most=8)

    report.check()
    assert re.fullmatch(
        r"1 while the lease was extended, 3 at the store, \d+ before a line.*", report.facts["deaths"]
    )


def test_isolated_processes_die_at_their_lines_and_steps_too() -> None:
    report = shop.alone.kill(most=9)

    report.check()
    at_store, lines = re.fullmatch(
        r"1 while .*, (\d) at the store, (\d+) before a line.*", report.facts["deaths"]
    ).groups()  # type: ignore[union-attr]
    assert int(at_store) == 5, "claim, end, and the step"
    assert int(lines) >= 3


def test_an_effect_that_a_death_prevents_for_good_is_found() -> None:
    report = shop.never.kill(most=11)

    assert [(one.line, one.text.partition(":")[0]) for one in report.findings] == [
        (line_of("MAILED"), f"effect mail did not happen in forgetful, line {line_of('MAILED')}")
    ]
    place = f"tell, line {line_of('WRITTEN')} (tests/drills/shop.py)"
    assert f"not marked: {place} writes a file; with effect(…) the drill counts it" in report.notes


def test_a_second_delivery_shows_what_happens_twice() -> None:
    report = shop.twice.duplicate(jobs=3)

    assert report.facts["jobs"] == "3, of which 3 were delivered twice"
    assert {one.text.partition(":")[0] for one in report.findings} == {
        f"effect charge happened twice in careless, line {line_of('CHARGED')}",
        "nobody_pays_twice does not hold",
    }
    assert report.findings[0].times == 3


def test_a_second_delivery_finds_nothing_where_it_does_nothing() -> None:
    report = shop.once.duplicate(jobs=3)

    report.check()
    assert report.facts["jobs"] == "3, of which 3 were delivered twice"


def test_jobs_of_an_ordering_key_come_twice_one_after_the_other() -> None:
    report = shop.turns.duplicate(jobs=3)

    report.check()
    assert report.facts["jobs"] == "3, of which 3 were delivered twice"


def test_another_order_shows_who_relies_on_it() -> None:
    report = shop.latest.reorder(jobs=4, orders=2)

    assert [one.text for one in report.findings] == [
        "the_newest_is_last does not hold: the jobs ran backwards"
    ]


def test_jobs_of_one_ordering_key_keep_their_order() -> None:
    shop.turns.reorder(jobs=4, orders=2).check()


def test_under_load_workers_die_and_jobs_come_twice_and_nothing_is_lost() -> None:
    report = shop.once.load(rate="40/s", lasting="4s", kills="60/min", duplicates=0.1)

    report.check()
    assert "SIGKILL" in report.facts["kills"]
    assert int(report.facts["twice"].split()[0]) > 0
