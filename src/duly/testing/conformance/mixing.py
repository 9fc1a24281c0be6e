"""Cases: one call for jobs of every kind. Each keeps its place and its keys, whatever stands beside it."""

from duly.core.errors import KeyReused
from duly.core.filters import Filter
from duly.core.job import NewJob
from duly.core.lifecycle import Outcome, State

from .bench import HOUR, Bench, new_job, request_key, unique
from .expect import raises

PARENT = new_job(then=(new_job(),))
LATER = new_job(delay=HOUR)
COMPANIONS: tuple[tuple[NewJob, ...], ...] = ((), (PARENT,), (LATER,), (PARENT, LATER))
"""What else the call asks for; stores may have ways of their own for calls without such jobs."""


def each_of_a_mixed_call_is_answered_in_its_place(bench: Bench) -> None:
    for number, companions in enumerate(COMPANIONS):
        u, r, s = unique(f"u{number}"), request_key(f"r{number}"), request_key(f"s{number}")
        known, w = bench.put(unique=unique(f"known {number}")), request_key(f"w{number}")
        asked = [
            new_job(),
            new_job(unique=u, tags=("a",)),
            new_job(idempotency=r),
            new_job(ordering_key="o"),
            new_job(unique=u, idempotency=s),
            new_job(idempotency=r, unique=u),
            new_job(unique=unique(f"known {number}"), idempotency=w),
            new_job(idempotency=w),
            new_job(
                unique=unique(f"fresh {number}"), idempotency=request_key(f"t{number}"), ordering_key="o"
            ),
        ]

        stored = bench.store.jobs.enqueue([*companions, *asked])[len(companions) :]

        assert [one.outcome for one in stored] == [
            *[Outcome.created] * 4,
            *[Outcome.duplicate] * 4,
            Outcome.created,
        ]
        ids = [one.id for one in stored]
        assert ids[4:8] == [ids[1], ids[2], known, known]
        created = [*ids[:4], ids[8]]
        assert created == sorted(set(created)), "in the order asked"
        assert bench.states(created) == [State.ready] * 5
        assert bench.ask(unique=u, idempotency=s).id == ids[1]


def what_a_mixed_call_stores_has_all_that_was_asked_of_it(bench: Bench) -> None:
    worker = bench.worker("ok", "other")
    for number, companions in enumerate(COMPANIONS):
        key, tag = unique(f"u{number}", live=True), f"t{number}"
        asked = [
            new_job("other", args=b'{"a":1}', priority=number, tags=(tag, tag, "x"), unique=key, attempts=3),
            new_job(priority=number, timeout=HOUR, tenant="acme", correlation_id="c", ordering_key=tag),
            new_job(priority=number, trigger="a bell", idempotency=request_key(tag)),
        ]

        first, second, third = bench.put_all([*companions, *asked])[len(companions) :]

        found = bench.store.inspection.page(Filter(tag=tag), after=0, limit=10).jobs
        assert [job.id for job in found] == [first]
        by_id = {job.id: job for job in bench.start(worker, 10)}
        assert by_id.keys() >= {first, second, third}
        job = by_id[first]
        assert (job.task, job.args, job.tags, job.attempts) == ("other", b'{"a":1}', (tag, tag, "x"), 3)
        job = by_id[second]
        assert (job.timeout, job.tenant, job.correlation_id, job.ordering_key) == (HOUR, "acme", "c", tag)
        assert by_id[third].trigger == "a bell"
        bench.must_hold(first, key)


def a_key_replaces_within_a_mixed_call(bench: Bench) -> None:
    for number, companions in enumerate(COMPANIONS):
        key = unique(f"u{number}", replacing=True)
        old, other = bench.put(unique=key), bench.put(unique=unique(f"v{number}"))

        *_, new, plain = bench.put_all([*companions, new_job(unique=key), new_job()])

        assert bench.states([old, other, new, plain]) == [
            State.skipped,
            State.ready,
            State.ready,
            State.ready,
        ]
        assert bench.row(old).reason == f"replaced by job {new}"


def of_several_reused_keys_the_first_asked_is_named(bench: Bench) -> None:
    for number, companions in enumerate(COMPANIONS):
        keys = [request_key(f"{number} {name}") for name in "abcdef"]
        known = {key: bench.put(args=b'{"a":1}', idempotency=key) for key in keys[:4]}
        before = [count.ready for count in bench.store.inspection.counts()]

        for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
            mixed = [new_job(args=b'{"a":2}', idempotency=keys[at]) for at in order]
            with raises(KeyReused) as caught:
                bench.put_all([*companions, new_job(idempotency=keys[5]), new_job(), *mixed])

            assert isinstance(caught[0], KeyReused)
            assert (caught[0].job_id, caught[0].position) == (known[keys[order[0]]], len(companions) + 2)
        assert [count.ready for count in bench.store.inspection.counts()] == before
        assert bench.ask(idempotency=keys[5]).outcome is Outcome.created
