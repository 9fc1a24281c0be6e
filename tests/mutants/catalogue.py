"""All mutants."""

from tests.mutants import (
    of_alerts,
    of_bounds,
    of_control,
    of_core,
    of_keys,
    of_operating,
    of_postgres,
    of_postgres_keys,
    of_postgres_size,
    of_pressure,
    of_sqlite,
    of_sqlite_keys,
    of_sqlite_moves,
    of_turns,
    of_worker,
)

MUTANTS = [
    *of_core.MUTANTS,
    *of_keys.MUTANTS,
    *of_sqlite.MUTANTS,
    *of_sqlite_moves.MUTANTS,
    *of_sqlite_keys.MUTANTS,
    *of_postgres.MUTANTS,
    *of_postgres_keys.MUTANTS,
    *of_postgres_size.MUTANTS,
    *of_worker.MUTANTS,
    *of_control.MUTANTS,
    *of_bounds.MUTANTS,
    *of_alerts.MUTANTS,
    *of_operating.MUTANTS,
    *of_pressure.MUTANTS,
    *of_turns.MUTANTS,
]
