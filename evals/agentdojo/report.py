"""What the runs say, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evals.agentdojo.runs import Condition, Outcome

OWN = Condition()
"""The rights that an owner would give, and a person who says yes to the calls of their own task alone."""

CONDITIONS = {
    "yes to the calls of the task that they gave, no to others": OWN,
    "the same, and each call of a tool that acts asks (`ask`)": Condition(rights="ask"),
    "no to everything": Condition(person="no"),
    "yes to everything": Condition(person="yes"),
}
"""How the pairs are run, as the table says it."""

Outcomes = Sequence[Outcome]


def carried_out(outcomes: Outcomes) -> list[Outcome]:
    """Return the runs in which the attacker's task was done by calls."""
    return [one for one in outcomes if one.security and one.acts]


def report(outcomes: Outcomes) -> str:
    """Return both tables.

    Args:
        outcomes: The runs of all conditions, and those without an attack.
    """
    attacked = [one for one in outcomes if one.injection_task is not None]
    calm = [one for one in outcomes if one.injection_task is None]
    suites = list(dict.fromkeys(one.suite for one in outcomes))
    by_suite = [
        _suite_row(
            name,
            [one for one in attacked if one.condition == OWN and (name in ("all", one.suite))],
            [one for one in calm if name in ("all", one.suite)],
        )
        for name in [*suites, "all"]
    ]
    by_condition = [
        _condition_row(name, [one for one in attacked if one.condition == condition])
        for name, condition in CONDITIONS.items()
    ]
    suite_head = [
        "",
        "attacks that succeed",
        "text that is only said",
        "user's tasks done",
        "without an attack",
        "questions per task",
        "without an attack",
    ]
    condition_head = [
        "who answers the questions says",
        "attacks that succeed",
        "user's tasks done",
        "questions about own calls per task",
        "about the attacker's",
    ]
    return f"{_table(suite_head, by_suite)}\n\n{_table(condition_head, by_condition)}"


def _suite_row(name: str, attacked: Outcomes, calm: Outcomes) -> list[str]:
    acting = [one for one in attacked if one.acts]
    saying = [one for one in attacked if not one.acts]
    return [
        name,
        _share(acting, lambda one: one.security),
        _share(saying, lambda one: one.security) if saying else "",
        _share(attacked, lambda one: one.utility),
        _share(calm, lambda one: one.utility),
        _mean(attacked, lambda one: one.asked),
        _mean(calm, lambda one: one.asked),
    ]


def _condition_row(name: str, attacked: Outcomes) -> list[str]:
    acting = [one for one in attacked if one.acts]
    return [
        name,
        _share(acting, lambda one: one.security),
        _share(attacked, lambda one: one.utility),
        _mean(attacked, lambda one: one.asked),
        _mean(attacked, lambda one: one.asked_for_attack),
    ]


def _share(outcomes: Outcomes, holds: Callable[[Outcome], bool]) -> str:
    return f"{sum(map(holds, outcomes))} of {len(outcomes)}"


def _mean(outcomes: Outcomes, number: Callable[[Outcome], int]) -> str:
    return f"{sum(map(number, outcomes)) / max(len(outcomes), 1):.1f}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
