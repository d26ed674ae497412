"""What an audit looks at, and what it finds. Pure.

Rule 1: a finding says what is wrong in one line, and what a person can do about it.
Rule 2: what looks like a secret is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, get_args

from bot.memory.audit.fact_replay import FactReplay
from bot.memory.facts.fact import Evidence, Fact
from bot.memory.facts.fact_fold import FactFold
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.scope_registry import WORKSPACE_SCOPE
from bot.memory.zone_snapshot import DailyNote
from bot.tape.entries import TapeEntry

AuditFindingKind = Literal[
    "duplicates",
    "contradictions",
    "stale",
    "unsupported",
    "origin",
    "secrets",
    "orders",
    "loops",
    "problems",
    "bookkeeping",
]

AUDIT_FINDING_KINDS: tuple[AuditFindingKind, ...] = get_args(AuditFindingKind)

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something that a person should look at.

    Attributes:
        kind: Which rule it breaks.
        scope: The tape of the scope, or of the session whose prompt or notes it is about.
        facts: Numbers of the facts.
        why: What is wrong, in one line.
        do: What to do about it.
    """

    kind: AuditFindingKind
    scope: str
    facts: tuple[int, ...]
    why: str
    do: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self) | {"facts": list(self.facts)}


@dataclass(frozen=True, slots=True)
class AuditedScope:
    """The facts of one scope, and what they rest on.

    Attributes:
        name: Its tape.
        fold: The facts as the program opens them: from the last whole state on.
        replay: All that the tape says of facts.
        evidence: The entries that active facts, beliefs, shared values and problems name, by tape and id, as
            they stand on the tapes.
    """

    name: str
    fold: FactFold = field(default_factory=FactFold)
    replay: FactReplay = field(default_factory=FactReplay)
    evidence: Mapping[tuple[str, int], TapeEntry] = field(default_factory=dict)

    def evidence_of(self, fact: Fact) -> list[tuple[Evidence, TapeEntry | None]]:
        """Return what a fact rests on, with the entries; None for one that does not exist."""
        return [(one, self.evidence.get((one.tape, one.entry))) for one in fact.evidence]

    def admission_text(self, fact: Fact) -> str:
        """Return who let a fact in, in a few words."""
        admission = self.replay.admissions.get((fact.admitted, fact.id))
        return admission.description() if admission is not None else "nothing says who let it in"

    def number_of(self, fact: Fact | int) -> str:
        """Return a fact's number as commands take it."""
        number = fact if isinstance(fact, int) else fact.id
        return f"{'w' * (self.name == WORKSPACE_SCOPE)}{number}"

    def why_command(self, fact: Fact) -> str:
        """Return the command that explains a fact."""
        return f"/memory why {self.number_of(fact)}"

    def edit_command(self, fact: Fact) -> str:
        """Return the command that corrects a fact."""
        return f"/memory edit {self.number_of(fact)} …"

    def remove_commands(self, *facts: Fact) -> str:
        """Return the commands that take facts away."""
        if self.name != WORKSPACE_SCOPE:
            return f"/memory forget {' '.join(self.number_of(one) for one in facts)}"
        return ", ".join(f"/memory unshare {self.number_of(one)}" for one in facts)


@dataclass(frozen=True, slots=True)
class AuditedSession:
    """What one session shows of its memory.

    Attributes:
        name: Its tape.
        dailies: Its daily notes.
        zone: The text of long-term memory, of what everybody reads, and of shared reference, as its zone
            has them.
        rendered: The same, as the scopes render; None while the zone may still lag behind them.
        own: What its own tape holds, where its facts belong to another; None where they do not.
    """

    name: str
    dailies: Sequence[DailyNote] = ()
    zone: tuple[str, str, str] = ("", "", "")
    rendered: tuple[str, str, str] | None = None
    own: AuditedScope | None = None


def redacted_fact_text(fact: Fact) -> str:
    """Return a fact's words, cut short; of what looks like a secret only what it looks like."""
    return redacted_text(fact.text)


def redacted_text(text: str) -> str:
    """Return words, cut short; of what looks like a secret only what it looks like."""
    if (what := detect_secret(text)) is not None:
        return f"({what}, by its looks: not shown)"
    text = " ".join(text.split())
    return f'"{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"}"'


def parse_timestamp(stamp: str) -> datetime | None:
    """Return an ISO time stamp as an aware moment; None where it is none."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def day_of(stamp: str, timezone: tzinfo | None = None) -> str:
    """Return the day of a time stamp, ISO; ``an unknown day`` where it is none."""
    moment = parse_timestamp(stamp)
    return moment.astimezone(timezone).date().isoformat() if moment else "an unknown day"
