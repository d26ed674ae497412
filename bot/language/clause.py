"""One classified clause of a text. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a text.

    Attributes:
        text: The clause as written.
        mood: Why it states nothing (``asks``, ``supposes``, ``reports``, ``jokes``); empty
            for a statement.
        reported_speaker: Terms of the person whose words it reports.
        who: ``me`` for the speaker, ``other`` for somebody else, empty if unknown.
        subject: Terms of the other person or thing it is about.
        denied: Folded words that it denies.
        affirmed: Folded words that it affirms.
        negated: The clause denies something.
        ended: The clause says that something has ended.
        may_negate: The clause may support a negative claim without being a negation.
    """

    text: str
    mood: str
    reported_speaker: frozenset[str]
    who: str
    subject: frozenset[str]
    denied: str
    affirmed: str
    negated: bool
    ended: bool
    may_negate: bool
