"""The channel between a process and its parent."""

import socket
import threading
from collections.abc import Iterator

import pytest

from duly.worker.channel import Channel
from duly.worker.messages import Draining, Left, Reports, Stop, SuspectsWait, Will
from duly.worker.run import handed_back
from tests.worker.doubles import an_app, an_attempt, cards

Pair = tuple[Channel[Reports], Channel[Reports]]


@pytest.fixture
def pair() -> Iterator[Pair]:
    first, second = socket.socketpair()
    ends: Pair = (Channel(first, Reports), Channel(second, Reports))
    yield ends
    for end in ends:
        end.close()


def test_messages_arrive_whole_and_in_order(pair: Pair) -> None:
    here, there = pair
    attempt = an_attempt(cards(an_app())["on_loop"])
    said = [SuspectsWait(), Draining("enough", urgent=False), Will((handed_back(attempt, "bye"),), "end")]

    for message in said:
        here.send(message)

    assert there.pending() == said


def test_a_message_larger_than_any_buffer_arrives(pair: Pair) -> None:
    here, there = pair
    message = Left("x" * 3_000_000, 1, retired=True)
    sender = threading.Thread(target=here.send, args=(message,))
    sender.start()

    heard = there.receive(10)

    sender.join()
    assert heard == message


def test_silence_ends_with_the_timeout(pair: Pair) -> None:
    _, there = pair

    assert there.receive(0.01) is None
    assert not there.closed


def test_the_end_of_the_other_side_is_noticed_after_its_last_words(pair: Pair) -> None:
    here, there = pair
    here.send(SuspectsWait())
    here.close()

    assert there.pending() == [SuspectsWait()]
    assert there.closed


def test_speaking_to_nobody_is_no_error(pair: Pair) -> None:
    here, there = pair
    there.close()

    delivered = [here.send(Stop("SIGTERM", 1.0)) for _ in range(3)]

    assert delivered[-1] is False
    assert here.closed
