"""The board: what one process writes there another one reads, through a mapping of its own."""

import os

import pytest

from duly.worker.board import EMPTY, ENDED, Board, Started, boottime


def test_what_one_side_writes_the_other_reads() -> None:
    child = Board.create(3)
    supervisor = Board(os.dup(child.descriptor), 3)

    child.tick(5, 100.5)
    child.exchanged(9, 101.5, 40)
    child.start(1, 77, 2, 160.0, 1)
    supervisor.renew(99.5)
    supervisor.mark_draining()

    seen, told = supervisor.pulse(), child.pulse()
    assert (seen.ticks, seen.ticked_at, seen.exchanges, seen.exchanged_at, seen.held) == (
        5,
        100.5,
        9,
        101.5,
        40,
    )
    assert (told.renewed_at, told.gone, told.draining, told.quarantine) == (99.5, False, True, False)
    assert supervisor.started() == [Started(77, 2, 160.0, "thread", True)]
    child.close()
    supervisor.close()


def test_a_record_goes_from_running_over_ended_to_empty() -> None:
    board = Board.create(2)
    board.start(0, 1, 1, 10.0, 0)

    board.state(0, ENDED)
    ended = board.started()
    board.state(0, EMPTY)

    assert [record.running for record in ended] == [False]
    assert board.started() == []
    board.close()


def test_ids_and_runs_of_64_bits_fit() -> None:
    board = Board.create(1)

    board.start(0, 2**63 - 1, 2**40, 10.0, 2)

    (record,) = board.started()
    assert (record.id, record.run, record.kind) == (2**63 - 1, 2**40, "process")
    board.close()


def test_marks_can_be_taken_back() -> None:
    board = Board.create(1)
    board.mark_quarantine(True)
    during = board.pulse().quarantine

    board.mark_quarantine(False)

    assert during
    assert not board.pulse().quarantine
    board.close()


def test_the_clock_is_the_same_in_every_process() -> None:
    before = boottime()
    read, write = os.pipe()
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "cut -d' ' -f1 /proc/uptime >&9"], {}, file_actions=[
        (os.POSIX_SPAWN_DUP2, write, 9),
    ])  # fmt: skip
    os.close(write)
    os.waitpid(pid, 0)

    elsewhere = float(os.read(read, 100))

    os.close(read)
    assert elsewhere == pytest.approx(before, abs=5)
