"""A connection on which the server tells the plan of every statement, those inside our functions included."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from duly.stores.postgres.database import Database


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


class Explained:
    """A database on whose connection every statement tells its plan."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.told: list[str] = []
        with database.pool.link() as link:
            link.connection.add_notice_handler(lambda notice: self.told.append(notice.message_primary or ""))
            link.connection.execute("load 'auto_explain'")
            for setting in (
                "client_min_messages to log",
                "auto_explain.log_min_duration to 0",
                "auto_explain.log_analyze to on",
                "auto_explain.log_timing to off",
                "auto_explain.log_buffers to on",
                "auto_explain.log_format to json",
                "auto_explain.log_nested_statements to on",
            ):
                link.connection.execute(f"set {setting}".encode())

    def of(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """The nodes of all plans that an act has used."""
        self.told.clear()
        act()
        plans = [json.loads(text[text.index("{") :]) for text in self.told if "plan:" in text]
        assert plans, "the server told no plan"
        return [node for plan in plans for node in nodes(plan["Plan"])]
