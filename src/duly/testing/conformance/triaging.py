"""Cases: what people say about groups of dead letters, and a fixed group in which one dies again."""

from duly.core.fingerprint import ErrorRecord
from duly.core.job import JobId
from duly.core.lifecycle import Event
from duly.core.operating import DeadMark, TriageState
from duly.stores.protocol import Store

from .bench import BOOM, MINUTE, SECOND, Bench, ended, together

OTHER = ErrorRecord("KeyError", "'name'", "Traceback: at line 9\n", "feedface")


def _bury(bench: Bench, error: ErrorRecord | None = BOOM, queue: str = "default") -> JobId:
    worker = bench.worker(queues=(queue,))
    id = bench.put(queue=queue)
    job = bench.claim_one(worker, queues=(queue,))
    bench.end(worker, ended(job, Event.bury, reason="broken", error=error))
    return id


def _say(
    bench: Bench,
    state: TriageState | None = None,
    *,
    fingerprint: str = BOOM.fingerprint,
    owner: str | None = None,
    note: str | None = None,
    by: str = "ann",
) -> DeadMark:
    return bench.store.triage.mark(
        fingerprint, "default", "ok", by=by, reason="seen", state=state, owner=owner, note=note
    )


def _only(bench: Bench, store: Store | None = None) -> DeadMark:
    marks = (store or bench.store).triage.marks()
    assert len(marks) == 1, f"one group should be marked, not {len(marks)}"
    return marks[0]


def a_group_that_nobody_marked_has_no_mark(bench: Bench) -> None:
    _bury(bench)

    assert bench.store.triage.marks() == []
    assert bench.store.triage.regressions() == []


def a_mark_says_what_was_said_by_whom_and_when(bench: Bench) -> None:
    _bury(bench)

    told = _say(bench, "acknowledged", owner="mail-team", note="the provider's outage")

    assert told == _only(bench, bench.another())
    assert (told.fingerprint, told.queue, told.task) == (BOOM.fingerprint, "default", "ok")
    assert (told.state, told.owner, told.note) == ("acknowledged", "mail-team", "the provider's outage")
    assert (told.by, told.at, told.regressed_at) == ("ann", bench.clock(), None)


def what_a_later_mark_leaves_out_stays(bench: Bench) -> None:
    _say(bench, "acknowledged", owner="mail-team", note="an outage")
    bench.clock.advance(MINUTE)

    told = _say(bench, note="over", by="bob")

    assert (told.state, told.owner, told.note) == ("acknowledged", "mail-team", "over")
    assert (told.by, told.at) == ("bob", bench.clock())
    assert _only(bench) == told


def an_owner_can_be_taken_away(bench: Bench) -> None:
    _say(bench, owner="mail-team")

    assert _say(bench, owner="").owner is None
    assert _only(bench).state == "new"


def each_group_has_a_mark_of_its_own(bench: Bench) -> None:
    _say(bench, "fixed")
    bench.clock.advance(SECOND)
    _say(bench, "acknowledged", fingerprint="feedface")
    bench.store.triage.mark(BOOM.fingerprint, "elsewhere", "ok", by="ann", reason="seen", owner="x")

    assert [(one.fingerprint, one.queue, one.state) for one in bench.store.triage.marks()] == [
        (BOOM.fingerprint, "elsewhere", "new"),
        ("feedface", "default", "acknowledged"),
        (BOOM.fingerprint, "default", "fixed"),
    ]
    assert [one.state for one in bench.store.triage.marks(["feedface", "nowhere"])] == ["acknowledged"]
    assert len(bench.store.triage.marks(most=2)) == 2


def a_fixed_group_stays_fixed_while_only_its_old_letters_lie_there(bench: Bench) -> None:
    _bury(bench)
    bench.clock.advance(SECOND)

    _say(bench, "fixed")
    bench.clock.advance(MINUTE)

    assert _only(bench).state == "fixed"
    assert bench.store.triage.regressions() == []


def a_note_on_a_fixed_group_leaves_it_fixed(bench: Bench) -> None:
    _bury(bench)
    bench.clock.advance(SECOND)
    _say(bench, "fixed")
    bench.clock.advance(MINUTE)

    told = _say(bench, note="since the last release")

    assert (told.state, told.regressed_at) == ("fixed", None)
    assert _only(bench) == told


def a_fixed_group_is_new_again_when_one_dies(bench: Bench) -> None:
    _bury(bench)
    fixed = _say(bench, "fixed", owner="mail-team")
    bench.clock.advance(MINUTE)
    _bury(bench)
    died_at = bench.clock()
    bench.clock.advance(MINUTE)
    _bury(bench)

    found = _only(bench)

    assert (found.state, found.regressed_at) == ("new", died_at)
    assert (found.owner, found.by, found.at) == ("mail-team", "ann", fixed.at)


def a_group_of_letters_without_an_error_regresses_too(bench: Bench) -> None:
    _say(bench, "fixed", fingerprint="")
    bench.clock.advance(MINUTE)

    _bury(bench, None)

    assert _only(bench).state == "new"


def the_deaths_of_other_groups_do_not_matter(bench: Bench) -> None:
    _say(bench, "fixed")
    bench.clock.advance(MINUTE)
    _bury(bench, OTHER)
    _bury(bench, queue="elsewhere")
    _bury(bench, None)

    assert _only(bench).state == "fixed"
    assert bench.store.triage.regressions() == []


def a_regression_is_told_once(bench: Bench) -> None:
    _say(bench, "fixed")
    bench.clock.advance(MINUTE)
    id = _bury(bench)

    told = bench.store.triage.regressions()

    assert told == [_only(bench)]
    assert (told[0].state, told[0].regressed_at) == ("new", bench.clock())
    assert bench.another().triage.regressions() == []
    bench.store.operator.purge([id], "ann", "seen")
    assert _only(bench).state == "new"


def many_who_ask_for_regressions_tell_each_once(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    _say(bench, "fixed")
    _say(bench, "fixed", fingerprint="feedface")
    bench.clock.advance(MINUTE)
    _bury(bench)
    _bury(bench, OTHER)

    answers = together(*(store.triage.regressions for store in stores))

    told = sorted(one.fingerprint for answer in answers for one in answer)
    # Whoever finds a group that another one is at leaves it.
    assert told == sorted([BOOM.fingerprint, "feedface"])


def a_regressed_group_can_be_fixed_again(bench: Bench) -> None:
    _say(bench, "fixed")
    bench.clock.advance(MINUTE)
    _bury(bench)
    bench.store.triage.regressions()
    bench.clock.advance(MINUTE)

    told = _say(bench, "fixed")

    assert (told.state, told.regressed_at) == ("fixed", None)
    assert _only(bench) == told
    assert bench.store.triage.regressions() == []


def a_note_on_a_regressed_group_leaves_it_new(bench: Bench) -> None:
    _say(bench, "fixed")
    bench.clock.advance(MINUTE)
    _bury(bench)
    died_at = bench.clock()
    bench.clock.advance(MINUTE)

    told = _say(bench, note="not quite")

    assert (told.state, told.regressed_at, told.note) == ("new", died_at, "not quite")
    assert _only(bench) == told
