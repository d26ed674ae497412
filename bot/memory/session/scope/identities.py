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

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from bot.core.clock import format_time, parse_time
from bot.memory.records.files import FILES_PREFIX
from bot.tape.entries import TapeEntry, event

WORKSPACE_PREFIX = "workspace:"
"""Prefix of the names of tapes that hold what the whole workspace shares."""

PERSON_SCOPE_PREFIX = "person:"
"""Prefix of the names of tapes that hold what a person's private chats share."""

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

LinkRefusal = Literal["self", "joined", "channel", "wrong", "often"]
"""Why a code cannot be claimed: it is one's own, the two are linked already, or both have an
identity on one channel; the code is wrong or expired; there were too many wrong codes."""

_HOUR = timedelta(hours=1)


def identity_at(tape: str, sender: str) -> str:
    """Return the identity of a sender on a session's tape; empty without a sender."""
    return f"{tape.partition(':')[0]}:{sender}" if sender else ""


def channel_of(identity: str) -> str:
    """Return the channel of an identity or session."""
    return identity.partition(":")[0]


def is_shared_scope(tape: str) -> bool:
    """Say whether a tape holds a person's, a folder's or the workspace's data and no conversation."""
    return tape.startswith((WORKSPACE_PREFIX, PERSON_SCOPE_PREFIX, FILES_PREFIX))


@dataclass(frozen=True, slots=True)
class LinkParty:
    """One side of a link: its identity, as ``telegram:42``, display name, and private chat."""

    identity: str
    name: str
    session: str


@dataclass(frozen=True, slots=True)
class _LinkStep:
    """A step that must be answered in time: id of its event, and its time; None if unreadable."""

    entry: int
    at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        """Say whether it can be answered; turning back the clock does not extend that."""
        return self.at is not None and abs(now - self.at) < CODE_LIFETIME


@dataclass(frozen=True, slots=True)
class LinkOffer(_LinkStep):
    """A code that was shown to an identity.

    Attributes:
        party: The side that was shown the code.
        digest: SHA-256 of the code, in hexadecimal.
    """

    party: LinkParty
    digest: str


