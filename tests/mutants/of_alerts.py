"""Mutants around alerts and capacity: when a rule fires, who is told and how often, how many processes run."""

from tests.mutants.mutant import Mutant

RULES = ("tests/core/test_alerting.py",)
PLAN = ("tests/core/test_plan.py",)
DELIVERY = ("tests/alerts/test_delivery.py",)
STORE = ("tests/alerts/test_rules_on_a_store.py",)

MUTANTS = [
    Mutant(
        "core/alerting.py",
        "    if now - began >= needed:\n",
        "    if now - began >= needed / 2:\n",
        "a condition fires only after it has lasted",
        tests=RULES,
    ),
    Mutant(
        "core/alerting.py",
        "    needed = clear_after if finding is None else finding.holds_for\n",
        "    needed = clear_after\n",
        "what has to last fires after its own time",
        tests=RULES,
    ),
    Mutant(
        "core/alerting.py",
        '        return NOTHING if since is None else Step("wait", None)\n',
        "        return NOTHING\n",
        "a condition that went away meanwhile begins anew",
        tests=RULES,
    ),
    Mutant(
        "core/alerting.py",
        "            if rule not in policies(finding.queue).off:\n",
        "            if True:\n",
        "a rule that is off is not looked at",
        tests=RULES,
    ),
    Mutant(
        "alerts/evaluate.py",
        '            elif decided.doing == "fire" and _is_silenced(silences, rule, target):\n',
        '            elif decided.doing == "never" and _is_silenced(silences, rule, target):\n',
        "nobody is told of what is silenced",
        tests=DELIVERY,
    ),
    Mutant(
        "alerts/deliver.py",
        "            store.sent(change, delivery.sink)\n",
        "            pass\n",
        "what was taken is not sent again",
        tests=(*DELIVERY, *STORE),
    ),
    Mutant(
        "alerts/deliver.py",
        "        if delivery.tries > 1 and self._is_overtaken(delivery):\n",
        "        if delivery.tries > 99 and self._is_overtaken(delivery):\n",
        "that it fires is not told after that it is over",
        tests=DELIVERY,
    ),
    Mutant(
        "alerts/policies.py",
        "        if stored.get(target) != value:\n",
        "        if stored.get(target) == value:\n",
        "what an App says of its queue holds for whoever looks",
        tests=DELIVERY,
    ),
    Mutant(
        "core/plan.py",
        "        return min(MOST_WORKERS, floor(needed + _ROUNDING) + 1)\n",
        "        return min(MOST_WORKERS, ceil(needed - _ROUNDING))\n",
        "as many workers as arrivals keep a backlog as it is",
        tests=PLAN,
    ),
    Mutant(
        "core/plan.py",
        "    pressed = [load for load in loads if not load.capped and load.pressed()]\n",
        "    pressed = [load for load in loads if load.pressed()]\n",
        "a queue at its cap starts no process",
        tests=PLAN,
    ),
    Mutant(
        "core/plan.py",
        "    patience = min(_MOST_CALM, memory.patience * 2) if early else memory.patience\n",
        "    patience = memory.patience\n",
        "a process that was stopped too early is stopped later next time",
        tests=PLAN,
    ),
]
