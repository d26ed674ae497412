"""Run a turn's tool calls: each is on the tape before it runs, and gets exactly one result."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from bot.agent.approvals import (
    APPROVAL_LIFETIME,
    LONGEST_QUESTION,
    Approvals,
    approval_question,
    decision_buttons,
    interrupted_text,
)
from bot.agent.client_requests import client_tool_names
from bot.agent.flow.answers import AnswerLinks
from bot.agent.flow.judgement import CallJudgement, context_grants, context_view, judge_call
from bot.agent.request_builder import RequestBuilder
from bot.agent.texts import model_language, readers_language
from bot.agent.tools.registry import (
    Audience,
    Permission,
    Tool,
    ToolContext,
    ToolOutcome,
    question_results,
)
from bot.core.errors import MemoryRefused
from bot.core.telemetry.metrics import TOOL_SECONDS
from bot.core.telemetry.tracing import span
from bot.llm.base import ModelReply, ToolCall, Usage
from bot.llm.spender import current_spender
from bot.memory.records.attachments import attachment_record
from bot.memory.records.conversation_entries import QUESTION
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.records.outside_text import APPROVED, LINKS, REPEATS_OUTSIDE
from bot.memory.records.pending_calls import (
    CallStatus,
    PendingCall,
    decided_entry,
    pending_entry,
    result_entries,
    result_event,
    started_entry,
)
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import is_automation, is_owner
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.state.zone_versions import find_zone_version
from bot.tape.entries import TapeEntry, tool_call, tool_result


class ToolCallRunner:
    """Records and runs the tool calls of one turn.

    Args:
        session: The session's state and tools.
        on_tool: Called with the name of each tool before it runs.

    Attributes:
        memory_seen: Memory as it was when the model was asked.
        spent: Usage of tools that call a model themselves.
        show: Shows the person what takes long; None while nobody looks.
        described: Whether these calls count as described by others in any case.
    """

    def __init__(self, session: RequestBuilder, on_tool: Callable[[str], Awaitable[None]]) -> None:
        self.memory_seen = MemorySnapshot()
        self.spent = Usage()
        self.show: Callable[[str], None] | None = None
        self.described = False
        self._session = session
        self._on_tool = on_tool

    def call_entry(self, turn: str, reply: ModelReply) -> TapeEntry:
        """Return a reply's calls as an entry; make ids unique, as some servers repeat them."""
        taken = {
            str(call.get("id"))
            for entry in self._session.fold.window.entries
            for call in entry.calls
        }
        calls = []
        theirs = self._client_tools()
        for call in reply.tool_calls:
            # Every provider accepts nine letters and digits as an id.
            unique = call.id if call.id and call.id not in taken else token_hex(5)[:9]
            taken.add(unique)
            tool = None if call.name in theirs else self._session.agent.tools.get(call.name)
            name = call.name if tool is None else tool.wire_name
            extra = {"extra": dict(call.extra)} if call.extra else {}
            calls.append({"id": unique, "name": name, "arguments": call.arguments, **extra})
        return tool_call(
            reply.content,
            calls,
            reasoning=reply.reasoning,
            origin=reply.origin,
            turn=turn,
            memory=self.memory_seen.version,
        )

    async def run_pending(self, turn: str) -> bool:
        """Run the calls of the turn's newest step that have no result yet, in order; return whether all went well."""
        entries = self._session.fold.window.entries
        done = {entry.payload.get("call_id") for entry in entries if entry.kind == "tool_result"}
        pending = next((e for e in reversed(entries) if e.kind == "tool_call"), None)
        if pending is None or pending.meta.get("turn") != turn:
            return False
        seen = pending.meta.get("memory", 0)
        if seen != self.memory_seen.version:
            former = await find_zone_version(self._session.tape, seen)
            self.memory_seen = former or self._session.zone.read()
        theirs = self._client_tools()
        statuses = set()
        for call in pending.calls:
            if call["id"] not in done and call["name"] not in theirs:
                # In a turn that a kill stopped, a call must not fail because its tool has not come yet.
                await self._session.agent.tools.wait_for(call["name"])
                called = ToolCall(call["id"], call["name"], call["arguments"])
                statuses.add(await self._run(turn, called))
        return statuses == {"ok"}

    def calls_for_client(self, turn: str) -> TapeEntry | None:
        """Return the turn's newest step if it has calls that its client must run; None if not."""
        theirs = self._client_tools()
        if not theirs:
            return None
        entries = self._session.fold.window.entries
        called = next((e for e in reversed(entries) if e.kind == "tool_call"), None)
        if called is None or called.meta.get("turn") != turn:
            return None
        done = {entry.payload.get("call_id") for entry in entries if entry.kind == "tool_result"}
        waits = any(call["name"] in theirs and call["id"] not in done for call in called.calls)
        return called if waits else None

    def _client_tools(self) -> frozenset[str]:
        """Return the names of the client's own tools, which run in the client."""
        opened = self._session.fold.turns.open_turn
        return client_tool_names(opened.client) if opened is not None else frozenset()

    def _may_change_memory(self) -> bool:
        """Return whether every sender that the turn answers may clear memory shared by the chat."""
        asking = self._session.answered_messages()
        return bool(asking) and all(
            not is_automation(entry) and (entry.meta.get("private", True) or is_owner(entry))
            for entry in asking
        )

    async def _run(self, turn: str, call: ToolCall) -> str:
        tool = self._session.agent.tools.get(call.name)
        name = tool.wire_name if tool is not None else "unknown"
        await self._on_tool(name)
        began, outcome = time.perf_counter(), "failed"
        with span("tool", tool=name) as here:
            try:
                outcome = await self._run_and_record(turn, call)
                here.set(outcome=outcome)
            finally:
                TOOL_SECONDS.observe(time.perf_counter() - began, name, outcome)
        return outcome

    async def _run_and_record(self, turn: str, call: ToolCall) -> str:
        """Run a call and write its result to the tape; return its status."""
        with model_language():
            return await self._run_for_model(turn, call)

    async def _run_for_model(self, turn: str, call: ToolCall) -> str:
        session, context = self._session, await self._call_context(turn, call.id)
        tool = session.agent.tools.get(call.name)
        refusal = await session.agent.skills.tool_refusal(
            call.name.replace(".", "_"), session.fold.window.entries, turn, context.audience
        )
        if refusal is not None:
            outcome = ToolOutcome(f"Not run: {refusal}.", "error")
        elif tool is None or tool.effect == "reads_own":
            outcome = await self._execute(tool, call, context)
        else:
            outcome = await self._judge(turn, tool, call, context)
        marks = self._marks(tool, outcome)
        result = _result(turn, call, outcome, marks)
        if outcome.zone_edit is not None:
            try:
                await session.zone.edit(
                    outcome.zone_edit, lambda _, zone, __: [*outcome.extra_entries, *zone, result]
                )
            except MemoryRefused as error:
                outcome = ToolOutcome(f"Not saved: {error}.", "error")
                result = _result(turn, call, outcome, marks)
            else:
                return outcome.status
        await session.tape.append_many([*outcome.extra_entries, result])
        return outcome.status

    def _marks(self, tool: Tool[Any] | None, outcome: ToolOutcome) -> dict[str, Any]:
        """Return what marks a result as text from outside, or as one that may repeat such text."""
        if outcome.status == "pending":
            return {}
        effect = tool.effect if tool is not None else "reads_own"
        if outcome.from_outside or effect == "reads_world":
            return {FROM_OUTSIDE: True}
        # What tapebot's records say may be from before the view.
        repeats = effect == "reads_own" and self._session.fold.outside.first
        return {REPEATS_OUTSIDE: True} if repeats else {}

    async def _execute(
        self, tool: Tool[Any] | None, call: ToolCall, context: ToolContext
    ) -> ToolOutcome:
        """Run a call, and count what it costs; refuse it if a budget is used up."""
        agent = self._session.agent
        spending = agent.spending
        if tool is None or not tool.cost or spending is None:
            return await agent.tools.run(call, context)
        if (reached := spending.limit_reached(current_spender(), "tool")) is not None:
            return ToolOutcome(f"Not run: {reached}.", "error")
        outcome = await agent.tools.run(call, context)
        if outcome.status == "ok":
            spending.count(current_spender(), "tool", tool.name, Usage(cost=tool.cost))
        return outcome

    # Calls that may have to wait for a person's yes.

    async def _judge(
        self, turn: str, tool: Tool[Any], call: ToolCall, context: ToolContext
    ) -> ToolOutcome:
        """Run a call, refuse it, or have it wait for a yes, as the policy decides."""
        agent = self._session.agent
        parsed = agent.tools.parse(call, context)
        if isinstance(parsed, ToolOutcome):
            return parsed
        if (known := self._begun(context.call_key)) is not None:
            return await self._continue(turn, tool, known, call, context)
        permission = await _permission(tool, context)
        judgement = await judge_call(tool, permission, parsed[1], context)
        action = judgement.decision.action
        if action == "refuse":
            return _not_permitted(tool, permission)
        alone = agent.approvals is None or self._session.task is not None
        if alone and (action == "ask" or judgement.effect == "acts"):
            why = "; ".join(map(str, judgement.decision.reasons))
            return ToolOutcome(
                f"Not run: it needs a person's yes, and nobody can be asked here. {why}".strip(),
                "error",
            )
        if agent.approvals is None or (action == "run" and judgement.effect != "acts"):
            return await self._execute(tool, call, context)
        pending = await self._pending_call(call, context, agent.approvals, tool.cost, judgement)
        if action == "ask":
            asks = _asks_approval(pending, tool, call, turn)
            if asks.status == "error":
                await agent.approvals.close(pending.number)
            return asks
        entries = [
            pending_entry(pending, call_id=call.id, turn=turn),
            decided_entry(pending, "yes", permission.by, standing=True),
            started_entry(pending),
        ]
        await self._session.tape.append_many(entries)
        await agent.approvals.close(pending.number)
        return await self._continue(turn, tool, pending, call, context)

    def _begun(self, key: str) -> PendingCall | None:
        """Return a call that runs by the owner's standing decision and was stopped by a kill."""
        approved = self._session.fold.pending_calls.approved
        return next((one for one in approved if one.key == key), None)

    async def _continue(
        self, turn: str, tool: Tool[Any], pending: PendingCall, call: ToolCall, context: ToolContext
    ) -> ToolOutcome:
        """Run a call that the owner decided beforehand, unless a kill left it started."""
        # A call that was just started is not yet folded from the tape with that entry.
        if pending.started_entry and not tool.may_repeat:
            outcome = ToolOutcome(
                "tapebot was stopped while this ran: it is not known whether it happened.",
                "unknown",
            )
        else:
            outcome = await self._execute(tool, call, context)
        outcome, status = _ended(outcome, pending, tool)
        done = result_event(pending, status, "", turn=turn)
        return replace(outcome, extra_entries=[*outcome.extra_entries, done])

    async def _pending_call(
        self,
        call: ToolCall,
        context: ToolContext,
        approvals: Approvals,
        cost: float,
        judgement: CallJudgement,
    ) -> PendingCall:
        people = context.audience.people
        return PendingCall(
            await approvals.take_number(self._session.tape.name, context.call_key, people),
            call.name,
            call.arguments,
            context.call_key,
            people,
            judgement.sources,
            self._session.agent.clock.now() + APPROVAL_LIFETIME,
            cost,
            judgement.labels,
            judgement.decision.reasons,
            tuple(entry.id for entry in context.answered_messages),
            self._session.fold.schedules.zone_name or self._session.agent.timezone_name,
        )

    async def run_approved(self, turn: str) -> None:
        """Run the approved calls that have no result yet, and record their results."""
        with model_language():
            await self._run_approved(turn)

    async def _run_approved(self, turn: str) -> None:
        session = self._session
        for call in session.fold.pending_calls.approved:
            await session.agent.tools.wait_for(call.tool)
            tool = session.agent.tools.get(call.tool)
            if call.started_entry and (tool is None or not tool.may_repeat):
                outcome = ToolOutcome("", "unknown")
            else:
                await self._on_tool(call.tool)
                outcome = await self._run_permitted(turn, tool, call)
            outcome, status = _ended(outcome, call, tool)
            content = outcome.text()
            own = tool is not None and tool.effect == "writes_own" and not outcome.from_outside
            made = result_entries(
                call, status, content, turn=turn, attachments=outcome.attachments, own=own
            )
            made[-1] = _with_links(_with_question(made[-1], outcome), outcome)
            if status == "ok":
                sent = [call.tool, call.arguments, list(call.asked_by), list(call.answers)]
                made[-1] = made[-1].with_meta(**{APPROVED: sent})
            await session.tape.append_many([*outcome.extra_entries, *made])
            if session.agent.approvals is not None:
                await session.agent.approvals.close(call.number)

    async def _run_permitted(
        self, turn: str, tool: Tool[Any] | None, call: PendingCall
    ) -> ToolOutcome:
        """Run a call that a person approved, unless the owner took the tool's right away since."""
        context = replace(
            self.context(turn),
            call_key=call.key,
            by_owners=True,
            approved=True,
            audience=Audience(self._session.tape.name, call.asked_by),
            answered_messages=await self._messages(call.answers),
        )
        if tool is not None:
            permission = await _permission(tool, context)
            if permission.decision == "never":
                return _not_permitted(tool, permission)
            if not tool.may_repeat:
                await self._session.tape.append(started_entry(call))
        made = ToolCall(call.key, call.tool, call.arguments)
        return await self._execute(tool, made, context)

    async def _messages(self, ids: Collection[int]) -> list[TapeEntry]:
        """Return the messages that asked for an approved call."""
        tape = self._session.tape
        found = [entry for one in ids for entry in await tape.read_entries(one, one)]
        return [entry for entry in found if entry.kind == "message" and not is_erased(entry)]

    def abandoned(self, turn: str) -> tuple[list[TapeEntry], list[str]]:
        """Return the results of approved calls whose run is cancelled, and what a person is told of those that began."""
        entries, told = [], []
        for call in self._session.fold.pending_calls.approved:
            tool = self._session.agent.tools.get(call.tool)
            began = bool(call.started_entry) or tool is None or tool.may_repeat
            status: CallStatus = "unknown" if began else "stopped"
            entries += result_entries(call, status, "", turn=turn)
            told += [interrupted_text(call, tool)] if began else []
        return entries, told

    def context(self, turn: str, call_id: str = "") -> ToolContext:
        """Return what a call of a turn may use."""
        session, window = self._session, self._session.fold.window
        asking = session.answered_messages()
        return ToolContext(
            session.tape,
            session.zone,
            session.memory,
            self.memory_seen,
            may_change_memory=self._may_change_memory(),
            turn=turn,
            view_start=window.first_id,
            turn_start=next(iter(window.turn_starts()[-1:]), window.first_id),
            call_key=f"{session.tape.name}:{turn}:{call_id}" if call_id else "",
            by_owners=bool(asking) and all(map(is_owner, asking)),
            answered_messages=asking,
            vectors=session.agent.searchable_vectors,
            task_model=session.agent.task_model,
            has_judge=session.agent.has_judge,
            problem=session.fold.problem,
            record_usage=self._spend,
            audience=session.audience(),
            view=session.fold if session.task is not None else None,
            summaries=session.agent.builder.summaries,
            files=session.readable_files(),
            show=self.show,
        )

    async def _call_context(self, turn: str, call_id: str = "") -> ToolContext:
        """Return what a call may use, and whether others describe what the turn is offered."""
        context, agent = self.context(turn, call_id), self._session.agent
        tools = await agent.tools.has_descriptions(context.audience)
        skills = await agent.skills.offered(context.audience)
        others = self.described or tools or not all(skill.own for skill in skills)
        return replace(context, described=others)

    async def answer_filter(self, turn: str) -> AnswerLinks | None:
        """Return what makes links in an answer text that nobody named; None if none could be."""
        context = await self._call_context(turn)
        if not context_view(context).outside:
            return None
        return AnswerLinks(context_grants(context).permits)

    def _spend(self, usage: Usage) -> None:
        self.spent += usage


