"""Decide who may use the bot, persist changes, and answer strangers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio

from bot.bus import WEB_CHANNEL, AccessDecision, AccessRequest, Address, BusError, Sender
from bot.bus.access.access_list import (
    AccessList,
    ConfiguredAccess,
    PairingRequest,
    RemovalResult,
    add_request,
    approve,
    has_owner,
    parse_principal,
    principal_of,
    role_of,
    with_chat,
    with_moves,
    with_owner,
    without,
)
from bot.bus.access.codes import (
    PAIRING_CODE_LENGTH,
    ClaimAttempt,
    ClaimRateLimiter,
    claim_attempt,
    new_code,
    same_code,
)
from bot.bus.access.file_store import FILE, FileAccessStore
from bot.bus.access.messages import (
    NEWCOMER,
    NO_SUCH_CODE,
    OWNED,
    WRONG_CLAIM,
    AccessOverview,
    Approval,
    approved_text,
    pairing_text,
)
from bot.bus.access.store import AccessSnapshot, AccessStore
from bot.core.clock import Clock, SystemClock
from bot.core.i18n import _, current_language, use_language

logger = logging.getLogger(__name__)

MANY_WRONG = (  # for the log
    f"{ClaimRateLimiter.MANY} wrong claim codes came within an hour: somebody may be guessing. The "
    "right code still works. To stop accepting codes, set TAPEBOT_OWNERS."
)

_GUARDED = frozenset({"telegram", "discord"})
"""The platforms whose people the access list names."""

T = TypeVar("T")

SendNotice = Callable[[Address, str], Awaitable[None]]
"""Sends a text to a chat; raises ``BusError`` if that fails."""


class AccessControl:
    """Decides who may use the bot (``bot.bus.Authorizer``); open it with ``open_access_control``.

    Args:
        store: Stores the access list; open.
        snapshot: The stored list when it was opened.
        configured: Access that the settings grant.
        clock: Times codes and attempts.
        send_notice: Sends messages to people who were given access; None if no bot runs.
    """

    def __init__(
        self,
        store: AccessStore,
        snapshot: AccessSnapshot,
        configured: ConfiguredAccess,
        clock: Clock,
        send_notice: SendNotice | None,
    ) -> None:
        self._store = store
        self._snapshot = snapshot
        self._configured = configured
        self._clock = clock
        self._send_notice = send_notice
        self._rate_limiter = ClaimRateLimiter()
        self._lock = anyio.Lock()

    @property
    def claim_code(self) -> str | None:
        """The code that makes its sender the owner; None if the bot has an owner, as last read."""
        return (
            None
            if has_owner(self._snapshot.access_list, self._configured)
            else self._snapshot.claim
        )

    def claim_code_for(self, platform: str) -> str | None:
        """Return the claim code if the bot has no owner on a platform, as last read; else None.

        Each platform has its own owners. The list is read when it is opened and for every request.
        """
        owned = has_owner(self._snapshot.access_list, self._configured, platform)
        return None if owned else self._snapshot.claim

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Return the sender's role, or the reply to a sender without access.

        A message that is a claim code is answered here and goes no further.

        Raises:
            BusError: The access list cannot be read, or a claim or a code could not be stored.
        """
        attempt = claim_attempt(access_request.text) if access_request.private else None
        if attempt is not None:
            decision = await self._answer_claim(access_request, attempt)
            if decision is not None:
                return decision
        role = role_of((await self._read()).access_list, self._configured, access_request)
        if role is not None or not access_request.private or access_request.text is None:
            return AccessDecision(role)
        return await self._answer_stranger(access_request)

    async def still_has_access(self, address: Address, person: str, private: bool = True) -> bool:
        """Return whether somebody may still use the bot in a chat, for what comes there unasked.

        Args:
            address: The chat.
            person: The person's id on its channel; on the web the platform and the id there.
            private: Whether it is their private chat.

        Raises:
            BusError: The access list cannot be read.
        """
        if not private:
            return await self._may_be_told(address, person)
        who = principal_of(address.channel, person)
        if address.channel == WEB_CHANNEL:
            who = principal_of(*person.split(".", 1)) if "." in person else None
        if who is None or who.partition(":")[0] not in _GUARDED:
            return True
        people = self._configured.owners | self._configured.allow
        return who in people or (await self._read()).access_list.person(who) is not None

    async def _may_be_told(self, address: Address, person: str) -> bool:
        """Return whether a group gets what somebody set there: it was not removed, and they may write in it."""
        if address.channel.partition("-")[0] not in _GUARDED:
            return True
        access_list = (await self._read()).access_list
        ids = [address.chat_id, *([] if address.topic is None else [address.topic])]
        if any(principal_of(address.channel, one) in access_list.removed for one in ids):
            return False
        if address.channel.startswith("discord"):
            # Its server is not known here: any that is allowed may be it.
            allowed = self._configured.allow | {one.chat for one in access_list.chats}
            ids += [one.partition(":")[2] for one in allowed]
        request = AccessRequest(address, Sender(person, ""), False, tuple(ids))
        # What an owner set from another surface has an id with its channel.
        return ":" in person or role_of(access_list, self._configured, request) is not None

    async def approve(self, code: str) -> Approval | None:
        """Give access to the person whom a code was created for, and tell them.

        Returns:
            The approval; None if the code is invalid.

        Raises:
            BusError: It could not be stored.
        """

        def decide(access_list: AccessList) -> tuple[AccessList, PairingRequest | None]:
            return approve(access_list, code, self._clock.now()) or (access_list, None)

        async with self._lock:
            request = await self._change(decide)
        if request is None:
            return None
        logger.debug("%s was allowed", request.person)
        with use_language(request.language or current_language()):
            notified = await self._notify(request.address)
        return Approval(request.person, request.name, request.address, notified)

    async def allow_chat(self, text: str) -> str | None:
        """Give access to everybody in a chat, such as ``telegram:-100``.

        Returns:
            The chat as it is listed; None if the id is malformed.

        Raises:
            BusError: It could not be stored.
        """
        chat = parse_principal(text)
        if chat is None:
            return None
        async with self._lock:
            return await self._change(
                lambda access_list: (with_chat(access_list, chat, self._clock.now()), chat)
            )

    async def move_chats(self, channel: str, moves: dict[str, str]) -> dict[str, str]:
        """Keep present ids of a platform's chats by their first ones; return all that are kept.

        Raises:
            BusError: They could not be read or stored.
        """
        platform = channel.partition("-")[0]
        new = {f"{platform}:{old}": f"{platform}:{now}" for old, now in moves.items()}
        async with self._lock:
            await self._change(lambda access_list: (with_moves(access_list, new), None))
        pairs = [[one.split(":") for one in pair] for pair in self._snapshot.access_list.moved]
        return {old[1]: now[1] for old, now in pairs if old[0] == platform}

    async def remove(self, text: str) -> RemovalResult:
        """Remove a person's or chat's access at once; return the outcome.

        Raises:
            BusError: It could not be stored.
        """
        known = parse_principal(text)
        if known is None:
            return "unknown"
        async with self._lock:
            return await self._change(
                lambda access_list: without(access_list, self._configured, known)
            )

    async def overview(self) -> AccessOverview:
        """Return who has access, and who asks for it.

        Raises:
            BusError: The access list cannot be read.
        """
        return AccessOverview.of(
            (await self._read()).access_list, self._configured, self._clock.now()
        )

    async def handle(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer ``pair`` on the control socket: approve with a code, list without one.

        Raises:
            BusError: The access list cannot be read or stored.
        """
        code = request.get("code")
        if code is None:
            return {"ok": True, "text": (await self.overview()).text()}
        paired = await self.approve(code) if isinstance(code, str) else None
        if paired is None:
            return {"ok": False, "text": _(NO_SUCH_CODE)}
        return {"ok": True, "text": approved_text(paired)}

    async def _answer_claim(
        self, access_request: AccessRequest, attempt: ClaimAttempt
    ) -> AccessDecision | None:
        """Answer a claim attempt; None if the message is to be handled as any other."""
        person = principal_of(access_request.address.channel, access_request.sender.id)
        if person is None:
            return None
        elapsed = self._clock.monotonic()
        async with self._lock:
            snapshot = await self._read()
            if not self._lacks_owner(snapshot.access_list, access_request):
                return self._answer_repeated_claim(snapshot.access_list, access_request, attempt)
            allowed = self._rate_limiter.allowed(person, elapsed)
            if allowed and same_code(attempt.code, snapshot.claim):
                return await self._make_owner(access_request, attempt, person)
            if allowed:
                logger.debug("%s gave a wrong claim code", person)
                if self._rate_limiter.note_wrong(person, elapsed):
                    logger.warning(MANY_WRONG)
        if (
            role_of(snapshot.access_list, self._configured, access_request) is not None
            and not attempt.said
        ):
            return None  # a member's ordinary message that looks like a code
        return AccessDecision(None, _(WRONG_CLAIM) if allowed else None)

    async def _make_owner(
        self, access_request: AccessRequest, attempt: ClaimAttempt, person: str
    ) -> AccessDecision | None:
        """Make the sender the owner, unless another was first; the caller holds the lock."""

        def decide(access_list: AccessList) -> tuple[AccessList, AccessDecision | None]:
            if not self._lacks_owner(access_list, access_request):
                return access_list, self._answer_repeated_claim(
                    access_list, access_request, attempt
                )
            owned = with_owner(access_list, person, access_request.sender.name, self._clock.now())
            return owned, AccessDecision(None, _(OWNED))

        decision = await self._change(decide)
        if decision is not None:
            logger.info("the bot has an owner now: %s", person)
        return decision

    def _lacks_owner(self, access_list: AccessList, access_request: AccessRequest) -> bool:
        """Return whether the bot has no owner yet on the sender's platform."""
        return not has_owner(
            access_list, self._configured, access_request.address.channel.partition("-")[0]
        )

    def _answer_repeated_claim(
        self, access_list: AccessList, access_request: AccessRequest, attempt: ClaimAttempt
    ) -> AccessDecision | None:
        """Answer a repeated claim by an owner; None for other attempts."""
        # After a kill a platform redelivers a message that may already be answered.
        again = attempt.said and role_of(access_list, self._configured, access_request) == "owner"
        return AccessDecision(None, _(OWNED)) if again else None

    async def _answer_stranger(self, access_request: AccessRequest) -> AccessDecision:
        """Answer a stranger's private message."""
        now = self._clock.now()

        def decide(access_list: AccessList) -> tuple[AccessList, AccessDecision]:
            role = role_of(access_list, self._configured, access_request)
            if role is not None:  # given access while this request waited
                return access_list, AccessDecision(role)
            access_list, request = add_request(
                access_list, access_request, now, new_code(PAIRING_CODE_LENGTH)
            )
            if request is None:
                return access_list, AccessDecision(None)
            owned = has_owner(access_list, self._configured)
            return access_list, AccessDecision(None, pairing_text(request, now, owned=owned))

        async with self._lock:
            decision = await self._change(decide)
        if decision.reply is not None:
            logger.debug(
                "%s asks for access",
                principal_of(access_request.address.channel, access_request.sender.id),
            )
        return decision

    async def _notify(self, address: Address) -> bool:
        if self._send_notice is None:
            return False
        try:
            await self._send_notice(address, _(NEWCOMER))
        except BusError as error:
            logger.warning("a newcomer could not be told that they have access: %s", error)
            return False
        return True

    async def _read(self) -> AccessSnapshot:
        self._snapshot = await self._store.read()
        return self._snapshot

    async def _change(self, decide: Callable[[AccessList], tuple[AccessList, T]]) -> T:
        """Apply a decision to the newest list and store it; return the decision's outcome.

        It decides again if another process changed the list meanwhile. The caller holds the lock.
        """
        while True:
            snapshot = await self._read()
            access_list, outcome = decide(snapshot.access_list)
            if access_list == snapshot.access_list:
                return outcome
            saved = await self._store.save(snapshot, access_list)
            if saved is not None:
                self._snapshot = saved
                return outcome


@asynccontextmanager
async def open_access_control(
    home_or_store: Path | AccessStore,
    *,
    owners: Iterable[str] = (),
    allow: Iterable[str] = (),
    clock: Clock | None = None,
    send_notice: SendNotice | None = None,
) -> AsyncIterator[AccessControl]:
    """Open access control; close its store at the end.

    Args:
        home_or_store: The store; or a home folder, whose ``access.json`` is locked for this process.
        owners: The setting of this name.
        allow: The setting of this name.
        clock: Times codes and attempts.
        send_notice: Sends messages to people who were given access.

    Raises:
        TapeLocked: Another process uses the file.
        SettingsError: The stored list is damaged.
        BusError: The store cannot be reached.
    """
    store = (
        FileAccessStore(home_or_store / FILE) if isinstance(home_or_store, Path) else home_or_store
    )
    await store.open()
    try:
        configured = ConfiguredAccess(frozenset(owners), frozenset(allow))
        yield AccessControl(
            store, await store.read(), configured, clock or SystemClock(), send_notice
        )
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()
