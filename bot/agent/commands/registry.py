"""The command contract: what a command is given, and what it gives back.

A command is on the tape before it runs. It returns a text, and an edit of the memory zone where there is
one; the session's worker writes the edit, the reply and the end of the turn in one append. Facts it
changes itself, under a key made of the command's message: run again after a kill, it changes them once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.agent.commands.parser import ParsedCommand, closest_name
from bot.bus import Button, OutgoingFile, Role
from bot.memory.archive_summary import ArchiveSummary
from bot.memory.forgetting.erasure_candidates import ErasurePreview
from bot.memory.forgetting.erasure_messages import ErasureResult
from bot.memory.forgetting.erasure_query import ErasureQuery
from bot.memory.long_term_memory import LongTermMemory
from bot.memory.session_fold import SessionFold
from bot.memory.zone import MemoryZone, ZoneEdit
from bot.memory.zone_snapshot import MemorySnapshot
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command answers.

    Attributes:
        text: Markdown; made from the new snapshot where there is a change.
        zone_edit: An edit of the memory zone.
        extra_entries: Entries written along with the change.
        buttons: Shown below it where the platform has buttons.
        replaces_message: It takes the place of the message whose button was pressed.
        files: Sent with it; they lie in the folder for exports.
    """

    text: str | Callable[[MemorySnapshot], str]
    zone_edit: ZoneEdit | None = None
    extra_entries: Sequence[TapeEntry] = ()
    buttons: tuple[Button, ...] = ()
    replaces_message: bool = True
    files: tuple[OutgoingFile, ...] = ()

    def render(self, snapshot: MemorySnapshot) -> str:
        """Return the text."""
        return self.text if isinstance(self.text, str) else self.text(snapshot)


@dataclass(frozen=True, slots=True)
class CommandAuthor:
    """Who gave a command, as far as commands may know.

    Attributes:
        role: What they may do.
        private: Nobody else is present.
        id: The platform's id of them.
        inbound: The platform's id of the command's message.
    """

    role: Role
    private: bool
    id: str
    inbound: str


class CommandContext(Protocol):
    """What a command may use of its session."""

    @property
    def tape(self) -> TapeService:
        """The session's tape."""
        ...

    @property
    def fold(self) -> SessionFold:
        """Its state."""
        ...

    @property
    def zone(self) -> MemoryZone:
        """Its memory."""
        ...

    @property
    def memory(self) -> LongTermMemory:
        """What it believes."""
        ...

    @property
    def command_entry(self) -> TapeEntry:
        """The command, as it is on the tape."""
        ...

    @property
    def author(self) -> CommandAuthor:
        """Who gave the command."""
        ...

    @property
    def exports(self) -> Path:
        """The folder for exports."""
        ...

    @property
    def commands(self) -> CommandRegistry:
        """All commands."""
        ...

    async def export_memory(self) -> ArchiveSummary:
        """Write all that is remembered of the session into one file of the folder for exports.

        Run again after a kill, a command gets the same file.

        Raises:
            TapeWriteError: The storage refused.
        """
        ...

    async def preview_erasure(
        self, wanted: ErasureQuery, request: TapeEntry | None = None
    ) -> ErasurePreview:
        """Return what would be forgotten if the asker wanted it so; nothing is changed."""
        ...

    async def erase(
        self, wanted: ErasureQuery, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult | ErasurePreview:
        """Erase for good what an earlier request asks for, and the request.

        Args:
            wanted: What it asks for.
            request: Its entry on this tape.
            shown: Numbers of the facts, and how many messages, that the asker has been shown.

        Returns:
            What was forgotten; a survey where it would be much more, and nothing was erased.

        Raises:
            MemoryRefused: Something runs that knows the words; nothing was erased.
            TapeError: The storage refused; asking again goes on from there.
        """
        ...

    async def drop_request(self, wanted: ErasureQuery) -> None:
        """Erase the words of this command itself, where they found nothing else."""
        ...

    def model_line(self) -> str:
        """Return the model's name, and what there is to say of it."""
        ...

    def consolidation_line(self) -> str:
        """Return how consolidation stands: last done, running, failed and why."""
        ...


def _never(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command.

    Attributes:
        name: Without the slash.
        summary: One line for lists.
        forms: What may stand behind the name, with a line on each; none where there is only the
            plain one.
        run: Answers it. None for what the session's worker does itself (``/new``, ``/retry``, ``/stop``).
        waits_for_turn: Says of arguments whether they may not be acted on while a turn runs.
        owner_only: Members may not give it.
        destructive: Says of arguments whether they take something from everybody in a group: there
            it is the owner's.
        hidden: In no list.
    """

    name: str
    summary: str
    forms: tuple[tuple[str, str], ...]
    run: Callable[[str, CommandContext], Awaitable[CommandReply]] | None
    waits_for_turn: Callable[[str], bool] = _never
    owner_only: bool = False
    destructive: Callable[[str], bool] = _never
    hidden: bool = False

    @property
    def usage(self) -> str:
        """Its forms, one a line, as Markdown."""
        return "\n".join(f"`/{self.name} {form}`: {line}" for form, line in self.forms)

    def refusal(self, arguments: str, asker: CommandAuthor) -> str | None:
        """Return why somebody may not give this command; None where they may."""
        if asker.role == "owner":
            return None
        if self.owner_only:
            return f"Only an owner may use `/{self.name}`."
        if not asker.private and self.destructive(arguments):
            return "In a group only an owner may do this, since it concerns everybody here."
        return None


class CommandRegistry:
    """All commands of a program."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def get(self, name: str) -> Command | None:
        """Return a command; None where there is none of this name."""
        return self._commands.get(name)

    def visible_commands(self) -> list[Command]:
        """Return what is not hidden, by name, for menus and completion."""
        return [self._commands[n] for n in sorted(self._commands) if not self._commands[n].hidden]

    def help(self, asker: CommandAuthor) -> str:
        """Return the list of the commands that somebody may give, as Markdown."""
        lines = []
        for command in self.visible_commands():
            if command.owner_only and asker.role != "owner":
                continue
            lines.append(f"- `/{command.name}`: {command.summary}")
            lines += [f"  - {line}" for line in command.usage.splitlines()]
        return "\n".join(lines)

    def unknown(self, parsed: ParsedCommand) -> str:
        """Return a hint for a command that does not exist."""
        close = closest_name(parsed.name, self._commands)
        hint = f" Did you mean `/{close}`?" if close else ""
        return f"There is no command `/{parsed.name}`.{hint} `/help` lists all of them."