async def _permission(tool: Tool[Any], context: ToolContext) -> Permission:
    if tool.permission is None:
        return Permission("ask" if tool.effect == "acts" else "always")
    return await tool.permission(context)


def _not_permitted(tool: Tool[Any], permission: Permission) -> ToolOutcome:
    reason = permission.reason or "the owner has not allowed it here"
    return ToolOutcome(f"Not run: {tool.wire_name} may not be used; {reason}.", "error")


def _ended(
    outcome: ToolOutcome, call: PendingCall, tool: Tool[Any] | None
) -> tuple[ToolOutcome, CallStatus]:
    """Return a result and its status; of what is not known the program itself tells the person."""
    if outcome.status != "unknown":
        return outcome, "ok" if outcome.status == "ok" else "error"
    with readers_language():
        return replace(outcome, question=interrupted_text(call, tool)), "unknown"


def _asks_approval(pending: PendingCall, tool: Tool[Any], call: ToolCall, turn: str) -> ToolOutcome:
    """Return the result of a call that waits for a yes; nothing is run."""
    number = pending.number
    with readers_language():
        question, buttons = approval_question(pending, tool), decision_buttons(number)
    if len(question) > LONGEST_QUESTION:
        return ToolOutcome(
            "Not run: it needs the user's yes, and is too long to be shown to them whole. Make several "
            "shorter calls.",
            "error",
        )
    return ToolOutcome(
        f"Not run yet: call {number} waits for the user's yes, and the user is asked below your "
        "answer. Do what else there is, then answer; you get the result when they have decided.",
        "pending",
        question=question,
        extra_entries=[pending_entry(pending, call_id=call.id, turn=turn)],
        buttons=buttons,
    )


