"""The command contract: what a command is given, and what it gives back.

A command never writes. It returns a text, and a change of memory where there is one; the session's
worker writes the change, the reply and the end of the turn in one append, so that a command is done
exactly once, whatever is killed when.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.commands.parser import ParsedCommand, nearest
from bot.memory.fold import SessionFold
from bot.memory.snapshot import MemorySnapshot
from bot.memory.zone import Edit, MemoryZone
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command answers.

    Attributes:
        text: Markdown; made from the new snapshot where there is a change.
        change: An edit of the memory zone.
        notes: Entries written along with the change.
    """

    text: str | Callable[[MemorySnapshot], str]
    change: Edit | None = None
    notes: Sequence[TapeEntry] = ()

    def render(self, snapshot: MemorySnapshot) -> str:
        """Return the text."""
        return self.text if isinstance(self.text, str) else self.text(snapshot)


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
    def exports(self) -> Path:
        """The folder for exports."""
        ...

    @property
    def commands(self) -> CommandRegistry:
        """All commands."""
        ...

    def model_line(self) -> str:
        """Return the model's name, and what there is to say of it."""
        ...

    def consolidation_line(self) -> str:
        """Return how consolidation stands: last done, running, failed and why."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command.

    Attributes:
        name: Without the slash.
        summary: One line for lists.
        usage: Its forms, one a line; empty where there is only the plain one.
        run: Answers it. None for what the session's worker does itself (``/new``, ``/stop``).
        anytime: It may run while a turn does.
    """

    name: str
    summary: str
    usage: str
    run: Callable[[str, CommandContext], Awaitable[CommandReply]] | None
    anytime: bool = True


class CommandRegistry:
    """All commands of a program."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def get(self, name: str) -> Command | None:
        """Return a command; None where there is none of this name."""
        return self._commands.get(name)

    def listed(self) -> list[tuple[str, str]]:
        """Return names with summaries, for menus and completion."""
        return [(f"/{name}", self._commands[name].summary) for name in sorted(self._commands)]

    def help(self) -> str:
        """Return the list of commands as Markdown."""
        lines = []
        for name in sorted(self._commands):
            command = self._commands[name]
            lines.append(f"- `/{name}`: {command.summary}")
            lines += [f"  - {line}" for line in command.usage.splitlines()]
        return "\n".join(lines)

    def unknown(self, parsed: ParsedCommand) -> str:
        """Return a hint for a command that does not exist."""
        close = nearest(parsed.name, self._commands)
        hint = f" Did you mean `/{close}`?" if close else ""
        return f"There is no command `/{parsed.name}`.{hint} `/help` lists all of them."
