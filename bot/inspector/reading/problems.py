"""Read a conversation's problems and their working sets.

Rule 1: the result is the tape's state at this moment; nothing is cached between requests.
Rule 2: an assumption that is no longer in the prompt has status ``over``: it expired, or a person
    decided on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from pydantic import Field

from bot.bus import WebUser
from bot.core.clock import format_time
from bot.core.errors import HttpError
from bot.core.i18n import _
from bot.core.reasons import reason_text
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.decisions import reason_of
from bot.inspector.reading.facts import LoadedMemory, load_memory
from bot.memory.records.compartment_records import (
    Problem,
    ProblemState,
    WorkingSet,
)
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.record_json import parse_utc_time
from bot.memory.session.bus.problem_registry import ProblemRegistry
from bot.memory.session.bus.working_set import WorkingSetStore, problem_summary
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService

_BACK = 60
"""The newest changes of a tape that are searched for the reason of a held assumption."""

AssumptionStatus = Literal["noted", "held", "waiting", "over"]


class Assumption(ReadModel):
    """An assumption of one problem."""

    text: str
    confidence: float = Field(description="0 to 1.")
    standing: AssumptionStatus = Field(
        description="`noted`: assumed; `held`: contested, kept until it expires; `waiting`: "
        "contested, waits for a person's decision; `over`: no longer shown to the model."
    )
    until: str | None = Field(description="When it expires, ISO 8601; null if it does not.")
    fact: int | None = Field(description="Number of the fact in `/memory pending`.")
    reason: str = Field(
        description="Why the gate found it contested; empty if it did not, or if the reason no longer exists."
    )


class WorkingSetDecision(ReadModel):
    """A decision of one problem."""

    text: str
    why: str = Field(description="The reason; may be empty.")


class WorkingSetDraft(ReadModel):
    """A draft of one problem."""

    name: str
    text: str


class WorkingSetView(ReadModel):
    """The working set of one problem; the model sees it in that problem only."""

    problem: str = Field(description="Id of the problem.")
    exists: bool = Field(description="False if it has none, or if it has expired.")
    must: list[str]
    must_not: list[str]
    constraints: dict[str, list[str]] = Field(description="Constraints with other names.")
    assumptions: list[Assumption]
    questions: list[str]
    drafts: list[WorkingSetDraft]
    decisions: list[WorkingSetDecision]
    created: str | None = Field(description="When it was started, ISO 8601 in UTC.")
    expires: str | None = Field(description="When it expires unless it is used before.")
    hours: float = Field(description="How long it is kept without use.")

    @property
    def notes(self) -> int:
        """The number of its items."""
        texts = len(self.must) + len(self.must_not) + len(self.questions) + len(self.constraints)
        return texts + len(self.assumptions) + len(self.drafts) + len(self.decisions)


class ProblemView(ReadModel):
    """A problem of a conversation."""

    id: str = Field(description="`general`, `p1`, `p2` …")
    name: str
    state: ProblemState
    priority: int = Field(description="1 to 9, the highest first.")
    private: bool = Field(description="Whether only private models see what is said in it.")
    since: str | None = Field(description="When it was started; null for `general`.")
    used: str | None = Field(description="When it was last worked on.")
    summary: str = Field(description="Its summary, a line for each kind of note.")
    messages: int = Field(description="Number of messages that it restores to the view.")
    tokens: int = Field(description="Their tokens, estimated.")
    newest: int | None = Field(description="Id of the newest of these messages.")
    questions: int = Field(description="Open questions.")
    expires: str | None = Field(description="When its working set expires; null if it has none.")


class ProblemList(ReadModel):
    """The problems of a conversation."""

    tape: str
    active: str = Field(description="Id of the active problem.")
    wanted: str = Field(
        description="Id of the problem to switch to when the running work has ended; empty if none."
    )
    problems: list[ProblemView] = Field(description="The active problem first, then by priority.")


async def problems_in(web: WebContext, visitor: WebUser, tape: str) -> ProblemList:
    """Return the problems of a conversation.

    Raises:
        TapeNotFound: There is no such tape.
        HttpError: 422 if it is no conversation.
    """
    session_fold = await _asked(web, visitor, tape)
    compartments = session_fold.compartments
    listed = await _registry(web, tape, session_fold).list_by_state()
    listed.sort(key=lambda problem: (problem.state != "active", problem.state == "completed"))
    return ProblemList(
        tape=tape,
        active=compartments.active_problem,
        wanted=compartments.requested_problem,
        problems=[_view(problem) for problem in listed],
    )


async def working_set_in(
    web: WebContext, visitor: WebUser, tape: str, problem: str
) -> WorkingSetView:
    """Return the working set of a problem; empty if it has expired.

    Raises:
        TapeNotFound: There is no such tape.
        HttpError: 422 if it is no conversation, 404 if it has no such problem.
    """
    return (await working_sets_in(web, visitor, tape, [problem]))[problem]


async def working_sets_in(
    web: WebContext, visitor: WebUser, tape: str, problems: Iterable[str]
) -> dict[str, WorkingSetView]:
    """Return the working sets of several problems; see ``working_set_in``."""
    memory = await load_memory(web, visitor, tape)
    fold = _conversation(memory)
    now, found = web.agent.clock.now(), {}
    for problem in problems:
        if fold.compartments.problem(problem) is None:
            raise HttpError(
                404,
                "not_found",
                _("there is no problem {problem} in {tape}", problem=repr(problem[:40]), tape=tape),
            )
        working = fold.compartments.working_set(problem, now)
        if working is None:
            found[problem] = _nothing(problem)
        else:
            found[problem] = await _working(web, memory, working, now)
    return found


async def _asked(web: WebContext, visitor: WebUser, tape: str) -> SessionFold:
    return _conversation(await load_memory(web, visitor, tape))


def _conversation(memory: LoadedMemory) -> SessionFold:
    if memory.conversation is None:
        text = _("{tape} is not a conversation; only conversations have problems", tape=memory.tape)
        raise HttpError(422, "invalid_request", text)
    return memory.conversation


def _registry(web: WebContext, tape: str, fold: SessionFold) -> ProblemRegistry:
    own = web.scopes.home(TapeService(web.store, tape), fold.facts, "")
    clock = web.agent.clock
    return ProblemRegistry(own, fold, WorkingSetStore(own, clock), clock)


def _view(problem: Problem) -> ProblemView:
    working = problem.working_set
    return ProblemView(
        id=problem.problem_id,
        name=problem.name,
        state=problem.state,
        priority=problem.priority,
        private=problem.private,
        since=_moment(problem.created_at),
        used=_moment(problem.last_active),
        summary=problem_summary(problem),
        messages=problem.resumable_size[0],
        tokens=problem.resumable_size[1],
        newest=max(problem.resumable_entry_ids, default=None),
        questions=len(working.open_questions) if working is not None else 0,
        expires=_moment(working.expires_at) if working is not None else None,
    )


def _moment(at: datetime) -> str | None:
    """Return a time as ISO 8601; None for the epoch, which stands for an unknown time."""
    return format_time(at) if at > datetime.fromtimestamp(0, UTC) else None


def _nothing(problem: str) -> WorkingSetView:
    return WorkingSetView(
        problem=problem, exists=False, must=[], must_not=[], constraints={}, assumptions=[],
        questions=[], drafts=[], decisions=[], created=None, expires=None, hours=0.0,
    )  # fmt: skip


async def _working(
    web: WebContext, memory: LoadedMemory, working: WorkingSet, now: datetime
) -> WorkingSetView:
    rules = {name: list(map(str, held)) for name, held in working.constraints.items()}
    return WorkingSetView(
        problem=working.problem_id,
        exists=True,
        must=rules.pop("must", []),
        must_not=rules.pop("must_not", []),
        constraints=rules,
        assumptions=await _assumptions(web, memory, working, now),
        questions=list(map(str, working.open_questions)),
        drafts=[WorkingSetDraft(name=k, text=str(v)) for k, v in working.partial_artifacts.items()],
        decisions=[_decision(local_decision) for local_decision in working.local_decisions],
        created=_moment(working.created_at),
        expires=_moment(working.expires_at),
        hours=working.ttl_hours,
    )


def _decision(one: dict[str, Any]) -> WorkingSetDecision:
    return WorkingSetDecision(text=str(one.get("d", "")), why=str(one.get("why") or ""))


async def _assumptions(
    web: WebContext, memory: LoadedMemory, working: WorkingSet, now: datetime
) -> list[Assumption]:
    waiting = {fact.id: fact for fact in memory.facts.pending()}
    found = []
    for assumption in working.assumptions:
        number, until = assumption.get("fact"), parse_utc_time(assumption.get("until"))
        fact = waiting.get(number) if type(number) is int else None
        decided = "fact" in assumption and fact is None
        standing: AssumptionStatus = "waiting" if fact is not None else "held" if until else "noted"
        standing = "over" if decided or (until is not None and now >= until) else standing
        reason = await reason_of(memory.scope_tape, fact) if fact is not None else ""
        sure = assumption.get("confidence")
        found.append(
            Assumption(
                text=str(assumption.get("a", "")),
                confidence=float(sure) if isinstance(sure, int | float) else 0.5,
                standing=standing,
                until=format_time(until) if until is not None else None,
                fact=fact.id if fact is not None else None,
                reason=reason,
            )
        )
    held = {one.text for one in found if one.standing == "held"}
    service = TapeService(web.store, memory.tape)
    why = await _reasons(service, _conversation(memory).facts, held) if held else {}
    return [one.model_copy(update={"reason": why.get(one.text) or one.reason}) for one in found]


async def _reasons(tape: TapeService, facts: FactFold, texts: set[str]) -> dict[str, str]:
    """Return by text why the gate held assumptions.

    The reason is in the change, the text in the episode entry right after it.
    """
    found: dict[str, str] = {}
    for at in islice(facts.changes_back(), _BACK):
        read = await tape.read_entries(at, at + 1)
        if not read or read[0].id != at or len(found) == len(texts):
            break
        change, logged = read[0], read[1] if len(read) > 1 else None
        decision = change.data.get("decision")
        if isinstance(decision, dict) and logged is not None and logged.name == EPISODE_EVENT:
            content = logged.data.get("content")
            text = content.get("text") if isinstance(content, dict) else None
            if isinstance(text, str) and text in texts:
                found.setdefault(text, reason_text(decision.get("reason")))
    return found
