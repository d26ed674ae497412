"""Commands answered at once: their replies, and the ends of the turns that they are."""

from __future__ import annotations

import logging

from bot.bus import Delivery
from bot.commands.parser import ParsedCommand
from bot.commands.registry import CommandRegistry, CommandReply
from bot.errors import TapebotError
from bot.ids import new_id
from bot.memory.fold import SessionFold
from bot.memory.zone import MemoryZone
from bot.sessions.context import SessionContext
from bot.sessions.receipts import Receipts
from bot.sessions.records import asker_of, command_end, command_entry, message_entry

logger = logging.getLogger(__name__)

GAVE_UP = (
    "Something inside tapebot went wrong with this message, more than once; it is in the log. "
    "Your message is kept. Please try it in other words."
)


class Replies:
    """Answers commands of one session, each in one append.

    Args:
        commands: All there are.
        context: What they may use.
        fold: The session's state.
        zone: Its memory.
        receipts: Sends what is answered.
        timezone: The user's, by name.
    """

    def __init__(
        self,
        commands: CommandRegistry,
        context: SessionContext,
        fold: SessionFold,
        zone: MemoryZone,
        *,
        receipts: Receipts,
        timezone: str,
    ) -> None:
        self._commands = commands
        self._context = context
        self._fold = fold
        self._zone = zone
        self._receipts = receipts
        self._timezone = timezone

    def refusal(self, delivery: Delivery, parsed: ParsedCommand) -> str | None:
        """Return why the sender may not give this command; None where they may."""
        command = self._commands.get(parsed.name)
        if command is None:
            return None
        return command.refusal(parsed.arguments, asker_of(delivery.inbound))

    async def run(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        """Run a command, and answer it."""
        command = self._commands.get(parsed.name)
        try:
            if command is None or command.run is None:
                reply = CommandReply(self._commands.unknown(parsed))
            else:
                context = self._context.asked_by(asker_of(delivery.inbound))
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
        """Put command, change and reply on the tape, and send the reply."""
        turn = new_id("turn")
        inbound = delivery.inbound
        replaces = inbound.pressed if reply.in_place else None
        heard = command_entry(inbound, parsed, self._timezone)
        await self._zone.edit(
            reply.change,
            lambda fresh, zone, _: [
                heard,
                *reply.notes,
                *zone,
                *command_end(
                    turn,
                    inbound,
                    reply.render(fresh),
                    self._fold,
                    buttons=reply.buttons,
                    replaces=replaces,
                ),
            ],
        )
        await self._receipts.send()

    async def give_up(self, delivery: Delivery, parsed: ParsedCommand | None) -> None:
        """Give up on a message that may be what keeps the worker from its work."""
        inbound = delivery.inbound
        if parsed is None and not inbound.asks:
            logger.warning("what was overheard in %s is left out: it broke down", inbound.session)
            await self._receipts.done(delivery)
            return
        if parsed is None:
            heard = message_entry(inbound, self._timezone)
        else:
            heard = command_entry(inbound, parsed, self._timezone)
        turn = new_id("turn")
        await self._zone.edit(
            None,
            lambda _, __, ___: [
                heard,
                *command_end(turn, inbound, GAVE_UP, self._fold, status="error"),
            ],
        )
        await self._receipts.send()
