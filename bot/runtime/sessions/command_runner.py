"""Run commands that need no turn of their own, and record their replies on the tape."""

from __future__ import annotations

import logging

from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandRegistry, CommandReply
from bot.bus import Button, Delivery
from bot.core.errors import TapebotError
from bot.core.ids import new_id
from bot.memory.session.long_term_memory import LongTermMemory
from bot.runtime.sessions.context import SessionContext
from bot.runtime.sessions.delivery_tracker import DeliveryTracker
from bot.runtime.sessions.entries import (
    command_author,
    command_end_entries,
    command_entry,
    message_entry,
)
from bot.tape.entries import TapeEntry

logger = logging.getLogger(__name__)

GAVE_UP = (
    "I was interrupted while answering this, more than once, and have stopped trying; why is in my log. "
    "Your message is kept. To have me try again, press the button or send `/retry`."
)
COMMAND_GAVE_UP = (
    "I was interrupted while doing this, more than once, and have stopped trying; why is in my log. "
    "To have me try again, give the command again."
)

ONLY_COMMANDS = (
    "From here only commands are taken, such as `/memory`; `/help` lists them. What is said to me belongs "
    "into the chat itself."
)
_THEIR_OWN = (
    "`/{name}` is about the account of whoever gives it: only the person whose chat this is can do that, "
    "in the chat itself."
)
_OF_ACCOUNTS = frozenset({"link", "login", "unlink"})


def retry_button(entry: int) -> tuple[str, str]:
    """Return label and command of the button that retries a message."""
    return "Try again", f"/retry {entry}"


class CommandRunner:
    """Runs commands of one session; each reply is one append.

    Args:
        commands: All commands.
        context: The session as commands see it.
        memory: The session's long-term memory.
        deliveries: Sends the replies.
        timezone: The user's, by name.
    """

    def __init__(
        self,
        commands: CommandRegistry,
        context: SessionContext,
        memory: LongTermMemory,
        *,
        deliveries: DeliveryTracker,
        timezone: str,
    ) -> None:
        self._commands = commands
        self._context = context
        self._memory = memory
        self._fold = memory.fold
        self._zone = memory.zone
        self._deliveries = deliveries
        self._timezone = timezone

    def refusal(self, delivery: Delivery, parsed: ParsedCommand) -> str | None:
        """Return why the sender may not give this command; None if they may."""
        command = self._commands.get(parsed.name)
        if command is None:
            return None
        if delivery.inbound.via is not None and command.name in _OF_ACCOUNTS:
            return _THEIR_OWN.format(name=command.name)
        return command.refusal(parsed.arguments, command_author(delivery.inbound))

    async def reply_commands_only(self, delivery: Delivery) -> None:
        """Refuse a message from another surface that is no command; it is not recorded."""
        turn = new_id("turn")
        await self._zone.edit(
            None,
            lambda _, __, ___: command_end_entries(
                turn, delivery.inbound, ONLY_COMMANDS, self._fold
            ),
        )
        await self._deliveries.send_answers()

    async def run(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        """Record a command, run it, and reply; facts it saves cite the recorded command."""
        command = self._commands.get(parsed.name)
        heard = await self._hear(delivery, parsed)
        try:
            if command is None or command.run is None:
                reply = CommandReply(self._commands.unknown(parsed))
            else:
                context = self._context.for_author(command_author(delivery.inbound), heard)
                reply = await command.run(parsed.arguments, context)
        except TapebotError as error:
            reply = CommandReply(f"That did not work: {error}.")
        await self.reply(delivery, parsed, reply)

    async def reply(
        self,
        delivery: Delivery,
        parsed: ParsedCommand,
        reply: CommandReply,
    ) -> None:
        """Append command, memory change and reply in one step, and send the reply."""
        turn = new_id("turn")
        inbound = delivery.inbound
        replaces = inbound.pressed_message_id if reply.replaces_message else None
        known = inbound.id in self._fold.turns.unanswered_commands
        heard = [] if known else [command_entry(inbound, parsed, self._timezone)]
        await self._zone.edit(
            reply.zone_edit,
            lambda fresh, zone, _: [
                *heard,
                *reply.extra_entries,
                *zone,
                *command_end_entries(
                    turn,
                    inbound,
                    reply.render(fresh),
                    self._fold,
                    buttons=reply.buttons,
                    replaces=replaces,
                    files=reply.files,
                ),
            ],
        )
        await self._deliveries.send_answers()

    async def _hear(self, delivery: Delivery, parsed: ParsedCommand) -> TapeEntry:
        """Record a command; return the recorded entry if a killed process got that far."""
        known = self._fold.turns.unanswered_commands.get(delivery.inbound.id)
        if known is not None and (found := await self._memory.tape.read_entries(known, known)):
            return found[0]
        return await self._memory.tape.append(
            command_entry(delivery.inbound, parsed, self._timezone)
        )

    async def give_up(self, delivery: Delivery, parsed: ParsedCommand | None) -> None:
        """Record and answer a message that broke the worker before, without handling it."""
        inbound = delivery.inbound
        if parsed is None and not inbound.expects_answer:
            logger.warning("what was overheard in %s is left out: it broke down", inbound.session)
            await self._deliveries.acknowledge(delivery)
            return
        if parsed is None:
            heard = message_entry(inbound, self._timezone, paused=self._memory.paused)
        else:
            heard = command_entry(inbound, parsed, self._timezone)
        known = inbound.id in self._fold.turns.unanswered_commands
        text, status = (GAVE_UP, "interrupted") if parsed is None else (COMMAND_GAVE_UP, "error")
        buttons = [Button("Try again", "/retry")] if parsed is None else []
        logger.warning("message %s of %s is given up: it broke down", inbound.id, inbound.session)
        turn = new_id("turn")
        await self._zone.edit(
            None,
            lambda _, __, ___: [
                *([] if known else [heard]),
                *command_end_entries(
                    turn, inbound, text, self._fold, status=status, buttons=buttons
                ),
            ],
        )
        await self._deliveries.send_answers()
