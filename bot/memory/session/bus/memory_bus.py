"""The memory bus of one session: four compartments behind one write gate.

Rule 1: a write beyond a working set goes where the gate says, which may differ from the request.
Rule 2: every decision is recorded as an entry, with its reason and signals.
Rule 3: a contested write waits as an assumption of the active problem. An ungrounded one, or one
    that gives orders in words that are not a person's own, is logged, and no model sees it.
Rule 4: each cause is decided once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.memory.gate.reference_values import (
    check_key,
    check_no_secret_value,
    check_value,
    texts_in_value,
    texts_to_verify,
    value_text,
)
from bot.memory.gate.secret_detection import check_no_secret
from bot.memory.gate.write_gate import (
    Compartment,
    WriteDecision,
    WriteGate,
    WriteRequest,
    WriteSignals,
    worst_signals,
    write_confidence,
)
from bot.memory.gate.write_result import (
    ApprovedWrite,
    WriteResult,
    decision_record,
    parse_write_result,
)
from bot.memory.records.compartment_records import EpisodeEntry, SynthesizedPattern
from bot.memory.records.episodes import episode_entry, episode_id
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.memory.session.bus.problem_registry import ProblemRegistry
from bot.memory.session.bus.semantic_synthesis import SemanticSynthesisStore
from bot.memory.session.bus.shared_reference import SharedReferenceStore
from bot.memory.session.bus.working_set import WorkingSetStore, expiring_assumption
from bot.memory.session.bus.write_signals import compute_signals
from bot.memory.session.scope.scope_memory import Change, ScopeMemory
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService


class SessionMemory(Protocol):
    """What the bus needs of its session's long-term memory.

    Attributes:
        tape: The session's tape.
        fold: What the tape says.
        workspace: The scope of all sessions.
    """

    tape: TapeService
    fold: SessionFold
    workspace: ScopeMemory

    @property
    def home(self) -> ScopeMemory:
        """The scope that holds what is known of the session's person or group."""

    def check_not_private(self) -> None:
        """Raise an error if nothing private may be written here."""

    async def update_identities(self, sender: str = "") -> None:
        """Follow the links of accounts."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that the gate has not decided yet; see ``MemoryBus.write_to_shared``.

    Attributes:
        scope: The scope that it would go to.
        target: The compartment that it would go to.
        kind: Type of the belief, or ``shared:`` with the key of a shared value.
        data: The record, with its ``text``.
        evidence_ids: Episodes, facts and beliefs that it rests on.
        parts: Texts that the evidence must hold word for word.
        by: Its author.
        cause: Key of its cause.
        reported: Signals that the writer reports.
    """

    scope: ScopeMemory
    target: Compartment
    kind: str
    data: dict[str, Any]
    evidence_ids: Sequence[str]
    parts: Sequence[str]
    by: str
    cause: str
    reported: WriteSignals | None


