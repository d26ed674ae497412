"""The program that uses a person's memory: its rights, and what names it in provenance. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.bus import API_CHANNEL, MCP_CHANNEL, Address, Right, client_topic
from bot.memory.records.fact import LONGEST_QUOTE
from bot.memory.records.transcript import clean_name

LOCAL_PROGRAM = "stdio"
"""The name of a program on this machine that was started without a token."""

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class MemoryClient:
    """A program that uses a person's memory.

    Attributes:
        person: The person's identity, such as ``telegram:42``.
        visitor: The person's id in session keys, such as ``telegram.42``.
        name: The name of its token.
        rights: What it may do.
        own_sessions: As in ``ApiToken``.
        program: Name and version that it states itself; empty if it states none.
    """

    person: str
    visitor: str
    name: str
    rights: frozenset[Right]
    own_sessions: bool = False
    program: str = ""

    @property
    def tape(self) -> str:
        """The tape of what it proposed."""
        topic = "~".join(self.name.split())
        return Address(MCP_CHANNEL, self.visitor, topic).session

    @property
    def own_prefix(self) -> str:
        """What the keys of its own conversations begin with; a number follows."""
        return f"{Address(API_CHANNEL, self.visitor).session}:{client_topic(self.name, '')}"

    @property
    def label(self) -> str:
        """The program in provenance: its token's name, which the person chose, and its own words."""
        return f"{self.name} ({self.program})" if self.program else self.name

    def called(self, program: object) -> MemoryClient:
        """Return the program with what it calls itself, if it says so."""
        told = program_name(program, "")
        return replace(self, program=told) if told else self


def program_name(name: object, version: object) -> str:
    """Return what a program calls itself, as one short line."""
    given = f"{name or ''} {version or ''}"[:LONGEST_QUOTE].strip()
    return clean_name(given)[:_LONGEST_NAME] if given else ""
