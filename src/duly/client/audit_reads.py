"""What people did, as the audit has it, and whether that was touched since. The audit part of `inspect`."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from duly.client.control_reads import ControlReads
from duly.client.options import whole_number
from duly.client.twins import blocking, twin
from duly.core.audit_chain import GENESIS
from duly.core.errors import UsageError
from duly.core.operating import AuditEntry, AuditVerdict

_SEALS: Final = 1_000


class AuditReads(ControlReads):
    """Base of `Inspect`."""

    @blocking
    def audit(
        self,
        *,
        by: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> tuple[AuditEntry, ...]:
        """Who did what, and why, the newest first; pass the last id as `before` to go on.

        Args:
            by: only acts of this actor.
            verb: only this one, as "redrive"; "enqueue" and "end" are of jobs whose task is declared with audit=True.
            target: only what was done to this, as "queue:mail" or "job:17".
            since: only what was done then or later.
            until: only what was done before then.
            before: only entries with a lower id.
            limit: at most so many.

        """
        return tuple(
            self._client.store.audits.page(
                before=before,
                limit=whole_number(limit, "limit"),
                actor=by,
                verb=verb,
                target=target,
                since=since,
                until=until,
            )
        )

    @blocking
    def verify_audit(self) -> AuditVerdict:
        """Read the whole audit again, and say which entries were changed, removed or slipped in since they were sealed.

        Its `head`, noted elsewhere, proves later that nothing before it was rewritten together with all seals after it.
        """
        return self._client.store.audits.verify()

    @blocking
    def has_audit_head(self, head: str) -> bool:
        """Whether some seal has this digest, in hex, that an earlier `verify_audit` gave as its `head`."""
        try:
            wanted = bytes.fromhex(head)
        except ValueError:
            raise UsageError(
                f"head={head!r:.80} is no digest in hex; write what `duly audit verify` printed"
            ) from None
        before: int | None = None
        while seals := self._client.store.audits.seals(before, _SEALS):
            if any(seal.digest == wanted for seal in seals):
                return True
            before = seals[-1].id
        return wanted == GENESIS

    aaudit = twin(audit)
    ahas_audit_head = twin(has_audit_head)
    averify_audit = twin(verify_audit)