class MemoryBus:
    """Access to the compartments for a session's tools, commands and consolidations.

    Args:
        memory: The session's long-term memory, which knows its scopes.
        own: The session's own scope.
        hours: Lifetime of an unused working set, in hours.

    Attributes:
        working_sets: Working sets of the session's problems.
        problems: Problems of the session.
        episodic: Episodic trace on the session's tape.
        gate: Decides where each write goes.
    """

    def __init__(
        self, memory: SessionMemory, own: ScopeMemory, *, working_set_hours: float = 2.0
    ) -> None:
        self._memory = memory
        self._own = own
        self._clock = own.clock
        self.working_sets = WorkingSetStore(own, self._clock, working_set_hours)
        self.problems = ProblemRegistry(own, memory.fold, self.working_sets, self._clock)
        self.episodic = EpisodicTraceStore(memory.tape, self._clock)
        self.gate: WriteGate = own.gate

    @property
    def shared(self) -> SharedReferenceStore:
        """The shared reference of the scope that holds the session's facts."""
        return SharedReferenceStore(self._memory.home, self._clock)

    @property
    def shared_workspace(self) -> SharedReferenceStore:
        """The shared reference of the workspace, which everybody reads."""
        return SharedReferenceStore(self._memory.workspace, self._clock)

    @property
    def semantic(self) -> SemanticSynthesisStore:
        """The beliefs of the scope that holds the session's facts."""
        memory = self._memory
        return SemanticSynthesisStore(
            memory.home,
            self.episodic,
            memory.tape.store,
            self._clock,
            memory.tape,
            problem=memory.fold.problem,
        )

    async def write_to_working(
        self, problem_id: str, key: str, value: Any, *, cause: str = ""
    ) -> bool:
        """Set a field of a problem's working set; it is local, so the gate is not asked.

        Raises:
            MemoryRefused: There is no such problem or field, or the value is too large.
        """
        await self.working_sets.update(problem_id, cause=cause, **{key: value})
        return True

    async def log_episode(self, entry: EpisodeEntry) -> str:
        """Append an episode to the session's tape and return its id."""
        return await self.episodic.append(entry)

    async def write_to_shared(
        self,
        key: str,
        value: Any,
        source: str,
        signals: WriteSignals | None = None,
        *,
        by: str = "assistant",
        workspace: bool = False,
        cause: str = "",
    ) -> WriteResult:
        """Set a shared value, any JSON, if the gate approves.

        Args:
            key: Key of the value.
            value: The value.
            source: The entry that it rests on, as ``tape#id``.
            signals: Signals that the writer reports; they can only lower the computed ones.
            by: ``person`` for a command, else ``assistant`` or ``consolidation``.
            workspace: Write to the workspace, which everybody reads.
            cause: Key of the cause; the same cause writes once.

        Raises:
            MemoryRefused: The key or the value is invalid.
        """
        check_key(key)
        value = check_value(key, value)
        if by != "person":
            check_no_secret_value(key, value)
        await self._memory.update_identities()
        store = self.shared_workspace if workspace else self.shared
        data = {"text": f"{key}: {value_text(value)}", "key": key, "value": value}
        parts = texts_to_verify(key, value)
        written = await self._decide(
            _Write(
                store.scope, "shared", f"shared:{key}", data, [source], parts, by, cause, signals
            )
        )
        if isinstance(written, WriteResult):
            return written
        record = written.record
        version = await store.set(key, value, source, by=by, cause=cause, record=record)
        return WriteResult(written.decision, str(version), "shared")

    async def add_synthesis(
        self,
        pattern: SynthesizedPattern,
        signals: WriteSignals | None = None,
        *,
        by: str = "assistant",
        cause: str = "",
    ) -> WriteResult:
        """Add a belief if the gate approves; see ``write_to_shared`` for the arguments.

        Raises:
            MemoryRefused: It has no evidence or content, or looks like a secret.
        """
        await self._memory.update_identities()
        home = self._memory.home
        known = (pattern.text, *pattern.content)
        texts = [
            pattern.text,
            *(one for one in texts_in_value(pattern.content) if one not in known),
        ]
        # Checked before the gate, because rejected writes are recorded, too.
        check_no_secret("\n".join(texts), "secret_unasked")
        data = {"text": " ".join(texts), "type": pattern.pattern_type, "content": pattern.content}
        kind, evidence = pattern.pattern_type, pattern.evidence_ids
        written = await self._decide(
            _Write(home, "semantic", kind, data, evidence, [], by, cause, signals)
        )
        if isinstance(written, WriteResult):
            return written
        pattern = replace(pattern, confidence=min(pattern.confidence, written.confidence))
        added = await self.semantic.add_pattern(
            pattern, cause=cause, record=written.record, unjudged=by != "person"
        )
        return WriteResult(written.decision, added, "semantic")

    async def get_evidence_chain(self, pattern_id: str) -> list[EpisodeEntry]:
        """Return the episodes that a belief rests on, oldest first, from any tape."""
        return await self.semantic.get_evidence_chain(pattern_id)

    async def _decide(self, write: _Write) -> ApprovedWrite | WriteResult:
        """Ask the gate; if it redirects the write, carry that out.

        Raises:
            MemoryRefused: The active problem is private.
        """
        self._memory.check_not_private()
        await write.scope.open()
        if (before := await self._before(write)) is not None:
            return before
        now, limits = self._clock.now(), self.gate.thresholds
        computed, suspect = await compute_signals(
            write.scope,
            self._memory.tape.store,
            text=write.data["text"],
            evidence_ids=write.evidence_ids,
            by=write.by,
            kind=write.kind,
            now=now,
            parts=write.parts,
        )
        signals = worst_signals(computed, write.reported)
        confidence = write_confidence(write.by, signals.source_quality)
        data = {**write.data, "confidence": confidence}
        request = WriteRequest(write.by, self._memory.fold.problem, write.target, data, signals)
        decision = self.gate.evaluate(request, now)
        weak = signals.source_quality < limits.grounded
        if suspect or (weak and decision.target_compartment == "working"):
            # The model sees working sets, so words that no person said must not get there.
            decision = WriteDecision(True, "episodic", 0.0, None, suspect or decision.reason)
        record = decision_record(decision, signals, write.by)
        if decision.target_compartment == write.target:
            return ApprovedWrite(decision, confidence, record)
        episode = await self._redirect(decision, request, record, write.cause)
        return WriteResult(decision, episode, write.target)

    async def _before(self, write: _Write) -> WriteResult | None:
        """Return the result recorded for the same cause; None if there is none."""
        for scope in (write.scope, self._own):
            if write.cause and (at := scope.fold.decided_keys.get(write.cause)) is not None:
                for entry in await scope.tape.read_entries(at, at):
                    if (done := parse_write_result(scope.name, entry, write.target)) is not None:
                        return done
        return None

    async def _redirect(
        self, decision: WriteDecision, request: WriteRequest, record: dict[str, Any], cause: str
    ) -> str:
        """Carry out a redirected write and return the id of the episode that records it."""
        own, problem = self._own, request.problem_id or ""
        content = {**request.data, **record}
        if decision.target_compartment == "working":
            until = decision.expiry or self._clock.now()
            held = expiring_assumption(request.data["text"], request.data["confidence"], until)
            again = f"{cause}:held" if cause else ""
            await self.working_sets.add(problem, "assumptions", held, cause=again)

        def make(version: int) -> Change[int]:
            logged = episode_entry("decision", content, problem=problem, tags=["gate"])
            data = {**record, "requested": request.target_compartment}
            return Change(version + 2, data, [logged])

        made = await own.change(make, cause)
        return episode_id(own.name, made or own.fold.decided_keys[cause] + 1)
