"""The owner's rights to MCP tools: events on the tape ``workspace:mcp``, and their fold.

Rule 1: without a right a tool is not offered. The narrowest right counts: the chat's, then that of the
    people who are answered, then everybody's.
Rule 2: a right holds for the description and schema that the owner saw, by their digest.
Rule 3: a right for once is used up before the call runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast, get_args

from bot.agent.right_scopes import EVERYBODY, narrowest_right
from bot.agent.tools.registry import Audience, Permission
from bot.core.i18n import N_
from bot.mcp_client.definitions import ToolDefinition
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.store import TapeStore

MCP_TAPE = "workspace:mcp"

Decision = Literal["always", "ask", "once", "reads", "never"]
MOST_RIGHTS = 200
"""The most rights that are kept."""

_RIGHT = "mcp.right"
_USED = "mcp.used"
_TOLD = "mcp.told"
_STRICTNESS = ("never", "ask", "once", "always", "reads")

DECISIONS: dict[Decision, str] = {
    "always": N_("without asking for what is in your own words"),
    "ask": N_("after a yes to each call"),
    "once": N_("one time"),
    "reads": N_("without asking, as a tool that only reads"),
    "never": "never",
}
"""How a tool may be used, by the word for it."""


@dataclass(frozen=True, slots=True)
class Right:
    """What the owner decided about a tool in a scope.

    Attributes:
        server: The server's name.
        tool: The tool's name.
        scope: ``chat:…``, ``person:…`` or ``everybody``.
        decision: ``always`` runs calls as far as the policy lets them, ``ask`` asks a person each time,
            ``once`` runs one call, ``reads`` says that the tool only reads.
        digest: Digest of the definition that the owner saw.
        text: That definition, to show later what changed.
        by: Identity of the owner.
        chat: Session in which they decided.
        used: Key of the call that used up a right for once; empty if none did.
    """

    server: str
    tool: str
    scope: str
    decision: Decision
    digest: str = ""
    text: str = ""
    by: str = ""
    chat: str = ""
    used: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about."""
        return self.server, self.tool, self.scope

    @property
    def spent(self) -> bool:
        """Whether it allows no more calls."""
        return self.decision == "once" and bool(self.used)

    def holds_for(self, definition: ToolDefinition) -> bool:
        """Say whether it allows a tool as it is defined now."""
        return self.decision != "never" and self.digest == definition.digest


class RightsFold:
    """All rights."""

    def __init__(self) -> None:
        self.rights: dict[tuple[str, str, str], Right] = {}
        self.told: dict[tuple[str, str], str] = {}

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        if entry.name == _RIGHT and (right := _parse_right(entry.data)) is not None:
            self._set(right)
        elif entry.name == _USED:
            key = tuple(str(entry.data.get(one)) for one in ("server", "tool", "scope"))
            right = self.rights.get(cast("tuple[str, str, str]", key))
            if right is not None:
                self.rights[right.key] = replace(right, used=str(entry.data.get("key")))
        elif entry.name == _TOLD:
            tool = str(entry.data.get("server")), str(entry.data.get("tool"))
            self.told[tool] = str(entry.data.get("digest"))

    def _set(self, right: Right) -> None:
        self.rights.pop(right.key, None)
        # Without a right a tool is not offered; a refusal is only kept where a wider right may be.
        if right.decision != "never" or right.scope != EVERYBODY:
            self.rights[right.key] = right
        if not any(self.of(right.server, right.tool)):
            self.told.pop((right.server, right.tool), None)

    def of(self, server: str, tool: str) -> Iterator[Right]:
        """Yield the rights to a tool."""
        return (one for one in self.rights.values() if (one.server, one.tool) == (server, tool))


class Rights:
    """Reads and changes the rights.

    Args:
        store: The store of all tapes.
        scopes: Knows which identities are one person.
    """

    def __init__(self, store: TapeStore, scopes: ScopeRegistry) -> None:
        self._tape = WorkspaceTape(store, MCP_TAPE, RightsFold())
        self._scopes = scopes

    async def all(self) -> list[Right]:
        """Return all rights, oldest first."""
        await self._tape.refresh()
        return list(self._tape.fold.rights.values())

    def find(self, server: str, tool: str, audience: Audience) -> Right | None:
        """Return the right that counts for these people, as far as the tape was read."""
        rights = self._tape.fold.rights
        return narrowest_right(
            lambda scope: rights.get((server, tool, scope)),
            audience,
            self._scopes.identity_linker.people.members,
            _strictest,
            lambda right: right.decision == "never",
        )

    async def permission(
        self, server: str, definition: ToolDefinition, audience: Audience, key: str
    ) -> Permission:
        """Return whether a call may run; a right for once is used up by it."""
        await self._tape.refresh()
        right = self.find(server, definition.name, audience)
        if right is None or right.decision == "never":
            return Permission("never")
        if not right.holds_for(definition):
            # for the model
            return Permission("never", reason="its description changed since the owner allowed it")
        if right.decision == "once":
            if not await self._use(right, key):
                # for the model
                return Permission("never", reason="the owner allowed it once, and that is used up")
            return Permission("always", right.by)
        return Permission(right.decision, right.by)

    async def _use(self, right: Right, key: str) -> bool:
        """Use a right up; return whether this call is the one that may run."""
        data = {"server": right.server, "tool": right.tool, "scope": right.scope, "key": key}

        def compose() -> tuple[list[TapeEntry], bool]:
            now = self._tape.fold.rights.get(right.key)
            if now is None or now.decision != "once" or now.digest != right.digest:
                return [], False
            return ([], now.used == key) if now.used else ([event(_USED, data)], True)

        return await self._tape.change(compose)

    async def decide(self, right: Right) -> bool:
        """Record a decision; return False if there are too many rights."""

        def compose() -> tuple[list[TapeEntry], bool]:
            rights = self._tape.fold.rights
            if len(rights) >= MOST_RIGHTS and right.key not in rights:
                return [], False
            return [event(_RIGHT, {k: v for k, v in asdict(right).items() if k != "used"})], True

        return await self._tape.change(compose)

    async def changed(self, server: str, definitions: Collection[ToolDefinition]) -> list[Right]:
        """Return the rights that a server's new definitions suspend and nobody was told of."""
        await self._tape.refresh()
        fold = self._tape.fold
        return [
            right
            for definition in definitions
            for right in fold.of(server, definition.name)
            if right.decision != "never"
            and not right.spent
            and right.digest != definition.digest
            and fold.told.get((server, definition.name)) != definition.digest
        ]

    async def record_told(self, server: str, tool: str, digest: str) -> None:
        """Record that the owner was told of a changed definition."""

        def compose() -> tuple[list[TapeEntry], None]:
            return [event(_TOLD, {"server": server, "tool": tool, "digest": digest})], None

        await self._tape.change(compose)


def _strictest(rights: Collection[Right]) -> Right:
    return min(rights, key=lambda one: _STRICTNESS.index(one.decision))


def _parse_right(data: dict[str, Any]) -> Right | None:
    names = ("server", "tool", "scope", "decision", "digest", "text", "by", "chat")
    given = {name: data.get(name) for name in names}
    if not all(isinstance(value, str) for value in given.values()):
        return None
    if given["decision"] not in get_args(Decision):
        return None
    return Right(**cast("dict[str, Any]", given), used=str(data.get("used") or ""))
