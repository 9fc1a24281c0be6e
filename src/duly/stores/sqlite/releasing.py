"""Whatever ends lets others go on: the next job of an ordering key, and jobs that wait behind a limit.

They go back to where they were in their lanes; whether they run is decided by the claim that meets them.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from duly.core.control import ordering_name
from duly.core.names import key_of
from duly.stores.sqlite.bounds import Bounds, bounds_of
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import Use, bound_of, keep, use_of, uses_of

_CHUNK: Final = 50
_FIRST: Final = -(2**63)
_LIMIT: Final = 4
# Of those that wait behind a limit, to find some of one's own lanes.
_LOOKED_AT: Final = 200
# So many at once hold the write lock for some milliseconds.
MOST: Final = 500


class Left(NamedTuple):
    """A job with an ordering key that has ended."""

    id: int
    dead: bool


class Waiting(NamedTuple):
    """A job behind a limit."""

    id: int
    lane: int
    tenant: int


@lru_cache(maxsize=4096)
def ordering_key(queue: str, tenant: str, key: str) -> int:
    return key_of(ordering_name(queue, tenant, key))


def unblock(session: Session, ids: Sequence[int]) -> None:
    """blocked -> ready, each at its old place."""
    if ids:
        text = ids_text(ids)
        session.run("insert_unblocked", ids=text, now=session.now)
        session.run("delete_unblocked", ids=text)
        session.rings = True


def leave(session: Session, left: Sequence[Left]) -> None:
    """Jobs have ended, and stand in their new tables: their keys go on, or wait for them, as their queues say."""
    dead = {one.id for one in left if one.dead}
    for id, queue, tenant, name, policy in session.rows(
        "select_keyed", ids=ids_text([one.id for one in left])
    ):
        key = ordering_key(queue, tenant, name)
        if id not in dead or policy == "skip_dead":
            pass_on(session, key, id, policy)
        elif policy == "pause_key":
            session.run("update_key_paused", key=key, id=id)


def pass_on(session: Session, key: int, id: int, policy: str) -> None:
    """A job gives up its place in the order of its key; if it was the head, the next one is."""
    session.run("delete_keyed", key=key, id=id)
    head = session.row("select_key_head", key=key)
    if head is not None and head[0] == id:
        crown(session, key, policy, paused=bool(head[1]))


def enthrone(session: Session, key: int, queue: int, policy: str, *, paused: bool) -> int | None:
    """Give a key to the first of its jobs that counts; who it is. A key without any is forgotten."""
    id = first_of(session, key, policy)
    if id is None and (lost := session.value("select_first_gated", gate=key)) is not None:
        # Behind the key, and not in its order: damage.
        session.run("insert_keyed", key=key, id=lost)
        id = int(lost)
    if id is None and not paused:
        session.run("delete_key_head", key=key)
        return None
    session.run("upsert_key_head", key=key, id=id, queue=queue, now=session.now)
    return id


def go_on(session: Session, key: int, id: int) -> None:
    """The owner of a key need not wait behind it."""
    if session.row("select_gated_job", id=id, gate=key) is not None:
        unblock(session, [id])


def crown(session: Session, key: int, policy: str, *, paused: bool) -> None:
    """As `enthrone`, and the new owner goes on."""
    id = enthrone(session, key, 0, policy, paused=paused)
    if id is not None and not paused:
        go_on(session, key, id)


def first_of(session: Session, key: int, policy: str) -> int | None:
    """The first job of a key that is live, or dead where those behind wait for it; who is neither leaves the order."""
    # Nearly always the first of them is the one, and each is looked up in five tables.
    after, most = 0, 1
    while True:
        rows = session.rows("select_next_keyed", key=key, after=after, most=most)
        for id, live, dead in rows:
            if live or (dead and policy != "skip_dead"):
                return int(id)
            session.run("delete_keyed", key=key, id=id)
        if len(rows) < most:
            return None
        after, most = rows[-1][0], _CHUNK


def give_back(session: Session, incarnation: int, ids: str) -> None:
    """Attempts have ended: delete what they hold, and let go on whom that held back. `ids`: as JSON."""
    keys = [*{key for (key,) in session.rows("select_holds", ids=ids, incarnation=incarnation)}]
    if keys:
        session.run("delete_holds", ids=ids, incarnation=incarnation)
        freed(session, keys)


def freed(session: Session, keys: Sequence[int]) -> None:
    """Something of these limits was given back."""
    # Also for those of queues and tenants, behind which nobody is blocked: a claim may take more now.
    session.rings = True
    session.freed.update(keys)
    let_go(
        session, bounds_of(session), [name for _, name in session.rows("select_gates", keys=ids_text(keys))]
    )


def let_go(session: Session, bounds: Bounds, names: Iterable[str]) -> int:
    """As many as these limits allow now; how many. What time alone opens gets its time."""
    # Each once: many jobs wait for one limit, and to count what holds it is work for each time it is asked.
    asked = [(name, bound_of(session, bounds, name)) for name in dict.fromkeys(names)]
    if not asked:
        return 0
    uses = uses_of(session, asked)
    moved = sum(_let_go(session, use) for use in uses)
    keep(session, uses)
    return moved


def let_go_in(session: Session, bounds: Bounds, lanes: Sequence[int]) -> None:
    """What was given back here and nobody took is for jobs of these lanes, whoever is before them in others."""
    for _, name in session.rows("select_gates", keys=ids_text([*session.freed])):
        use = use_of(session, bounds, name)
        if most := min(use.allowance(session.now), MOST):
            waiting = in_turn(session, use.key, use.turn, _LOOKED_AT)
            unblock(session, [one.id for one in waiting if one.lane in lanes][:most])


def look_again(session: Session) -> None:
    """A job that a limit had let go on, or that has reserved some, may have left: its places are for others."""
    drop_reserved(session)
    rows = session.rows("select_gates_after", after=_FIRST, most=_CHUNK)
    if rows:
        let_go(session, bounds_of(session), [name for _, cause, name, _ in rows if cause == _LIMIT and name])


def drop_reserved(session: Session) -> None:
    """Give back what jobs have reserved that do not wait any more."""
    left = session.rows("select_left_reserved")
    if left:
        session.many("delete_hold", [{"key": key, "id": id} for key, id in left])
        freed(session, [*{key for key, _ in left}])


def open_due(session: Session, bounds: Bounds) -> int:
    """Look again at the limits whose time has come; how many jobs may go on."""
    rows = session.rows("select_due_limits", now=session.now, most=_CHUNK)
    return let_go(session, bounds, [name for _, name in rows])


def in_turn(session: Session, gate: int, turn: int, most: int) -> list[Waiting]:
    """Who waits behind a limit: their tenants in turn after one of them, by priority in each; `most` at the most."""
    tenants = [tenant for (tenant,) in session.rows("select_gated_tenants", gate=gate, turn=turn, most=most)]
    if len(tenants) == 1:
        rows = session.rows("select_gated", gate=gate, most=most)
        return [Waiting(id, lane, tenants[0]) for id, lane in rows]
    found: list[Waiting] = []
    given = 0
    while tenants and len(found) < most:
        share = ceil((most - len(found)) / len(tenants))
        lines = {
            tenant: session.rows("select_gated_of", gate=gate, tenant=tenant, most=share, given=given)
            for tenant in tenants
        }
        for place in range(share):
            found += [
                Waiting(line[place][0], line[place][1], tenant)
                for tenant, line in lines.items()
                if place < len(line)
            ]
        tenants = [tenant for tenant, line in lines.items() if len(line) == share]
        given += share
    return found[:most]


def _let_go(session: Session, use: Use) -> int:
    now = session.now
    most = min(use.allowance(now), MOST)
    waiting = in_turn(session, use.key, use.turn, most + 1)
    more = len(waiting) > most
    ids = [one.id for one in waiting[:most]]
    # Also after whole rounds, whose first and last are of one tenant.
    if ids and len({one.tenant for one in waiting}) > 1:
        use.pass_turn(waiting[len(ids) - 1].tenant)
    at = use.opens_at(now, most) if more else None
    if more and most == MOST:
        at = now
    if more and most == 0:
        reserved = [id for (id,) in session.rows("select_gated_reserved", gate=use.key)]
        refusal = use.refusal(now, reserved=True)
        if reserved and refusal is None:
            ids = reserved
        elif reserved and refusal is not None and refusal.at is not None:
            at = refusal.at
    unblock(session, ids)
    use.look_at(at)
    return len(ids)
