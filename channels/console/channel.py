"""The console channel: chooses between the terminal and the pipes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bot.bus import Address, ChannelPort, Sender
from channels.console.messages import InboundFactory
from channels.console.piped import PipedConversation


class ConsoleChannel:
    """The person who started the program, at its standard input and output.

    Both a terminal: a prompt with history, completion and streamed answers. Otherwise each line
    of the input is a message, and only answers reach the output.

    Args:
        history_file: Where typed lines are kept for the arrow keys, made with mode 0600 in a
            directory of mode 0700; None keeps them for this run only.
        user_name: The name shown to the bot.
        chat_id: The platform's id of the conversation.
        commands: Name and description of each slash command, for completion.
        banner: Printed first at a terminal, never into a pipe.
    """

    def __init__(
        self,
        *,
        history_file: Path | None,
        user_name: str,
        chat_id: str = "local",
        commands: Sequence[tuple[str, str]] = (),
        banner: str = "",
    ) -> None:
        self._history_file = history_file
        self._address = Address(self.name, chat_id)
        self._sender = Sender(id="local", name=user_name)
        self._commands = tuple(commands)
        self._banner = banner

    @property
    def name(self) -> str:
        """The first part of its session's key."""
        return "console"

    async def run(self, port: ChannelPort) -> None:
        """Serve until the input ends, the person leaves, the output breaks or the bus closes."""
        author = InboundFactory(self._address, self._sender)
        # A descriptor that was closed before the program started is None here.
        source, sink = sys.stdin, sys.stdout
        if source is not None and sink is not None and source.isatty() and sink.isatty():
            # The terminal's libraries take half of the start-up time; pipes do without them.
            from channels.console.interactive import InteractiveConversation

            await InteractiveConversation(
                author,
                port,
                history_file=self._history_file,
                commands=self._commands,
                banner=self._banner,
            ).run()
            return
        await PipedConversation(
            author,
            port,
            source=None if source is None else source.fileno(),
            sink=None if sink is None else sink.fileno(),
        ).run()
