"""The problems of a session: create, switch, pause, complete and list them.

Rule 1: every session has the problem ``general`` from the start; it never ends.
Rule 2: a switch is one append: a summary of the problem that is left, the changed problems, and the
    boundary anchor that cuts the view and names the entries of the other problem that return.
Rule 3: problem ids are never reused in a session.
Rule 4: no switch happens during a turn; the model's requests are carried out after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.core.clock import Clock
from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.core.reasons import Reason
from bot.memory.records.compartment_records import Problem, ProblemState, WorkingSet
from bot.memory.records.conversation_entries import PROBLEM_ANCHOR_PREFIX
from bot.memory.records.evidence import is_local_only
from bot.memory.records.fact_fold import bus_entry
from bot.memory.session.bus.working_set import (
    MAX_LIFETIME_HOURS,
    WorkingSetStore,
    append_summary,
    summarize_working_set,
    summary_episode,
)
from bot.memory.session.scope.scope_memory import Change, ScopeMemory
from bot.memory.session.state.fold_loader import load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry, anchor
from bot.tape.search import GENERAL_PROBLEM, problem_of

MAX_OPEN_PROBLEMS = 50
"""Limit on a session's problems that are not completed."""

MAX_PROBLEM_NAME = 60
HIGHEST, LOWEST = 9, 1


