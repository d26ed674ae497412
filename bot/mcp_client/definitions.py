"""What a server says about a tool, as it is kept, shown and compared. Pure.

Rule 1: the digest covers the whole name, description and schema as the server sent them; what is kept
    of them is bounded.
Rule 2: a tool's name is one that every provider accepts, and no two tools share one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

from bot.agent.foreign_text import one_line
from bot.core.i18n import N_, _, ngettext
from bot.core.patterns import LazyPattern
from bot.mcp_client.schemas import reduced_schema

MOST_TOOLS = 1_000
"""The most tools of a server that are kept."""

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 800
_SHOWN_TYPES = 12
_NAME = LazyPattern(r"[A-Za-z0-9_-]+")
_OTHER = LazyPattern(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool of a server.

    Attributes:
        name: Its name here; the server's own if every provider accepts that.
        remote_name: The name that the server knows it by.
        description: What the server says that it does: one line, cut.
        schema: Schema of its arguments, reduced.
        hints: What the server says about its effects, for people.
        digest: SHA-256 of name, description and schema as the server sent them, in hexadecimal.
    """

    name: str
    remote_name: str
    description: str
    schema: dict[str, Any] = field(hash=False)
    hints: tuple[str, ...] = ()
    digest: str = ""

    def text(self) -> str:
        """Return what the model is shown of it, as lines to compare."""
        schema = json.dumps(self.schema, ensure_ascii=False, indent=1, sort_keys=True)
        return f"{self.description}\n{schema}"

    def argument_line(self) -> str:
        """Return its arguments on one line, for people."""
        named = self.schema["properties"]
        parts = [
            f"{name}{'' if name in self.schema.get('required', ()) else '?'}"
            for name in list(named)[:_SHOWN_TYPES]
        ]
        return ", ".join([*parts, *(["…"] if len(named) > _SHOWN_TYPES else [])])


def define(
    server: str,
    name: str,
    description: str | None,
    schema: object,
    annotations: dict[str, Any],
    *,
    redact: Callable[[str], str] = str,
) -> ToolDefinition:
    """Return the definition of a tool."""
    sent = json.dumps([name, description, schema], ensure_ascii=True, sort_keys=True)
    digest = hashlib.sha256(sent.encode()).hexdigest()
    return ToolDefinition(
        _usable_name(name, _LONGEST_NAME - len(f"mcp_{server}_")),
        name,
        redact(one_line(description or "", _LONGEST_DESCRIPTION)),
        reduced_schema(schema, redact),
        _hints(annotations),
        digest,
    )


def by_name(definitions: Iterable[ToolDefinition]) -> dict[str, ToolDefinition]:
    """Return definitions by name; of two with one name, the first."""
    found: dict[str, ToolDefinition] = {}
    for one in definitions:
        if len(found) < MOST_TOOLS:
            found.setdefault(one.name, one)
    return dict(sorted(found.items()))


def difference(before: str, after: str, *, most: int = 40) -> str:
    """Return how two texts of definitions differ, as lines that begin with ``-`` or ``+``."""
    compared = [*unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)]
    # The first two lines name the texts; a line of a description may look like those.
    lines = [line for line in compared[2:] if line[0] in "+-"]
    if not lines:
        return _("(in a part that is too long to be shown)")
    left = len(lines) - most
    more = [ngettext("… and {n} more line", "… and {n} more lines", left)] if left > 0 else []
    return "\n".join([*lines[:most], *more])


def _usable_name(name: str, room: int) -> str:
    if len(name) <= room and _NAME.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = _OTHER.sub("-", name[: room - 9])
    return f"{plain}-{mark}"


def _hints(annotations: dict[str, Any]) -> tuple[str, ...]:
    told = {
        "readOnlyHint": (N_("only reads"), N_("may change things")),
        "destructiveHint": (N_("may destroy"), N_("destroys nothing")),
        "idempotentHint": (N_("may be repeated"), None),
        "openWorldHint": (N_("reaches other systems"), N_("reaches no other systems")),
    }
    found = []
    for key, (yes, no) in told.items():
        if annotations.get(key) is True:
            found.append(yes)
        elif annotations.get(key) is False and no is not None:
            found.append(no)
    return tuple(found)
