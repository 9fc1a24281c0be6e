"""Which transactions this thread has open on Django's connections. Opens none of them."""

from collections.abc import Iterator

from django.conf import settings
from django.db import connections

from duly.stores.connections.ambient import Place, file_place, server_place


def open_here() -> Iterator[tuple[str, Place | None]]:
    """The alias and the place of each connection of this thread that is inside atomic() or does not autocommit."""
    if not settings.configured:
        return
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None or wrapper.get_autocommit():
            continue
        said = wrapper.settings_dict
        match wrapper.vendor:
            case "sqlite":
                place = file_place(str(said["NAME"])) if wrapper.connection.in_transaction else None
            case "postgresql":
                place = server_place(said["HOST"], said["PORT"], said["NAME"])
            case _:
                place = None
        yield f"Django's connection {wrapper.alias!r}", place
