"""``/approve``, ``/deny``, ``/approvals`` and ``/why``: tool calls that wait for a person's yes.

A decision counts once. In another chat than the one that asks, the command is forwarded to that chat's
session, which decides; its reply comes back.
"""

from __future__ import annotations

from collections.abc import Collection

from bot.agent.approvals import (
    Approvals,
    WaitingCall,
    approval_question,
    decision_buttons,
    explanation,
    tool_label,
)
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.foreign_text import code
from bot.agent.tools.registry import ToolRegistry
from bot.bus import Address, Bus, Button, Inbound, Sender
from bot.core.i18n import N_, _
from bot.memory.records.pending_calls import (
    TOOL_DECIDED,
    TOOL_PENDING,
    PendingCall,
    describe_call_state,
    parse_pending,
    refused_entries,
)
from bot.memory.records.transcript import sender_name, sent_time
from bot.memory.session.scope.identities import identity_at
from bot.tape.service import TapeService

APPROVE = "approve"
_DENY = "deny"
_USAGE = N_("Give the number of the call, such as `/{name} 3`. `/approvals` lists what waits.")
_NOT_YOURS = N_("Only whoever asked for call {number}, or an owner, may decide it.")
_PAST = {
    "yes": (
        N_("Call {number} was approved already."),
        N_("Call {number} was approved already by {by}."),
    ),
    "no": (
        N_("Call {number} was denied already."),
        N_("Call {number} was denied already by {by}."),
    ),
}
_PAST_TIME = N_("Call {number} was not answered in time already.")
_MOST_SHOWN = 10


