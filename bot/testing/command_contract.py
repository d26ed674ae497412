"""The command contract: what a slash command of a package promises to whoever sends it.

A test class of yours inherits it, and names the command; see ``docs/plugins.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.registry import Command, CommandAuthor, CommandContext, CommandReply
from bot.core.errors import TapebotError
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LONGEST_SUMMARY = 100
_ODD = ("", "?", "-1", "x" * 3_000, "Grüße 你好", "`*_[](", "page 9", "\u202e\u200b")


class CommandContract:
    """Tests of a command.

    Attributes:
        command: The command.
        arguments: Arguments that work; each is run.
    """

    command: ClassVar[Command]
    arguments: ClassVar[Sequence[str]]

    def test_every_platforms_menu_takes_it(self) -> None:
        assert _NAME.fullmatch(self.command.name), "small letters, digits and _"
        assert 0 < len(self.command.summary) <= _LONGEST_SUMMARY
        assert "\n" not in self.command.summary

    def test_help_lists_it_with_its_forms(self) -> None:
        author = CommandAuthor("owner", private=True, id="7", inbound="m1")
        told = builtin_commands([self.command]).help(author)
        listed = f"- `/{self.command.name}`: {self.command.summary}" in told
        assert listed is not self.command.hidden
        assert all(f"`/{self.command.name} {form}`" in told for form, _ in self.command.forms)

    async def test_it_answers(self, tmp_path: Path) -> None:
        for answer in await self._answers(tmp_path, self.arguments):
            assert answer.strip(), "a reply says something"
            assert not answer.startswith("That did not work"), answer

    async def test_arguments_that_it_does_not_know_are_answered_too(self, tmp_path: Path) -> None:
        assert all(await self._answers(tmp_path, _ODD))

    async def _answers(self, folder: Path, arguments: Sequence[str]) -> list[str]:
        """Return the answers to the command with each of these arguments."""
        run, failures = self.command.run, list[Exception]()
        assert run is not None, "a function that runs it"

        async def noting(given: str, context: CommandContext) -> CommandReply:
            try:
                return await run(given, context)
            except TapebotError:
                raise
            except Exception as error:
                # The session would try again and again; the test fails instead, below.
                failures.append(error)
                raise TapebotError("it failed") from error

        commands = builtin_commands([replace(self.command, run=noting)])
        async with session_host(folder, ScriptedModel(), commands=commands) as host:
            answers = [
                await host.channel.ask(f"/{self.command.name} {given}".strip())
                for given in arguments
            ]
        if failures:
            raise failures[0]
        return answers
