"""The App that worker processes of a drill import: the user's own, on the drill's store, with the probe in place."""

from __future__ import annotations

import sys

from duly.app import App
from duly.client import effects
from duly.drills.drill import app_behind
from duly.drills.outward import Outside
from duly.drills.plan import Papers
from duly.drills.probe import OURS, Probe, Tracer, probed
from duly.stores.open import open_store
from duly.stores.protocol import Store


def app() -> App:
    """The App of the drill that the environment names. `duly.drills.inside:app` is what its workers are told."""
    papers = Papers.of_environment()
    plan = papers.plan()
    sys.path[:] = plan.path
    probe = Probe(papers, plan)
    effects.hear(probe.told)
    found = app_behind(plan.reference)
    found.load()
    acked_last = {
        name for task in found.tasks.values() if task.ack != "start" for name in (task.name, *task.aliases)
    }
    probe.once = acked_last.__contains__
    client = found.client
    client.override(url=plan.url, schema=plan.schema)

    def opened() -> Store:
        store = open_store(plan.url, schema=plan.schema, pool=client.settings.pool, durable=plan.durable)
        return probed(store, probe)

    client.open_with(opened)
    if plan.trace:
        tracer = Tracer(probe)
        Outside(OURS, tracer.is_theirs, papers.write).install()
        tracer.install()
    return found
