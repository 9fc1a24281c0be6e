"""Cases: encrypted payloads are found wherever they stand, and take new words only in the place of the old ones."""

from duly.core.envelope import PREFIX
from duly.core.job import FinishedStep, NewJob
from duly.core.lifecycle import Event
from duly.core.registration import Schedule
from duly.stores.sealed import PARTS, Part, Resealed, SealedRow

from .bench import HOUR, Bench, ended, new_job, request_key


def _sealed(text: str, key: str = "0123abcd") -> bytes:
    return PREFIX + f'{key}.{text}"}}'.encode()


def _all(bench: Bench, part: Part, most: int = 1000) -> list[SealedRow]:
    found: list[SealedRow] = []
    after: tuple[int, str] | None = (0, "")
    while after is not None:
        page = bench.store.sealed.page(part, after, most)
        found += page.rows
        after = page.after
    return found


def _everywhere(bench: Bench) -> list[SealedRow]:
    return [row for part in PARTS for row in _all(bench, part)]


def encrypted_arguments_are_found_with_what_they_belong_to(bench: Bench) -> None:
    bench.put(args=b'{"a":1}')
    id = bench.put(args=_sealed("x"), tenant="acme")

    assert _everywhere(bench) == [SealedRow(id, "", "default", "ok", "acme", _sealed("x"))]


def encrypted_results_and_steps_are_found(bench: Bench) -> None:
    worker = bench.worker()
    small, large, running = bench.put_many(3)
    claimed = {job.id: job for job in bench.claim(worker, 3)}
    step = FinishedStep(running, claimed[running].run, "look", _sealed("s"))
    bench.store.steps.keep_steps(worker, [step])
    big = _sealed("b" * 20_000)
    bench.end(
        worker,
        ended(claimed[small], Event.complete, result=_sealed("r")),
        ended(claimed[large], Event.complete, result=big),
    )

    found = {(row.id, row.name): row.data for row in _everywhere(bench)}

    assert found == {(small, ""): _sealed("r"), (large, ""): big, (running, "look"): _sealed("s")}


def a_part_is_read_page_by_page(bench: Bench) -> None:
    ids = [bench.put(args=_sealed("x") if number % 3 else b"{}") for number in range(7)]

    found = _all(bench, "arguments", most=2)

    assert [row.id for row in found] == [id for number, id in enumerate(ids) if number % 3]


def new_words_stand_where_the_old_ones_did(bench: Bench) -> None:
    worker = bench.worker()
    first, second = bench.put(args=_sealed("x")), bench.put(args=_sealed("y"))
    changes = [
        Resealed(first, "", _sealed("x"), _sealed("z")),
        Resealed(second, "", _sealed("x"), _sealed("z")),
    ]

    done = bench.store.sealed.replace("arguments", changes)

    assert done == 1
    assert {job.id: job.args for job in bench.claim(worker, 2)} == {first: _sealed("z"), second: _sealed("y")}


def every_part_takes_new_words(bench: Bench) -> None:
    encrypted_results_and_steps_are_found(bench)

    for part in PARTS:
        rows = [Resealed(row.id, row.name, row.data, _sealed("new")) for row in _all(bench, part)]
        assert bench.store.sealed.replace(part, rows) == len(rows)

    assert [row.data for row in _everywhere(bench)] == [_sealed("new")] * 3


def a_key_is_counted_where_nothing_is_encrypted_anew(bench: Bench) -> None:
    def job(key: str) -> NewJob:
        return new_job("after", args=_sealed("x", key))

    bench.put(then=(job("0123abcd"),), on_dead=(job("99999999"),))
    bench.store.schedules.put(Schedule("nightly", every=HOUR, job=job("0123abcd")), bench.clock() + HOUR)
    worker = bench.worker()
    bench.put(idempotency=request_key(), args=b'{"b":2}', priority=1)
    bench.end(worker, *(ended(one, Event.complete, result=_sealed("r")) for one in bench.claim(worker, 1)))

    assert bench.store.sealed.elsewhere("0123abcd") == {"follow-ups": 1, "schedules": 1, "kept answers": 0}
    assert bench.store.sealed.elsewhere("99999999") == {"follow-ups": 1, "schedules": 0, "kept answers": 0}
    assert bench.store.sealed.elsewhere("77777777") == {"follow-ups": 0, "schedules": 0, "kept answers": 0}
