"""What drills decide without any process: which effects count, which moments are chosen, what may be drilled."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly import App
from duly.client import effects
from duly.client.effects import Mark, happened
from duly.core.errors import UsageError
from duly.core.job import NewJob
from duly.drills import Drill, Finding, Report, effect
from duly.drills.drill import load_drill, reference_of
from duly.drills.kill import choose
from duly.drills.load import Load
from duly.drills.plan import Order, Papers, Plan, Point, Struck
from duly.drills.reorder import in_order
from tests.drills import shop


@pytest.fixture
def heard() -> Iterator[list[Mark]]:
    marks: list[Mark] = []

    def ear(mark: Mark) -> None:
        marks.append(mark)

    effects.hear(ear)
    yield marks
    effects.forget(ear)


def names(marks: list[Mark]) -> dict[tuple[str, str], int]:
    return {key: len(times) for key, times in happened(marks).items()}


def test_an_effect_is_silent_while_nobody_listens() -> None:
    with effect("charge", 7) as marked:
        pass

    assert marked._mark is None


def test_a_block_happens_when_it_is_left(heard: list[Mark]) -> None:
    with effect("charge", 7):
        assert names(heard) == {}

    assert names(heard) == {("charge", "7"): 1}
    assert (heard[0].function, heard[0].file) == ("test_a_block_happens_when_it_is_left", __file__)


def test_a_block_that_raises_has_not_happened(heard: list[Mark]) -> None:
    with pytest.raises(ValueError, match="declined"), effect("charge", 7):
        raise ValueError("declined")

    assert names(heard) == {}


def test_a_plain_call_has_happened(heard: list[Mark]) -> None:
    effect("mail", "a")
    effect("mail", "a")
    effect("mail", "b")

    assert names(heard) == {("mail", "a"): 2, ("mail", "b"): 1}


def test_repetitions_with_one_idempotency_key_are_one(heard: list[Mark]) -> None:
    for key in ("k1", "k1", "k2"):
        with effect("charge", 7, idempotency_key=key):
            pass

    assert names(heard) == {("charge", "7"): 2}


def test_when_there_are_too_many_moments_those_at_the_store_stay() -> None:
    lines = [Point("line", "shop.py", n) for n in range(1, 11)]
    points = [Point("claimed"), *lines, *lines, Point("before ack")]

    chosen, left_out = choose(points, 7)

    assert [one.kind for one in chosen[:3]] == ["extending", "claimed", "before ack"]
    assert [one.line for one in chosen[3:]] == [1, 3, 6, 8]
    assert left_out == 6


def test_shuffled_jobs_of_one_key_keep_their_order() -> None:
    jobs = [NewJob("q", str(n), b"{}", ordering_key="a" if n % 2 else None) for n in range(6)]

    made = in_order(jobs, [5, 4, 3, 2, 1, 0])

    assert [job.task for job in made] == ["1", "4", "3", "2", "5", "0"]


def test_an_order_is_carried_out_once(tmp_path: Path) -> None:
    papers, point = Papers(tmp_path), Point("claimed")
    papers.lay_out(Plan("m:n", (), (), "sqlite:///x", "duly", False, True, 0.0, 1, 0))
    papers.order("drill-1", Order(point))

    assert papers.order_of("drill-1") == Order(point)
    assert [papers.take("drill-1", point), papers.take("drill-1", point)] == [True, False]
    assert papers.order_of("drill-1") is None
    assert [(entry.correlation, entry.point) for entry in papers.news() if isinstance(entry, Struck)] == [
        ("drill-1", point)
    ]
    assert list(papers.news()) == []


def test_findings_about_one_thing_are_told_once() -> None:
    report = Report("kill", "send")

    report.add(Finding("effect a happened twice: 1", "shop.py", 3))
    report.add(Finding("effect a happened twice: 2", "shop.py", 3))

    assert report.lines()[1:] == [
        "BROKEN: effect a happened twice: 1 (shop.py:3); 2 times in all",
        "One thing did not hold.",
    ]


def test_a_drill_is_found_by_its_module_and_name() -> None:
    assert load_drill("tests.drills.shop:once") is shop.once
    assert reference_of(shop.latest) == "tests.drills.shop:latest"


def test_a_task_and_its_arguments_are_a_drill() -> None:
    drill = load_drill("tests.drills.shop:careless", {"order_id": 7})

    assert drill.app is shop.jobs
    assert str(drill.draft(1)) == "careless(order_id=7)"


@pytest.mark.parametrize(
    ("reference", "args", "said"),
    [
        ("tests.drills.shop", None, "holds 6 Drills; write tests.drills.shop:alone or"),
        (
            "tests.drills.shop:nothing",
            None,
            "is nothing there, neither a Drill nor a task; write there: receipts = ",
        ),
        ("tests.drills.conftest", None, "holds no Drill; write there"),
        ("tests.drills.shop:once", {"order_id": 7}, "makes its arguments by itself; leave --args out"),
    ],
)
def test_what_cannot_be_drilled_is_told_with_what_to_write(
    reference: str, args: dict[str, int] | None, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load_drill(reference, args)

    assert said in str(refused.value)


def test_a_drill_inside_a_function_cannot_be_imported_by_its_workers() -> None:
    drill = Drill(shop.jobs, lambda n: shop.careless.draft(order_id=n))

    with pytest.raises(UsageError, match="at the top of a module"):
        reference_of(drill)


def test_a_draft_of_another_app_is_refused() -> None:
    drill = Drill(App(), lambda n: shop.careless.draft(order_id=n))

    with pytest.raises(UsageError, match="belongs to another App"):
        drill.draft(1)


def test_a_share_of_more_than_all_is_refused() -> None:
    from datetime import timedelta

    with pytest.raises(UsageError, match="is a share, 0 to 1"):
        Load.read("5/s", timedelta(seconds=1), "0/min", 2.0, 1, 1)
