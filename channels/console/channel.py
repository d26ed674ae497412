"""The console channel: interactive at a terminal, else piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bot.bus import Address, ChannelPort, Sender
from bot.core.i18n import _, environment_language, use_language
from channels.base import LanguageOf, client_language
from channels.console.messages import InboundFactory
from channels.console.piped import PipedConversation


class ConsoleChannel:
    """A chat on standard input and output, with the person who started the program.

    If both are a terminal: a prompt with history, completion and streamed answers. Otherwise each
    line of the input is a message, and only answers reach the output.
    """

    def __init__(
        self,
        *,
        history_file: Path | None,
        user_name: str,
        language: LanguageOf = client_language,
        chat_id: str = "local",
        commands: Sequence[tuple[str, str]] = (),
        banner: str = "",
    ) -> None:
        self._history_file = history_file
        self._address = Address(self.name, chat_id)
        self._sender = Sender("local", user_name, environment_language(os.environ))
        self._language = language
        self._commands = tuple(commands)
        self._banner = banner

    @property
    def name(self) -> str:
        """The first part of the channel's session key."""
        return "console"

    async def run(self, port: ChannelPort) -> None:
        """Serve until the input ends, the person leaves, the output breaks or the bus closes."""
        with use_language(await self._language(self.name, self._sender)):
            await self._converse(port)

    async def _converse(self, port: ChannelPort) -> None:
        author = InboundFactory(self._address, self._sender)
        # Each is None if its descriptor was closed before the program started.
        source, sink = sys.stdin, sys.stdout
        if source is not None and sink is not None and source.isatty() and sink.isatty():
            # Imported here: the terminal's libraries take half of the start-up time.
            from channels.console.interactive import InteractiveConversation

            await InteractiveConversation(
                author,
                port,
                history_file=self._history_file,
                commands=[(name, _(summary)) for name, summary in self._commands],
                banner=self._banner,
            ).run()
            return
        await PipedConversation(
            author,
            port,
            source=None if source is None else source.fileno(),
            sink=None if sink is None else sink.fileno(),
        ).run()