@dataclass(frozen=True, slots=True)
class LinkClaim(_LinkStep):
    """A claimed code that waits for confirmation by its owner.

    Attributes:
        code_owner: The side that must confirm.
        party: The side that entered the code.
        key: Key of the command that entered it.
    """

    code_owner: LinkParty
    party: LinkParty
    key: str


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
        offers: Unclaimed codes, by the identity that was shown them.
        claims: Unanswered claims, by the identity that must answer.
        moves: All scope moves, by the id of their event.
        unfinished: Ids of moves whose facts may not have moved yet.
        changes: Id of the newest event that linked or unlinked a person, by identity.
        partings: Id of the newest event that ended the move of an unlinking, by identity.
    """

    offers: dict[str, LinkOffer] = field(default_factory=dict)
    claims: dict[str, LinkClaim] = field(default_factory=dict)
    moves: dict[int, ScopeMove] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    changes: dict[str, int] = field(default_factory=dict)
    partings: dict[str, int] = field(default_factory=dict)
    _groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _known: dict[str, LinkParty] = field(default_factory=dict)
    _misses: dict[str, list[tuple[datetime, str]]] = field(default_factory=dict)

    def members(self, identity: str) -> tuple[str, ...]:
        """Return all identities of a person, the one that owns the scope first."""
        return self._groups.get(identity, (identity,))

    def primary_identity(self, identity: str) -> str:
        """Return the identity that owns a person's scope."""
        return self.members(identity)[0]

    def was_linked(self, identity: str) -> bool:
        """Say whether an identity was ever linked to another."""
        return identity in self.changes

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
        return next((move for move in self.moves.values() if move.key == key), None)

    def claim_of_command(self, key: str) -> LinkClaim | None:
        """Return the claim that a command made, answered or not; None if it made none yet."""
        claims = (*self.claims.values(), *(move.claim for move in self.moves.values()))
        return next((claim for claim in claims if claim is not None and claim.key == key), None)

    def waiting_claim(
        self, identity: str, now: datetime, claim: int | None = None
    ) -> LinkClaim | None:
        """Return the valid claim that an identity must answer, if its id matches; else None."""
        waits = self.claims.get(identity)
        fits = waits is not None and claim in (None, waits.entry) and waits.is_valid(now)
        return waits if fits else None

    def link_refusal(self, offerer: str, claimer: str) -> LinkRefusal | None:
        """Return why two cannot be linked: ``self``, ``joined`` or ``channel``; None if they can."""
        if offerer == claimer:
            return "self"
        ours, theirs = self.members(offerer), self.members(claimer)
        if ours == theirs:
            return "joined"
        return None if {*map(channel_of, ours)}.isdisjoint(map(channel_of, theirs)) else "channel"

    # Folding.

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        data = entry.data if entry.kind == "event" and entry.name == LINK_EVENT else {}
        who, op = data.get("who"), data.get("op")
        if not isinstance(who, str) or not who:
            return
        waits = self.claims.get(who)
        answers = waits is not None and waits.entry == data.get("claim")
        if op == "offered":
            self.claims.pop(who, None)
            at, code = parse_time(data.get("at")), str(data.get("code"))
            self.offers[who] = LinkOffer(entry.id, at, self._met(who, data), code)
        elif op == "claimed":
            self._claimed(entry.id, who, data)
        elif op in ("confirmed", "refused") and waits is not None and answers:
            del self.claims[who]
            if op == "confirmed" and self.link_refusal(who, waits.party.identity) is None:
                self._confirmed(entry.id, waits, str(data.get("key")))
        elif op == "unlinked" and len(self.members(who)) > 1:
            self._unlinked(entry.id, who, str(data.get("key")))
        elif op == "missed" and (at := parse_time(data.get("at"))) is not None:
            recent = [*self._misses.get(who, ()), (at, str(data.get("key")))]
            self._misses[who] = recent[-MAX_FAILED_CLAIMS:]
        elif op == "settled" and type(move := data.get("move")) is int and move in self.unfinished:
            self.unfinished.discard(move)
            if self.moves[move].claim is None:
                self.partings |= dict.fromkeys(self._concerned(self.moves[move]), entry.id)

    def _claimed(self, entry: int, who: str, data: dict[str, Any]) -> None:
        offer = self.offers.get(str(data.get("of")))
        if offer is None or offer.entry != data.get("offer"):
            return
        owner = offer.party
        if self.link_refusal(owner.identity, who) is None:
            key, at = str(data.get("key")), parse_time(data.get("at"))
            del self.offers[owner.identity]
            self.claims[owner.identity] = LinkClaim(entry, at, owner, self._met(who, data), key)

    def _confirmed(self, entry: int, claim: LinkClaim, key: str) -> None:
        ours = self.members(claim.code_owner.identity)
        theirs = self.members(claim.party.identity)
        if len(ours) == 1 and len(theirs) > 1:
            ours, theirs = theirs, ours
        self._group((*ours, *theirs))
        self._move(ScopeMove(entry, frozenset(theirs), theirs[0], ours[0], key, claim))

    def _unlinked(self, entry: int, who: str, key: str) -> None:
        first = self.primary_identity(who)
        rest = tuple(one for one in self.members(who) if one != who)
        leaving, target = ({who}, who) if who != first else ({*rest}, rest[0])
        self._group((who,))
        self._group(rest)
        self.offers.pop(who, None)
        self.claims.pop(who, None)
        self._move(ScopeMove(entry, frozenset(leaving), first, target, key))

    def _group(self, members: tuple[str, ...]) -> None:
        for member in members:
            self._groups[member] = members

    def _move(self, move: ScopeMove) -> None:
        self.moves[move.entry] = move
        self.unfinished.add(move.entry)
        self.changes |= dict.fromkeys(self._concerned(move), move.entry)

    def _concerned(self, move: ScopeMove) -> tuple[str, ...]:
        return (*self.members(move.source), *self.members(move.target))

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
