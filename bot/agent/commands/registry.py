"""The command contract: definition, context, reply and registry of slash commands.

A command is on the tape before it runs. It returns a text and, if needed, an edit of the memory
zone; the session's worker writes the edit, the reply and the end of the turn in one append. A
command changes facts itself, under an idempotency key made from its message: run again after a
crash, it changes them only once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bot.agent.commands.parser import ParsedCommand, closest_name, split_form
from bot.agent.consolidation.imported_tapes import ImportedTape
from bot.agent.schedules.session_schedules import SessionSchedules
from bot.agent.spending.spending import Spending
from bot.bus import Button, Grant, OutgoingFile, Right, Role
from bot.core.i18n import _
from bot.llm.presets import ModelPresets
from bot.llm.spender import Spender
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.archive_summary import ArchiveSummary
from bot.memory.session.file_folder import FileFolders
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone, ZoneEdit
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

if TYPE_CHECKING:
    from bot.memory.erasure.closure import Closure
    from bot.memory.erasure.erasure_messages import ErasureResult
    from bot.memory.erasure.erasure_query import ErasureQuery


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The reply of a command.

    Attributes:
        text: Markdown.
        zone_edit: Edit of the memory zone.
        extra_entries: Entries written together with the reply.
        buttons: Buttons below the reply, if the platform has buttons.
        replaces_message: Whether the reply replaces the message whose button was pressed.
        files: Files sent with the reply, from the folder for exports.
    """

    text: str
    zone_edit: ZoneEdit | None = None
    extra_entries: Sequence[TapeEntry] = ()
    buttons: tuple[Button, ...] = ()
    replaces_message: bool = True
    files: tuple[OutgoingFile, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandAuthor:
    """The person who sent a command, and where.

    Attributes:
        role: The person's role.
        private: Whether the chat is private, with nobody else present.
        id: The platform's id of the person.
        inbound: The platform's id of the command's message.
        grant: What the token allows by which the command came; None if the person sent it.
    """

    role: Role
    private: bool
    id: str
    inbound: str
    grant: Grant | None = None


class CommandContext(Protocol):
    """What a command may use of its session."""

    @property
    def tape(self) -> TapeService:
        """The session's tape."""
        ...

    @property
    def fold(self) -> SessionFold:
        """The session's state."""
        ...

    @property
    def zone(self) -> MemoryZone:
        """The session's memory zone."""
        ...

    @property
    def memory(self) -> LongTermMemory:
        """The session's long-term memory."""
        ...

    @property
    def schedules(self) -> SessionSchedules:
        """Sets and changes the session's schedules."""
        ...

    @property
    def command_entry(self) -> TapeEntry:
        """The command's entry on the tape."""
        ...

    @property
    def author(self) -> CommandAuthor:
        """The person who sent the command."""
        ...

    @property
    def spending(self) -> Spending | None:
        """Counts what models cost; None if nothing is counted."""
        ...

    @property
    def spender(self) -> Spender:
        """The command's author, as models are called for them."""
        ...

    @property
    def files(self) -> FileFolders | None:
        """The folders of files; None if there are none."""
        ...

    @property
    def exports(self) -> Path:
        """The folder for exports."""
        ...

    @property
    def commands(self) -> CommandRegistry:
        """The registry of all commands."""
        ...

    async def export_memory(self) -> ArchiveSummary:
        """Write the session's memory to one archive file in the folder for exports.

        A command that is run again after a crash gets the same file.

        Raises:
            TapeWriteError: The storage failed.
        """
        ...

    async def preview_erasure(
        self, query: ErasureQuery, request: TapeEntry | None = None
    ) -> Closure:
        """Return what an erasure would remove, with the author's rights; nothing is changed."""
        ...

    async def erase(
        self, query: ErasureQuery, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> ErasureResult | Closure:
        """Permanently erase what an earlier request asks for, and the request itself.

        Args:
            query: The query of the request.
            request: The request's entry on this tape.
            shown: Numbers of the facts, and number of messages, that the author was shown.

        Returns:
            The result; or a preview, with nothing erased, if it would now remove much more.

        Raises:
            MemoryRefused: A running task knows the words; nothing was erased.
            TapeError: The storage failed; repeating the request continues from there.
        """
        ...

    async def drop_request(self, query: ErasureQuery) -> None:
        """Erase the words of this command itself, if they match nothing else."""
        ...

    def model_line(self) -> str:
        """Return the model's name and details, for ``/status``."""
        ...

    @property
    def presets(self) -> ModelPresets | None:
        """The models to choose from; None if there is only one."""
        ...

    @property
    def problems(self) -> Collection[str]:
        """What channels have no connection, one line each."""
        ...

    def judge_lines(self) -> list[str]:
        """Return what is wrong with the judge, in a line; none if nothing is."""
        ...

    def consolidation_line(self) -> str:
        """Return the state of consolidation: last run, running, or failed and why."""
        ...

    async def imported_tapes(self) -> list[ImportedTape]:
        """Return the conversations that were imported for the person, oldest first."""
        ...

    def import_pause(self) -> str:
        """Return what reading of imported conversations waits for; empty if for nothing."""
        ...


def _never(arguments: str) -> bool:  # noqa: ARG001 - as other conditions
    return False


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command.

    Attributes:
        name: Name without the slash; never translated.
        summary: One line for lists, marked for translation.
        forms: Arguments that it accepts, each with a marked line of help; empty if it takes none.
        run: Answers the command. None if the session's worker does (``/new``, ``/retry``,
            ``/stop``).
        waits_for_turn: Returns whether the command, with these arguments, must wait for a running
            turn to end.
        owner_only: Whether members may not use it.
        destructive: Returns whether the command, with these arguments, affects everybody in a
            group; there only owners may use it.
        hidden: Whether lists omit it.
        takes_files: Returns whether the command, with these arguments, uses files sent with it.
        right: The right that a token needs for it; None if only a person may do it, not a token.
        reads: First words of arguments, ``""`` for none, for which a token needs ``read`` instead.
    """

    name: str
    summary: str
    forms: tuple[tuple[str, str], ...]
    run: Callable[[str, CommandContext], Awaitable[CommandReply]] | None
    waits_for_turn: Callable[[str], bool] = _never
    owner_only: bool = False
    destructive: Callable[[str], bool] = _never
    hidden: bool = False
    takes_files: Callable[[str], bool] = _never
    right: Right | None = None
    reads: Collection[str] = ()

    @property
    def usage(self) -> str:
        """The accepted arguments, one form per line, as Markdown."""
        return "\n".join(f"`/{self.name} {form}`: {_(line)}" for form, line in self.forms)

    def unknown_form_text(self, form: str, known: Iterable[str]) -> str:
        """Return the reply to a form that the command does not have, with the closest one."""
        close = closest_name(form.lower(), filter(None, known))
        missing = _("There is no `{command}`.", command=f"/{self.name} {form[:40]}")
        return "\n\n".join([" ".join([missing, *did_you_mean(self.name, close)]), self.usage])

    def refusal(self, arguments: str, asker: CommandAuthor) -> str | None:
        """Return why the command may not be used like this; None if it may."""
        if asker.grant is not None:
            form = split_form(arguments)[0]
            reads = ("" if form.isdecimal() else form) in self.reads
            if not asker.grant.allows("read" if reads else self.right):
                return _(
                    "A token may not do `{command}`. Send it in a chat with me, or log in to the site.",
                    command=f"/{self.name} {form[:40]}".rstrip(),
                )
        if asker.role == "owner":
            return None
        if self.owner_only:
            return _("Only an owner may use `{command}`.", command=f"/{self.name}")
        if not asker.private and self.destructive(arguments):
            return group_owner_text()
        return None


def group_owner_text() -> str:
    """Return the reply to a member of a group who may not do what affects everyone."""
    return _("In a group only an owner may do this: it affects everyone here.")


def did_you_mean(command: str, form: str | None) -> list[str]:
    """Return a question that offers a form of a command; none if there is no form."""
    if not form:
        return []
    return [_("Did you mean `{command}`?", command=f"/{command} {form}")]


class CommandRegistry:
    """All commands of a program."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = {command.name: command for command in commands}

    def get(self, name: str) -> Command | None:
        """Return a command; None if there is none with this name."""
        return self._commands.get(name)

    def visible_commands(self) -> list[Command]:
        """Return the commands that are not hidden, by name, for menus and completion."""
        return [self._commands[n] for n in sorted(self._commands) if not self._commands[n].hidden]

    def names(self) -> list[str]:
        """Return the names of all commands, hidden ones too."""
        return sorted(self._commands)

    def help(self, asker: CommandAuthor) -> str:
        """Return the list of the commands that this person may use, as Markdown."""
        lines = []
        for command in self.visible_commands():
            if command.owner_only and asker.role != "owner":
                continue
            lines.append(f"- `/{command.name}`: {_(command.summary)}")
            lines += [f"  - {line}" for line in command.usage.splitlines()]
        return "\n".join(lines)

    def unknown(self, parsed: ParsedCommand) -> str:
        """Return a hint for a command that does not exist."""
        close = closest_name(parsed.name, self._commands)
        parts = [_("There is no command `{command}`.", command=f"/{parsed.name}")]
        if close:
            parts.append(_("Did you mean `{command}`?", command=f"/{close}"))
        return " ".join([*parts, _("`/help` lists all of them.")])


def person_batch(context: CommandContext, *proposals: Proposal) -> ProposalBatch:
    """Return the proposals that a command's author makes, as one batch."""
    return ProposalBatch(idempotency_key(context), "person", proposals, asker=context.author.id)


def idempotency_key(context: CommandContext) -> str:
    """Return the idempotency key of a command's changes, stable across redelivery."""
    # A platform's message ids are unique only within a chat, and a scope has several chats.
    return f"command:{context.tape.name}:{context.command_entry.id}"
