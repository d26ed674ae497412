"""Which language a person reads: events on the tape ``workspace:languages``, folded.

Rule 1: a person's own choice comes first, then the language of the client that they use now, then
    that of the client that they used last, then the installation's.
Rule 2: all linked identities are one person; the newest choice counts.
Rule 3: the language of a client is recorded only when it changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from bot.bus import WEB_CHANNEL, Sender
from bot.core.errors import TapeError
from bot.core.i18n import LANGUAGES
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

LANGUAGES_TAPE = "workspace:languages"

_CHOSEN = "language.chosen"
_SEEN = "language.seen"


class LanguagesFold:
    """The languages of people.

    Attributes:
        chosen: What an identity chose, with a number that is the higher, the newer it is.
        seen: The language of the client that an identity used last, likewise.
    """

    def __init__(self) -> None:
        self.chosen: dict[str, tuple[int, str]] = {}
        self.seen: dict[str, tuple[int, str]] = {}
        self._newest = 0

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        kept = {_CHOSEN: self.chosen, _SEEN: self.seen}.get(entry.name or "")
        who, language = entry.data.get("who"), entry.data.get("language")
        if kept is None or not isinstance(who, str) or not isinstance(language, str):
            return
        kept.pop(who, None)
        if language in LANGUAGES:
            self._newest += 1
            kept[who] = self._newest, language


class Languages:
    """The languages that people read.

    Args:
        store: The store of all tapes.
        members: Returns the identities that are one person with an identity.
        default: The installation's language.

    Attributes:
        default: The installation's language.
    """

    def __init__(
        self, store: TapeStore, members: Callable[[str], Iterable[str]], default: str
    ) -> None:
        self.default = default
        self._tape = WorkspaceTape(store, LANGUAGES_TAPE, LanguagesFold())
        self._members = members

    @property
    def fold(self) -> LanguagesFold:
        """What is known, as far as the tape was read."""
        return self._tape.fold

    async def of_sender(self, channel: str, sender: Sender) -> str:
        """Return the language of who uses a client; remember the client's.

        Args:
            channel: The channel that the sender's id is of.
            sender: The sender.
        """
        identity = _identity(f"{channel}:{sender.id}")
        try:
            await self._tape.refresh()
            if (
                sender.language
                and self._tape.fold.seen.get(identity, (0, ""))[1] != sender.language
            ):
                await self._record(_SEEN, identity, sender.language)
        except TapeError as error:
            # In which language a person is answered must not decide whether.
            logger.warning("the languages of people cannot be read or written: %s", error)
        return self.choice(identity) or sender.language or self._known(identity)

    async def of_client(self, channel: str, sender: Sender) -> str:
        """Return the language of who uses a client, perhaps a stranger; nothing is recorded."""
        identity = f"{channel}:{sender.id}"
        await self._refresh()
        return self.choice(identity) or sender.language or self._known(_identity(identity))

    async def of(self, identity: str) -> str:
        """Return the language of a person who is told something unasked."""
        await self._refresh()
        return self._known(_identity(identity))

    async def language_of(self, identity: str) -> str | None:
        """Return the language that a person chose; None if they chose none.

        Raises:
            TapeError: The storage failed.
        """
        await self._tape.refresh()
        return self.choice(identity) or None

    async def choose(self, identity: str, language: str | None) -> None:
        """Record a person's choice; None withdraws it.

        Raises:
            TapeWriteError: The storage failed.
        """
        identity = _identity(identity)
        for one in {identity, *(() if language else self._members(identity))}:
            await self._record(_CHOSEN, one, language or "")

    def choice(self, identity: str) -> str:
        """Return a person's own choice as last read; empty without one."""
        return self._newest(self._tape.fold.chosen, _identity(identity))

    async def _refresh(self) -> None:
        try:
            await self._tape.refresh()
        except TapeError as error:
            logger.warning("the languages of people cannot be read: %s", error)

    async def _record(self, name: str, identity: str, language: str) -> None:
        def compose() -> tuple[list[TapeEntry], None]:
            # A choice that is made again becomes the newest of a person's.
            known = self._tape.fold.seen.get(identity, (0, ""))[1]
            if name == _SEEN and known == language:
                return [], None
            return [event(name, {"who": identity, "language": language})], None

        await self._tape.change(compose)

    def _known(self, identity: str) -> str:
        seen = self._newest(self._tape.fold.seen, identity)
        return self.choice(identity) or seen or self.default

    def _newest(self, kept: dict[str, tuple[int, str]], identity: str) -> str:
        people = {identity, *self._members(identity)}
        return max((kept[who] for who in people if who in kept), default=(0, ""))[1]


def _identity(identity: str) -> str:
    """Return the identity of a person; who logged in on the web is who they are on their platform."""
    channel, _, name = identity.partition(":")
    return name.replace(".", ":", 1) if channel == WEB_CHANNEL and "." in name else identity