def _result(turn: str, call: ToolCall, outcome: ToolOutcome, marks: dict[str, Any]) -> TapeEntry:
    entry = tool_result(call.id, call.name, outcome.text(), status=outcome.status, turn=turn)
    if marks:
        entry = entry.with_meta(**marks)
    if outcome.attachments:
        entry = entry.with_meta(attachments=list(map(attachment_record, outcome.attachments)))
    if outcome.files:
        entry = replace(
            entry, payload={**entry.payload, "files": [list(pair) for pair in outcome.files]}
        )
    return _with_links(_with_question(entry, outcome), outcome)


def _with_links(entry: TapeEntry, outcome: ToolOutcome) -> TapeEntry:
    """Return an entry with the addresses that code found in a successful result."""
    found = outcome.links if outcome.status == "ok" else ()
    return entry.with_meta(**{LINKS: list(found)}) if found else entry


def _with_question(entry: TapeEntry, outcome: ToolOutcome) -> TapeEntry:
    """Return an entry with the question that a result asks the user, if it asks one."""
    if not outcome.question:
        return entry
    asking = {
        QUESTION: outcome.question,
        "buttons": [list(button) for button in outcome.buttons],
    }
    return replace(entry, payload={**entry.payload, **asking})


def files_to_send(entries: Sequence[TapeEntry], turn: str) -> list[list[str]]:
    """Return the files that a turn's tools send with its answer: names, and names of exports."""
    results = [
        entry
        for entry in entries
        if entry.kind == "tool_result"
        and entry.meta.get("turn") == turn
        and "files" in entry.payload
    ]
    pairs = [tuple(pair) for entry in results for pair in entry.payload["files"]]
    return [list(pair) for pair in dict.fromkeys(pairs)]


def pending_question(entries: Sequence[TapeEntry], turn: str) -> tuple[str, list[list[str]]]:
    """Return the questions that a turn's tools ask the user, and their buttons; may be empty."""
    asking = question_results(entries, turn)
    questions = [str(entry.payload.get(QUESTION, "")) for entry in asking]
    return "\n\n".join(questions), [button for one in asking for button in one.payload["buttons"]]
