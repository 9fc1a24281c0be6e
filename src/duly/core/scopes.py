"""What a token may do: scopes as people write them, "enqueue:mail", and the questions asked of them.

Pure; knows neither tokens nor requests.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from duly.core.errors import UsageError
from duly.core.names import check_name

Verb = Literal["enqueue", "work", "read", "operate", "dead", "admin"]

VERBS: Final[tuple[Verb, ...]] = get_args(Verb)
"""enqueue jobs; claim and end them; look; pause, cancel, limit; dead letters; all of that and tokens."""


class Scope(Struct, frozen=True, order=True):
    """One of them: a verb, in one queue or in every one."""

    verb: Verb
    queue: str | None = None

    def __str__(self) -> str:
        return self.verb if self.queue is None else f"{self.verb}:{self.queue}"


class Scopes(Struct, frozen=True):
    """All that one token may do."""

    each: frozenset[Scope] = frozenset()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Scopes:
        """Read "enqueue:mail", "read", …; UsageError with the nearest verb for what is none."""
        return cls(frozenset(parse_scope(text) for text in texts))

    def allows(self, verb: Verb, queue: str | None = None) -> bool:
        """Whether it may do this in the queue; without one: in every queue."""
        return (
            Scope("admin") in self.each
            or Scope(verb) in self.each
            or (queue is not None and Scope(verb, queue) in self.each)
        )

    def queues(self, verb: Verb) -> frozenset[str] | None:
        """In which queues it may do this; None: in every one."""
        if self.allows(verb):
            return None
        return frozenset(scope.queue for scope in self.each if scope.verb == verb and scope.queue is not None)

    def texts(self) -> tuple[str, ...]:
        """As `parse` reads them, in order."""
        return tuple(sorted(map(str, self.each)))

    def __str__(self) -> str:
        return " ".join(self.texts()) or "nothing"


ALL: Final = Scopes(frozenset({Scope("admin")}))


def parse_scope(text: str) -> Scope:
    """Read "enqueue:mail" or "read". UsageError with the text to write instead."""
    if not isinstance(text, str):
        raise UsageError(f"a scope is text such as 'enqueue:mail', not {text!r:.60}")
    word, colon, queue = text.strip().partition(":")
    verb = next((verb for verb in VERBS if verb == word), None)
    if verb is None:
        close = difflib.get_close_matches(word, VERBS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0] + colon + queue!r}?" if close else f"verbs are {', '.join(VERBS)}"
        raise UsageError(f"the scope {text!r:.80} begins with no verb; {hint}")
    if not colon:
        return Scope(verb)
    if verb == "admin":
        raise UsageError(
            f"{text!r:.80}: admin is all of it, in every queue; write 'admin', or 'operate:{queue}'"
        )
    return Scope(verb, check_name("queue", queue))
