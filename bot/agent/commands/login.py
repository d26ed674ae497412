"""``/login``: create a code that logs in to the website.

Only the code's SHA-256 is stored with the logins. The code itself stays in the chat, where it is
worthless after its first use or ten minutes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.core.i18n import N_, _
from bot.memory.session.scope.identities import channel_of

_PRIVATE = N_("Send this in our private chat: anyone who sees the code can read your data.")
_NONE = N_(
    "I cannot log you in from this chat. Send me `/login` in a private chat on another channel."
)


@dataclass(frozen=True, slots=True)
class LoginCode:
    """A login code to show.

    Attributes:
        code: The code; valid once, for ten minutes.
        address: URL of the page where it is entered.
    """

    code: str
    address: str


CreateLoginCode = Callable[[str, str, str, str], Awaitable[LoginCode | None]]
"""Create a code from the channel, the person's id on it, their name, and the chat's key.

Returns None if the person cannot log in. Raises ``TapebotError`` if the code could not be recorded.
"""


def login_command(offer: CreateLoginCode) -> Command:
    """Return the command; ``offer`` creates codes."""

    async def run(arguments: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 (none)
        asker, chat = context.author, context.tape.name
        if not asker.private or not asker.id:
            return CommandReply(_(_PRIVATE))
        sender = context.command_entry.meta.get("sender")
        name = str(sender.get("name") or "") if isinstance(sender, dict) else ""
        login_code = await offer(channel_of(chat), asker.id, name or asker.id, chat)
        if login_code is None:
            return CommandReply(_(_NONE))
        return CommandReply(
            _(
                "Your code: {code}\n\nEnter it at {address}. It works once and expires after ten "
                "minutes. Give it to nobody: anyone who has it can read all your data here and write "
                "to me as you.",
                code=f"`{login_code.code}`",
                address=login_code.address,
            )
        )

    return Command("login", N_("open my site in a browser"), (), run)