class ApprovalCommands:
    """Decides on calls.

    Args:
        approvals: Numbers of calls over all sessions.
        bus: Forwards commands to other sessions.
        tools: The tools that are asked for.
    """

    def __init__(self, approvals: Approvals, bus: Bus, tools: ToolRegistry) -> None:
        self._approvals = approvals
        self._bus = bus
        self._tools = tools

    def commands(self) -> list[Command]:
        """Return the commands; ``/approve`` is carried out by the session's worker."""

        def waits(arguments: str) -> bool:  # noqa: ARG001 - whatever they are
            return True

        return [
            Command(
                APPROVE,
                N_("let a tool act that waits for your yes"),
                (("N", N_("yes to call N")),),
                run=None,
                waits_for_turn=waits,
                right="site",
            ),
            Command(
                _DENY,
                N_("do not let it act"),
                (("N", N_("no to call N")),),
                self._deny,
                waits,
                right="site",
            ),
            Command("approvals", N_("list what waits for your yes"), (), self._list, right="read"),
            Command(
                "why",
                N_("show where the arguments of a call come from"),
                (("N", N_("of call N, also after it ran")),),
                _why,
                right="read",
            ),
        ]

    async def find(
        self, name: str, arguments: str, context: CommandContext
    ) -> PendingCall | CommandReply:
        """Return the call that a command decides, or the reply to a command that decides none.

        Args:
            name: The command's name.
            arguments: Its arguments.
            context: Its session.

        Raises:
            BusError: It could not be forwarded.
        """
        number = _number(arguments)
        if number is None:
            return CommandReply(_(_USAGE, name=name), replaces_message=False)
        call = context.fold.pending_calls.calls.get(number)
        if call is None or call.decision is not None:
            return await self._elsewhere(name, number, context)
        if not _may_decide(call, context):
            return CommandReply(_(_NOT_YOURS, number=number), replaces_message=False)
        moment = sent_time(context.command_entry)
        if moment is not None and moment >= call.expires:
            await self._approvals.close(number)
            text = _("Call {number} was not answered in time: it was not run.", number=number)
            entries = refused_entries(call, "expired", "")
            return CommandReply(text, extra_entries=entries, replaces_message=False)
        return call

    async def _deny(self, arguments: str, context: CommandContext) -> CommandReply:
        found = await self.find(_DENY, arguments, context)
        if isinstance(found, CommandReply):
            return found
        await self._approvals.close(found.number)
        return CommandReply(
            _(
                "Denied: call {number} ({tool}) was not run.",
                number=found.number,
                tool=tool_label(found, self._tools.get(found.tool)),
            ),
            extra_entries=refused_entries(found, "no", decider(context)),
            replaces_message=False,
        )

    async def _list(self, arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG002
        calls = [call for call in context.fold.pending_calls.waiting if _may_decide(call, context)]
        here = {call.number for call in calls}
        parts = [
            approval_question(call, self._tools.get(call.tool)) for call in calls[:_MOST_SHOWN]
        ]
        others = [
            waiting
            for waiting in await self._approvals.waiting()
            if waiting.number not in here
            and waiting.session != context.tape.name
            and _concerns(waiting, context)
        ]
        parts += [
            _(
                "Call {number} waits in the chat {chat}: `/approve {number}` or `/deny {number}`.",
                number=waiting.number,
                chat=f"`{waiting.session}`",
            )
            for waiting in others[:_MOST_SHOWN]
        ]
        if not parts:
            return CommandReply(_("Nothing waits for your yes."))
        return CommandReply(
            "\n\n".join(parts),
            buttons=tuple(
                Button(*pair)
                for call in calls[:_MOST_SHOWN]
                for pair in decision_buttons(call.number)
            ),
            replaces_message=False,
        )

    async def _elsewhere(self, name: str, number: int, context: CommandContext) -> CommandReply:
        """Return the reply to a number that does not wait here; forward the command if it can be."""
        known = {waiting.number: waiting for waiting in await self._approvals.waiting()}
        waiting = known.get(number)
        asked = waiting or self._approvals.closed(number)
        if asked is None or asked.session == context.tape.name:
            if waiting is not None and number not in context.fold.pending_calls.calls:
                # A kill came between the decision and its note on the workspace's tape.
                await self._approvals.close(number)
            return CommandReply(await _past_decision(context.tape, number), replaces_message=False)
        if "via" in context.command_entry.meta or not _concerns(asked, context):
            return CommandReply(_unknown(number), replaces_message=False)
        author, entry = context.author, context.command_entry
        # Also of a call that waits no more: the chat that asked knows what became of it.
        address = Address.parse(asked.session)
        await self._bus.channel(address.channel).publish(
            Inbound(
                address,
                f"{author.inbound}@{context.tape.name}",
                Sender(author.id, sender_name(entry)),
                f"/{name} {number}",
                sent_time(entry) or context.zone.now(),
                private=author.private,
                role=author.role,
                answer_to=Address.parse(context.tape.name),
            )
        )
        told = N_("Call {number} was asked in the chat {chat}; I passed this on.")
        if waiting is not None:
            told = N_("Call {number} waits in the chat {chat}; I passed this on.")
        text = _(told, number=number, chat=f"`{asked.session}`")
        return CommandReply(text, replaces_message=False)


def _number(arguments: str) -> int | None:
    """Return the number of a call; None if it is none."""
    text = arguments.strip().lstrip("#")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None


async def _why(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/why N``: where the arguments of a call of this chat come from."""
    number = _number(arguments)
    if number is None:
        return CommandReply(_(_USAGE, name="why"), replaces_message=False)
    state = ""
    async for entry in context.tape.read_back():
        if entry.data.get("number") != number or entry.kind != "event":
            continue
        if entry.name == TOOL_PENDING:
            call = parse_pending(entry)
            if call is None or not _may_decide(call, context):
                break
            return CommandReply(explanation(call, state), replaces_message=False)
        state = state or describe_call_state(entry)
    text = _(
        "This chat has no call {number} that you may see; ask in the chat that asked you. `/memory why "
        "{number}` is about fact {number}.",
        number=number,
    )
    return CommandReply(text, replaces_message=False)


def decider(context: CommandContext) -> str:
    """Return the identity of a command's author, as ``telegram:42``."""
    if "via" in context.command_entry.meta:
        # The id of an author on another surface has its channel as prefix.
        return context.author.id
    return identity_at(context.tape.name, context.author.id)


def _may_decide(call: PendingCall, context: CommandContext) -> bool:
    """Say whether a command's author may decide a call of the session.

    In a private chat its person may, from any linked account; in a group whoever asked for it. An
    owner may always.
    """
    remote = "via" in context.command_entry.meta
    if context.author.role == "owner" or (context.author.private and not remote):
        return True
    return _is_one_of(call.asked_by, context)


def _concerns(waiting: WaitingCall, context: CommandContext) -> bool:
    """Say whether a command's author may decide a call of another session."""
    author = context.author
    return author.private and (author.role == "owner" or _is_one_of(waiting.people, context))


def _is_one_of(people: Collection[str], context: CommandContext) -> bool:
    linked = context.memory.scopes.identity_linker.people.members(decider(context))
    return any(identity in linked for identity in people)


async def _past_decision(tape: TapeService, number: int) -> str:
    """Return what became of a call that does not wait here, for people."""
    async for entry in tape.read_back():
        if entry.data.get("number") != number:
            continue
        if entry.name == TOOL_DECIDED:
            known = _PAST.get(str(entry.data.get("decision")))
            if known is None:
                return _(_PAST_TIME, number=number)
            by = entry.data.get("by")
            if not isinstance(by, str) or not by:
                return _(known[0], number=number)
            return _(known[1], number=number, by=code(by))
        if entry.name == TOOL_PENDING:
            break
    return _unknown(number)


def _unknown(number: int) -> str:
    return _("No call {number} waits. `/approvals` lists what waits.", number=number)
