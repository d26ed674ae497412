"""Fold the tape ``workspace:people``: which identities on which channels are one person. Pure.

Rule 1: an identity is a channel with the user id there, ``telegram:42``. The same id on two
    channels is two identities. A person has at most one identity per channel.
Rule 2: linking takes three steps: one side offers a code, the other claims it, and the first
    confirms the claim. A step that does not follow from those before changes nothing.
Rule 3: a code is claimed once; a new offer by the same identity voids the old one and its claim.
Rule 4: all identities of a person share the scope of the first one: that of the side that offered
    the code, or, if only the other side was linked already, of that one.
Rule 5: an identity that unlinks has its own scope again. If that was the joint one, the others
    continue in the scope of the next identity.
Rule 6: codes are not on the tape, only their SHA-256; of people, it has ids and names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.core.clock import format_time, parse_time
from bot.tape.entries import TapeEntry, event

WORKSPACE_PREFIX = "workspace:"
"""Prefix of the names of tapes that hold what the whole workspace shares."""

IDENTITIES_TAPE = "workspace:people"
"""Name of the tape with link events."""

LOGINS_TAPE = "workspace:web"
"""Name of the tape with web logins; of people, it has ids and names, too."""

LINK_EVENT = "person.link"
"""Name of its events: ``{op, who, at, ...}``."""

CODE_LIFETIME = timedelta(minutes=10)
"""How long a code can be claimed, and a claim confirmed."""

MAX_FAILED_CLAIMS = 5
"""Limit on one identity's wrong codes within an hour."""

_HOUR = timedelta(hours=1)


def identity_at(tape: str, sender: str) -> str:
    """Return the identity of a sender on a session's tape; empty without a sender."""
    return f"{tape.partition(':')[0]}:{sender}" if sender else ""


def channel_of(identity: str) -> str:
    """Return the channel of an identity or session."""
    return identity.partition(":")[0]


@dataclass(frozen=True, slots=True)
class LinkParty:
    """One side of a link.

    Attributes:
        identity: The identity, as ``telegram:42``.
        name: Display name.
        session: The private chat in which they acted.
    """

    identity: str
    name: str
    session: str


@dataclass(frozen=True, slots=True)
class LinkOffer:
    """A code that was shown to an identity.

    Attributes:
        entry: Id of the event.
        party: The side that was shown the code.
        digest: SHA-256 of the code, in hexadecimal.
        at: Time of the offer; None if unreadable.
    """

    entry: int
    party: LinkParty
    digest: str
    at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        """Say whether the code can be claimed; turning back the clock does not extend that."""
        return self.at is not None and abs(now - self.at) < CODE_LIFETIME


@dataclass(frozen=True, slots=True)
class LinkClaim:
    """A claimed code that waits for confirmation by its owner.

    Attributes:
        entry: Id of the event.
        code_owner: The side that must confirm.
        party: The side that entered the code.
        key: Key of the command that entered it.
        at: Time of the claim; None if unreadable.
    """

    entry: int
    code_owner: LinkParty
    party: LinkParty
    key: str
    at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        """Say whether the claim can be confirmed."""
        return self.at is not None and abs(now - self.at) < CODE_LIFETIME


@dataclass(frozen=True, slots=True)
class ScopeMove:
    """A change of scope, because identities linked or unlinked.

    Attributes:
        entry: Id of the event.
        identities: The identities that move.
        source: Identity whose scope they leave.
        target: Identity whose scope they enter.
        key: Key of the command.
        claim: The confirmed claim; None for unlinking.
    """

    entry: int
    identities: frozenset[str]
    source: str
    target: str
    key: str
    claim: LinkClaim | None = None


