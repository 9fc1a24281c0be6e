"""Mutants of what counts and lists many jobs in the PostgreSQL store."""

from tests.mutants.mutant import Mutant

FUNCTIONS = "stores/postgres/functions/"

MUTANTS = [
    Mutant(
        FUNCTIONS + "count_ready_1.sql",
        "select r.queue, min(r.id), count(*), min(r.ready_at), false from ready r",
        "select r.queue, min(r.id), count(*), max(r.ready_at), false from ready r",
        "the age of a queue is that of its oldest ready job",
        ("reading",),
    ),
    Mutant(
        FUNCTIONS + "ids_before_1.sql",
        "return query select t.id from job t where t.id < p_edge order by t.id desc limit p_most;",
        "return query select t.id from job t where t.id < p_edge order by t.id limit p_most;",
        "a page goes from the newest down",
        ("reading",),
    ),
]
