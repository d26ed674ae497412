"""Judge one call: collect what permits it, label its arguments, and ask the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from pydantic import BaseModel

from bot.agent.flow.grants import MOST_FOLLOWED, Grants, memory_lines
from bot.agent.flow.labels import argument_texts, label_arguments
from bot.agent.flow.policy import Decision, RightName, decide
from bot.agent.flow.spoken import SpokenWords
from bot.agent.flow.view import FlowView, flow_view
from bot.agent.tools.registry import Effect, Permission, Tool, ToolContext
from bot.core.reasons import Reason
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.argument_labels import ArgumentLabel, Origin
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.outside_text import APPROVED, LINKS, SCHEDULED
from bot.memory.records.tombstones import is_erased
from bot.memory.session.long_term_memory import BELIEFS_HEADING

_LOOKED_UP = ("memory_", "tape_")


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


def context_view(context: ToolContext) -> FlowView:
    """Return what the model sees in the turn of a call."""
    memory = context.memory
    return flow_view(
        context.fold,
        context.answered_messages,
        [*memory.facts(), *memory.workspace.active()],
        tape=context.tape.name,
        described=context.described,
        summaries=context.summaries,
        beliefs=BELIEFS_HEADING in memory.render_reference(),
    )


def context_grants(context: ToolContext, tool: Tool[Any] | None = None) -> Grants:
    """Return what may leave without a press in the turn of a call, of this tool if one is given."""
    memory, view = context.memory_seen, context_view(context)
    known = [fact.text for fact in context.memory.facts()]
    known += [memory.long_term, memory.shared, memory.reference]
    known += [note.content for note in memory.dailies]
    if context.fold.boundary is not None:
        known.append(boundary_summary(context.fold.boundary.data))
    words = [one for one in view.words if one.found.origin >= Origin.PERSON]
    links: set[str] = set()
    approved: list[tuple[str, Any]] = []
    shown = context.fold.window.conversation()
    erased = {entry.id for entry in shown if is_erased(entry)}
    for entry in shown:
        if entry.id in erased:
            continue
        links.update(entry.meta.get(LINKS, ()))
        words += map(SpokenWords, entry.meta.get(SCHEDULED, ()))
        if tool is not None and APPROVED in entry.meta:
            name, arguments, askers, answers = entry.meta[APPROVED]
            if erased.isdisjoint(answers) and {*context.audience.people} <= {*askers}:
                approved += _sent_before(tool, name, arguments)
        if entry.kind == "tool_result" and str(entry.payload.get("name")).startswith(_LOOKED_UP):
            known.append(str(entry.payload.get("content") or ""))
    followed = frozenset(text for _, given in _called_before(context) for text in _texts(given))
    return Grants(words, frozenset(links), view.outside, memory_lines(known), followed, approved)


def _sent_before(tool: Tool[Any], name: str, arguments: str) -> list[tuple[str, Any]]:
    """Return the arguments that an approved call sent to the system of a tool."""
    given = _given({"arguments": arguments}) if _system(name) == _system(tool.wire_name) else None
    return list((given or {}).items())


def _system(name: str) -> str:
    """Return what names the system that a tool sends to: a server's tools have its name in front."""
    server, mark, _ = name.removeprefix("mcp_").partition("_")
    return server if name.startswith("mcp_") and mark else name


def _called_before(context: ToolContext) -> list[tuple[str, dict[str, Any]]]:
    """Return name and arguments of the calls that the turn made before this one."""
    opened, entries = context.fold.turns.open_turn, context.fold.window.entries
    if opened is not None and opened.id == context.turn:
        calls = opened.calls
    else:
        own = (entry for entry in entries if entry.meta.get("turn") == context.turn)
        calls = [call for entry in own for call in entry.calls]
    ends = [at for at, one in enumerate(calls) if context.call_key.endswith(f":{one['id']}")]
    made = ((str(one.get("name")), _given(one)) for one in calls[: max(ends, default=None)])
    return [(name.replace(".", "_"), given) for name, given in made if given is not None]


def _given(call: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        given = json.loads(str(call.get("arguments")))
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _texts(given: Mapping[str, Any]) -> list[str]:
    return [text.strip() for text in argument_texts(given)]


def _many_calls(tool: Tool[Any], given: Mapping[str, Any], context: ToolContext) -> Reason | None:
    """Return why another call of a tool that gets chosen arguments is not made unasked."""
    others = [one for name, one in _called_before(context) if name == tool.wire_name]
    differing = {json.dumps(one, sort_keys=True) for one in others if one != given}
    return Reason("many_calls", most=MOST_FOLLOWED) if len(differing) >= MOST_FOLLOWED else None


async def judge_call(
    tool: Tool[Any],
    permission: Permission,
    parsed: BaseModel,
    context: ToolContext,
) -> CallJudgement:
    """Return what is done with a call."""
    reads = permission.decision == "reads"
    effect: Effect = "reads_world" if reads else tool.effect
    right: RightName = "always" if permission.decision == "reads" else permission.decision
    if effect == "writes_own" and tool.sensitive is None:
        return CallJudgement(decide(effect, right, (), outside=False), effect)
    # What the tool gets: a text that two parsers read in two ways must not hide anything.
    given = parsed.model_dump(mode="json", exclude_unset=True)
    view = context_view(context)
    schema = tool.schema or tool.arguments.model_json_schema()
    carries = None
    if effect == "reads_world" and tool.objection is not None:
        carries = await tool.objection(parsed, context)
    elif effect == "reads_world":
        grants = context_grants(context, tool)
        carries = await anyio.to_thread.run_sync(grants.arguments_objection, given, schema)
        if carries is None and view.outside:
            carries = _many_calls(tool, given, context)
    elif effect == "acts":
        carries = _secret(given)
    if tool.said is not None and view.outside:
        said = tool.said(parsed, context)
        given = {name: value for name, value in given.items() if name not in said}
    labels: tuple[ArgumentLabel, ...] = ()
    if effect == "acts" or tool.sensitive is not None:
        labels = await anyio.to_thread.run_sync(
            lambda: label_arguments(
                given,
                view.acting if effect == "acts" else view.ordering,
                outside=view.outside,
                stated=tool.sensitive,
                schema=schema,
                origins=view.texts,
            )
        )
    # A description can only have an act made up: with arguments that are all said it is the person's.
    outside = bool(view.sources) if effect == "acts" else view.outside
    decision = decide(effect, right, labels, outside=outside, carries=carries)
    return CallJudgement(decision, effect, labels, view.sources)


def _secret(given: Mapping[str, Any]) -> str | None:
    kind = detect_secret("\n".join(argument_texts(given)))
    return None if kind is None else Reason("holds_secret", kind=kind)
