"""Judge one call: label its arguments, check what goes out, and ask the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from pydantic import BaseModel

from bot.agent.flow.labels import argument_texts, label_arguments
from bot.agent.flow.outgoing import arguments_objection, context_view
from bot.agent.flow.policy import Decision, RightName, decide
from bot.agent.tools.registry import Effect, Permission, Tool, ToolContext
from bot.core.reasons import Reason
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.argument_labels import ArgumentLabel


@dataclass(frozen=True, slots=True)
class CallJudgement:
    """What the policy decided about a call, and on which grounds.

    Attributes:
        decision: The decision.
        effect: The effect of the tool as the owner's right has it.
        labels: Where the arguments come from.
        sources: What was in view from outside, for people.
    """

    decision: Decision
    effect: Effect
    labels: tuple[ArgumentLabel, ...] = ()
    sources: tuple[str, ...] = ()


async def judge_call(
    tool: Tool[Any],
    permission: Permission,
    parsed: BaseModel,
    context: ToolContext,
) -> CallJudgement:
    """Return what is done with a call.

    Args:
        tool: Its tool.
        permission: What the owner decided beforehand.
        parsed: Its arguments, validated.
        context: What it may use.
    """
    reads = permission.decision == "reads"
    effect: Effect = "reads_world" if reads else tool.effect
    right: RightName = "always" if permission.decision == "reads" else permission.decision
    if effect == "writes_own" and tool.sensitive is None:
        return CallJudgement(decide(effect, right, (), outside=False), effect)
    # What the tool gets: a text that two parsers read in two ways must not hide anything.
    given = parsed.model_dump(mode="json", exclude_unset=True)
    view = context_view(context)
    carries = None
    if effect == "reads_world":
        carries = await _objection(tool, parsed, given, context)
    elif effect == "acts":
        carries = _secret(given)
    if tool.said is not None and view.outside:
        given |= tool.said(parsed, context)
    labels: tuple[ArgumentLabel, ...] = ()
    if effect == "acts" or tool.sensitive is not None:
        labels = await anyio.to_thread.run_sync(
            lambda: label_arguments(
                given,
                view.words,
                outside=view.outside,
                stated=tool.sensitive,
                schema=tool.schema or tool.arguments.model_json_schema(),
                origins=view.texts,
            )
        )
    decision = decide(effect, right, labels, outside=view.outside, carries=carries)
    return CallJudgement(decision, effect, labels, view.sources)


async def _objection(
    tool: Tool[Any], parsed: BaseModel, given: Mapping[str, Any], context: ToolContext
) -> str | None:
    if tool.objection is not None:
        return await tool.objection(parsed, context)
    return await arguments_objection(given, context)


def _secret(given: Mapping[str, Any]) -> str | None:
    kind = detect_secret("\n".join(argument_texts(given)))
    return None if kind is None else Reason("holds_secret", kind=kind)
