"""Input and findings of an audit, and how facts are named and quoted in findings. Pure.

Rule 1: a finding says in one line what is wrong, and what a person can do about it.
Rule 2: text that looks like a secret is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, get_args

from bot.core.i18n import _
from bot.memory.audit.fact_replay import FactReplay
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FactFold
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.state.zone_snapshot import DailyNote
from bot.tape.entries import TapeEntry

AuditFindingKind = Literal[
    "stale",
    "unsupported",
    "origin",
    "secrets",
    "loops",
    "problems",
    "bookkeeping",
]

AUDIT_FINDING_KINDS: tuple[AuditFindingKind, ...] = get_args(AuditFindingKind)

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A problem in memory that a person should look at.

    Attributes:
        kind: Kind of the problem.
        scope: Tape of the scope, or of the session whose prompt or notes have the problem.
        facts: Numbers of the affected facts.
        why: What is wrong, in one line.
        do: What to do about it, usually as commands.
    """

    kind: AuditFindingKind
    scope: str
    facts: tuple[int, ...]
    why: str
    do: str

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return asdict(self) | {"facts": list(self.facts)}


@dataclass(frozen=True, slots=True)
class AuditedScope:
    """The facts of one scope and their evidence.

    Attributes:
        name: Tape of the scope.
        replay: The facts and their history.
        evidence: Present entries that active facts, beliefs, shared values and problems cite, by
            tape and id.
    """

    name: str
    replay: FactReplay = field(default_factory=FactReplay)
    evidence: Mapping[tuple[str, int], TapeEntry] = field(default_factory=dict)

    @property
    def fold(self) -> FactFold:
        """The facts and compartments."""
        return self.replay.fold

    def evidence_of(self, fact: Fact) -> list[tuple[Evidence, TapeEntry | None]]:
        """Return a fact's evidence with the cited entries; None for a missing entry."""
        return [(other, self.evidence.get((other.tape, other.entry))) for other in fact.evidence]

    def admission_text(self, fact: Fact) -> str:
        """Return a phrase that says who added or changed a fact."""
        admission = self.replay.admissions.get((fact.admitted, fact.id))
        return (
            admission.description()
            if admission is not None
            else _("no record says who accepted it")
        )

    def number_of(self, fact: Fact | int) -> str:
        """Return a fact's number as commands accept it, such as ``12`` or ``w12``."""
        number = fact if isinstance(fact, int) else fact.id
        return f"{'w' * (self.name == WORKSPACE_SCOPE)}{number}"

    def why_command(self, fact: Fact) -> str:
        """Return the command that explains a fact."""
        return f"/memory why {self.number_of(fact)}"

    def edit_command(self, fact: Fact) -> str:
        """Return the command that corrects a fact."""
        return f"/memory edit {self.number_of(fact)} …"

    def remove_commands(self, *facts: Fact) -> str:
        """Return the commands that remove facts from the scope."""
        if self.name != WORKSPACE_SCOPE:
            return f"/memory forget {' '.join(self.number_of(fact) for fact in facts)}"
        return ", ".join(f"/memory unshare {self.number_of(fact)}" for fact in facts)


@dataclass(frozen=True, slots=True)
class AuditedSession:
    """What one session's prompt shows of memory.

    Attributes:
        name: Tape of the session.
        dailies: Daily notes of the session.
        zone: Texts of long-term memory, of shared memory and of shared reference in the memory
            zone.
        rendered: The same texts rendered from the scopes; None while the zone may be behind them.
        own: Records on the session's own tape if its facts belong to another scope; else None.
    """

    name: str
    dailies: Sequence[DailyNote] = ()
    zone: tuple[str, str, str] = ("", "", "")
    rendered: tuple[str, str, str] | None = None
    own: AuditedScope | None = None


def redacted_fact_text(fact: Fact) -> str:
    """Return a fact's text, quoted and shortened; for a secret, only its kind."""
    return redacted_text(fact.text)


def redacted_text(text: str) -> str:
    """Return a text, quoted and shortened; for a secret, only its kind."""
    if (what := detect_secret(text)) is not None:
        return _("(looks like {what}: not shown)", what=what)
    text = " ".join(text.split())
    return f'"{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"}"'


def parse_timestamp(stamp: str) -> datetime | None:
    """Parse an ISO time stamp, without offset as UTC; return None if it is invalid."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def day_of(stamp: str, timezone: tzinfo | None = None) -> str:
    """Return the ISO date of a time stamp; ``an unknown day`` if it is invalid."""
    moment = parse_timestamp(stamp)
    return moment.astimezone(timezone).date().isoformat() if moment else _("an unknown day")
