"""What the tools of the MCP server return: structured, and as text for a model. Pure."""

from __future__ import annotations

from pydantic import BaseModel, Field

_NOTHING = "Nothing was found."


class FoundPassage(BaseModel):
    """Something that was said or done in a session."""

    session: str
    entry: int = Field(description="Its number in the session.")
    at: str = Field(description="When, in the person's time zone.")
    who: str
    text: str
    outside: bool = Field(
        default=False, description="Nobody's word: quoted, from a page, a file or a program."
    )

    def line(self, *, session: bool = True) -> str:
        """Return the passage as one line."""
        place = f"{self.session}#{self.entry}" if session else f"#{self.entry}"
        mark = ", from outside" if self.outside else ""
        return f"- {self.at}, {self.who}{mark} [{place}]: {self.text}"


class FactItem(BaseModel):
    """A fact in memory."""

    number: str = Field(description="Its number for why; w3 is shared with everybody.")
    text: str
    since: str = Field(description="Day from which it holds; empty if unknown.")
    confidence: float
    own_words: bool = Field(description="Whether it rests on a person's own words.")

    def line(self) -> str:
        """Return the fact as one line."""
        since = f", since {self.since}" if self.since else ""
        mark = "" if self.own_words else ", not from the person's own words"
        return f"- [{self.number}] {self.text} (confidence {self.confidence:g}{since}{mark})"


class ValueItem(BaseModel):
    """A value that the person keeps under a key."""

    key: str
    value: str


class SearchResult(BaseModel):
    """Passages that fit a search, best first."""

    passages: list[FoundPassage]

    def render(self) -> str:
        """Return the result as text."""
        return "\n".join(one.line() for one in self.passages) or _NOTHING


class RecallResult(BaseModel):
    """What is remembered about something."""

    facts: list[FactItem]
    other_facts: list[FactItem] = Field(
        description="The newest that share no word with what was asked, where few fit."
    )
    values: list[ValueItem] = Field(description="Reference values, word for word.")
    passages: list[FoundPassage]

    def render(self) -> str:
        """Return the result as text."""
        parts = [
            ("Facts:", [one.line() for one in self.facts]),
            ("Other facts, newest first:", [one.line() for one in self.other_facts]),
            ("Reference values:", [f"- {one.key}: {one.value}" for one in self.values]),
            ("Said before:", [one.line() for one in self.passages]),
        ]
        texts = ["\n".join([head, *lines]) for head, lines in parts if lines]
        return "\n\n".join(texts) or _NOTHING


class EvidenceItem(BaseModel):
    """Words that a fact rests on."""

    who: str
    at: str
    origin: str = Field(description="person, member, import, assistant, tool, quoted or client.")
    session: str = Field(default="", description="Empty if this program may not read the session.")
    entry: int = 0
    quote: str = ""


class DecisionItem(BaseModel):
    """A decision about a fact."""

    at: str
    by: str
    verdict: str
    reason: str


class WhyResult(BaseModel):
    """Why a fact is believed, or why it is not."""

    fact: FactItem
    status: str = Field(description="active, pending, superseded, retired or dropped.")
    until: str = Field(default="", description="Day on which it ended.")
    evidence: list[EvidenceItem]
    decisions: list[DecisionItem]

    def render(self) -> str:
        """Return the result as text."""
        ended = f" until {self.until}" if self.until else ""
        lines = [self.fact.line(), f"Status: {self.status}{ended}", "Evidence:"]
        for one in self.evidence:
            place = f" [{one.session}#{one.entry}]" if one.session else ""
            quote = f": “{one.quote}”" if one.quote else ": not shown to this program"
            lines.append(f"- {one.who}, {one.at} ({one.origin}){place}{quote}")
        if not self.evidence:
            lines.append("- none")
        lines.append("Decisions:")
        for made in self.decisions:
            reason = f", {made.reason}" if made.reason != made.verdict else ""
            lines.append(f"- {made.at}, {made.by}: {made.verdict}{reason}")
        return "\n".join(lines)


class SessionItem(BaseModel):
    """A session that this program may read."""

    session: str
    title: str
    last: str = Field(description="Time of its newest entry.")


class TimelineResult(BaseModel):
    """Entries of a session, oldest first; or the sessions, if none was named."""

    sessions: list[SessionItem] = []
    entries: list[FoundPassage] = []
    older: int = Field(
        default=0, description="The next `before`, for earlier entries; 0 if there are none."
    )

    def render(self) -> str:
        """Return the result as text."""
        lines = [
            f"- {one.session}{f' “{one.title}”' if one.title else ''}, last {one.last}"
            for one in self.sessions
        ]
        lines += [one.line(session=False) for one in self.entries]
        if self.older:
            lines.append(f"(earlier ones: before={self.older})")
        return "\n".join(lines) or _NOTHING


class ProposeResult(BaseModel):
    """What became of a proposal."""

    status: str = Field(description="pending, active, dropped, retired, superseded or refused.")
    number: str = Field(default="", description="The fact's number, for why.")
    text: str = Field(description="What that means.")

    def render(self) -> str:
        """Return the result as text."""
        return self.text
