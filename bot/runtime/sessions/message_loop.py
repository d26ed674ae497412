"""Handle one session's messages in order.

A session is idle or busy with one job: a turn or ``/new``. ``worker_state`` decides what happens to a
message meanwhile; deferred messages stay unacknowledged. Background work reports to the loop, which
alone writes its outcome. The loop ends when the session has been idle for a while and no answer is
undelivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from bot.agent.commands.approvals import APPROVE
from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.agent.commands.plain_words import remembering_command
from bot.agent.commands.registry import CommandReply
from bot.agent.refusals import refusals_recorded
from bot.agent.schedules.due_tape import is_occurrence_id
from bot.agent.turn import Turn
from bot.bus import (
    PERSON,
    Activity,
    DeliveryReport,
    Inbound,
    ReceivedMessage,
    ReleaseRequest,
)
from bot.bus.buttons import pressed_button
from bot.bus.queue_limits import check_length
from bot.core.errors import InvalidEntry, MessageTooLong
from bot.core.i18n import _, use_language
from bot.core.reasons import Reason
from bot.llm.call_slots import Caller, calling_for
from bot.runtime.sessions.background_run import (
    CONSOLIDATION,
    IMPORT_READING,
    VERIFICATION,
    WorkingOn,
)
from bot.runtime.sessions.command_runner import find_call_to_approve, refusal, run_command
from bot.runtime.sessions.edits import edit_target, find_edited, is_silent_edit
from bot.runtime.sessions.entries import is_to_answer, parsed_command
from bot.runtime.sessions.fact_scope import update_fact_scope
from bot.runtime.sessions.loop_queue import Callback, LoopItem, LoopQueue
from bot.runtime.sessions.new_session import NewSession
from bot.runtime.sessions.occurrences import Occurrences, is_occurrence
from bot.runtime.sessions.plain_confirmations import confirmation_command
from bot.runtime.sessions.pressed_buttons import pressed_command
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.turn_runner import TurnRunner
from bot.runtime.sessions.worker_state import Action, Job, MessageKind, WorkerState
from bot.runtime.sessions.writer import EDITED_COMMAND, LOST_EDIT, SessionWriter
from bot.tape.state_reads import begin_session_reads, shared_state_reads

_KINDS_BY_COMMAND = {
    "stop": MessageKind.STOP,
    "retry": MessageKind.RETRY,
    APPROVE: MessageKind.APPROVE,
    "new": MessageKind.NEW_SESSION,
}
"""The commands that the loop itself carries out."""


_CRASHED = Reason("crashed")

_FEW = 16
"""Entries since the state was last kept for which it is kept again when the session ends."""


class MessageLoop:
    """Handles the messages of an open session.

    Args:
        session: The session.
        queue: What it handles next.
        tasks: Owns jobs and background work.
        working_on: Records which messages are being handled.
        on_idle: Called when the loop begins to wait with nothing to do or to try again, and when it
            stops.

    Attributes:
        progressed: Whether a job has ended.
        has_dropped: Whether edits were acknowledged whose words are on no tape.
    """

    def __init__(
        self,
        session: Session,
        queue: LoopQueue,
        tasks: TaskGroup,
        *,
        working_on: WorkingOn,
        on_idle: Callable[[bool], None],
    ) -> None:
        self._session = session
        self._queue = queue
        self._tasks = tasks
        self._working_on = working_on
        self._on_idle = on_idle
        self.has_dropped = False
        self._poison = session.services.poison_messages
        self._writer = SessionWriter(session)
        self._turns = TurnRunner(session, self._writer, working_on)
        self._occurrences = Occurrences(session, self._writer, self._turns)
        self._state = WorkerState[ReceivedMessage]()
        self._job_scope = anyio.CancelScope()
        self._new_session: NewSession | None = None
        self._confirmations: dict[str, ParsedCommand] = {}
        self._asked = {call.number for call in session.fold.pending_calls.waiting}
        self._recovered = False
        self._attended = False
        self._leaving = False
        self.progressed = False

    # Lifecycle.

    async def run(self) -> None:
        """Go on with what a kill left, then handle items until the session is idle for long."""
        try:
            with refusals_recorded(self._session.tape, self._session.fold):
                await self._run()
        finally:
            # What failed, perhaps while it was idle, takes no new task.
            self._leaving = True
            self._on_idle(False)
            with anyio.CancelScope(shield=True):
                await self._record_reports()

    async def _run(self) -> None:
        begin_session_reads()
        with use_language(await self._session.last_language()):
            await self._writer.send_damage()
            await self._recover()
            await self._show_decisions()
        self._recovered = True
        while not (self._leaving and self._is_quiet):
            item = self._queue.next_nowait() or await self._wait()
            if item is not None:
                await self._handle(item)
                await self._show_decisions()
            elif self._is_quiet:
                break
        await self._session.memory.bus.working_sets.expire_stale()
        await self._session.keep_state(_FEW)

    async def _wait(self) -> LoopItem | None:
        """Return the next item, waiting for it; None if the session has been idle for long."""
        await self._session.keep_state()
        self._on_idle(self._is_quiet and not self._session.waits_in_background)
        item = await self._queue.next(self._session.services.idle_seconds)
        self._on_idle(False)
        return item

    async def _record_reports(self) -> None:
        """Record the delivery reports that have arrived, so that no delivered answer is sent again."""
        while (item := self._queue.next_nowait()) is not None:
            if isinstance(item, DeliveryReport):
                await self._writer.record_report(item)

    def leave(self) -> None:
        """End as soon as nothing runs and no answer is undelivered."""
        if not self._leaving:
            self._leaving = True
            self._queue.post(ReleaseRequest())

    @property
    def busy(self) -> bool:
        """True while the session is recovered, a job runs or an answer is undelivered."""
        return not self._recovered or not self._is_quiet

    @property
    def _is_quiet(self) -> bool:
        return (
            self._state.job is None
            and not self._session.works_in_background
            and not self._state.deferred
            and not self._session.fold.turns.undelivered
        )

    async def _recover(self) -> None:
        """Go on with what a kill left: undelivered answers, an open turn, waiting messages."""
        await self._writer.send_answers()
        await self._occurrences.write_overdue()
        await self._delay_suspect_work()
        await self._writer.expire_calls()
        opened = self._session.fold.turns.open_turn
        self._attended = bool(self._waits_for_answer())
        turn = None if opened is None else await self._turns.reopen(opened)
        if turn is not None and opened is not None:
            self._start_job(Job.TURN, opened.inbound, partial(self._turns.resume, turn, opened))
        else:
            await self._apply_problem_switch()
            await self._start_next_job()
            self._start_background_work()

    async def _delay_suspect_work(self) -> None:
        """Retry background work that may have broken a worker with back-off."""
        key = self._session.key
        if self._poison.count_failures(key, CONSOLIDATION):
            await self._session.consolidator.record_failure(None, _CRASHED)
            self._poison.clear(key, [CONSOLIDATION])
        if failures := self._poison.count_failures(key, VERIFICATION):
            self._session.verifier.pause(failures)
        if failures := self._poison.count_failures(key, IMPORT_READING):
            self._session.import_reader.pause(_CRASHED, failures)

    def _waits_for_answer(self) -> list[str]:
        """Return the platform ids of people's messages and commands that are not done with."""
        turns = self._session.fold.turns
        waiting = [*turns.unanswered, *turns.unanswered_commands]
        waiting += [one for answer in turns.undelivered.values() for one in answer.inbound]
        return [one for one in waiting if not is_occurrence_id(one)]

    async def _apply_problem_switch(self) -> None:
        """Switch to the problem that a turn requested, once no message of the old one waits."""
        if not self._session.fold.window.waiting_messages():
            await self._session.memory.bus.problems.apply_requested_switch()

    # Items.

    async def _show_decisions(self) -> None:
        """Show below the questions for a yes what was decided since the last time, in whatever way."""
        waiting = {call.number for call in self._session.fold.pending_calls.waiting}
        over = self._asked - waiting
        if over or not self._recovered:
            over = await self._writer.show_decisions(over)
        self._asked = waiting | over

    async def _handle(self, item: LoopItem) -> None:
        if isinstance(item, ReleaseRequest):
            self._leaving = True
        elif isinstance(item, DeliveryReport):
            await self._writer.record_report(item)
        elif callable(item):
            with shared_state_reads():
                language = await self._session.last_language()
            with use_language(language):
                await item()
                self._start_background_work()
        else:
            with shared_state_reads(anew=True):
                language = await self._session.language_of(item.inbound)
            with self._working_on(partial(_list_of, item.inbound.id)), use_language(language):
                await self._receive_message(item)

    async def _receive_message(self, delivery: ReceivedMessage) -> None:
        """Handle or defer a message that the tape does not hold yet."""
        if not await self._writer.track(delivery):
            return
        try:
            check_length(delivery.inbound)
        except MessageTooLong as error:
            await self._writer.set_aside(delivery, f"{error}")
            return
        inbound, key = delivery.inbound, self._session.key
        if pressed_button(inbound) is not None:
            command = await pressed_command(self._session, inbound)
            if command is None:
                await self._writer.refuse_press(delivery)
                return
        else:
            command = await confirmation_command(self._session, inbound)
        if command is not None:
            self._confirmations[inbound.id] = command
        parsed = self._parsed(delivery)
        if delivery.given_up or self._poison.is_given_up(key, inbound.id):
            if is_occurrence(inbound):
                await self._occurrences.give_up(delivery)
            else:
                await self._writer.give_up(delivery, parsed)
            self._poison.clear(key, [inbound.id])
            return
        if not is_silent_edit(inbound):
            self._wake_background_work(inbound)
            with shared_state_reads():
                await update_fact_scope(inbound, self._session.memory, self._session.fold)
        if parsed is None and inbound.answer_to is not None:
            await self._writer.reply_commands_only(delivery)
        else:
            await self._carry_out(delivery, self._state.receive(delivery, self._kind(delivery)))

    def _parsed(self, delivery: ReceivedMessage) -> ParsedCommand | None:
        """Return the command in a message; an unknown command in a caption is plain text."""
        if (confirmed := self._confirmations.get(delivery.inbound.id)) is not None:
            return confirmed
        parsed = parsed_command(delivery.inbound)
        command = parsed and self._session.services.commands.get(parsed.name)
        if delivery.inbound.attachments and command is None:
            return None
        return parsed or self._remembering(delivery)

    def _remembering(self, delivery: ReceivedMessage) -> ParsedCommand | None:
        """Return the command that saves what a message asks to remember; None if its sender may not give it."""
        command = remembering_command(delivery.inbound.text)
        if command is None or not is_to_answer(delivery.inbound):
            return None
        return None if refusal(self._session, delivery, command) else command

    def _kind(self, delivery: ReceivedMessage) -> MessageKind:
        parsed, inbound = self._parsed(delivery), delivery.inbound
        if is_occurrence(inbound):
            told = self._occurrences.is_reminder(inbound)
            return MessageKind.REMINDER if told else MessageKind.OCCURRENCE
        if parsed is None:
            if inbound.edited_message_id is not None:
                return MessageKind.EDIT
            return MessageKind.MESSAGE if inbound.expects_answer else MessageKind.SILENT
        command = self._session.services.commands.get(parsed.name)
        if command is not None and command.run is None:
            return _KINDS_BY_COMMAND[command.name]
        waits = command is not None and command.waits_for_turn(parsed.arguments)
        return MessageKind.TURN_COMMAND if waits else MessageKind.COMMAND

    async def _carry_out(self, delivery: ReceivedMessage, action: Action) -> None:
        """Do with a message what the state says; set it aside if it can never be written."""
        try:
            await self._act(delivery, action)
        except InvalidEntry as error:
            told = _("That did not work: {error}.", error=error)
            await self._writer.set_aside(delivery, told)

    async def _act(self, delivery: ReceivedMessage, action: Action) -> None:
        parsed = self._parsed(delivery)
        if action is not Action.DEFER:
            self._confirmations.pop(delivery.inbound.id, None)
        if parsed is not None:
            await self._carry_out_command(delivery, parsed, action)
        elif action is Action.FIRE:
            if (turn := await self._occurrences.fire(delivery)) is not None:
                self._run_turn(turn)
        elif action is Action.EDIT:
            await self._edit(delivery)
        elif action is Action.RECORD:
            await self._writer.record_overheard(delivery, delivery.inbound)
        elif action is Action.JOIN_TURN:
            await self._writer.record_queued(delivery.inbound)
        elif action is Action.START_TURN:
            await self._start_turn(delivery)

    async def _carry_out_command(
        self, delivery: ReceivedMessage, parsed: ParsedCommand, action: Action
    ) -> None:
        if action is Action.DEFER:
            return
        if action is Action.CANCEL_JOB:
            # The cancelled job answers the stop itself when it ends.
            self._job_scope.cancel()
        elif action is Action.REPLY_IDLE:
            await self._writer.reply(delivery, parsed, CommandReply(_("Nothing is running.")))
        elif action is Action.REPLY_STOPPING:
            await self._writer.reply(delivery, parsed, CommandReply(_("I am already stopping.")))
        elif (why := refusal(self._session, delivery, parsed)) is not None:
            await self._writer.reply_text(delivery, parsed, why)
        elif action is Action.RETRY:
            if (turn := await self._turns.retry(delivery, parsed)) is not None:
                self._run_turn(turn)
        elif action is Action.APPROVE:
            await self._approve(delivery, parsed)
        elif action is Action.NEW_SESSION:
            self._new_session = NewSession(self._session, self._writer, delivery, parsed)
            self._start_job(Job.NEW_SESSION, [delivery.inbound.id], self._new_session.run)
        else:
            await self._run_command(delivery, parsed)

    async def _run_command(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> None:
        await run_command(self._session, self._writer, delivery, parsed)
        if self._attended:
            # A command may have started it, or decided what it waited for.
            self._session.import_reader.start_if_due(self._tasks)

    async def _approve(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> None:
        """Start the turn that runs an approved call and tells the person of its result."""
        found = await find_call_to_approve(self._session, self._writer, delivery, parsed)
        if isinstance(found, CommandReply):
            await self._writer.reply(delivery, parsed, found)
            return
        call, by = found
        inbound = delivery.inbound
        if inbound.answer_to is None:
            self._run_turn(await self._turns.approve(call, by, [inbound.id]))
            return
        # The chat that asked gets the answer; the command gets a reply where it was given.
        turn = await self._turns.approve(call, by, [])
        job = partial(self._run_remotely_approved, turn, delivery, parsed)
        self._start_job(Job.TURN, [inbound.id], job)

    async def _run_remotely_approved(
        self, turn: Turn, delivery: ReceivedMessage, parsed: ParsedCommand
    ) -> None:
        await self._turns.run(turn)
        text = _("Approved. The result is in the chat that asked.")
        await self._writer.reply_text(delivery, parsed, text)

    async def _start_turn(self, delivery: ReceivedMessage) -> None:
        if self._turns.overheard():
            # Queue it behind the overheard messages, so that one turn takes them all in.
            await self._writer.record_queued(delivery.inbound)
            await self._start_waiting_turn()
        else:
            self._run_turn(await self._turns.start(delivery))

    async def _edit(self, delivery: ReceivedMessage) -> None:
        """Handle an edit; for an unanswered message the new text counts."""
        session = self._session
        found = await find_edited(session.tape, delivery.inbound)
        inbound, target = found.inbound, edit_target(session.fold, found)
        if target is None and is_silent_edit(inbound):
            await self._writer.acknowledge(delivery)
            self.has_dropped = True
            return
        given = parse_command(inbound.text) or remembering_command(inbound.text)
        if target is not None and target.command is not None:
            data = target.command.data
            if given == ParsedCommand(str(data.get("name")), str(data.get("arguments"))):
                await self._writer.acknowledge(delivery)  # only what is shown with it has changed
            else:
                await self._writer.refuse_edit(delivery, _(EDITED_COMMAND))
            return
        if inbound.expects_answer and given and session.services.commands.get(given.name):
            await self._writer.refuse_edit(delivery, _(EDITED_COMMAND))
            return
        # Alone with the bot every message is for it; in a group it may not have heard this one before.
        answered = inbound.private or session.fold.compartments.has_private_problem
        if target is None and found.is_lost and answered:
            await self._writer.refuse_edit(delivery, _(LOST_EDIT))
            return
        if target is None:
            await self._writer.record_queued(inbound)
            if self._state.job is None:
                await self._start_waiting_turn()
            return
        turn = self._turns.current if target.running else None
        if target.original is None or (turn is not None and not turn.may_restart_model_call):
            await self._writer.record_overheard(delivery, inbound, target.elsewhere)
        elif await self._writer.record_edit(delivery, inbound, target.original) and turn:
            turn.restart_model_call()
        # What rests on the message is to be judged again.
        self._start_background_work()

    # Jobs.

    def _run_turn(self, turn: Turn) -> None:
        self._start_job(Job.TURN, turn.inbound, partial(self._turns.run, turn))

    def _start_job(self, kind: Job, messages: Sequence[str], job: Callback) -> None:
        """Start a job with the platform ids of its messages, to which a running turn adds."""
        self._state.start(kind)
        self._session.is_busy = True
        self._job_scope = anyio.CancelScope()
        self._tasks.start_soon(self._run_job, self._job_scope, messages, job)

    async def _run_job(
        self, scope: anyio.CancelScope, messages: Sequence[str], job: Callback
    ) -> None:
        bus, address = self._session.services.bus, self._session.address
        caller = Caller(self._session.key, on_wait=self._show_waiting)
        await bus.send(Activity(address, "thinking"))
        with scope, self._working_on(lambda: messages), calling_for(caller):
            await job()
        await self._answer_stop()
        await self._writer.send_answers()
        await bus.send(Activity(address, "idle"))
        self._queue.post(self._end_job)

    async def _show_waiting(self, waits: bool) -> None:
        """Show in the chat that the job waits for a free model call, or goes on."""
        state: Literal["waiting", "thinking"] = "waiting" if waits else "thinking"
        await self._session.services.bus.send(Activity(self._session.address, state))

    async def _end_job(self) -> None:
        """End the job, and start what waits for that."""
        self._turns.finish()
        self._new_session = None
        self._state.end()
        self._session.is_busy = False
        self.progressed = True
        # A stop may have arrived after the job had answered the one before.
        await self._answer_stop()
        await self._apply_problem_switch()
        await self._writer.send_damage()
        await self._start_next_job()

    async def _answer_stop(self) -> None:
        """Answer a pending ``/stop``, also one that found nothing left to stop."""
        while (stop := self._state.take_stop()) is not None:
            if self._new_session is not None:
                await self._new_session.reply_stopped()
            if (parsed := self._parsed(stop)) is not None:
                with use_language(await self._session.language_of(stop.inbound)):
                    await self._turns.stop(stop, parsed)

    async def _start_next_job(self) -> None:
        """Start what waits: first messages on the tape, then deferred ones."""
        if await self._start_waiting_turn():
            return
        # Each deferred message has a turn of its own: what joins one before its first step is easily
        # overlooked.
        while (
            self._state.job is None
            and (deferred := self._state.next_deferred(self._kind)) is not None
        ):
            with use_language(await self._session.language_of(deferred[0].inbound)):
                await self._carry_out(*deferred)

    async def _start_waiting_turn(self) -> bool:
        """Start a turn for messages on the tape that no turn has taken in, if there are any."""
        fold = self._session.fold
        while fold.window.waiting_messages() or fold.turns.split_messages:
            if (turn := await self._turns.start_waiting()) is not None:
                self._run_turn(turn)
                return True
        return False

    def _wake_background_work(self, inbound: Inbound) -> None:
        """Allow background work from a person's message on: an occurrence alone starts none."""
        if not self._attended and inbound.cause == PERSON:
            self._attended = True
            if self._state.job is None:
                self._start_background_work()

    def _start_background_work(self) -> None:
        if not self._attended:
            return
        # /new consolidates everything itself.
        if self._state.job is not Job.NEW_SESSION:
            self._session.start_background_work(self._tasks)


def _list_of(inbound: str) -> list[str]:
    return [inbound]
