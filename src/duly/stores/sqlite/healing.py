"""What should have been let go on and was not: looked for with every sweep, some at a time.

Admission decides rightly without it; here is what a killed process, an older release or a changed bound leaves behind.
Looks before it locks.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from duly.stores.sqlite.bounds import Bounds, bounds_of
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import lane_of, tenant_key
from duly.stores.sqlite.releasing import crown, freed, go_on, let_go, pass_on, unblock
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import use_of
from duly.stores.sqlite.waiting import BEHIND_KEY

# Looking at so many takes some milliseconds.
_LOOKED_AT: Final = 1_000
_CHUNK: Final = 500
_FIRST: Final = -(2**63)
_BLOCK: Final = "block:"
_KEEP_OVERRIDES: Final = timedelta(days=30)


class Healing:
    """Walks keys, gates and limits, from where the last round of this store ended."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._head = self._gate = self._limit = _FIRST
        self._keyed = (_FIRST, 0)

    def heal(self) -> None:
        """One round."""
        self._drop_stray_holds()
        self._heal_heads()
        self._drop_gone()
        self._open_gates()
        self._forget_limits()
        self._forget_overrides()
        self._sort_lanes()

    def _heal_heads(self) -> None:
        with self._database.read() as session:
            rows = session.rows("select_heads_after", after=self._head, most=_LOOKED_AT)
        self._head = rows[-1][0] if len(rows) == _LOOKED_AT else _FIRST
        keys = [key for key, ill in rows if ill]
        if keys:
            self._write(partial(_heal, keys=keys))

    def _drop_gone(self) -> None:
        """Jobs that have ended without leaving the order of their keys."""
        key, id = self._keyed
        with self._database.read() as session:
            rows = session.rows("select_keyed_after", key=key, id=id, most=_LOOKED_AT)
        self._keyed = rows[-1][:2] if len(rows) == _LOOKED_AT else (_FIRST, 0)
        gone = [(key, id) for key, id, there in rows if not there]
        if gone:
            self._write(partial(_drop, gone=gone))

    def _open_gates(self) -> None:
        with self._database.read() as session:
            rows = session.rows("select_gates_after", after=self._gate, most=_LOOKED_AT)
            bounds = bounds_of(session)
            ownerless = [gate for gate, cause, _, free in rows if cause == BEHIND_KEY and free]
            nameless = [gate for gate, cause, name, _ in rows if cause != BEHIND_KEY and name is None]
            limits = [name for _, cause, name, _ in rows if cause != BEHIND_KEY and name is not None]
            opened = [name for name in limits if _opens(session, bounds, name)]
        self._gate = rows[-1][0] if len(rows) == _LOOKED_AT else _FIRST
        if ownerless:
            self._write(partial(_first_goes, gates=ownerless))
        for gate in nameless:
            self._in_chunks(partial(_all_go, gate=gate))
        for name in opened:
            self._in_chunks(partial(_go, name=name))

    def _drop_stray_holds(self) -> None:
        found = _CHUNK
        while found == _CHUNK:
            with self._database.read() as session:
                rows = session.rows("select_stray_holds", now=session.now, most=_CHUNK)
            found = len(rows)
            if rows:
                self._write(_drop_strays)

    def _forget_limits(self) -> None:
        with self._database.read() as session:
            rows = session.rows("select_limits_after", after=self._limit, now=session.now, most=_LOOKED_AT)
        self._limit = rows[-1][0] if len(rows) == _LOOKED_AT else _FIRST
        idle = ids_text([key for key, unused in rows if unused])
        if idle != "[]":
            self._write(lambda session: session.run("delete_idle_limits", keys=idle, now=session.now))

    def _forget_overrides(self) -> None:
        with self._database.read() as session:
            before = session.now - span(_KEEP_OVERRIDES)
            found = session.value("select_old_override", before=before)
        if found:
            self._write(lambda session: session.run("delete_old_overrides", before=before))

    def _sort_lanes(self) -> None:
        """Queues that go round their tenants no more; and jobs of those that do, from who did not know that."""
        with self._database.read() as session:
            lanes = session.rows("select_unfair_lanes")
            fair = {name for (name,) in session.rows("select_fair_queues")}
            apart = {
                name: session.rows("select_unparted", queue=lane_of(name, False), most=_LOOKED_AT)
                for name in sorted(fair)
            }
        for lane, queue in lanes:
            if queue not in fair:
                self._in_chunks(partial(_join, lane=lane))
        for rows in apart.values():
            if rows:
                self._write(partial(_part, rows=rows))

    def _write(self, act: Callable[[Session], object]) -> None:
        with self._database.write() as session:
            act(session)

    def _in_chunks(self, step: Callable[[Session], int]) -> None:
        found = _CHUNK
        while found == _CHUNK:
            with self._database.write() as session:
                found = step(session)


def _heal(session: Session, keys: Sequence[int]) -> None:
    for key in keys:
        id, paused, live, dead, policy = session.row("select_key_head", key=key) or (None, 0, 0, 0, "wait")
        if live:
            if not paused:
                go_on(session, key, id)
        elif not dead or (policy == "skip_dead" and not paused):
            if id is not None:
                session.run("delete_keyed", key=key, id=id)
            crown(session, key, policy, paused=bool(paused))


def _drop(session: Session, gone: Sequence[tuple[int, int]]) -> None:
    for key, id in gone:
        for found, live, dead in session.rows("select_next_keyed", key=key, after=id - 1, most=1):
            if found == id and not live and not dead:
                pass_on(session, key, id, "wait")


def _first_goes(session: Session, gates: Sequence[int]) -> None:
    for gate in gates:
        # The claim that meets it makes it the owner, or whoever comes first.
        id = session.value("select_first_gated", gate=gate)
        if id is not None:
            unblock(session, [id])


def _all_go(session: Session, gate: int) -> int:
    ids = [id for id, _ in session.rows("select_gated", gate=gate, most=_CHUNK)]
    unblock(session, ids)
    return len(ids)


def _go(session: Session, name: str) -> int:
    return let_go(session, bounds_of(session), [name])


def _opens(session: Session, bounds: Bounds, name: str) -> bool:
    """Whether a limit that jobs wait behind lets any of them go on."""
    if name.startswith(_BLOCK):
        return not bounds.is_blocking(int(name.removeprefix(_BLOCK)), session.now)
    return use_of(session, bounds, name).allowance(session.now) > 0


def _drop_strays(session: Session) -> None:
    rows = session.rows("select_stray_holds", now=session.now, most=_CHUNK)
    session.many("delete_hold", [{"key": key, "id": id} for key, id in rows])
    freed(session, [*{key for key, _ in rows}])


def _join(session: Session, lane: int) -> int:
    moved = session.run("update_unfair", queue=lane, most=_CHUNK)
    session.rings = session.rings or moved > 0
    return moved


def _part(session: Session, rows: Sequence[Row]) -> None:
    session.many("update_ready_tenant", [{"id": id, "tenant": tenant_key(tenant)} for id, tenant in rows])
    session.rings = True
