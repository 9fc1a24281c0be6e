"""What a producer meets at a queue that is full, on both stores."""

from __future__ import annotations

import pytest

from duly import App, QueueFull

def test_a_full_queue_refuses_what_does_not_fit(both: App) -> None:
    mail = both.queue("mail", max_depth=3)

    @both.task(queue=mail)
    def send(number: int) -> None: ...

    for number in range(3):
        send.enqueue(number)
    with pytest.raises(QueueFull, match="'mail' is full: 3 jobs wait") as refused:
        send.enqueue(4)

    assert refused.value.queue == "mail"
    assert both.inspect.queue("mail").counts.ready == 3
