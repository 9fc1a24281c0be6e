"""The hot statements take the index that their header names, however many rows there are."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.core.lifecycle import Event
from duly.stores.sqlite.moves import lane_of, task_key
from duly.stores.sqlite.statements import load
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import worker

ROWS = 50_000
LANE = lane_of("default", False)
PAIRS = json.dumps([[7, 1], [8, 1]])
IDS = json.dumps([7, 8])
FAR = 2**62

# statement -> parameters, what its plan must use, each table once
HOT: dict[str, tuple[dict[str, int | str | bytes], list[str]]] = {
    "select_ready": (
        {"queue": LANE, "tenant": 0, "inline": 8192, "most": 50},
        [
            "SEARCH r USING PRIMARY KEY (queue=? AND tenant=?)",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "insert_claimed_head": (
        {"incarnation": 1, "now": 1, "timeout": 1, "queue": LANE, "tenant": 0, "priority": 100, "pos": 50},
        [
            "SEARCH r USING PRIMARY KEY (queue=? AND tenant=? AND (priority,pos)<(?,?))",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "insert_completed": (
        {"ended": json.dumps({7: "1 ", 8: "1 "}), "incarnation": 1, "now": 1, "live": 0},
        [
            "SEARCH c USING PRIMARY KEY (incarnation=? AND id=?)",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "select_completed": (
        {"ids": IDS, "incarnation": 1},
        [
            "SEARCH c USING INDEX duly_claimed_id (id=? AND incarnation=?)",
            "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "delete_ready_head": (
        {"queue": LANE, "tenant": 0, "priority": 100, "pos": 50},
        ["SEARCH duly_ready USING PRIMARY KEY (queue=? AND tenant=? AND (priority,pos)<(?,?))"],
    ),
    "select_held": (
        {"ids": IDS, "incarnation": 1},
        [
            "SEARCH c USING PRIMARY KEY (incarnation=? AND id=?)",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "select_ended": (
        {"pairs": PAIRS, "incarnation": 1},
        ["SEARCH a USING INDEX", "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)"],
    ),
    "delete_claimed": (
        {"incarnation": 1, "ids": IDS},
        ["SEARCH duly_claimed USING INDEX duly_claimed_id (id=? AND incarnation=?)"],
    ),
    "select_jobs": ({"ids": IDS, "inline": 8192}, ["SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"]),
    "select_wishes": ({"incarnation": 1}, ["SEARCH c USING"]),
    "select_work": (
        {"lanes": json.dumps([LANE]), "fair": json.dumps([LANE]), "tasks": json.dumps([task_key("ok")])},
        [
            "SEARCH r USING PRIMARY KEY (queue=? AND tenant=?)",
            "SEARCH r USING PRIMARY KEY (queue=?)",
            "SEARCH b USING INDEX duly_blocked_cause (cause=? AND task=?)",
        ],
    ),
    "select_due": ({"now": FAR, "most": 50}, ["SEARCH s USING INDEX duly_scheduled_due (run_at<?)"]),
    "select_dead_error_ids_before": (
        {"value": "a91f03c2", "edge": FAR, "most": 50},
        ["SEARCH duly_dead USING INDEX duly_dead_fingerprint (fingerprint=? AND id<?)"],
    ),
    "select_next_due": ({}, ["SEARCH duly_scheduled USING INDEX duly_scheduled_due"]),
    "select_expired_ready": ({"now": FAR, "most": 50}, ["SEARCH duly_ready USING INDEX duly_ready_expires"]),
    "select_parked": (
        {"task": 1, "inline": 8192, "most": 50, "lanes": json.dumps([LANE])},
        [
            "SEARCH b USING INDEX duly_blocked_cause (cause=? AND task=?)",
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "select_these_ready": ({"ids": IDS}, ["SEARCH t USING INDEX duly_ready_id (id=?)"]),
    "delete_ready": ({"id": 7}, ["SEARCH duly_ready USING INDEX duly_ready_id (id=?)"]),
    "select_job_records": (
        {"ids": IDS},
        [
            "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH c USING INDEX duly_claimed_id (id=?)",
            "SEARCH r USING INDEX duly_ready_id (id=?)",
            "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH b USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)",
        ],
    ),
    "select_retired": (
        {"queue_key": LANE, "before": FAR, "most": 50},
        ["SEARCH duly_finished USING INDEX duly_finished_queue (queue_key=? AND finished_at<?)"],
    ),
    "select_tagged_before": (
        {"value": "x", "edge": FAR, "most": 50},
        ["SEARCH duly_job_tag USING PRIMARY KEY (tag=? AND id<?)"],
    ),
    "select_jobs_before": (
        {"edge": FAR, "most": 50},
        ["SEARCH duly_job USING INTEGER PRIMARY KEY (rowid<?)"],
    ),
    "select_running_ids_before": (
        {"edge": FAR, "most": 50},
        ["SEARCH duly_claimed USING INDEX duly_claimed_id (id<?)"],
    ),
    "select_key_holder": (
        {"key": b"k", "now": 1},
        [
            "SEARCH k USING PRIMARY KEY (key=?)",
            "SEARCH r USING INDEX duly_ready_id (id=?)",
            "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH b USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH c USING INDEX duly_claimed_id (id=?)",
        ],
    ),
    "select_idempotency": (
        {"key": b"k", "now": 1},
        ["SEARCH duly_idempotency USING PRIMARY KEY (key=?)"],
    ),
    "delete_unique_keys": (
        {"ids": IDS},
        ["SEARCH duly_unique_key USING INDEX duly_unique_key_id (id=?)"],
    ),
    "select_left_keys": (
        {"after": 7, "most": 50},
        ["SEARCH k USING INDEX duly_unique_key_id (id>?)", "SEARCH c USING INDEX duly_claimed_id (id=?)"],
    ),
    "select_stale": (
        {"ids": IDS, "now": 1},
        ["SEARCH j USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH n USING PRIMARY KEY (key=?)"],
    ),
    "select_stepped": ({"ids": IDS}, ["SEARCH s USING PRIMARY KEY (id=?)"]),
    "upsert_step": (
        {"incarnation": 1, "id": 7, "run": 1, "name": "n", "value": b"1"},
        ["SEARCH c USING INDEX duly_claimed_id (id=?)"],
    ),
    "update_idempotency_answers": (
        {"ids": IDS, "most": 8192},
        [
            "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH duly_idempotency USING INDEX duly_idempotency_id (id=?)",
        ],
    ),
    "delete_old_idempotency": (
        {"now": 1, "most": 50},
        ["SEARCH old USING INDEX duly_idempotency_until (until<?)"],
    ),
    "select_lanes": (
        {},
        ["SEARCH duly_ready USING PRIMARY KEY", "SEARCH r USING PRIMARY KEY (queue>?)"],
    ),
    "select_lane_jobs": (
        {"lane": LANE, "most": 50},
        ["SEARCH r USING PRIMARY KEY (queue=?)", "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"],
    ),
    "select_next_keyed": (
        {"key": 1, "after": 0, "most": 50},
        [
            "SEARCH k USING PRIMARY KEY (key=? AND id>?)",
            "SEARCH c USING INDEX duly_claimed_id (id=?)",
            "SEARCH r USING INDEX duly_ready_id (id=?)",
        ],
    ),
    "select_chain": (
        {"key": 1, "inline": 8192, "most": 50},
        ["SEARCH duly_keyed USING PRIMARY KEY (key=?)", "SEARCH r USING INDEX duly_ready_id (id=?)"],
    ),
    "select_gated": (
        {"gate": 1, "most": 50},
        ["SEARCH duly_blocked USING INDEX duly_blocked_gate (gate=?)"],
    ),
    "select_gated_of": (
        {"gate": 1, "tenant": 1, "most": 50, "given": 0},
        ["SEARCH duly_blocked USING INDEX duly_blocked_gate (gate=? AND tenant=?)"],
    ),
    "select_gated_tenants": (
        {"gate": 1, "turn": 1, "most": 50},
        [
            "SEARCH duly_blocked USING INDEX duly_blocked_gate (gate=? AND tenant>?)",
            "SEARCH b USING INDEX duly_blocked_gate (gate=? AND tenant>?)",
            "SEARCH duly_blocked USING INDEX duly_blocked_gate (gate=? AND tenant<?)",
            "SEARCH b USING INDEX duly_blocked_gate (gate=? AND tenant>? AND tenant<?)",
        ],
    ),
    "select_first_gated": ({"gate": 1}, ["SEARCH duly_blocked USING INDEX duly_blocked_gate (gate=?)"]),
    "select_gated_job": ({"id": 7, "gate": 1}, ["SEARCH duly_blocked USING INTEGER PRIMARY KEY (rowid=?)"]),
    "delete_keyed": ({"key": 1, "id": 7}, ["SEARCH duly_keyed USING PRIMARY KEY (key=? AND id=?)"]),
    "select_lane_waits": ({"queue": LANE}, ["SEARCH duly_ready USING PRIMARY KEY (queue=?)"]),
    "select_gates": (
        {"keys": IDS},
        [
            "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH b USING INDEX duly_blocked_gate (gate=?)",
        ],
    ),
    "select_reserved": (
        {"id": 7},
        ["SEARCH duly_hold USING INDEX duly_hold_incarnation (incarnation=? AND id=?)"],
    ),
    "insert_unblocked": ({"ids": IDS, "now": 1}, ["SEARCH b USING INTEGER PRIMARY KEY (rowid=?)"]),
    "select_next_look": (
        {},
        ["SEARCH duly_limit_state USING INDEX duly_limit_state_next (next_at>?)"],
    ),
    "select_holds": (
        {"ids": IDS, "incarnation": 1},
        ["SEARCH h USING INDEX duly_hold_incarnation (incarnation=? AND id=?)"],
    ),
    "delete_holds": (
        {"ids": IDS, "incarnation": 1},
        ["SEARCH duly_hold USING INDEX duly_hold_incarnation (incarnation=? AND id=?)"],
    ),
    "select_limit_state": (
        {"keys": IDS, "now": 1},
        ["SEARCH s USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH h USING PRIMARY KEY (key=?)"],
    ),
    "select_due_limits": (
        {"now": 1, "most": 50},
        ["SEARCH duly_limit_state USING INDEX duly_limit_state_next (next_at>? AND next_at<?)"],
    ),
    "select_lane_heads": (
        {"queue": LANE, "tenant": 0},
        ["SEARCH r USING PRIMARY KEY (queue=? AND tenant=? AND priority>?)"],
    ),
    "select_placed": (
        {"queue": LANE, "tenant": 0, "places": PAIRS, "inline": 8192},
        ["SEARCH r USING PRIMARY KEY (queue=? AND tenant=? AND priority=? AND pos=?)"],
    ),
    "select_lane_tenants": (
        {"queue": LANE, "after": 0, "most": 50},
        ["SEARCH r USING PRIMARY KEY (queue=? AND tenant>?)", "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"],
    ),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 50,000 jobs, some of them claimed and finished."""
    path = tmp_path_factory.mktemp("plans") / "jobs.db"
    store = SQLiteStore(path, journal="truncate")
    store.jobs.enqueue([NewJob("default", "ok", b"{}")] * ROWS)
    incarnation = worker(store)
    request = ClaimRequest((QueueClaim("default", 500),), 500)
    claimed = store.jobs.exchange(incarnation, [], request).claimed
    store.jobs.exchange(incarnation, [ended(job, Event.complete) for job in claimed], request)
    store.close()
    return path


@pytest.mark.parametrize("analysed", [False, True])
def test_hot_statements_search_and_never_scan_or_sort(filled: Path, analysed: bool) -> None:
    statements = load("duly")
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        connection.execute("analyze" if analysed else "select 1").fetchall()
        for name, (values, wanted) in HOT.items():
            rows = connection.execute(f"explain query plan {statements[name]}", values).fetchall()
            # Whether an index covers the columns too depends on the release.
            plan = [row[3].replace("COVERING ", "") for row in rows]

            for step in wanted:
                assert any(line.startswith(step) for line in plan), (name, step, plan)
            tables = [
                line
                for line in plan
                if re.match(
                    r"SCAN (?!asked|lane|known|found|ended|later|sooner|json_each|w\b|CONSTANT)", line
                )
            ]
            assert not tables, (name, plan)
            sorts = [line for line in plan if "TEMP B-TREE" in line]
            assert not sorts or name in {"select_these_ready", "select_wishes"}, (name, plan)
