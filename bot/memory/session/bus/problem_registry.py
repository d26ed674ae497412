"""The problems of a session: create, switch, pause, complete and list them.

Rule 1: every session has the problem ``general`` from the start; it never ends.
Rule 2: a switch is one append: a summary of the problem that is left, the changed problems, and the
    boundary anchor that cuts the view and names the entries of the other problem that return.
Rule 3: problem ids are never reused in a session.
Rule 4: no switch happens during a turn; the model's requests are carried out after it.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from bot.memory.session.scope.scope_memory import ScopeMemory
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
        """Create a problem; it is paused until it is switched to.

        Args:
            name: One line, unique among problems that are not completed.
            priority: 1 to 9.
            cause: Key of the cause; the same cause creates one problem.

        Raises:
            MemoryRefused: The name or priority is invalid, or there are too many problems.
        """
        name = " ".join(name.split())
        _check_name(name)
        _check_priority(priority)

        def compose(_version: int) -> tuple[list[TapeEntry], str]:
            compartments, now = self._own.compartments, self._clock.now()
            if (known := self._own.fold.decided_keys.get(cause)) is not None:
                return [], f"@{known}"
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
            problem_id = f"p{compartments.next_problem}"
            made = Problem(problem_id, name, "paused", self._own.name, now, now, priority=priority)
            return [self._entry([made], cause=cause)], problem_id

        made = await self._own.append_change(compose)
        if made.startswith("@"):
            made = await self._made_by(int(made[1:]))
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

        def compose(_version: int) -> tuple[list[TapeEntry], bool]:
            if cause in self._own.fold.decided_keys:
                return [], True
            problem = self._known(problem_id)
            if problem.priority == priority:
                return [], False
            recorded = self._own.compartments.problem(problem_id) or problem
            return [self._entry([replace(recorded, priority=priority)], cause=cause)], True

        return await self._own.append_change(compose)

    async def make_private(self, problem_id: str, *, cause: str = "") -> bool:
        """Have only private models see what is said in a problem from now on.

        It cannot be taken back: what was said there would then reach other models.

        Returns:
            Whether it was changed; False if it is private already.

        Raises:
            MemoryRefused: There is no such problem, it is the general one, or a turn is running.
        """

        def compose(_version: int) -> tuple[list[TapeEntry], bool]:
            if cause in self._own.fold.decided_keys:
                return [], True
            problem = self._known(problem_id)
            if problem_id == GENERAL_PROBLEM:
                raise MemoryRefused(
                    _("{general} is never private: start a problem for it", general=GENERAL_PROBLEM)
                )
            if problem.private:
                return [], False
            if self._fold.turns.open_turn is not None:
                raise MemoryRefused(_("something is still running here: try again once it is done"))
            recorded = self._own.compartments.problem(problem_id) or problem
            return [self._entry([replace(recorded, private=True)], cause=cause)], True

        return await self._own.append_change(compose)

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

        Args:
            problem_id: The problem to switch to; naming the active one cancels an earlier request.
            leave: State for the problem that is left; by default that of an earlier request, else
                paused.
            cause: Key of the cause; the same cause takes effect once.

        Raises:
            MemoryRefused: There is no such problem, or it is completed.
        """

        def compose(_version: int) -> tuple[list[TapeEntry], None]:
            if cause in self._own.fold.decided_keys:
                return [], None
            if self._known(problem_id).state == "completed":
                raise MemoryRefused(
                    _("problem {problem_id} is completed: make a new one", problem_id=problem_id)
                )
            compartments = self._own.compartments
            now = self._known(compartments.active_problem)
            stays = problem_id == now.problem_id
            data: dict[str, Any] = {"wanted": "" if stays else problem_id}
            state: ProblemState = "active" if stays else leave or self._to_leave_as()
            if state != self._to_leave_as():
                # The active problem's recorded state is the one in which it will be left.
                data["problems"] = [replace(now, state=state).as_json()]
            return [bus_entry(self._own.fold, {**data, "key": cause} if cause else data)], None

        await self._own.append_change(compose)

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
        """Return the entries that add an edit to the resumable entries of another problem.

        Args:
            original: The edited message.
            edit: Id of the edit, which is written just before these entries.
        """
        problem = self._own.compartments.problem(problem_of(original))
        if problem is None or original.id not in problem.resumable_entry_ids:
            return []
        return [
            self._entry(
                [replace(problem, resumable_entry_ids=(*problem.resumable_entry_ids, edit))]
            )
        ]

    async def adopt_parent_problem(self) -> None:
        """Register the problem that a fork inherits from its parent but has no record of."""
        if self._fold.window.problem == self._own.compartments.active_problem:
            return
        begun = self._fold.window.problem
        anchors = await self._own.tape.store.list_anchors(self._own.name)
        told = [
            other.state for other in anchors if other.name == f"{PROBLEM_ANCHOR_PREFIX}{begun}"
        ][-1:]
        name = told[0].get("name") if told else None
        summary = told[0].get("summary") if told else None
        private = await self._holds_private_entries(begun)

        def compose(_version: int) -> tuple[list[TapeEntry], None]:
            now = self._clock.now()
            problem = Problem(
                begun, str(name or begun), "active", self._own.name, now, now, private=private
            )
            taken = self._own.compartments.problem(begun) or replace(
                problem, summary=str(summary or "")
            )
            return [self._entry([replace(taken, state="active")], active=begun)], None

        await self._own.append_change(compose)

    async def _holds_private_entries(self, problem_id: str) -> bool:
        """Return whether the tape has an entry of a problem that only private models may see."""
        async with aclosing(self._own.tape.read_back()) as entries:
            async for entry in entries:
                if is_local_only(entry) and problem_of(entry) == problem_id:
                    return True
        return False

    # Writing changes.

    async def _put(self, problem_id: str, state: ProblemState, cause: str) -> bool:
        """Put a problem into a state other than active."""
        if problem_id == self._own.compartments.active_problem:
            return problem_id != GENERAL_PROBLEM and await self._leave(
                state, GENERAL_PROBLEM, cause
            )

        def compose(_version: int) -> tuple[list[TapeEntry], bool]:
            if cause in self._own.fold.decided_keys:
                return [], True
            problem = self._known(problem_id)
            if problem_id == GENERAL_PROBLEM or problem.state in (state, "completed"):
                return [], False
            return self._parted(problem, state, cause), True

        await self._working.expire_stale()
        return await self._own.append_change(compose)

    async def _leave(self, state: ProblemState, wanted: str, cause: str = "") -> bool:
        """Switch from the active problem to another one."""

        def compose(version: int) -> tuple[list[TapeEntry], bool]:
            if cause in self._own.fold.decided_keys:
                return [], True
            problem = self._known(wanted)
            if wanted == self._own.compartments.active_problem or problem.state == "completed":
                return [], False
            if self._fold.turns.open_turn is not None:
                raise MemoryRefused(_("something is still running here: try again once it is done"))
            return self._switched(problem, state, cause, version), True

        # Expired working sets must leave their summaries first.
        await self._working.expire_stale()
        done = await self._own.append_change(compose)
        await load_resumed_entries(self._own.tape, self._fold.window)
        return done

    def _parted(self, problem: Problem, state: ProblemState, cause: str) -> list[TapeEntry]:
        """Return the entries that put aside a problem that is not active."""
        compartments, now = self._own.compartments, self._clock.now()
        working = compartments.working_set(problem.problem_id, now)
        summary = summarize_working_set(working)
        working_sets = (
            [_for_hours(working, now, MAX_LIFETIME_HOURS)] if working and state == "paused" else []
        )
        gone = (
            [problem.problem_id]
            if not working_sets and problem.problem_id in compartments.working_sets
            else []
        )
        left = replace(problem, state=state, summary=_stays(problem, summary, gone))
        entry = self._entry([left], working=working_sets, expired=gone, cause=cause)
        return [entry, *([summary_episode(problem.problem_id, summary, state)] if summary else [])]

    def _switched(
        self, problem: Problem, state: ProblemState, cause: str, version: int
    ) -> list[TapeEntry]:
        """Return the entries that switch from the active problem to another one."""
        compartments, now = self._own.compartments, self._clock.now()
        before = self._known(compartments.active_problem)
        working = compartments.working_set(before.problem_id, now)
        summary = summarize_working_set(working)
        leaving = self._fold.window.entries_to_resume()
        state = "paused" if before.problem_id == GENERAL_PROBLEM else state
        working_sets = (
            [_for_hours(working, now, MAX_LIFETIME_HOURS)] if working and state == "paused" else []
        )
        gone = (
            [before.problem_id]
            if not working_sets and before.problem_id in compartments.working_sets
            else []
        )
        left = replace(
            before,
            state=state,
            summary=_stays(before, summary, gone),
            resumable_entry_ids=leaving.ids,
            resumable_size=(leaving.messages, leaving.tokens),
            last_active=compartments.last_used or now,
        )
        taken = replace(problem, state="active", last_active=now)
        if (again := compartments.working_set(problem.problem_id, now)) is not None:
            working_sets.append(_for_hours(again, now, again.ttl_hours))
        entry = self._entry(
            [left, taken],
            working=working_sets,
            expired=gone,
            cause=cause,
            active=problem.problem_id,
        )
        exports = [summary_episode(before.problem_id, summary, state)] if summary else []
        return [entry, *exports, self._boundary(taken, before, version)]

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

    def _entry(
        self,
        problems: Sequence[Problem],
        *,
        working: Sequence[WorkingSet] = (),
        expired: Sequence[str] = (),
        cause: str = "",
        active: str = "",
    ) -> TapeEntry:
        data: dict[str, Any] = {"problems": [problem.as_json() for problem in problems]}
        data |= {"working": [working_set.as_json() for working_set in working]} if working else {}
        data |= {"expired": list(expired)} if expired else {}
        data |= {"active": active} if active else {}
        data |= {"key": cause} if cause else {}
        return bus_entry(self._own.fold, data)

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

    async def _made_by(self, entry: int) -> str:
        """Return the id of the problem that an entry created."""
        entries = await self._own.tape.read_entries(entry, entry)
        problems = entries[0].data.get("problems") if entries else None
        return str(problems[0].get("id")) if problems else GENERAL_PROBLEM


def _stays(problem: Problem, summary: str, gone: Sequence[str]) -> str:
    """Return a problem's summary, extended by that of a working set that ended."""
    return append_summary(summary, problem.summary) if gone else problem.summary


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
