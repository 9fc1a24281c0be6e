"""Every operation of the API, and their routes. The one list from which the OpenAPI document is made, too."""

from __future__ import annotations

from typing import Any, Final

from starlette.routing import BaseRoute

from duly.web.api import dead, jobs, operations, queues, triage, workers
from duly.web.operation import Op, routes_of
from duly.web.site import Site

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    *jobs.OPERATIONS,
    *queues.OPERATIONS,
    *dead.OPERATIONS,
    *triage.OPERATIONS,
    *operations.OPERATIONS,
    *workers.OPERATIONS,
)


def routes(site: Site) -> list[BaseRoute]:
    return routes_of(site, OPERATIONS)
