"""The names of limits are read back as what they were made of."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core import control
from duly.core.control import Override, OverrideKind, Rate, TenantPlan
from duly.core.control_words import LimitTarget, change_text, limit_target, plan_text

NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True)
NOW = datetime(2030, 5, 1, tzinfo=UTC)


@given(NAMES, st.text(min_size=1, max_size=20), NAMES)
def test_a_name_says_what_it_bounds(name: str, tenant: str, argument: str) -> None:
    assert limit_target(control.queue_limit(name)) == LimitTarget("queue", name, name)
    assert limit_target(control.resource_limit(name)) == LimitTarget("resource", name)
    assert limit_target(control.task_limit(name)) == LimitTarget("task", name)
    assert limit_target(control.lock_limit(tenant)) == LimitTarget("lock", tenant)
    assert limit_target(control.tenant_limit(name, tenant)) == LimitTarget("tenant", tenant, name)
    assert limit_target(control.plan_limit(tenant)) == LimitTarget("tenant", tenant, "")
    assert limit_target(control.argument_limit(name, argument, tenant)) == LimitTarget(
        "argument", name, None, argument, tenant
    )
    assert limit_target(control.argument_limit(name, argument)).value is None


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("limit", {"max_running": 5}, "max-running 5"),
        (
            "limit",
            {"max_running": None, "interval": 0.1, "burst": 20},
            "max-running none, rate 10/s burst 20",
        ),
        ("limit", {"interval": None, "burst": None, "weight": 3}, "rate none, weight 3"),
        ("block", {"where": "args.customer = 7", "task": "send"}, "block where=args.customer = 7 task=send"),
    ],
)
def test_an_override_is_told_in_the_words_of_its_flags(
    kind: OverrideKind, value: dict[str, object], words: str
) -> None:
    assert change_text(Override(1, "queue:mail", kind, value, "ann", "", NOW, None)) == words


def test_a_plan_is_told_whole() -> None:
    assert (
        plan_text(TenantPlan("acme", 5, 20, Rate(0.1, 20))) == "weight 5, max-running 20, rate 10/s burst 20"
    )
    assert plan_text(TenantPlan("acme")) == "weight 1, no bound on running, no rate"
