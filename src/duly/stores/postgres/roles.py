"""Database roles with no more rights than what each calls: which function and which table is whose, and the SQL for it.

All writing goes through functions that run with their owner's rights, so that a role needs to execute those it calls
itself, and to see the few tables that are read directly.
"""

import re
from collections.abc import Iterable
from typing import Final

from duly.stores.postgres.statements import TOKEN, migrations, quoted

PRODUCER: Final = "duly_producer"
WORKER: Final = "duly_worker"
VIEWER: Final = "duly_viewer"
OPERATOR: Final = "duly_operator"
SERVER: Final = "duly_server"
ROLES: Final = (PRODUCER, WORKER, VIEWER, OPERATOR, SERVER)

# Names without their versions: what a release calls, and what the one before it calls, is the same role's.
_PRODUCES: Final = """
enqueue enqueue_one enqueue_alike enqueue_keyed enqueue_keyed_many answer lookup once open_batch close_batch
cancel_batch finish_batches positions_behind pressures turn_away crossings fills use hold_limit give_back observe
limits put_schedule remove_schedule schedules key_of
"""
_WORKS: Final = """
exchange arguments steps keep_steps extend report beat beats register disown reap promote sweep retain announce_dead
parked_tasks declare due_schedules fire_schedule fail_schedule advance_schedule acquire set_breaker inside_batch
advance_operation set_operation ids_after ids_before ask_cancel cancel settle_cancel redrive purge reprioritise pause
resume draining fold_tally tallied tallies follow_audited unsealed seal_audit append_audit forget_answers alert_turn
alerts watch_alert change_alert drop_alert take_deliveries settle_delivery alert_changes deliveries silences
dead_marks regress_dead unused_blobs keys uses shed_queues secrets keep_secret door_class count_ready count_scheduled
count_blocked count_dead blocked_tasks tenant_waits batches
"""
_SEES: Final = """
lookup facts answer arguments steps limits keys crossings fills pressures positions_behind schedules silences alerts
alert_changes deliveries dead_marks tallied tallies tenant_waits uses use batches batch_members inside_batch beats
draining parked_tasks ids_after ids_before key_of count_ready count_scheduled count_blocked count_dead blocked_tasks
due_schedules foresee_redrive
"""
_OPERATES: Final = """
enqueue enqueue_one enqueue_alike enqueue_keyed enqueue_keyed_many turn_away ask_cancel cancel cancel_batch
finish_batches settle_cancel redrive purge run_now run_at reprioritise pause resume resume_key override lift set_plan
set_breaker start_operation set_operation advance_operation drain_worker pause_schedule resume_schedule
remove_schedule put_schedule advance_schedule fire_schedule fail_schedule silence_alert end_silence mark_dead
hold_dead succeed_dead job_parts announce_dead put_token revoke_token token forget_secret audit_page audit_seals
audit_entries audit_totals append_audit sealed reseal sealed_elsewhere
"""
_SERVES: Final = (
    "token touch_tokens take_answers fill_answers release_answers kept_answer secrets keep_secret"
)


def _names(*lists: str) -> frozenset[str]:
    return frozenset(name for text in lists for name in text.split())


FUNCTIONS: Final[dict[str, frozenset[str]]] = {
    PRODUCER: _names(_PRODUCES),
    WORKER: _names(_PRODUCES, _WORKS),
    VIEWER: _names(_SEES),
    OPERATOR: _names(_SEES, _OPERATES),
    SERVER: _names(_PRODUCES, _WORKS, _SEES, _OPERATES, _SERVES),
}
"""Role -> what it may execute, in whatever version."""
INTERNAL: Final = frozenset({"enter_audited"})
"""Run with their owner's rights, and called by triggers only."""

_READ: Final = (
    "attempt", "claimed", "dead", "finished", "job", "job_tag", "load_sample", "operation", "override", "pause",
    "queue", "sample", "schema_version", "task", "tenant", "worker",
)  # fmt: skip
TABLES: Final[dict[str, tuple[str, ...]]] = {
    PRODUCER: ("schema_version",),
    WORKER: _READ,
    VIEWER: _READ,
    OPERATOR: _READ,
    SERVER: _READ,
}
"""Role -> what it may read. Nobody may read keys, tokens, answers and the audit but through functions."""


def bare(function: str) -> str:
    """A function's name without its version."""
    return re.sub(r"_\d+$", "", function)


def may(role: str, function: str) -> bool:
    """Whether a role may execute a function of the schema."""
    return bare(function) in FUNCTIONS[role]


def statements(schema: str, functions: Iterable[tuple[str, str]]) -> list[str]:
    """What makes the roles and gives each its rights; `functions` as (name, name with the types of its arguments).

    Safe to run again: what an earlier run gave and this one does not is taken back.
    """
    name = quoted(schema)
    known = sorted(functions)
    roles = ", ".join(ROLES)
    made = [
        f"do $$ begin create role {role} nologin; exception when duplicate_object or unique_violation then null; end $$"
        for role in ROLES
    ]
    made += [
        f"revoke all on schema {name} from public, {roles}",
        f"revoke all on all functions in schema {name} from public, {roles}",
        f"revoke all on all tables in schema {name} from public, {roles}",
        f"revoke all on all sequences in schema {name} from public, {roles}",
        f"grant usage on schema {name} to {roles}",
    ]
    for role in ROLES:
        made.append(f"grant select on {', '.join(f'{name}.{table}' for table in TABLES[role])} to {role}")
        granted = [f"{name}.{signature}" for function, signature in known if may(role, function)]
        made.append(f"grant execute on function {', '.join(granted)} to {role}")
    return made


def signatures() -> list[tuple[str, str]]:
    """(name, name) of every function that the migrations leave, for SQL that is printed: no two share a name."""
    text = "\n".join(migration.text for migration in migrations())
    token = re.escape(TOKEN)
    made = set(re.findall(rf"create (?:or replace )?function {token}\.(\w+)", text))
    gone = set(re.findall(rf"drop function (?:if exists )?{token}\.(\w+)", text))
    return [(name, name) for name in sorted(made - gone)]
