"""Start, resume, run and end the turns of one session."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import anyio

from bot.agent.client_requests import result_entries
from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandReply
from bot.agent.schedules.firing import Firing
from bot.agent.schedules.task_turn import TaskTurn, schedule_cause
from bot.agent.turn import Turn
from bot.bus import Activity, PartialAnswer, ReceivedMessage
from bot.core.i18n import N_, _
from bot.core.reasons import Reason
from bot.llm.spender import Spender, spends
from bot.memory.records.conversation_entries import inbound_ids
from bot.memory.records.evidence import is_local_only
from bot.memory.records.pending_calls import PendingCall, decided_entry
from bot.memory.records.schedules import Schedule
from bot.memory.records.transcript import speaker_label
from bot.memory.session.state.turn_fold import OpenTurn
from bot.runtime.sessions.background_run import WorkingOn
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.spenders import task_spender, turn_spender
from bot.runtime.sessions.writer import GAVE_UP, MESSAGE, SessionWriter, retry_button
from bot.tape.entries import TapeEntry
from bot.tape.search import problem_of

logger = logging.getLogger(__name__)

_LONGEST_QUOTE = 2_000
"""The most characters to quote of a message that the model is asked to answer late."""
_MOST_OTHERS = 20
"""The most overheard edits and private messages that a turn takes in."""

_ELSEWHERE = N_(
    "That message is from a private problem. Go there with `/problem switch`, then retry it."
)


class TurnRunner:
    """Runs one session's turns, one at a time.

    Args:
        session: The session.
        writer: Writes its tape.
        working_on: Records which messages are being handled.

    Attributes:
        current: The turn that runs; None between turns.
    """

    def __init__(self, session: Session, writer: SessionWriter, working_on: WorkingOn) -> None:
        self._session = session
        self._writer = writer
        self._fold = session.fold
        self._poison = session.services.poison_messages
        self._working_on = working_on
        self.current: Turn | None = None

    # Start.

    async def start(self, delivery: ReceivedMessage) -> Turn:
        """Start a turn for a new message."""
        # Record the message before anything else is handled, and before /stop can end the turn.
        inbound, client = delivery.inbound, delivery.inbound.client
        turn = self._new((client.preset or None) if client is not None else None)
        await self._session.memory.bus.working_sets.expire_stale()
        await self._session.memory.refresh()
        if client is not None and client.results:
            results = result_entries(client.results, self._fold.window.entries, turn.id)
            await turn.start([], [inbound.id], before=results, client=client)
            return turn
        await turn.start([self._writer.message(inbound)], [inbound.id], client=client)
        return turn

    async def start_task(self, delivery: ReceivedMessage, firing: Firing) -> Turn:
        """Start the turn of a scheduled task."""
        schedule = firing.schedule
        turn = self._new_task(schedule)
        inbound = replace(
            delivery.inbound,
            text=schedule.text,
            private=schedule.private,
            cause=schedule_cause(schedule),
        )
        await self._session.memory.refresh()
        await turn.start(
            [self._writer.message(inbound).with_meta(problem=schedule.problem)],
            [inbound.id],
            before=firing.entries(turn.id),
            task=schedule.id,
        )
        return turn

    async def start_waiting(self) -> Turn | None:
        """Start a turn for messages on the tape that no turn has taken in.

        Suspects come last, each alone.

        Returns:
            The turn; None if the next message was given up instead.
        """
        waiting = self._fold.window.waiting_messages()
        trusted = [
            entry for entry in waiting if not any(map(self.is_suspect, inbound_ids([entry])))
        ]
        places = self._fold.turns.split_messages
        split = sorted(places, key=lambda one: (self.is_suspect(one), places[one]))
        if split and (not trusted or not self.is_suspect(split[0])):
            return await self._start_alone(split[0], [])
        if not trusted:
            return await self._start_alone(inbound_ids(waiting[:1])[0], [waiting[0].id])
        turn = self._new()
        joined = [*self.overheard(), *(entry.id for entry in trusted)]
        with self._working_on(lambda: inbound_ids(trusted)):
            await self._session.memory.refresh()
            await turn.start([], inbound_ids(trusted), joined=joined)
        return turn

    async def retry(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> Turn | None:
        """Start a turn for a message whose turn was given up, as its person asks with ``/retry``.

        Returns:
            The turn; None if there is nothing to retry, which is replied.
        """
        given_up = self._fold.turns.interrupted_messages
        entries = {str(entry): one for one, entry in given_up.items()}
        wanted = parsed.arguments.strip() or next(iter(entries), "")
        if wanted.startswith(MESSAGE):
            wanted = str(given_up.get(wanted.removeprefix(MESSAGE), ""))
        if delivery.inbound.answer_to is not None:
            await self._writer.reply_text(delivery, parsed, _("Send `/retry` in the chat itself."))
            return None
        if wanted not in entries:
            await self._writer.reply_text(delivery, parsed, _("There is nothing to retry."))
            return None
        if not await self._may_show(int(wanted)):
            await self._writer.reply_text(delivery, parsed, _(_ELSEWHERE))
            return None
        turn = self._new()
        turn.alone = True
        command = self._writer.unrecorded(delivery, self._writer.command(delivery, parsed))
        await self._session.memory.refresh()
        await turn.start(command, [delivery.inbound.id], retries=[entries[wanted]])
        turn.notes += await self._quote([entries[wanted]])
        return turn

    async def approve(self, call: PendingCall, by: str, inbound: Sequence[str]) -> Turn:
        """Start the turn that runs a call, with the decision in the same append.

        Args:
            call: The call that waits.
            by: Identity of who approved it.
            inbound: Platform ids of the messages that the turn answers.
        """
        turn = self._new()
        await self._session.memory.refresh()
        await turn.start([decided_entry(call, "yes", by)], inbound)
        return turn

    async def reopen(self, opened: OpenTurn) -> Turn | None:
        """Take up a turn that a killed process left open; ``resume`` goes on with it.

        Returns:
            The turn; None if it has been ended, because one of its messages is a suspect.
        """
        name = self._session.key
        suspects = [one for one in opened.inbound if self.is_suspect(one)]
        if suspects and len(opened.inbound) > 1:
            logger.warning(
                "turn %s of %s failed: each of its %d messages is retried alone",
                *(opened.id, name, len(opened.inbound)),
            )
            await self._new().split(opened)
            self.current = None
            return None
        turn = self._reopened(opened)
        turn.id, turn.inbound = opened.id, list(opened.inbound)
        if suspects and self._poison.is_given_up(name, suspects[0]):
            await self._interrupt(turn, suspects[0], next(iter(opened.retries), suspects[0]))
            return None
        if opened.task and not isinstance(turn, TaskTurn):
            await turn.end("error", _("The task was erased meanwhile."))
            self.current = None
            return None
        return turn

    async def resume(self, turn: Turn, opened: OpenTurn) -> None:
        """Go on with a reopened turn, and run it to its end."""
        suspects = [one for one in opened.inbound if self.is_suspect(one)]
        split = [one for one in opened.inbound if one in self._fold.turns.split_messages]
        turn.alone = bool(suspects or split or opened.retries or opened.task)
        turn.notes += await self._quote([*opened.retries, *split])
        with spends(self._spender(turn)):
            await turn.resume(opened)
        await self.run(turn)

    # Run and end.

    async def run(self, turn: Turn) -> None:
        """Run a turn to its end, and send partials as its text grows."""
        async with anyio.create_task_group() as streaming:
            streaming.start_soon(self._stream, turn)
            with spends(self._spender(turn)):
                await turn.run()

    def _spender(self, turn: Turn) -> Spender:
        """Return for whom a turn calls models: who set the task, or wrote the newest message."""
        if isinstance(turn, TaskTurn):
            return task_spender(self._session.key, turn.id, turn.schedule)
        window = self._fold.window
        answered = window.messages_by_platform_id(turn.inbound)
        return turn_spender(self._session.key, turn.id, answered or window.conversation())

    async def stop(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> None:
        """Answer ``/stop`` once the job is cancelled; messages that were recorded stay."""
        turn = self.current
        if turn is None or turn.ended:
            await self._writer.reply(delivery, parsed, CommandReply(_("Stopped.")))
            return
        waiting = self._fold.window.waiting_messages()
        joined = [entry.id for entry in waiting]
        turn.inbound += inbound_ids(waiting)
        if delivery.inbound.answer_to is not None:
            # The chat sees that its turn was stopped; the reply goes to the other surface.
            await turn.end("stopped", _("Stopped."), joined=joined)
            await self._writer.reply(delivery, parsed, CommandReply(_("Stopped.")))
            return
        turn.inbound.append(delivery.inbound.id)
        command = self._writer.command(delivery, parsed)
        await turn.end("stopped", _("Stopped."), entries=[command], joined=joined)

    def finish(self) -> None:
        """Forget the turn that ran; messages of a turn that has ended are no suspects."""
        if self.current is not None and self.current.ended:
            self._poison.clear(self._session.key, self.current.inbound)
        self.current = None

    def is_suspect(self, inbound: str) -> bool:
        """Return whether a message may have broken a worker before."""
        return self._poison.is_suspect(self._session.key, inbound)

    def overheard(self) -> list[int]:
        """Return the ids of the overheard messages that the next turn takes in.

        Edits and private messages are included whatever the limit on group messages.
        """
        limit = self._session.services.group_context
        entries = self._fold.window.overheard_messages()
        chatter = [entry.id for entry in entries if _is_chatter(entry)]
        others = [entry.id for entry in entries if not _is_chatter(entry)]
        return sorted([*chatter[max(0, len(chatter) - limit) :], *others[-_MOST_OTHERS:]])

    def _reopened(self, opened: OpenTurn) -> Turn:
        schedules = self._fold.schedules
        schedule = next((one for one in schedules if one.id == opened.task), None)
        return self._new(opened.preset) if schedule is None else self._new_task(schedule)

    def _new_task(self, schedule: Schedule) -> TaskTurn:
        # A task of a private problem goes to a private model, whatever problem is active.
        self._session.use_model(problem=schedule.problem)
        task = self.current = TaskTurn(self._session.requests, self._on_tool, schedule)
        return task

    def _new(self, preset: str | None = None) -> Turn:
        """Return a turn with the model for this chat.

        Args:
            preset: The preset that an interrupted turn began with; None for a new turn.
        """
        self._session.use_model(preset)
        self.current = Turn(self._session.requests, self._on_tool)
        return self.current

    async def _start_alone(self, inbound: str, joined: Sequence[int]) -> Turn | None:
        """Start a turn for one message that may have broken a turn, or give it up."""
        turn = self._new()
        if self._poison.is_given_up(self._session.key, inbound):
            await self._interrupt(turn, inbound, inbound, joined)
            return None
        turn.alone = True
        with self._working_on(lambda: [inbound]):
            await self._session.memory.refresh()
            await turn.start([], [inbound], joined=joined)
            turn.notes += await self._quote([inbound])
        return turn

    async def _interrupt(
        self, turn: Turn, inbound: str, wanted: str, joined: Sequence[int] = ()
    ) -> None:
        """End a turn that is not retried unless its person asks.

        Args:
            turn: The turn.
            inbound: Platform id of the message that started it.
            wanted: Platform id of the message to answer: another one if the turn is a ``/retry``.
            joined: Ids of queued messages that it takes in.
        """
        name = self._session.key
        logger.warning(
            "gave up on turn %s of %s: message %s made it fail again", turn.id, name, inbound
        )
        turns = self._fold.turns
        entry = turns.unanswered.get(wanted) or turns.interrupted_messages.get(wanted) or 0
        turn.inbound = [inbound]
        await turn.end(
            "interrupted",
            _(GAVE_UP),
            error=Reason("turn_interrupted"),
            joined=joined,
            buttons=[retry_button(entry)],
        )
        self._poison.clear(name, [inbound])
        self.current = None
        await self._writer.send_answers()

    async def _quote(self, inbound: Sequence[str]) -> list[str]:
        """Return notes that tell the model to answer messages that may not be the newest."""
        turns = self._fold.turns
        places = [
            turns.interrupted_messages.get(one) or turns.unanswered.get(one) for one in inbound
        ]
        entries: list[TapeEntry] = []
        for place in places:
            if place is not None and await self._may_show(place):
                entries += await self._session.tape.read_entries(place, place)
        return [
            # for the model
            f"Answer now this message of {speaker_label(entry)}, which could not be answered before: "
            f"{str(entry.payload.get('content', ''))[:_LONGEST_QUOTE]}"
            for entry in entries
        ]

    async def _may_show(self, place: int) -> bool:
        """Return whether the model may see a message: one of a private problem only in that."""
        entries = await self._session.tape.read_entries(place, place)
        return not any(
            is_local_only(entry) and problem_of(entry) != self._fold.problem for entry in entries
        )

    async def _stream(self, turn: Turn) -> None:
        session = self._session
        while (text := await turn.next_partial()) is not None:
            shown = self._fold.turns.delivered_parts.get(turn.id, ())
            await session.services.bus.send(
                PartialAnswer(session.address, turn.id, text, turn.reply_to, shown)
            )

    async def _on_tool(self, name: str) -> None:
        await self._session.services.bus.send(Activity(self._session.address, "tool", name))


def _is_chatter(entry: TapeEntry) -> bool:
    return entry.meta.get("private") is False and "edits" not in entry.meta
