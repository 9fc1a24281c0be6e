"""Ordering keys as people see them, and the act that lets one go on. Inside a transaction or a read."""

from duly.core.control import KeyRecord
from duly.core.job import JobId
from duly.stores.sqlite.releasing import crown, first_of, go_on, ordering_key
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import from_micros


def keys_in(session: Session, queue: str | None, most: int) -> list[KeyRecord]:
    """Those with the most jobs first."""
    records = []
    for _key, members, *rest in session.rows("select_longest_keys", queue=queue, most=most):
        queue_name, tenant, name, enqueued_at, head, paused, since, state, live = rest
        # Where so many wait, dead ones among them are not told apart.
        waiting = members if live is None else live
        if not waiting and state is None and not paused:
            continue
        records.append(
            KeyRecord(
                queue_name,
                tenant,
                name,
                None if head is None or state is None else JobId(head),
                state,
                waiting - (1 if state is not None and (state != "dead" or live is None) else 0),
                from_micros(enqueued_at if since is None else since),
                bool(paused),
            )
        )
    return sorted(records, key=lambda one: (-one.waiting, one.queue, one.tenant, one.key))


def resume(session: Session, queue: str, tenant: str, name: str) -> bool:
    """A paused key goes on, one whose head is dead without it. False when it does not wait."""
    key = ordering_key(queue, tenant, name)
    policy = str(session.value("select_ordering", queue=queue) or "wait")
    id, paused, live, dead, _ = session.row("select_key_head", key=key) or (None, 0, 0, 0, policy)
    if not live and not dead:
        id = first_of(session, key, policy)
        row = None if id is None else session.row("select_next_keyed", key=key, after=id - 1, most=1)
        _, live, dead = row or (None, 0, 0)
    if not paused and (live or not dead):
        return False
    session.run("update_key_resumed", key=key)
    if id is not None and not live:
        session.run("delete_keyed", key=key, id=id)
        crown(session, key, policy, paused=False)
    elif id is not None:
        go_on(session, key, id)
    else:
        session.run("delete_key_head", key=key)
    return True
