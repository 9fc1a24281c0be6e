"""The defaults: each holds what its reason promises, together with the others."""

from datetime import timedelta

from duly.core import defaults
from duly.core.backoff import Backoff


def test_a_lease_outlives_three_heartbeats() -> None:
    assert defaults.HEARTBEAT * defaults.HEARTBEATS_PER_LEASE <= defaults.LEASE


def test_the_grace_ends_before_kubernetes_kills() -> None:
    assert timedelta(seconds=30) > defaults.GRACE


def test_the_backoff_without_arguments_is_the_default_one() -> None:
    written_out = Backoff(defaults.BACKOFF_BASE, factor=defaults.BACKOFF_FACTOR, cap=defaults.BACKOFF_CAP)

    assert Backoff() == written_out


def test_ten_attempts_ride_out_half_an_hour_on_average() -> None:
    waits = [Backoff().ceiling(failed) for failed in range(1, defaults.ATTEMPTS)]

    longest = sum(waits, timedelta())

    assert timedelta(minutes=57) <= longest < timedelta(minutes=63)
    assert timedelta(minutes=28) <= longest / 2 < timedelta(minutes=32)


def test_what_travels_with_a_claim_is_smaller_than_what_may_be_stored() -> None:
    assert defaults.INLINE_PAYLOAD < defaults.MAX_PAYLOAD <= defaults.PAYLOADS_IN_FLIGHT


def test_the_notice_of_a_purge_comes_before_it() -> None:
    assert defaults.PURGE_NOTICE < defaults.KEEP_DEAD
