"""The chain over the record of acts: what changes a digest, and what is said of what does not fit."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from duly.core.audit_chain import GENESIS, digest_of, faults_of
from duly.core.operating import AuditEntry, AuditSeal

NOON = datetime(2030, 5, 1, 12, 0, 0, 1, tzinfo=UTC)
FIRST = AuditEntry(1, NOON, "ann", "pause", "queue:mail", "an outage", "{}")
SECOND = AuditEntry(2, NOON, "bob", "cancel", "job:7", "a wrong address", '{"jobs":1,"ids":[7]}')
SEAL = AuditSeal(1, 1, 2, 2, digest_of(GENESIS, [FIRST, SECOND]), GENESIS, NOON)


@pytest.mark.parametrize(
    "entry",
    [
        replace(FIRST, id=3),
        replace(FIRST, at=NOON + timedelta(microseconds=1)),
        replace(FIRST, actor="eve"),
        replace(FIRST, verb="resume"),
        replace(FIRST, target="queue:web"),
        replace(FIRST, reason="none"),
        replace(FIRST, detail='{"jobs":1}'),
        # The same letters, in other fields.
        replace(FIRST, verb="pausequeue:mail", target=""),
    ],
)
def test_whatever_is_changed_of_an_entry_changes_the_digest(entry: AuditEntry) -> None:
    assert digest_of(GENESIS, [entry, SECOND]) != SEAL.digest


def test_the_digest_is_of_the_order_and_of_what_came_before() -> None:
    assert digest_of(GENESIS, [SECOND, FIRST]) != SEAL.digest
    assert digest_of(SEAL.digest, [FIRST, SECOND]) != SEAL.digest
    assert digest_of(GENESIS, [FIRST]) != SEAL.digest


def test_the_digest_is_of_the_moment_whatever_its_time_zone() -> None:
    elsewhere = replace(FIRST, at=NOON.astimezone(timezone(timedelta(hours=2))))

    assert digest_of(GENESIS, [elsewhere, SECOND]) == SEAL.digest


def test_a_seal_that_fits_has_no_faults() -> None:
    following = AuditSeal(2, 3, 3, 1, digest_of(SEAL.digest, [FIRST]), SEAL.digest, NOON)

    assert faults_of(None, SEAL, [FIRST, SECOND]) == []
    assert faults_of(SEAL, following, [FIRST]) == []


@pytest.mark.parametrize(
    ("seal", "entries", "fault"),
    [
        (SEAL, [FIRST], "is of 2 entries, and 1 are there"),
        (SEAL, [FIRST, replace(SECOND, reason="none")], "an entry from 1 to 2 under seal 1 was changed"),
        (replace(SEAL, id=2), [FIRST, SECOND], "seals between them are gone"),
        (
            replace(SEAL, previous=SEAL.digest, digest=digest_of(SEAL.digest, [FIRST, SECOND])),
            [FIRST, SECOND],
            "does not follow from the one before it",
        ),
    ],
)
def test_what_does_not_fit_is_named(seal: AuditSeal, entries: list[AuditEntry], fault: str) -> None:
    faults = faults_of(None, seal, entries)

    assert len(faults) == 1
    assert fault in faults[0]
