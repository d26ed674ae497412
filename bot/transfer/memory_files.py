"""Memory as files that people read: ``MEMORY.md`` and ``HISTORY.md``. Pure.

Rule 1: a fact is one line, ``- text``, under a heading that says what it is about.
Rule 2: a piece of history begins with its date in brackets, and a blank line ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import tzinfo

from bot.memory.facts.fact import Fact
from bot.memory.facts.rendering import by_subject
from bot.memory.snapshot import HISTORY
from bot.memory.transcript import shown_time
from bot.tape.entries import TapeEntry

NOTICE = (
    "<!-- tapebot writes this file from its tapes: changes made here are lost, and never read. -->"
)
"""The first line of files that are kept current."""

OTHER = "Other"
"""The heading of facts that are about nothing in particular."""

_DATED = re.compile(r"\[\d{4}-\d\d-\d\d")
_BLANKS = re.compile(r"\n\s*\n")


def memory_md(facts: Iterable[Fact], before_facts: str = "") -> str:
    """Return ``MEMORY.md``.

    Args:
        facts: That are believed.
        before_facts: Long-term memory that was written before there were facts, as Markdown.
    """
    sections: dict[str, list[str]] = {}
    for subject, some in by_subject(facts).items():
        lines = sections.setdefault(_heading(subject), [])
        lines += [f"- {' '.join(fact.text.split())}" for fact in some]
    ordered = sorted(sections, key=lambda heading: heading == OTHER)
    parts = [f"# {heading}\n\n" + "\n".join(sections[heading]) for heading in ordered]
    if before_facts.strip():
        parts.append(before_facts.strip())
    return "\n\n".join(parts) + "\n" if parts else ""


def history_md(entry: TapeEntry, timezone: tzinfo) -> str:
    """Return an entry of a tape as a piece of ``HISTORY.md``; empty where it is none.

    Args:
        entry: Any.
        timezone: Of the date that is put before a piece without one.
    """
    if entry.kind != "event" or entry.name != HISTORY:
        return ""
    # A blank line would end it too early.
    text = _BLANKS.sub("\n", str(entry.data.get("entry") or "").strip())
    if not text:
        return ""
    if _DATED.match(text) is None:
        text = f"[{shown_time(entry.data.get('from') or entry.meta.get('ts'), timezone)}] {text}"
    return f"{text}\n\n"


def _heading(subject: str) -> str:
    words = " ".join(subject.split()).lstrip("# ")
    return words[:1].upper() + words[1:] if words else OTHER
