from tests.client.test_control_acts import *
def test_dbg(timed: App, send: Any, hands: Hands, hour: Hour) -> None:
    ids = [one.id for one in timed.enqueue_many(send.draft() for _ in range(4))]
    timed.operate.limit("default", max_running=1, lasting="1h")
    print(len(claim(hands)))
    hour.now += timedelta(hours=1, seconds=1)
    print(hands.store.leases.beat([hands.incarnation]))
    print(hands.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(seconds=10)))
    print(timed.store.inspection.workers())
    print(timed.store.control.limits())
    print(timed.store.jobs.exchange(hands.incarnation, [], ClaimRequest((QueueClaim("default", 10),),10)))
    for r in timed.store.inspection.lookup(ids): print(r.id, r.state, r.waits_for, r.counters, r.expires_at)
    assert 0