class ProblemRegistry:
    """Manage the problems of one session.

    Args:
        own: The session's own scope, whose tape holds the problems.
        fold: State of the session.
        working: Working sets of the problems.
        clock: The current time.
    """

    def __init__(
        self, own: ScopeMemory, fold: SessionFold, working: WorkingSetStore, clock: Clock
    ) -> None:
        self._own = own
        self._fold = fold
        self._working = working
        self._clock = clock

    async def create(self, name: str, priority: int = 5, *, cause: str = "") -> Problem:
        """Create a problem of priority 1 to 9, paused until it is switched to; a cause creates one.

        Raises:
            MemoryRefused: The name or priority is invalid, the name is that of a problem that is not
                completed, or there are too many problems.
        """
        name = " ".join(name.split())
        _check_name(name)
        _check_priority(priority)

        def make(_version: int) -> Change[str]:
            now = self._clock.now()
            taken = [problem for problem in self._all() if problem.state != "completed"]
            if any(problem.name.casefold() == name.casefold() for problem in taken):
                raise MemoryRefused(
                    _("there is a problem {name} already: switch to it", name=repr(name))
                )
            if len(taken) > MAX_OPEN_PROBLEMS:
                raise MemoryRefused(
                    _(
                        "there are {limit} problems: complete one of them first",
                        limit=MAX_OPEN_PROBLEMS,
                    )
                )
            made = f"p{self._own.compartments.next_problem}"
            problem = Problem(made, name, "paused", self._own.name, now, now, priority=priority)
            return Change(made, _data([problem]))

        made = await self._own.change(make, cause)
        if made is None:
            made = str((await self._own.changed_by(cause, "problems")).get("id", GENERAL_PROBLEM))
        return self._known(made)

    async def get_active(self) -> Problem:
        """Return the active problem."""
        return self._known(self._own.compartments.active_problem)

    async def get(self, problem_id: str) -> Problem | None:
        """Return a problem with its working set, if that has not expired; None if unknown."""
        known = self._own.compartments.problem(problem_id) is not None
        return self._known(problem_id) if known else None

    async def switch_to(self, problem_id: str, *, cause: str = "") -> bool:
        """Switch to a problem; return False if it is active already, or completed.

        The problem that is left is paused, and its summary is exported.

        Raises:
            MemoryRefused: There is no such problem, or a turn is running.
        """
        return await self._leave("paused", problem_id, cause)

    async def pause(self, problem_id: str, *, cause: str = "") -> bool:
        """Pause a problem; return False if it is paused, completed, or the general one."""
        return await self._put(problem_id, "paused", cause)

    async def background(self, problem_id: str, *, cause: str = "") -> bool:
        """Move a problem to the background; only its working set's summary stays. See ``pause``."""
        return await self._put(problem_id, "background", cause)

    async def complete(self, problem_id: str, *, cause: str = "") -> bool:
        """Complete a problem; only its working set's summary stays. See ``pause``."""
        return await self._put(problem_id, "completed", cause)

    async def resume(self, problem_id: str, *, cause: str = "") -> bool:
        """Resume a problem: the same as ``switch_to``."""
        return await self.switch_to(problem_id, cause=cause)

    async def prioritise(self, problem_id: str, priority: int, *, cause: str = "") -> bool:
        """Set a problem's priority, 1 to 9; return False if it has that priority.

        Raises:
            MemoryRefused: There is no such problem, or the priority is out of range.
        """
        _check_priority(priority)
        return await self._set(problem_id, cause, lambda one: replace(one, priority=priority))

    async def make_private(self, problem_id: str, *, cause: str = "") -> bool:
        """Have only private models see what is said in a problem; return False if they alone do.

        It cannot be taken back: what was said there would then reach other models.

        Raises:
            MemoryRefused: There is no such problem, it is the general one, or a turn is running.
        """

        def private(problem: Problem) -> Problem:
            if problem_id == GENERAL_PROBLEM:
                raise MemoryRefused(
                    _("{general} is never private: start a problem for it", general=GENERAL_PROBLEM)
                )
            if not problem.private:
                self._check_no_turn()
            return replace(problem, private=True)

        return await self._set(problem_id, cause, private)

    async def list_by_state(self, state: ProblemState | None = None) -> list[Problem]:
        """Return problems in a state, or all: highest priority first, then most recently used."""
        problems = [problem for problem in self._all() if state is None or problem.state == state]
        return sorted(
            problems, key=lambda problem: (-problem.priority, -problem.last_active.timestamp())
        )

    def has_open(self) -> bool:
        """Return whether there is a problem beside the general one that is not completed."""
        named = self._own.compartments.problems
        return any(self._known(one).state != "completed" for one in named if one != GENERAL_PROBLEM)

    async def get_working_set(self, problem_id: str) -> WorkingSet:
        """Return a problem's working set, creating an empty one if needed.

        Raises:
            MemoryRefused: There is no such problem.
        """
        await self._working.isolate(problem_id)
        return await self._working.create(problem_id)

    async def request_switch(
        self, problem_id: str, *, leave: ProblemState | None = None, cause: str = ""
    ) -> None:
        """Request a switch after the current turn; see ``apply_requested_switch``.

        Naming the active problem cancels an earlier request. ``leave`` is the state for the problem
        that is left, by default that of an earlier request, else paused.

        Raises:
            MemoryRefused: There is no such problem, or it is completed.
        """

        def make(_version: int) -> Change[None]:
            if self._known(problem_id).state == "completed":
                raise MemoryRefused(
                    _("problem {problem_id} is completed: make a new one", problem_id=problem_id)
                )
            now = self._known(self._own.compartments.active_problem)
            stays = problem_id == now.problem_id
            data: dict[str, Any] = {"wanted": "" if stays else problem_id}
            state: ProblemState = "active" if stays else leave or self._to_leave_as()
            if state != self._to_leave_as():
                # The active problem's recorded state is the one in which it will be left.
                data |= _data([replace(now, state=state)])
            return Change(None, data)

        await self._own.change(make, cause)

    async def apply_requested_switch(self) -> bool:
        """Carry out a requested switch, if there is one; say whether a switch happened."""
        wanted, state = self._own.compartments.requested_problem, self._to_leave_as()
        return bool(wanted) and await self._leave("paused" if state == "active" else state, wanted)

    def _to_leave_as(self) -> ProblemState:
        """Return the recorded state of the active problem: ``active``, or the requested one."""
        compartments = self._own.compartments
        problem = compartments.problem(compartments.active_problem)
        return problem.state if problem is not None else "active"

    def resume_for_edit(self, original: TapeEntry, edit: int) -> list[TapeEntry]:
        """Return what adds an edit to the resumable entries of another problem, right behind it."""
        problem = self._own.compartments.problem(problem_of(original))
        if problem is None or original.id not in problem.resumable_entry_ids:
            return []
        resumed = replace(problem, resumable_entry_ids=(*problem.resumable_entry_ids, edit))
        return [bus_entry(_data([resumed]))]

    async def adopt_parent_problem(self) -> None:
        """Register the problem that a fork inherits from its parent but has no record of."""
        begun = self._fold.window.problem
        if begun == self._own.compartments.active_problem:
            return
        anchors = await self._own.tape.store.list_anchors(self._own.name)
        begins = [one.state for one in anchors if one.name == f"{PROBLEM_ANCHOR_PREFIX}{begun}"]
        told = begins[-1] if begins else {}
        private = await self._holds_private_entries(begun)

        def make(_version: int) -> Change[None]:
            now = self._clock.now()
            taken = self._own.compartments.problem(begun) or Problem(
                begun,
                str(told.get("name") or begun),
                "active",
                self._own.name,
                now,
                now,
                summary=str(told.get("summary") or ""),
                private=private,
            )
            return Change(None, _data([replace(taken, state="active")], active=begun))

        await self._own.change(make)

    async def _holds_private_entries(self, problem_id: str) -> bool:
        """Return whether the tape has an entry of a problem that only private models may see."""
        async with aclosing(self._own.tape.read_back()) as entries:
            async for entry in entries:
                if is_local_only(entry) and problem_of(entry) == problem_id:
                    return True
        return False

    # Writing changes.

    async def _set(self, problem_id: str, cause: str, change: Callable[[Problem], Problem]) -> bool:
        """Change a problem; return whether anything changed, or the cause had changed it before."""

        def make(_version: int) -> Change[bool]:
            self._known(problem_id)
            recorded = self._own.compartments.problem(problem_id)
            fresh = change(recorded) if recorded else None
            return Change(
                fresh != recorded, _data([fresh]) if fresh and fresh != recorded else None
            )

        return await self._own.change(make, cause) is not False

    async def _put(self, problem_id: str, state: ProblemState, cause: str) -> bool:
        """Put a problem into a state other than active."""
        if problem_id == self._own.compartments.active_problem:
            return problem_id != GENERAL_PROBLEM and await self._leave(
                state, GENERAL_PROBLEM, cause
            )

        def make(_version: int) -> Change[bool]:
            problem = self._known(problem_id)
            if problem_id == GENERAL_PROBLEM or problem.state in (state, "completed"):
                return Change(False)
            data, exports = self._left(problem, state)
            return Change(True, data, exports)

        await self._working.expire_stale()
        return await self._own.change(make, cause) is not False

    async def _leave(self, state: ProblemState, wanted: str, cause: str = "") -> bool:
        """Switch from the active problem to another one."""

        def make(version: int) -> Change[bool]:
            problem = self._known(wanted)
            if wanted == self._own.compartments.active_problem or problem.state == "completed":
                return Change(False)
            self._check_no_turn()
            return self._switched(problem, state, version)

        # Expired working sets must leave their summaries first.
        await self._working.expire_stale()
        done = await self._own.change(make, cause)
        await load_resumed_entries(self._own.tape, self._fold.window)
        return done is not False

    def _check_no_turn(self) -> None:
        if self._fold.turns.open_turn is not None:
            raise MemoryRefused(_("something is still running here: try again once it is done"))

    def _left(
        self, problem: Problem, state: ProblemState, **more: Any
    ) -> tuple[dict[str, Any], list[TapeEntry]]:
        """Return what puts a problem aside: its working set stays for a day, or its summary alone."""
        compartments, name = self._own.compartments, problem.problem_id
        now = self._clock.now()
        working = compartments.working_set(name, now)
        stays = [_for_hours(working, now, MAX_LIFETIME_HOURS)] if working else []
        stays = stays if state == "paused" else []
        summary = summarize_working_set(working)
        gone = [name] if not stays and name in compartments.working_sets else []
        kept = append_summary(summary, problem.summary) if gone else problem.summary
        left = replace(problem, state=state, summary=kept, **more)
        exports = [summary_episode(name, summary, state)] if summary else []
        return _data([left], working=stays, expired=gone), exports

    def _switched(self, problem: Problem, state: ProblemState, version: int) -> Change[bool]:
        """Return what switches from the active problem to another one."""
        compartments, now = self._own.compartments, self._clock.now()
        before, leaving = (
            self._known(compartments.active_problem),
            self._fold.window.entries_to_resume(),
        )
        data, exports = self._left(
            before,
            "paused" if before.problem_id == GENERAL_PROBLEM else state,
            resumable_entry_ids=leaving.ids,
            resumable_size=(leaving.messages, leaving.tokens),
            last_active=compartments.last_used or now,
        )
        taken = replace(problem, state="active", last_active=now)
        data["problems"].append(taken.as_json())
        if (again := compartments.working_set(problem.problem_id, now)) is not None:
            renewed = _for_hours(again, now, again.ttl_hours)
            data["working"] = [*data.get("working", ()), renewed.as_json()]
        data["active"] = problem.problem_id
        return Change(True, data, [*exports, self._boundary(taken, before, version)])

    def _boundary(self, taken: Problem, before: Problem, version: int) -> TapeEntry:
        """Return the boundary anchor that starts the new view and names the returning entries."""
        messages, tokens = taken.resumable_size
        returns = {"ids": list(taken.resumable_entry_ids), "messages": messages, "tokens": tokens}
        state: dict[str, Any] = {
            "problem": taken.problem_id,
            "name": taken.name,
            "summary": append_summary(summarize_working_set(taken.working_set), taken.summary),
            "next_steps": [],
            "source": [self._fold.boundary.id if self._fold.boundary else 1, version],
            "owner": "human",
            "reason": Reason("problem_left", problem=before.problem_id).as_json(),
            "returns": returns,
        }
        return anchor(f"{PROBLEM_ANCHOR_PREFIX}{taken.problem_id}", state, problem=taken.problem_id)

    def _all(self) -> list[Problem]:
        known = dict.fromkeys([GENERAL_PROBLEM, *self._own.compartments.problems])
        return [self._known(name) for name in known]

    def _known(self, problem_id: str) -> Problem:
        compartments = self._own.compartments
        problem = compartments.problem(problem_id)
        if problem is None:
            raise MemoryRefused(_("there is no problem {problem_id}", problem_id=problem_id))
        aside: ProblemState = "paused" if problem.state == "active" else problem.state
        state = "active" if problem_id == compartments.active_problem else aside
        working = compartments.working_set(problem_id, self._clock.now())
        return replace(problem, state=state, lane_id=self._own.name, working_set=working)


def _data(
    problems: Sequence[Problem], *, working: Sequence[WorkingSet] = (), **more: Any
) -> dict[str, Any]:
    """Return the data of a change, without what is empty."""
    data: dict[str, Any] = {"problems": [problem.as_json() for problem in problems], **more}
    data["working"] = [working_set.as_json() for working_set in working]
    return {name: value for name, value in data.items() if value}


def _for_hours(working: WorkingSet, now: datetime, hours: float) -> WorkingSet:
    """Return a working set that lives for at least some hours from now."""
    return replace(working, expires_at=max(working.expires_at, now + timedelta(hours=hours)))


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_PROBLEM_NAME or not name.isprintable():
        raise MemoryRefused(
            _("a problem needs a name of 1 to {limit} characters", limit=MAX_PROBLEM_NAME)
        )
    if name.casefold() == GENERAL_PROBLEM:
        raise MemoryRefused(
            _("{general} is the name of the problem that is always there", general=GENERAL_PROBLEM)
        )


def _check_priority(priority: int) -> None:
    if not LOWEST <= priority <= HIGHEST:
        raise MemoryRefused(
            _(
                "a priority is a number from {lowest} to {highest}, the highest first",
                lowest=LOWEST,
                highest=HIGHEST,
            )
        )
