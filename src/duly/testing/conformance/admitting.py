"""Cases: access tokens, and the keys that a store signs with."""

from hashlib import sha256

from duly.core.errors import UsageError
from duly.core.operating import TokenRecord
from duly.stores.protocol import Store

from .bench import DAY, HOUR, MINUTE, SECOND, Bench
from .expect import raises

TEXT = sha256(b"a token's text").digest()
OTHER = sha256(b"another one").digest()


def _put(
    bench: Bench, name: str = "web", digest: bytes = TEXT, days: int | None = None, store: Store | None = None
) -> TokenRecord:
    lasting = None if days is None else days * DAY
    return (store or bench.store).tokens.put(
        name, digest, ("enqueue:mail", "read"), lasting, "ann", "a new server"
    )


def _find(bench: Bench, digest: bytes = TEXT, store: Store | None = None) -> TokenRecord:
    found = (store or bench.store).tokens.find(digest)
    assert found is not None, "the token has vanished"
    return found


def a_token_is_found_by_its_digest_alone(bench: Bench) -> None:
    kept = _put(bench, days=30)

    found = _find(bench)

    assert found == kept
    assert (kept.name, kept.scopes, kept.by, kept.state) == ("web", ("enqueue:mail", "read"), "ann", "live")
    assert (kept.created_at, kept.expires_at) == (bench.clock(), bench.clock() + 30 * DAY)
    assert (kept.last_used_at, kept.revoked_at) == (None, None)
    assert bench.store.tokens.find(OTHER) is None


def a_token_lives_until_it_expires(bench: Bench) -> None:
    _put(bench, days=1)
    bench.clock.advance(DAY - SECOND)
    before = _find(bench)

    bench.clock.advance(SECOND)

    after = _find(bench)
    assert (before.state, after.state) == ("live", "expired")


def a_token_without_an_end_lives_on(bench: Bench) -> None:
    _put(bench)

    bench.clock.advance(900 * DAY)

    found = _find(bench)
    assert (found.state, found.expires_at) == ("live", None)


def a_revoked_token_says_so_and_is_revoked_once(bench: Bench) -> None:
    id = _put(bench).id
    bench.clock.advance(HOUR)

    told = [bench.store.tokens.revoke(id, "ann", "leaked") for _ in range(2)]

    found = _find(bench)
    assert told == [True, False]
    assert (found.state, found.revoked_at) == ("revoked", bench.clock())
    assert not bench.store.tokens.revoke(id + 1000, "ann", "never there")


def two_live_tokens_have_two_names(bench: Bench) -> None:
    _put(bench)

    with raises(UsageError):
        _put(bench, digest=OTHER)

    assert [token.name for token in bench.store.tokens.all()] == ["web"]


def a_name_is_free_again_after_its_token(bench: Bench) -> None:
    first = _put(bench, days=1)
    bench.clock.advance(2 * DAY)

    second = _put(bench, digest=OTHER)

    assert [token.id for token in bench.store.tokens.all()] == [second.id, first.id]


def one_text_makes_one_token(bench: Bench) -> None:
    token = _put(bench)
    bench.store.tokens.revoke(token.id, "ann", "leaked")

    with raises(UsageError):
        _put(bench, "api")

    found = _find(bench)
    assert found.state == "revoked"


def another_handle_sees_a_token_revoked(bench: Bench) -> None:
    other = bench.another()
    id = _put(bench, store=other).id

    bench.store.tokens.revoke(id, "ann", "leaked")

    found = _find(bench, store=other)
    assert found.state == "revoked"


def last_use_is_written_once_a_minute(bench: Bench) -> None:
    token = _put(bench)
    unused = _put(bench, "api", OTHER)
    first = bench.clock()
    bench.store.tokens.touch([token.id])
    bench.clock.advance(MINUTE - SECOND)
    bench.store.tokens.touch([token.id])
    early = _find(bench)
    bench.clock.advance(SECOND)

    bench.store.tokens.touch([token.id])

    late, other = _find(bench), _find(bench, OTHER)
    assert early.last_used_at == first
    assert late.last_used_at == bench.clock()
    assert (other.id, other.last_used_at) == (unused.id, None)


def the_first_key_of_a_kind_is_the_key_for_all(bench: Bench) -> None:
    made = bench.store.tokens.secret("ticket", b"first")

    again = bench.another().tokens.secret("ticket", b"second")

    assert again == made
    assert (made.id, made.value, made.created_at, made.retired_at) == (1, b"first", bench.clock(), None)
    assert bench.store.tokens.secret("session", b"third").value == b"third"


def a_rotated_key_signs_and_the_former_one_still_proves(bench: Bench) -> None:
    bench.store.tokens.secret("ticket", b"first")
    bench.clock.advance(DAY)

    new = bench.store.tokens.rotate("ticket", b"second", "ann", "every quarter")

    kept = bench.store.tokens.secrets("ticket")
    assert [(key.id, key.value, key.retired_at) for key in kept] == [
        (2, b"second", None),
        (1, b"first", bench.clock()),
    ]
    assert bench.store.tokens.secret("ticket", b"unused") == new == kept[0]


def a_former_key_can_be_forgotten_but_not_the_newest(bench: Bench) -> None:
    bench.store.tokens.secret("ticket", b"first")
    bench.store.tokens.rotate("ticket", b"second", "ann", "leaked")

    told = [bench.store.tokens.forget("ticket", id, "ann", "leaked") for id in (1, 1, 2, 3)]

    assert told == [True, False, False, False]
    assert [key.value for key in bench.store.tokens.secrets("ticket")] == [b"second"]
    assert bench.store.tokens.rotate("ticket", b"third", "ann", "again").id == 3


def a_key_is_not_shown_where_it_is_printed(bench: Bench) -> None:
    key = bench.store.tokens.secret("ticket", b"never shown")

    assert "never shown" not in repr(key) + str(key)
