"""The skills that a chat may use: the owner's own, and installed ones that the owner allowed."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from bot.agent.right_scopes import narrowest_right
from bot.agent.skills.skill_folder import list_folder, read_file
from bot.agent.skills.skill_package import SkillPackage, decode_package, package_digest, shown_path
from bot.agent.skills.skill_rights import (
    SKILLS_TAPE,
    SkillCopy,
    SkillRight,
    SkillsFold,
    damaged_event,
    dropped_event,
    fetched_event,
    revoked_event,
    right_event,
    strictest,
)
from bot.agent.skills.skill_sources import FetchedSkill, SkillFetcher, SkillSource
from bot.agent.tools.registry import Audience
from bot.agent.workspace_files import OwnSkill, WorkspaceFiles
from bot.bus import Address, Answer
from bot.bus.media.attachments import NO_SPACE, SPARE_BYTES
from bot.bus.media.blobs import Blobs
from bot.core.errors import BusError, SkillRefused
from bot.core.files import disk_error_text
from bot.core.i18n import _, use_language
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

MOST_COPIES = 100
MOST_RIGHTS = 200
MOST_OFFERED = 40
"""The most installed skills that a prompt lists."""

READ_TOOL = "skill_read"
"""Name of the tool that reads skills, for models."""

RESERVED = frozenset({"add", "allow", "page", "remove", "update"})
"""Words of ``/skills`` that are no names of skills."""


@dataclass(frozen=True, slots=True)
class OfferedSkill:
    """A skill that a chat may use.

    Attributes:
        name: Its name.
        description: Its description; the words of others unless it is the owner's own.
        own: Whether it is the owner's own.
    """

    name: str
    description: str
    own: bool


@dataclass(frozen=True, slots=True)
class SkillContent:
    """One file of a skill.

    Attributes:
        own: Whether the skill is the owner's own.
        data: The file's bytes.
        files: Sizes of all its files by path.
    """

    own: bool
    data: bytes
    files: Mapping[str, int]


class SkillLibrary:
    """Lists, reads, fetches and removes skills, and keeps the owner's rights to them.

    Args:
        workspace: Has the owner's own skills.
        store: The store of all tapes.
        blobs: Keeps the installed copies, so that every process can read them.
        linked: Returns the identities that are one person with an identity.
        fetcher: Gets skills from their sources.
        send: Sends a notice to a chat.
        language_of: Returns the language of a person, for notices.
    """

    def __init__(
        self,
        workspace: WorkspaceFiles,
        store: TapeStore,
        blobs: Blobs,
        *,
        linked: Callable[[str], Iterable[str]],
        fetcher: SkillFetcher,
        send: Callable[[Answer], Awaitable[object]],
        language_of: Callable[[str], Awaitable[str]],
    ) -> None:
        self.workspace = workspace
        self._tape = WorkspaceTape(store, SKILLS_TAPE, SkillsFold())
        self._blobs = blobs
        self._linked = linked
        self._fetcher = fetcher
        self._send = send
        self._language_of = language_of
        self._changing = anyio.Lock()

    async def state(self) -> SkillsFold:
        """Return all copies and rights, as they are now."""
        await self._tape.refresh()
        return self._tape.fold

    async def offered(self, audience: Audience) -> tuple[OfferedSkill, ...]:
        """Return the skills that these people may use: the owner's own first."""
        own = (await self.workspace.read()).skills
        found = [OfferedSkill(one.name, one.description, own=True) for one in own]
        taken = {one.name for one in own}
        fold = await self.state()
        for name in sorted({right.name for right in fold.rights.values()} - taken):
            copy = self._allowed(name, audience)
            if copy is not None and len(found) - len(own) < MOST_OFFERED:
                found.append(OfferedSkill(name, copy.description, own=False))
        return tuple(found)

    async def read(self, name: str, path: str, audience: Audience) -> SkillContent:
        """Return one file of a skill that these people may use.

        Raises:
            SkillRefused: There is no such skill or file, or it cannot be read.
        """
        for one in (await self.workspace.read()).skills:
            if one.name == name:
                return await anyio.to_thread.run_sync(_read_own, one, path)
        await self._tape.refresh()
        copy = self._allowed(name, audience)
        if copy is None:
            raise SkillRefused(_("there is no skill {name}", name=repr(name[:64])))
        package = await self.package(copy)
        if package is None:
            raise SkillRefused(
                _("the copy of the skill {name} is damaged; the owner was told", name=repr(name))
            )
        if path not in package.files:
            raise SkillRefused(
                _("the skill {name} has no file {path}", name=repr(name), path=shown_path(path))
            )
        sizes = {one: len(data) for one, data in package.files.items()}
        return SkillContent(own=False, data=package.files[path], files=sizes)

    def right(self, name: str, audience: Audience) -> SkillRight | None:
        """Return the right to an installed skill that counts, as far as the tape was read."""
        rights = self._tape.fold.rights
        return narrowest_right(
            lambda scope: rights.get((name, scope)),
            audience,
            self._linked,
            strictest,
            lambda right: right.decision == "never",
        )

    async def tool_refusal(
        self, tool: str, entries: Sequence[TapeEntry], turn: str, audience: Audience
    ) -> str | None:
        """Return why a turn may not use a tool, because of a skill that it has read; None if it may."""
        read = [] if tool == READ_TOOL else _read_in(entries, turn)
        if not read:
            return None
        own = {one.name for one in (await self.workspace.read()).skills}
        await self._tape.refresh()
        for name in read:
            right = self.right(name, audience)
            if name not in own and right is not None and right.tools and tool not in right.tools:
                return (
                    # for the model
                    f"this turn has read the skill {name!r}, and the owner lets it use only "
                    f"{', '.join(right.tools)}"
                )
        return None

    def _allowed(self, name: str, audience: Audience) -> SkillCopy | None:
        right, fold = self.right(name, audience), self._tape.fold
        if right is None or right.decision == "never" or right.digest in fold.damaged:
            return None
        return fold.copies.get(right.digest)

    async def package(self, copy: SkillCopy) -> SkillPackage | None:
        """Return a copy's files; None if its bytes are not those of its digest any more.

        Raises:
            SkillRefused: The storage cannot be read now.
        """
        try:
            data = await self._blobs.load(copy.digest)
        except OSError as error:
            raise SkillRefused(
                _(
                    "the copy of {name} cannot be read now ({reason})",
                    name=repr(copy.name),
                    reason=disk_error_text(error),
                )
            ) from error
        if data is None:
            await self._suspend(copy)
            return None
        return await anyio.to_thread.run_sync(decode_package, data)

    async def _suspend(self, copy: SkillCopy) -> None:
        """Use a damaged copy no more until it is allowed again, and tell the owner."""
        fold = await self.state()
        rights = [right for right in fold.rights_of(copy.name) if right.digest == copy.digest]
        if not rights or copy.digest in fold.damaged:
            return
        owners = {right.chat: right.by for right in rights if right.chat}
        for chat in sorted(owners):
            with use_language(await self._language_of(owners[chat])):
                text = _(
                    "The files of the skill `{name}` on the disk are not those that you allowed. I do not "
                    "use it until `/skills update {name}` fetched it and you allowed it again.",
                    name=copy.name,
                )
            mark = f"skill-{copy.name}-{copy.digest[:16]}-{self._tape.version}"
            try:
                await self._send(Answer(Address.parse(chat), mark, text))
            except BusError as error:
                logger.warning("the owner could not be told of a damaged skill: %s", error)
        await self._append(damaged_event(copy))

    async def fetch(self, source: SkillSource) -> tuple[SkillCopy, SkillPackage]:
        """Fetch a skill and keep a copy, which nobody is allowed yet.

        Raises:
            SkillRefused: It cannot be had or kept, or is no skill.
        """
        fetched = await self._fetcher.fetch(source)
        name = fetched.package.header.name
        if name in RESERVED:
            raise SkillRefused(_("the name `{name}` is a word of `/skills`", name=name))
        data = await anyio.to_thread.run_sync(fetched.package.encode)
        copy = _copy(fetched, package_digest(data))
        async with self._changing:
            await self._keep(copy, data)
            await self._drop(self._tape.fold.unused(name))
        return copy, fetched.package

    async def _keep(self, copy: SkillCopy, data: bytes) -> None:
        def compose() -> tuple[list[TapeEntry], bool]:
            fold = self._tape.fold
            if len(fold.copies) >= MOST_COPIES and copy.digest not in fold.copies:
                return [], False
            newest = fold.of(copy.name)[-1:]
            return ([] if newest == [copy] else [fetched_event(copy)]), True

        # First the tape, then the bytes: a kill leaves no bytes that nobody knows of.
        if not await self._tape.change(compose):
            raise SkillRefused(
                _(
                    "there are {most} skills already: remove others first",
                    most=MOST_COPIES,
                )
            )
        try:
            free = await self._blobs.free()
            if free is not None and free - len(data) < SPARE_BYTES:
                raise SkillRefused(_("the skill is {reason}", reason=NO_SPACE))
            await self._blobs.put(data)
        except OSError as error:
            raise SkillRefused(
                _("it cannot be kept ({reason})", reason=disk_error_text(error))
            ) from error

    async def decide(self, right: SkillRight) -> None:
        """Record a decision of the owner.

        Raises:
            SkillRefused: The copy is damaged or gone, or there are too many rights.
        """
        async with self._changing:
            fold = await self.state()
            if right.decision == "allow":
                copy = fold.copies.get(right.digest)
                if copy is None or await self.package(copy) is None:
                    raise SkillRefused(
                        _(
                            "that copy of `{name}` is not whole; `/skills update {name}` fetches it again",
                            name=right.name,
                        )
                    )

            def compose() -> tuple[list[TapeEntry], bool]:
                rights = self._tape.fold.rights
                full = len(rights) >= MOST_RIGHTS and right.key not in rights
                return ([] if full else [right_event(right)]), not full

            if not await self._tape.change(compose):
                raise SkillRefused(
                    _(
                        "there are {most} rights already: remove a skill first",
                        most=MOST_RIGHTS,
                    )
                )
            await self._drop(self._tape.fold.unused(right.name))

    async def remove(self, name: str) -> bool:
        """Remove an installed skill with its copies and rights; return whether there was one.

        Raises:
            SkillRefused: The storage refused; it is not used any more, and may be removed again.
        """
        async with self._changing:
            fold = await self.state()
            copies = fold.of(name)
            if not copies and not fold.rights_of(name):
                return False
            await self._append(revoked_event(name))
            await self._drop(copies)
        return True

    async def _drop(self, copies: Iterable[SkillCopy]) -> None:
        for copy in tuple(copies):
            try:
                await self._blobs.remove(copy.digest)
            except OSError as error:
                raise SkillRefused(
                    _(
                        "a copy of `{name}` cannot be removed ({reason})",
                        name=copy.name,
                        reason=disk_error_text(error),
                    )
                ) from error
            await self._append(dropped_event(copy))

    async def _append(self, entry: TapeEntry) -> None:
        def compose() -> tuple[list[TapeEntry], None]:
            return [entry], None

        await self._tape.change(compose)


def _copy(fetched: FetchedSkill, digest: str) -> SkillCopy:
    header = fetched.package.header
    return SkillCopy(
        header.name,
        digest,
        header.description,
        fetched.source.address,
        fetched.source.path,
        fetched.commit,
        len(fetched.package.files),
        fetched.package.size,
    )


def _read_in(entries: Sequence[TapeEntry], turn: str) -> list[str]:
    """Return the names of the skills that a turn has called for."""
    return [
        _named_skill(str(call.get("arguments")))
        for entry in entries
        if entry.meta.get("turn") == turn
        for call in entry.calls
        if str(call.get("name")).replace(".", "_") == READ_TOOL
    ]


def _named_skill(arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    return str(given.get("name")) if isinstance(given, dict) else ""


def _read_own(skill: OwnSkill, path: str) -> SkillContent:
    try:
        data = read_file(skill.folder, path)
        return SkillContent(own=True, data=data, files=list_folder(skill.folder))
    except OSError as error:
        raise SkillRefused(
            _(
                "the skill {name} cannot be read ({reason})",
                name=repr(skill.name),
                reason=disk_error_text(error),
            )
        ) from error