@dataclass(slots=True)
class IdentityFold:
    """Links between identities.

    Attributes:
        version: Id of the last entry applied.
        offers: Unclaimed codes, by the identity that was shown them.
        claims: Unanswered claims, by the identity that must answer.
        moves: All scope moves, by the id of their event.
        unfinished: Ids of moves whose facts may not have moved yet.
    """

    version: int = 0
    offers: dict[str, LinkOffer] = field(default_factory=dict)
    claims: dict[str, LinkClaim] = field(default_factory=dict)
    moves: dict[int, ScopeMove] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    _groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _known: dict[str, LinkParty] = field(default_factory=dict)
    _misses: dict[str, list[tuple[datetime, str]]] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)

    def members(self, identity: str) -> tuple[str, ...]:
        """Return all identities of a person, the one that owns the scope first."""
        return self._groups.get(identity, (identity,))

    def primary_identity(self, identity: str) -> str:
        """Return the identity that owns a person's scope."""
        return self.members(identity)[0]

    def was_linked(self, identity: str) -> bool:
        """Say whether an identity was ever linked to another."""
        return identity in self._moved

    def last_seen(self, identity: str) -> LinkParty:
        """Return an identity's last known name and chat; both are empty if unknown."""
        return self._known.get(identity, LinkParty(identity, "", ""))

    def may_claim(self, identity: str, now: datetime) -> bool:
        """Say whether an identity may enter a code: it had few failed claims within an hour."""
        recent = [at for at, _ in self._misses.get(identity, ()) if abs(now - at) < _HOUR]
        return len(recent) < MAX_FAILED_CLAIMS

    def has_failed_claim(self, identity: str, key: str) -> bool:
        """Say whether a command already entered a wrong code."""
        return any(known == key for _, known in self._misses.get(identity, ()))

    def move_of_command(self, key: str) -> ScopeMove | None:
        """Return the move that a command caused; None if it caused none yet."""
        return next(
            (scope_move for scope_move in self.moves.values() if scope_move.key == key), None
        )

    def last_change_id(self, identity: str) -> int:
        """Return the id of the newest event that changed a person's identities; 0 if none."""
        now = {*self.members(identity)}
        found = (
            entry
            for entry, move in self.moves.items()
            if not now.isdisjoint((*move.identities, move.source, move.target))
        )
        return max(found, default=0)

    def link_refusal(self, offerer: str, claimer: str) -> str | None:
        """Return why two cannot be linked: ``self``, ``joined`` or ``channel``; None if they can."""
        if offerer == claimer:
            return "self"
        if self.primary_identity(offerer) == self.primary_identity(claimer):
            return "joined"
        channels = [
            {channel_of(member) for member in self.members(who)} for who in (offerer, claimer)
        ]
        return None if channels[0].isdisjoint(channels[1]) else "channel"

    # Folding.

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        self.version = max(self.version, entry.id)
        if entry.kind != "event" or entry.name != LINK_EVENT:
            return
        data = entry.data
        who = data.get("who")
        if not isinstance(who, str) or not who:
            return
        op = data.get("op")
        if op == "offered":
            self._offered(entry.id, who, data)
        elif op == "claimed":
            self._claimed(entry.id, who, data)
        elif op == "confirmed":
            self._confirmed(entry.id, who, data)
        elif op == "refused" and self._waits(who, data) is not None:
            del self.claims[who]
        elif op == "unlinked":
            self._unlinked(entry.id, who, data)
        elif op == "missed" and (at := parse_time(data.get("at"))) is not None:
            recent = [*self._misses.get(who, ()), (at, str(data.get("key")))]
            self._misses[who] = recent[-MAX_FAILED_CLAIMS:]
        elif op == "settled" and type(move := data.get("move")) is int:
            self.unfinished.discard(move)

    def _offered(self, entry: int, who: str, data: dict[str, Any]) -> None:
        self.claims.pop(who, None)
        self.offers[who] = LinkOffer(
            entry, self._met(who, data), str(data.get("code")), parse_time(data.get("at"))
        )

    def _claimed(self, entry: int, who: str, data: dict[str, Any]) -> None:
        of = str(data.get("of"))
        offer = self.offers.get(of)
        if (
            offer is None
            or offer.entry != data.get("offer")
            or self.link_refusal(of, who) is not None
        ):
            return
        del self.offers[of]
        claim = LinkClaim(
            entry,
            offer.party,
            self._met(who, data),
            str(data.get("key")),
            parse_time(data.get("at")),
        )
        self.claims[of] = claim

    def _waits(self, who: str, data: dict[str, Any]) -> LinkClaim | None:
        claim = self.claims.get(who)
        return claim if claim is not None and claim.entry == data.get("claim") else None

    def _confirmed(self, entry: int, who: str, data: dict[str, Any]) -> None:
        claim = self._waits(who, data)
        if claim is None:
            return
        del self.claims[who]
        other = claim.party.identity
        if self.link_refusal(who, other) is not None:
            return
        ours, theirs = self.members(who), self.members(other)
        if len(ours) == 1 and len(theirs) > 1:
            ours, theirs = theirs, ours
        move = ScopeMove(entry, frozenset(theirs), theirs[0], ours[0], str(data.get("key")), claim)
        self._group((*ours, *theirs))
        self._note(move, (*ours, *theirs))

    def _unlinked(self, entry: int, who: str, data: dict[str, Any]) -> None:
        before = self.members(who)
        if len(before) == 1:
            return
        rest = tuple(one for one in before if one != who)
        if who == before[0]:
            move = ScopeMove(entry, frozenset(rest), who, rest[0], str(data.get("key")))
        else:
            move = ScopeMove(entry, frozenset({who}), before[0], who, str(data.get("key")))
        self._group((who,))
        self._group(rest)
        self.offers.pop(who, None)
        self.claims.pop(who, None)
        self._note(move, before)

    def _group(self, members: tuple[str, ...]) -> None:
        for member in members:
            if len(members) == 1:
                self._groups.pop(member, None)
            else:
                self._groups[member] = members

    def _note(self, move: ScopeMove, concerned: Collection[str]) -> None:
        self.moves[move.entry] = move
        self.unfinished.add(move.entry)
        self._moved.update(concerned)

    def _met(self, who: str, data: dict[str, Any]) -> LinkParty:
        self._known[who] = LinkParty(who, str(data.get("name") or ""), str(data.get("chat") or ""))
        return self._known[who]


def link_entry(op: str, who: str, now: datetime, **more: Any) -> TapeEntry:
    """Return the event for one step.

    Args:
        op: ``offered``, ``claimed``, ``confirmed``, ``refused``, ``unlinked``, ``missed`` for a
            wrong code, or ``settled`` once the facts have moved.
        who: The identity that acts.
        now: The current time.
        more: Further data of the event.
    """
    return event(LINK_EVENT, {"op": op, "who": who, "at": format_time(now), **more})
