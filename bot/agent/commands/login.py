"""``/login``: a code that opens the site in a browser.

The code's SHA-256 alone is kept with the logins; what was shown stays in the chat, where it is worthless once it
was used, or ten minutes old.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.memory.identities import channel_of

_PRIVATE = "Ask me that in our private chat: whoever sees the code can read what is yours."
_NONE = "I cannot log you in from this chat. Send me `/login` in a private chat on another channel."


@dataclass(frozen=True, slots=True)
class LoginCode:
    """A code as somebody is shown it.

    Attributes:
        code: Good once, and for ten minutes.
        address: Of the page that it is entered at.
    """

    code: str
    address: str


CreateLoginCode = Callable[[str, str, str, str], Awaitable[LoginCode | None]]
"""Given the channel, its id of somebody, their name and their chat's key, returns a code for them; None where
they cannot have one. Raises ``TapebotError`` where it could not be recorded."""


def login_command(offer: CreateLoginCode) -> Command:
    """Return the command.

    Args:
        offer: Makes codes.
    """

    async def run(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 (none)
        asker, chat = context.author, context.tape.name
        if not asker.private or not asker.id:
            return CommandReply(_PRIVATE)
        sender = context.command_entry.meta.get("sender")
        name = str(sender.get("name") or "") if isinstance(sender, dict) else ""
        made = await offer(channel_of(chat), asker.id, name or asker.id, chat)
        if made is None:
            return CommandReply(_NONE)
        return CommandReply(
            f"Your code: `{made.code}`\n\nEnter it at {made.address}. It is good once, and for ten "
            "minutes. Give it to nobody, whoever asks: whoever has it can read all that is yours here, "
            "and write to me as you."
        )

    return Command("login", "open my site in a browser", (), run)
