"""Render the active problem's working set for the model, within a size limit. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bot.memory.records.compartment_records import WorkingSet
from bot.memory.records.compression.notation import encode_value
from bot.memory.records.compression.working_sets import working_lines

_Item = tuple[str, Any]
"""Kind of an item, and its position in the working set."""


def render_context_packet(working: WorkingSet, problem_name: str, most: int) -> str:
    """Render a problem's working set in at most ``most`` characters.

    If not all fits, items are left out one by one, and the last line counts them by kind. First go
    items that alone take half of the room, then assumptions, least certain first, then decisions,
    questions, drafts and constraints, oldest first.
    """
    order = _order(working, most)
    title = f"Problem at hand: {encode_value(problem_name, '')}"

    def shown(left_out: int) -> str:
        return "\n".join([title, *working_lines(_without(working, order[:left_out]))])

    if len(whole := shown(0)) <= most:
        return whole
    # Reserves room for the longest note, so that each omission leaves more room than before.
    room = most - len(_left_out(order)) - 1
    left_out = bisect_left(range(len(order)), True, key=lambda n: len(shown(n)) <= room)
    return f"{shown(left_out)}\n{_left_out(order[:left_out])}"[: max(0, most)]


def _left_out(items: list[_Item]) -> str:
    counted = Counter(name for name, _ in items)
    told = (f"{times} {name}{'s' * (times > 1)}" for name, times in counted.items())
    return f"(left out: {', '.join(told)})"


def _order(working: WorkingSet, most: int) -> list[_Item]:
    """Return all items in the order in which they are left out."""
    items: list[tuple[tuple[int, float], _Item, Any]] = [
        ((0, _sure(one)), ("assumption", at), one) for at, one in enumerate(working.assumptions)
    ]
    items += [((1, 0), ("decision", at), one) for at, one in enumerate(working.local_decisions)]
    items += [((2, 0), ("question", at), one) for at, one in enumerate(working.open_questions)]
    items += [((3, 0), ("draft", name), one) for name, one in working.partial_artifacts.items()]
    items += [((4, 0), ("constraint", at), one) for at, one in _constraints(working)]
    items.sort(key=lambda one: (len(encode_value(one[2], "")) <= most // 2, one[0]))
    return [item for _, item, _ in items]


def _sure(assumption: Any) -> float:
    sure = assumption.get("confidence") if isinstance(assumption, dict) else None
    return max(0.0, min(1.0, sure)) if isinstance(sure, (int, float)) else 0.0


def _constraints(working: WorkingSet) -> Iterator[tuple[tuple[str, int], Any]]:
    constraints: dict[str, Any] = working.constraints
    for name, held in constraints.items():
        for at, one in enumerate(held if isinstance(held, list) else [held]):
            yield (name, at), one


def _without(working: WorkingSet, items: list[_Item]) -> WorkingSet:
    places: dict[str, set[Any]] = {}
    for name, at in items:
        places.setdefault(name, set()).add(at)

    def kept(name: str, values: list[Any]) -> list[Any]:
        out = places.get(name, set())
        return [one for at, one in enumerate(values) if at not in out]

    drafts, out = working.partial_artifacts, places.get("constraint", set())
    constraints: dict[str, Any] = dict(working.constraints)
    for name in {name for name, _ in out}:
        held = constraints.pop(name)
        rest = (
            [one for at, one in enumerate(held) if (name, at) not in out]
            if isinstance(held, list)
            else []
        )
        constraints |= {name: rest} if rest else {}
    return replace(
        working,
        constraints=constraints,
        assumptions=kept("assumption", working.assumptions),
        open_questions=kept("question", working.open_questions),
        partial_artifacts={k: v for k, v in drafts.items() if k not in places.get("draft", ())},
        local_decisions=kept("decision", working.local_decisions),
    )
