"""Keeps the door: asks the roster, records what changes, and tells newcomers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.access.book import Book
from bot.access.codes import CLAIM, PAIRING, Attempt, Tries, claim_attempt, new_code, same_code
from bot.access.roster import (
    Named,
    Removal,
    Roster,
    approve,
    ask,
    claimed,
    has_owner,
    parse_place,
    place_of,
    role_of,
    with_chat,
    without,
)
from bot.access.wording import (
    NEWCOMER,
    NO_SUCH_CODE,
    OWNED,
    WRONG_CLAIM,
    Listing,
    Paired,
    approved_text,
    pairing_text,
)
from bot.bus import Address, BusError, Knock, Verdict
from bot.clock import Clock, SystemClock

logger = logging.getLogger(__name__)

MANY_WRONG = (
    f"{Tries.MANY} wrong claim codes came within an hour: somebody may be guessing. The right one "
    "is taken all the same; setting TAPEBOT_OWNERS ends the claim."
)

FILE = "access.json"
"""The roster's name in the home folder."""

Tell = Callable[[Address, str], Awaitable[None]]
"""Sends a text to a chat. Raises ``BusError`` where it cannot."""


class Door:
    """Says who may use the bot (``bot.bus.Access``). Open it with ``open_door``.

    Args:
        book: The roster's file, open.
        roster: What it says.
        named: Whom the settings name.
        clock: Times codes and tries.
        tell: Tells newcomers; None where nothing runs that could.
    """

    def __init__(
        self, book: Book, roster: Roster, named: Named, clock: Clock, tell: Tell | None
    ) -> None:
        self._book = book
        self._roster = roster
        self._named = named
        self._clock = clock
        self._tell = tell
        self._claim = new_code(CLAIM)
        self._tries = Tries()
        self._changing = anyio.Lock()

    @property
    def claim_code(self) -> str | None:
        """What makes its sender the owner, in this run; None once there is one."""
        return None if has_owner(self._roster, self._named) else self._claim

    def claim_code_for(self, platform: str) -> str | None:
        """Return the code while nobody on a platform owns the bot: owners differ by platform."""
        return None if has_owner(self._roster, self._named, platform) else self._claim

    async def admit(self, knock: Knock) -> Verdict:
        """Return whether somebody may, and what to tell them where they may not.

        A message that is a code is the door's alone: it is answered and goes no further.

        Raises:
            BusError: A claim or a code could not be recorded.
        """
        attempt = claim_attempt(knock.text) if knock.private else None
        if attempt is not None:
            verdict = await self._attempted(knock, attempt)
            if verdict is not None:
                return verdict
        role = role_of(self._roster, self._named, knock)
        if role is not None or not knock.private or knock.text is None:
            return Verdict(role)
        return await self._asked(knock)

    async def approve(self, code: str) -> Paired | None:
        """Let in whom this code was made for, and tell them; None where it is no good code.

        Raises:
            BusError: It could not be recorded.
        """
        async with self._changing:
            found = approve(self._roster, code, self._clock.now())
            if found is None:
                return None
            roster, request = found
            await self._save(roster)
        logger.debug("%s was let in", request.person)
        told = await self._told(request.address)
        return Paired(request.person, request.name, request.address, told)

    async def allow_chat(self, place: str) -> str | None:
        """Let everybody in who writes in a chat, e.g. ``telegram:-100``.

        Returns:
            The chat as it is listed; None where it is none.

        Raises:
            BusError: It could not be recorded.
        """
        chat = parse_place(place)
        if chat is not None:
            async with self._changing:
                await self._save(with_chat(self._roster, chat, self._clock.now()))
        return chat

    async def remove(self, place: str) -> Removal:
        """Take a person or a chat off, at once; say what became of that.

        Raises:
            BusError: It could not be recorded.
        """
        known = parse_place(place)
        if known is None:
            return "unknown"
        async with self._changing:
            roster, removal = without(self._roster, self._named, known)
            await self._save(roster)
        return removal

    def listed(self) -> Listing:
        """Return who may use the bot, and who waits."""
        return Listing.of(self._roster, self._named, self._clock.now())

    async def handle(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer ``pair`` on the control socket: with a code it approves, without one it lists.

        Raises:
            BusError: It could not be recorded.
        """
        code = request.get("code")
        if code is None:
            return {"ok": True, "text": self.listed().text()}
        paired = await self.approve(code) if isinstance(code, str) else None
        if paired is None:
            return {"ok": False, "text": NO_SUCH_CODE}
        return {"ok": True, "text": approved_text(paired)}

    async def _attempted(self, knock: Knock, attempt: Attempt) -> Verdict | None:
        """Judge a try at the claim; None where the message is to be judged as any other."""
        person = place_of(knock.address.channel, knock.sender.id)
        if person is None:
            return None
        async with self._changing:
            role = role_of(self._roster, self._named, knock)
            if role == "owner":
                # A platform sends a message again whose reply was cut off by a kill.
                return Verdict(None, OWNED) if attempt.said else None
            if self.claim_code_for(person.partition(":")[0]) is None:
                return None
            elapsed = self._clock.monotonic()
            allowed = self._tries.allowed(person, elapsed)
            if allowed and same_code(attempt.code, self._claim):
                now = self._clock.now()
                await self._save(claimed(self._roster, person, knock.sender.name, now))
                logger.info("the bot has an owner now: %s", person)
                return Verdict(None, OWNED)
            if allowed:
                logger.debug("%s gave a wrong claim code", person)
                if self._tries.note_wrong(person, elapsed):
                    logger.warning(MANY_WRONG)
        if role is not None and not attempt.said:
            return None  # a member's message that only looks like a code
        return Verdict(None, WRONG_CLAIM if allowed else None)

    async def _asked(self, knock: Knock) -> Verdict:
        """Answer a stranger's private message."""
        async with self._changing:
            role = role_of(self._roster, self._named, knock)
            if role is not None:  # let in while this one waited
                return Verdict(role)
            now = self._clock.now()
            roster, request = ask(self._roster, knock, now, new_code(PAIRING))
            await self._save(roster)
            owned = has_owner(self._roster, self._named)
        if request is None:
            return Verdict(None)
        logger.debug("%s asks to be let in", request.person)
        return Verdict(None, pairing_text(request, now, owned=owned))

    async def _told(self, address: Address) -> bool:
        if self._tell is None:
            return False
        try:
            await self._tell(address, NEWCOMER)
        except BusError as error:
            logger.warning("a newcomer could not be told that they were let in: %s", error)
            return False
        return True

    async def _save(self, roster: Roster) -> None:
        """Record the new state, then go by it. The caller holds the lock."""
        if roster == self._roster:
            return
        # A thread that has begun is waited for, whoever is cancelled: file and state stay the same.
        await anyio.to_thread.run_sync(self._book.save, roster)
        self._roster = roster


@asynccontextmanager
async def open_door(
    home: Path,
    *,
    owners: Iterable[str] = (),
    allow: Iterable[str] = (),
    clock: Clock | None = None,
    tell: Tell | None = None,
) -> AsyncIterator[Door]:
    """Take the roster of a home folder for this process; give it up at the end.

    Args:
        home: Holds ``access.json``.
        owners: The setting of this name.
        allow: The setting of this name.
        clock: Times codes and tries.
        tell: Tells newcomers that they were let in.

    Raises:
        TapeLocked: Another process has it.
        SettingsError: The roster's file is damaged.
    """
    book = Book(home / FILE)
    roster = await anyio.to_thread.run_sync(book.open)
    try:
        named = Named(frozenset(owners), frozenset(allow))
        yield Door(book, roster, named, clock or SystemClock(), tell)
    finally:
        book.close()
