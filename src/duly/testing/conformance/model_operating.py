"""The model's tokens, keys and answers: what those who operate a store leave in it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from duly.core.operating import TOUCH_EVERY, AnswerAsk, FilledReply, KeptReply, SecretKey, TokenRecord
from duly.stores.tokens import name_taken

from .model import Model


class ModelTokens:
    """See duly.stores.tokens.TokenStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def put(
        self, name: str, digest: bytes, scopes: Sequence[str], lasting: timedelta | None, by: str, reason: str
    ) -> TokenRecord:
        with self._model.tables.lock:
            kept, now = self._model.tables.tokens, self._model.clock()
            if digest in kept or any(one.name == name and one.state == "live" for one in self.all()):
                raise name_taken(name)
            until = None if lasting is None else now + lasting
            kept[digest] = TokenRecord(self._model.number(), name, tuple(scopes), now, by, expires_at=until)
            self._model.note("create", f"token:{name}", by, reason)
            return kept[digest]

    def find(self, digest: bytes) -> TokenRecord | None:
        with self._model.tables.lock:
            found = self._model.tables.tokens.get(digest)
            return None if found is None else self._told(found)

    def all(self) -> list[TokenRecord]:
        with self._model.tables.lock:
            return [self._told(one) for one in reversed(self._model.tables.tokens.values())]

    def _told(self, token: TokenRecord) -> TokenRecord:
        if token.revoked_at is not None:
            return replace(token, state="revoked")
        over = token.expires_at is not None and token.expires_at <= self._model.clock()
        return replace(token, state="expired" if over else "live")

    def revoke(self, id: int, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            for digest, token in self._model.tables.tokens.items():
                if token.id == id and token.revoked_at is None:
                    self._model.tables.tokens[digest] = replace(token, revoked_at=self._model.clock())
                    self._model.note("revoke", f"token:{token.name}", by, reason)
                    return True
            return False

    def touch(self, ids: Sequence[int]) -> None:
        with self._model.tables.lock:
            now = self._model.clock()
            for digest, token in self._model.tables.tokens.items():
                last = token.last_used_at
                if token.id in ids and (last is None or last <= now - TOUCH_EVERY):
                    self._model.tables.tokens[digest] = replace(token, last_used_at=now)

    def secret(self, kind: str, value: bytes) -> SecretKey:
        with self._model.tables.lock:
            return next(iter(self.secrets(kind)), None) or self._keep(kind, value)

    def secrets(self, kind: str) -> list[SecretKey]:
        with self._model.tables.lock:
            return self._model.tables.secrets.get(kind, [])[::-1]

    def rotate(self, kind: str, value: bytes, by: str, reason: str) -> SecretKey:
        with self._model.tables.lock:
            self._model.note("rotate", f"secret:{kind}", by, reason)
            return self._keep(kind, value)

    def _keep(self, kind: str, value: bytes) -> SecretKey:
        now, kept = self._model.clock(), self._model.tables.secrets.setdefault(kind, [])
        kept[:] = [replace(one, retired_at=one.retired_at or now) for one in kept]
        kept.append(SecretKey(kind, kept[-1].id + 1 if kept else 1, value, now))
        return kept[-1]

    def forget(self, kind: str, id: int, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            kept = self._model.tables.secrets.get(kind, [])
            former = [one for one in kept if one.id == id and one.retired_at is not None]
            for one in former:
                kept.remove(one)
                self._model.note("forget", f"secret:{kind}:{id}", by, reason)
            return bool(former)


class ModelAnswers:
    """See duly.stores.answers.AnswerStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def take(self, asks: Sequence[AnswerAsk], connection: Any = None) -> list[KeptReply | None]:
        with self._model.tables.lock:
            return [self._take(ask) for ask in asks]

    def _take(self, ask: AnswerAsk) -> KeptReply | None:
        kept, now = self.look(ask.key), self._model.clock()
        if kept is None:
            self._model.tables.replies[ask.key] = KeptReply(
                ask.key, ask.token, ask.body_hash, now, now + ask.hold
            )
        return kept

    def fill(self, replies: Sequence[FilledReply], connection: Any = None) -> None:
        with self._model.tables.lock:
            for reply in replies:
                kept = self._model.tables.replies.get(reply.key)
                if kept is not None and kept.body is None:
                    until = self._model.clock() + reply.keep
                    self._model.tables.replies[reply.key] = replace(
                        kept, status=reply.status, body=reply.body, expires_at=until
                    )

    def look(self, key: bytes) -> KeptReply | None:
        with self._model.tables.lock:
            kept = self._model.tables.replies.get(key)
            return kept if kept is not None and kept.expires_at > self._model.clock() else None

    def release(self, keys: Sequence[bytes]) -> None:
        with self._model.tables.lock:
            for key in keys:
                kept = self._model.tables.replies.get(key)
                if kept is not None and kept.body is None:
                    del self._model.tables.replies[key]

    def forget(self, most: int = 2000) -> int:
        with self._model.tables.lock:
            replies, now = self._model.tables.replies, self._model.clock()
            old = sorted((one.expires_at, key) for key, one in replies.items() if one.expires_at <= now)
            for _, key in old[:most]:
                del replies[key]
            return len(old[:most])
