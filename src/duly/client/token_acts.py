"""Access tokens as a person makes and revokes them. The token part of `operate` and of `inspect`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import msgspec

from duly.client.authorship import reason_given
from duly.client.control_acts import ControlActs
from duly.client.control_reads import ControlReads
from duly.client.registry import nearest
from duly.client.twins import blocking, twin
from duly.core.bearer import RANDOM_BYTES, digest_of, make_text
from duly.core.durations import Duration, parse_duration
from duly.core.errors import NotFound, UsageError
from duly.core.names import check_name
from duly.core.operating import TokenRecord
from duly.core.scopes import Scopes


class NewToken(msgspec.Struct, frozen=True):
    """A token, the one time that its text is known."""

    text: str
    record: TokenRecord

    def __repr__(self) -> str:
        return f"NewToken({self.record.name!r})"


class TokenActs(ControlActs):
    """Base of `Operate`."""

    @blocking
    def create_token(
        self,
        scopes: Iterable[str],
        *,
        name: str | None = None,
        expires: Duration | None = "90d",
        reason: str = "",
    ) -> NewToken:
        """Make a token that may do what its scopes say, as ["enqueue:mail", "read"]; None as `expires`: until revoked.

        Its text is in the answer and nowhere else. UsageError for a scope that is none, and for the name of a live one.
        """
        if isinstance(scopes, str):
            raise UsageError(f"scopes={scopes!r:.60} is one text; write scopes=[{scopes!r:.60}]")
        granted = Scopes.parse(scopes).texts()
        if not granted:
            raise UsageError("a token without a scope may nothing; give it one, such as 'enqueue:mail'")
        said = f"{granted[0]}-{secrets.token_hex(3)}" if name is None else check_name("actor", name)
        lasting = None if expires is None else parse_duration(expires, "expires", positive=True)
        text = make_text(secrets.token_bytes(RANDOM_BYTES))
        record = self._client.store.tokens.put(
            said, digest_of(text), granted, lasting, self.actor(), reason_given(reason)
        )
        return NewToken(text, record)

    @blocking
    def revoke_token(self, token: int | str, *, reason: str = "") -> TokenRecord:
        """Let a token, by its number or its name, open nothing any more: within five seconds on every server.

        NotFound when there is no live one.
        """
        tokens = self._client.store.tokens
        live = [one for one in tokens.all() if one.state == "live"]
        found = next((one for one in live if token in {one.id, one.name}), None)
        if found is None or not tokens.revoke(found.id, self.actor(), reason_given(reason)):
            names = [one.name for one in live]
            hint = nearest(str(token), names) if names else "; there are none"
            raise NotFound(f"no live token is {token!r:.80}{hint}", kind="token", name=str(token))
        return found

    acreate_token = twin(create_token)
    arevoke_token = twin(revoke_token)


class TokenReads(ControlReads):
    """Base of `Inspect`."""

    @blocking
    def tokens(self) -> tuple[TokenRecord, ...]:
        """Every token, the newest first, whatever its state; the text of none is kept."""
        return tuple(self._client.store.tokens.all())

    atokens = twin(tokens)
