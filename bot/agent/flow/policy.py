"""Decide whether a call runs, waits for a person's yes, or is refused. Pure.

``TABLE`` is the whole policy: of its rows, the first that fits decides. The model is assumed to obey
whoever wrote the text that it read, so nothing here depends on what it says about a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.core.reasons import Reason
from bot.memory.records.argument_labels import ArgumentLabel

Action = Literal["run", "ask", "refuse"]
EffectName = Literal["reads_own", "reads_world", "writes_own", "acts"]
RightName = Literal["always", "ask", "never"]
Condition = Literal["always", "carries", "outside", "unsaid", "outside and unsaid"]
"""When a row fits: ``carries``, the call would carry out what must not leave unasked; ``outside``,
text from outside could have shaped it; ``unsaid``, a sensitive argument stands in nobody's words."""

_SHOWN_REASONS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        effect: The effect of the tool; None fits every one.
        right: What the owner decided beforehand; None fits all.
        condition: When the row fits.
        action: What is done then.
    """

    effect: EffectName | None
    right: RightName | None
    condition: Condition
    action: Action


TABLE: tuple[Row, ...] = (
    Row(None, "never", "always", "refuse"),
    Row(None, "ask", "always", "ask"),
    Row("reads_own", None, "always", "run"),
    Row("reads_world", None, "carries", "ask"),
    Row("reads_world", None, "always", "run"),
    Row("writes_own", None, "outside and unsaid", "ask"),  # for programs
    Row("writes_own", None, "always", "run"),
    Row("acts", "always", "outside", "ask"),
    Row("acts", "always", "carries", "ask"),
    Row("acts", "always", "unsaid", "ask"),
    Row("acts", "always", "always", "run"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with a call.

    Attributes:
        action: Whether it runs, waits for a yes, or is refused.
        reasons: Why it waits, for people; empty if each call of the tool does.
    """

    action: Action
    reasons: tuple[str, ...] = ()


def decide(
    effect: EffectName,
    right: RightName,
    labels: Sequence[ArgumentLabel],
    *,
    outside: bool,
    carries: str | None = None,
) -> Decision:
    """Return what is done with a call."""
    unsaid = [one for one in labels if one.sensitive and not one.is_said]
    holds: dict[Condition, bool] = {
        "always": True,
        "carries": carries is not None,
        "outside": outside,
        "unsaid": bool(unsaid),
        "outside and unsaid": outside and bool(unsaid),
    }
    for row in TABLE:
        if row.effect in (None, effect) and row.right in (None, right) and holds[row.condition]:
            return Decision(row.action, _reasons(row.condition, unsaid, carries))
    return Decision("ask")


def _reasons(
    condition: Condition, unsaid: Sequence[ArgumentLabel], carries: str | None
) -> tuple[str, ...]:
    """Return why a row fits, for people; what was in view from outside is told apart."""
    if condition == "carries" and carries is not None:
        return (carries,)
    if "unsaid" in condition:
        return tuple(
            Reason("argument_unsaid", name=one.name, origin=one.describe())
            for one in unsaid[:_SHOWN_REASONS]
        )
    return ()
