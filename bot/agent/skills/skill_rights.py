"""Installed skills and the owner's rights to them: events on the tape ``workspace:skills``, folded. Pure.

Rule 1: without a right a skill is not offered. The narrowest right counts.
Rule 2: a right holds for one copy, by its digest. A damaged copy has none until it is allowed again.
Rule 3: a copy is listed from before it is stored until after it is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from bot.tape.entries import TapeEntry, event

SKILLS_TAPE = "workspace:skills"

SkillDecision = Literal["allow", "never"]

_FETCHED = "skill.fetched"
_RIGHT = "skill.right"
_REVOKED = "skill.revoked"
_DROPPED = "skill.dropped"
_DAMAGED = "skill.damaged"


@dataclass(frozen=True, slots=True)
class SkillCopy:
    """A copy of a skill that was fetched.

    Attributes:
        name: The skill's name.
        digest: Digest of all its files; the copy's name in the blob store.
        description: Its description, in its own words.
        source: Address or folder that it is from.
        path: Its folder there; empty for the whole.
        commit: The git commit; empty for a folder.
        files: How many files it has.
        size: Bytes of its files.
    """

    name: str
    digest: str
    description: str
    source: str
    path: str
    commit: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class SkillRight:
    """What the owner decided about a skill in a scope.

    Attributes:
        name: The skill's name.
        scope: ``chat:…``, ``person:…`` or ``everybody``.
        decision: ``allow`` or ``never``.
        digest: Digest of the copy that the owner allowed.
        tools: The tools that a turn may use once it has read the skill; empty for all.
        by: Identity of the owner.
        chat: Session in which they decided.
    """

    name: str
    scope: str
    decision: SkillDecision
    digest: str = ""
    tools: tuple[str, ...] = ()
    by: str = ""
    chat: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What it is about."""
        return self.name, self.scope


class SkillsFold:
    """All copies and rights.

    Attributes:
        copies: The copies by digest, oldest first.
        rights: The rights by skill and scope.
        damaged: Digests of copies whose bytes had changed or were missing.
    """

    def __init__(self) -> None:
        self.copies: dict[str, SkillCopy] = {}
        self.rights: dict[tuple[str, str], SkillRight] = {}
        self.damaged: set[str] = set()

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        data = entry.data
        if entry.name == _FETCHED and (copy := _parse_copy(data)) is not None:
            # The newest is the last.
            self.copies.pop(copy.digest, None)
            self.copies[copy.digest] = copy
        elif entry.name == _RIGHT and (right := _parse_right(data)) is not None:
            self.rights.pop(right.key, None)
            self.rights[right.key] = right
            self.damaged.discard(right.digest)
        elif entry.name == _REVOKED:
            self.rights = {k: v for k, v in self.rights.items() if v.name != data.get("name")}
        elif entry.name == _DROPPED:
            self.copies.pop(str(data.get("digest")), None)
            self.damaged.discard(str(data.get("digest")))
        elif entry.name == _DAMAGED:
            self.damaged.add(str(data.get("digest")))

    def of(self, name: str) -> list[SkillCopy]:
        """Return the copies of a skill, oldest first."""
        return [copy for copy in self.copies.values() if copy.name == name]

    def rights_of(self, name: str) -> list[SkillRight]:
        """Return the rights to a skill."""
        return [right for right in self.rights.values() if right.name == name]

    def unused(self, name: str) -> list[SkillCopy]:
        """Return the copies of a skill that nobody is allowed, without the newest."""
        allowed = {right.digest for right in self.rights_of(name)}
        return [copy for copy in self.of(name)[:-1] if copy.digest not in allowed]


def fetched_event(copy: SkillCopy) -> TapeEntry:
    """Return the event that a copy is stored now."""
    return event(_FETCHED, asdict(copy))


def right_event(right: SkillRight) -> TapeEntry:
    """Return the event of a decision."""
    return event(_RIGHT, {**asdict(right), "tools": list(right.tools)})


def revoked_event(name: str) -> TapeEntry:
    """Return the event that all rights to a skill end."""
    return event(_REVOKED, {"name": name})


def dropped_event(copy: SkillCopy) -> TapeEntry:
    """Return the event that a copy was removed."""
    return event(_DROPPED, {"name": copy.name, "digest": copy.digest})


def damaged_event(copy: SkillCopy) -> TapeEntry:
    """Return the event that a copy's bytes are not those that were allowed."""
    return event(_DAMAGED, {"name": copy.name, "digest": copy.digest})


def strictest(rights: Collection[SkillRight]) -> SkillRight:
    """Return a refusal if there is one among rights, else the oldest right."""
    return next((one for one in rights if one.decision == "never"), next(iter(rights)))


def _parse_copy(data: Mapping[str, Any]) -> SkillCopy | None:
    texts = {
        key: data.get(key) for key in ("name", "digest", "description", "source", "path", "commit")
    }
    numbers = {key: data.get(key) for key in ("files", "size")}
    if not all(isinstance(value, str) for value in texts.values()):
        return None
    if not all(type(value) is int for value in numbers.values()):
        return None
    return SkillCopy(**cast("dict[str, Any]", texts | numbers))


def _parse_right(data: Mapping[str, Any]) -> SkillRight | None:
    texts = {key: data.get(key) for key in ("name", "scope", "decision", "digest", "by", "chat")}
    tools = data.get("tools")
    if not all(isinstance(value, str) for value in texts.values()):
        return None
    if texts["decision"] not in get_args(SkillDecision) or not isinstance(tools, list | tuple):
        return None
    return SkillRight(**cast("dict[str, Any]", texts), tools=tuple(map(str, tools)))
