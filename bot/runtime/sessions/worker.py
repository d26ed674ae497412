"""The session worker: handles one session's messages in order, and writes its tape.

A worker is idle, or busy with one job: a turn or ``/new``. While a turn runs, messages go to the
tape at once and join the turn at its next step. Commands run at once unless they must wait for the
turn; everything behind a waiting command waits, too, unacknowledged. The worker ends when it has
been idle for a while and no answer is undelivered.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandReply
from bot.agent.request_builder import RequestBuilder
from bot.agent.turn import Turn
from bot.agent.vision import ImageTracker
from bot.bus import (
    Activity,
    Address,
    Answer,
    Delivery,
    DeliveryReport,
    Partial,
    ReleaseRequest,
    SessionInbox,
)
from bot.core.errors import ConsolidationFailed, ModelError
from bot.core.ids import new_id
from bot.core.telemetry.active_work import track_work
from bot.memory.records.conversation_entries import inbound_ids
from bot.memory.records.episodes import with_problem
from bot.memory.records.transcript import speaker_label
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.view.fold_loader import load_fold
from bot.memory.session.view.turn_fold import OpenTurn
from bot.memory.session.view.zone import MemoryZone
from bot.runtime.sessions import new_session as archiver
from bot.runtime.sessions.command_runner import GAVE_UP, CommandRunner, retry_button
from bot.runtime.sessions.consolidator import (
    CONSOLIDATION,
    ConsolidationOutcome,
    ConsolidationRetry,
    Consolidator,
)
from bot.runtime.sessions.context import SessionContext
from bot.runtime.sessions.delivery_tracker import DeliveryTracker
from bot.runtime.sessions.edits import EditTarget, find_edit_target
from bot.runtime.sessions.entries import command_entry, parsed_command
from bot.runtime.sessions.erasure import LiveSession
from bot.runtime.sessions.fact_scope import update_fact_scope
from bot.runtime.sessions.fact_verifier import (
    FactVerifier,
    VerificationOutcome,
    VerificationRetry,
)
from bot.runtime.sessions.message_recorder import MessageRecorder
from bot.runtime.sessions.services import SessionServices
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

_MOST_WORDS = 2_000
"""The most characters to quote of a message that the model is asked to answer late."""

DAMAGED = (
    "The record of this conversation is damaged: {what}. All that can be read is kept, and I go on. Whoever runs "
    "me finds more in the log; `tapebot tape repair` may mend it."
)


@dataclass(frozen=True, slots=True)
class _JobDone:
    """The running job has ended."""


_Item = (
    Delivery
    | DeliveryReport
    | ReleaseRequest
    | ConsolidationOutcome
    | ConsolidationRetry
    | VerificationOutcome
    | VerificationRetry
    | _JobDone
)


class SessionWorker:
    """Serves one session while it holds its inbox.

    Args:
        inbox: The session's inbox; the caller releases it.
        services: What workers share.

    Attributes:
        progressed: Whether a turn or ``/new`` has ended.
        failed_on: Platform ids of the messages that were being handled at a failure.
    """

    def __init__(self, inbox: SessionInbox, services: SessionServices) -> None:
        self._inbox = inbox
        self._services = services
        self._suspects = services.poison_messages
        self._address = Address.parse(inbox.session)
        self._deferred: deque[Delivery] = deque()
        self._turn: Turn | None = None
        self._job: anyio.CancelScope | None = None
        self._stopping: tuple[Delivery, ParsedCommand] | None = None
        self._clearing: tuple[Delivery, ParsedCommand] | None = None
        self._tasks: TaskGroup | None = None
        self._leaving = False
        self._recovered = False
        self.progressed = False
        self.failed_on: tuple[str, ...] = ()
        self._send, self._receive = anyio.create_memory_object_stream[_Item](0)
        self._commands = services.commands
        self._tape = TapeService(services.store, inbox.session)

    # Lifecycle.

    async def run(self) -> None:
        """Serve until idle for long, or cancelled; an interrupted turn stays open on the tape."""
        session = self._inbox.session
        waiting = track_work(session, tuple, waits=True)
        with self._send, self._receive, self._listed(), waiting:
            # No erasure may happen while the state is read from the tape.
            async with self._services.scopes.session_locks.read_lock(self._tape.name):
                with track_work(session, tuple):
                    await self._open()
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._pump)
                await self._tell_damage()
                await self._recover()
                self._recovered = True
                await self._serve()
                await self._memory.bus.working_sets.expire_stale()
                tasks.cancel_scope.cancel()

    async def _serve(self) -> None:
        """Handle items until the session is idle for long, or quiet after a request to leave."""
        while not (self._leaving and self._quiet):
            item: _Item | None = None
            with anyio.move_on_after(self._services.idle_seconds):
                item = await self._receive.receive()
            if item is not None:
                await self._handle(item)
            elif self._quiet:
                return

    def leave(self) -> None:
        """End as soon as nothing runs and no answer is undelivered."""
        if not self._leaving:
            self._leaving = True
            if self._tasks is not None:
                self._tasks.start_soon(self._send.send, ReleaseRequest())

    @property
    def _group(self) -> TaskGroup:
        if self._tasks is None:
            raise AssertionError
        return self._tasks

    @contextmanager
    def _listed(self) -> Iterator[None]:
        """Remove the session from the active sessions at the end."""
        try:
            yield
        finally:
            self._services.scopes.active_sessions.pop(self._inbox.session, None)

    @contextmanager
    def _working_on(self, messages: Callable[[], Sequence[str]]) -> Iterator[None]:
        """Record the messages that are being handled, for the watchdog and for failure reports."""
        try:
            with track_work(self._inbox.session, messages):
                yield
        except Exception:
            self.failed_on = self.failed_on or tuple(messages())
            raise

    @property
    def busy(self) -> bool:
        """True while a job runs or an answer is undelivered."""
        return not self._recovered or not self._quiet

    @property
    def _quiet(self) -> bool:
        """True when nothing runs and no answer is undelivered."""
        return (
            self._job is None
            and not self._consolidator.running
            and not self._verifier.running
            and not self._deferred
            and not self._fold.turns.undelivered
        )

    async def _open(self) -> None:
        services, agent = self._services, self._services.agent
        await self._tape.ensure_bootstrap_anchor()
        # The fold may miss unreadable entries at the end, or hold ones written meanwhile.
        version = await self._tape.version()
        self._fold = await load_fold(
            self._tape, max_messages=services.view_messages, max_tokens=services.view_tokens
        )
        self._tape.observe(self._fold.apply)
        if (files := services.memory_files) is not None:
            # Another process may have held the session before.
            files.mark_stale(self._tape.name)
            self._tape.observe(lambda entry: files.add_entry(self._tape.name, entry))
        self._tape.fence(max(version, self._fold.version))
        self._tape.stamp = lambda entry: with_problem(entry, self._fold.problem)
        self._zone = MemoryZone(
            self._tape,
            retention_days=services.retention_days,
            fold=self._fold.zone,
            timezone=agent.timezone,
            clock=agent.clock,
        )
        await self._zone.load_or_create()
        self._memory = LongTermMemory(
            self._tape,
            self._fold,
            self._zone,
            services.scopes,
            hours=services.working_set_hours,
        )
        await self._memory.open()
        self._requests = RequestBuilder(
            agent, self._tape, self._fold, self._zone, ImageTracker(agent.images), self._memory
        )
        self._deliveries = DeliveryTracker(
            self._address, services.bus, self._tape, self._fold, services.exports
        )
        self._consolidator = Consolidator(
            memory=self._memory,
            model=agent.model,
            judge=agent.judge,
            policy=services.policy,
            portion_tokens=services.portion_tokens,
            clock=agent.clock,
            timezone=agent.timezone,
            post=self._send.send,
            working_on=lambda: self._working_on(lambda: [CONSOLIDATION]),
        )
        self._verifier = FactVerifier(
            memory=self._memory,
            model=agent.judge,
            clock=agent.clock,
            timezone=agent.timezone,
            post=self._send.send,
            working_on=lambda: self._working_on(lambda: [CONSOLIDATION]),
        )
        self._services.scopes.active_sessions[self._tape.name] = LiveSession(
            self._requests, self._consolidator, self._verifier, lambda: self._job is not None
        )
        self._recorder = MessageRecorder(
            self._fold,
            self._memory,
            self._deliveries,
            timezone=agent.timezone_name,
            most_overheard=services.group_context,
        )
        self._command_runner = CommandRunner(
            self._commands,
            SessionContext(services, self._requests, self._consolidator),
            self._memory,
            deliveries=self._deliveries,
            timezone=agent.timezone_name,
        )

    async def _pump(self) -> None:
        """Move items from the bus to the worker's queue.

        When it is stopped, delivery reports that have arrived are still recorded, so that no
        delivered answer is sent again.
        """
        item: _Item | None = None
        try:
            while True:
                item = await self._inbox.receive()
                await self._send.send(item)
                item = None
        finally:
            with anyio.CancelScope(shield=True):
                while item is not None:
                    if isinstance(item, DeliveryReport):
                        await self._deliveries.record_report(item)
                    item = self._inbox.receive_nowait()

    async def _recover(self) -> None:
        """Resume what a kill left: undelivered answers, an open turn, waiting messages."""
        await self._deliveries.send_answers()
        if self._is_suspect(CONSOLIDATION):
            # Retry it with back-off, as after any other failure.
            await self._consolidator.record_failure(None, "tapebot hung in it and was ended")
            self._suspects.clear(self._tape.name, [CONSOLIDATION])
        # Explicit memories may be on the tape and not be saved yet.
        window = self._fold.window
        heard = [
            *window.messages_by_platform_id(self._fold.turns.unanswered),
            *window.waiting_messages(),
        ]
        notes: list[str] = []
        for entry in heard:
            sent = str(entry.meta.get("inbound"))
            if not self._is_suspect(sent):
                with self._working_on(lambda sent=sent: [sent]):  # type: ignore[misc]
                    notes += await self._recorder.learn([entry])
        opened = self._fold.turns.open_turn
        if opened is not None:
            await self._take_up(opened, notes)
        if self._job is None:
            await self._settle_problems()
            await self._next_job()

    async def _tell_damage(self) -> None:
        """Report damage of the tape in the chat, once for the same damage."""
        found = tuple(self._services.store.damage(self._tape.name))
        told = self._services.told_damage
        if found and told.get(self._tape.name) != found:
            told[self._tape.name] = found
            text = DAMAGED.format(what="; ".join(found))
            await self._services.bus.send(Answer(self._address, new_id("notice"), text))

    async def _take_up(self, opened: OpenTurn, notes: Sequence[str]) -> None:
        """Resume an open turn, unless one of its messages is a suspect."""
        suspects = [one for one in opened.inbound if self._is_suspect(one)]
        if suspects and len(opened.inbound) > 1:
            logger.warning(
                "turn %s of %s broke down: its %d messages are tried apart",
                *(opened.id, self._tape.name, len(opened.inbound)),
            )
            await self._new_turn().split(opened)
        elif suspects and self._suspects.is_given_up(self._tape.name, suspects[0]):
            turn = self._new_turn()
            turn.id = opened.id
            await self._interrupt(turn, suspects[0], next(iter(opened.retries), suspects[0]))
        else:
            self._start_job(opened.inbound, self._resume_turn, opened, notes)

    def _is_suspect(self, inbound: str) -> bool:
        return self._suspects.is_suspect(self._tape.name, inbound)

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
        logger.warning(
            "turn %s of %s is given up: message %s broke it again",
            turn.id,
            self._tape.name,
            inbound,
        )
        turns = self._fold.turns
        entry = turns.unanswered.get(wanted) or turns.interrupted_messages.get(wanted) or 0
        turn.inbound = [inbound]
        await turn.end(
            "interrupted",
            GAVE_UP,
            error="interrupted by what it did itself, more than once",
            joined=joined,
            buttons=[retry_button(entry)],
        )
        self._suspects.clear(self._tape.name, [inbound])
        await self._deliveries.send_answers()

    async def _settle_problems(self) -> None:
        """Switch to the problem that a turn requested, once no message of the old one waits."""
        if not self._fold.window.waiting_messages():
            await self._memory.bus.problems.apply_requested_switch()

    async def _handle(self, item: _Item) -> None:
        if isinstance(item, ReleaseRequest):
            self._leaving = True
        elif isinstance(item, DeliveryReport):
            await self._deliveries.record_report(item)
        elif isinstance(item, ConsolidationOutcome):
            await self._consolidator.record_outcome(item)
            self._consolidate_if_due()
        elif isinstance(item, ConsolidationRetry):
            self._consolidator.retry()
            self._consolidate_if_due()
        elif isinstance(item, VerificationOutcome):
            with self._working_on(lambda: [CONSOLIDATION]):
                await self._verifier.record_outcome(item, self._group)
            self._consolidate_if_due()
        elif isinstance(item, VerificationRetry):
            self._verifier.retry()
            self._consolidate_if_due()
        elif isinstance(item, _JobDone):
            if self._turn is not None and self._turn.ended:
                self._suspects.clear(self._tape.name, self._turn.inbound)
            self._job = self._turn = None
            self.progressed = True
            await self._finish_stops()
            await self._settle_problems()
            await self._tell_damage()
            await self._next_job()
        else:
            with self._working_on(lambda: [item.inbound.id]):
                await self._on_delivery(item)

    # Messages.

    async def _on_delivery(self, delivery: Delivery) -> None:
        if not await self._deliveries.track(delivery):
            return
        parsed = self._parsed(delivery)
        given_up = self._suspects.is_given_up(self._tape.name, delivery.inbound.id)
        if given_up or delivery.given_up:
            await self._command_runner.give_up(delivery, parsed)
            self._suspects.clear(self._tape.name, [delivery.inbound.id])
            return
        await update_fact_scope(delivery.inbound, self._memory, self._fold)
        if parsed is None and delivery.inbound.via is not None:
            await self._command_runner.reply_commands_only(delivery)
        elif parsed is not None and parsed.name == "stop":
            await self._stop(delivery, parsed)
        elif self._deferred:
            self._deferred.append(delivery)
        else:
            await self._take(delivery, parsed)

    def _parsed(self, delivery: Delivery) -> ParsedCommand | None:
        """Return the command in a message; an unknown command in a caption is plain text."""
        inbound = delivery.inbound
        parsed = parsed_command(inbound)
        if parsed and inbound.attachments and self._commands.get(parsed.name) is None:
            return None
        return parsed

    def _takes(self, parsed: ParsedCommand | None) -> bool:
        """Return whether the next message can be handled now."""
        if parsed is None:
            return self._job is None or self._turn is not None
        command = self._commands.get(parsed.name)
        return self._job is None or command is None or not command.waits_for_turn(parsed.arguments)

    async def _take(self, delivery: Delivery, parsed: ParsedCommand | None) -> None:
        """Handle the next message, or defer it."""
        if not self._takes(parsed):
            self._deferred.append(delivery)
        elif parsed is None:
            await self._hear(delivery)
        elif (why := self._command_runner.refusal(delivery, parsed)) is not None:
            await self._command_runner.reply(
                delivery, parsed, CommandReply(why, replaces_message=False)
            )
        elif (command := self._commands.get(parsed.name)) is not None and command.run is None:
            if command.name == "retry":
                await self._retry(delivery, parsed)
            else:
                self._start_job([delivery.inbound.id], self._new_session, delivery, parsed)
        else:
            await self._command_runner.run(delivery, parsed)

    async def _hear(self, delivery: Delivery) -> None:
        """Handle a message that is no command."""
        inbound = delivery.inbound
        known = (
            None
            if inbound.edits is None
            else await find_edit_target(self._tape, self._fold, inbound)
        )
        if known is not None:
            await self._correct(delivery, known)
        elif not inbound.expects_answer:
            await self._recorder.record_overheard(delivery)
        elif self._job is not None:
            notes = await self._recorder.record_queued(delivery)
            if self._turn is not None:
                self._turn.notes += notes
        elif self._recorder.overheard():
            # Queue it behind the overheard messages, so that one turn takes them all in.
            await self._recorder.record_queued(delivery)
            await self._begin_waiting()
        else:
            await self._begin_turn(delivery)

    async def _correct(self, delivery: Delivery, known: EditTarget) -> None:
        """Handle an edit; for an unanswered message the new text counts."""
        turn = self._turn if known.running else None
        if known.original is None or (turn is not None and not turn.may_restart_model_call):
            await self._recorder.record_overheard(delivery, known.elsewhere)
        elif await self._recorder.record_edit(delivery, known.original) and turn is not None:
            turn.restart_model_call()

    # Jobs.

    def _start_job(
        self, messages: Sequence[str], job: Callable[..., Awaitable[None]], *arguments: object
    ) -> None:
        """Start a job.

        Args:
            messages: Platform ids of its messages; a running turn adds to them.
            job: The job.
            arguments: Passed to it.
        """
        self._job = anyio.CancelScope()
        self._group.start_soon(self._run_job, self._job, messages, job, arguments)

    async def _run_job(
        self,
        scope: anyio.CancelScope,
        messages: Sequence[str],
        job: Callable[..., Awaitable[None]],
        arguments: tuple[object, ...],
    ) -> None:
        await self._services.bus.send(Activity(self._address, "thinking"))
        with scope, self._working_on(lambda: messages):
            await job(*arguments)
        await self._finish_stops()
        await self._deliveries.send_answers()
        await self._services.bus.send(Activity(self._address, "idle"))
        await self._send.send(_JobDone())

    async def _next_job(self) -> None:
        """Start what waits: first messages on the tape, then deferred ones."""
        if self._fold.window.waiting_messages() or self._fold.turns.split_messages:
            await self._begin_waiting()
            return
        while self._deferred:
            parsed = self._parsed(self._deferred[0])
            if not self._takes(parsed):
                break
            await self._take(self._deferred.popleft(), parsed)
        self._consolidate_if_due()

    def _consolidate_if_due(self) -> None:
        # /new consolidates everything itself.
        if self._clearing is None:
            self._consolidator.start_if_due(self._group)
            self._verifier.start_if_due(self._group)

    async def _begin_turn(self, delivery: Delivery) -> None:
        # Record the message before anything else is handled, and before /stop can end the turn.
        turn = self._turn = self._new_turn()
        await self._memory.bus.working_sets.expire_stale()
        await self._memory.refresh()
        heard = await turn.start([self._recorder.entry(delivery.inbound)], [delivery.inbound.id])
        turn.notes += await self._recorder.learn(heard)
        self._start_job(turn.inbound, self._drive, turn)

    async def _begin_waiting(self) -> None:
        """Start a turn for messages that came too late for the one before.

        Suspects come last, each alone.
        """
        waiting = self._fold.window.waiting_messages()
        trusted = [one for one in waiting if not any(map(self._is_suspect, inbound_ids([one])))]
        places = self._fold.turns.split_messages
        split = sorted(places, key=lambda one: (self._is_suspect(one), places[one]))
        if split and (not trusted or not self._is_suspect(split[0])):
            await self._begin_alone(split[0], [])
        elif not trusted:
            await self._begin_alone(inbound_ids(waiting[:1])[0], [waiting[0].id])
        else:
            turn = self._turn = self._new_turn()
            joined = [*self._recorder.overheard(), *(entry.id for entry in trusted)]
            with self._working_on(lambda: inbound_ids(trusted)):
                await self._memory.refresh()
                await turn.start([], inbound_ids(trusted), joined=joined)
                # This saves nothing twice; it returns notes on facts that were not saved.
                turn.notes += await self._recorder.learn(trusted)
            self._start_job(turn.inbound, self._drive, turn)

    async def _begin_alone(self, inbound: str, joined: Sequence[int]) -> None:
        """Start a turn for one message that may have broken a turn, or give it up."""
        turn = self._new_turn()
        if self._suspects.is_given_up(self._tape.name, inbound):
            await self._interrupt(turn, inbound, inbound, joined)
            await self._next_job()
            return
        self._turn = turn
        turn.alone = True
        with self._working_on(lambda: [inbound]):
            await self._memory.refresh()
            await turn.start([], [inbound], joined=joined)
            turn.notes += await self._recorder.learn(
                self._fold.window.messages_by_platform_id([inbound])
            )
            turn.notes += await self._wanted([inbound])
        self._start_job(turn.inbound, self._drive, turn)

    async def _retry(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        """Answer a message whose turn was given up, as its person asks with ``/retry``."""
        entries = {str(entry): one for one, entry in self._fold.turns.interrupted_messages.items()}
        wanted = parsed.arguments.strip() or next(iter(entries), "")
        if delivery.inbound.via is not None:
            reply = CommandReply("Send `/retry` in the chat itself.", replaces_message=False)
            await self._command_runner.reply(delivery, parsed, reply)
        elif wanted not in entries:
            reply = CommandReply("There is nothing to try again.", replaces_message=False)
            await self._command_runner.reply(delivery, parsed, reply)
        else:
            turn = self._turn = self._new_turn()
            turn.alone = True
            known = delivery.inbound.id in self._fold.turns.unanswered_commands
            timezone = self._services.agent.timezone_name
            heard = [] if known else [command_entry(delivery.inbound, parsed, timezone)]
            await self._memory.refresh()
            await turn.start(heard, [delivery.inbound.id], retries=[entries[wanted]])
            turn.notes += await self._wanted([entries[wanted]])
            self._start_job(turn.inbound, self._drive, turn)

    async def _wanted(self, inbound: Sequence[str]) -> list[str]:
        """Return notes that tell the model to answer messages that may not be the newest."""
        turns = self._fold.turns
        places = [
            turns.interrupted_messages.get(one) or turns.unanswered.get(one) for one in inbound
        ]
        found: list[TapeEntry] = []
        for place in places:
            if place is not None:
                found += await self._tape.read_entries(place, place)
        return [
            f"Answer now this message of {speaker_label(one)}, which could not be answered before: "
            f"{str(one.payload.get('content', ''))[:_MOST_WORDS]}"
            for one in found
        ]

    async def _resume_turn(self, opened: OpenTurn, notes: Sequence[str]) -> None:
        turn = self._turn = self._new_turn()
        turn.notes += notes
        suspects = [one for one in opened.inbound if self._is_suspect(one)]
        split = [one for one in opened.inbound if one in self._fold.turns.split_messages]
        turn.alone = bool(suspects or split or opened.retries)
        turn.notes += await self._recorder.learn(
            self._fold.window.messages_by_platform_id(suspects)
        )
        turn.notes += await self._wanted([*opened.retries, *split])
        await turn.resume(opened)
        await self._drive(turn)

    async def _drive(self, turn: Turn) -> None:
        """Run a turn, sending partials as its text grows."""
        async with anyio.create_task_group() as streaming:
            streaming.start_soon(self._stream, turn)
            await turn.run()
            streaming.cancel_scope.cancel()

    async def _stream(self, turn: Turn) -> None:
        while True:
            text = await turn.next_partial()
            shown = self._fold.turns.delivered_parts.get(turn.id, ())
            reply_to = turn.inbound[-1] if turn.inbound else None
            partial = Partial(self._address, turn.id, text, reply_to, shown)
            await self._services.bus.send(partial)

    def _new_turn(self) -> Turn:
        return Turn(self._requests, self._on_tool)

    async def _on_tool(self, name: str) -> None:
        await self._services.bus.send(Activity(self._address, "tool", name))

    # Commands.

    async def _stop(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        if self._job is None:
            await self._command_runner.reply(delivery, parsed, CommandReply("Nothing is running."))
        elif self._stopping is not None:
            await self._command_runner.reply(delivery, parsed, CommandReply("Stopping already."))
        else:
            # The cancelled job records the stop itself when it ends.
            self._stopping = (delivery, parsed)
            self._job.cancel()

    async def _finish_stops(self) -> None:
        """Answer a pending ``/stop``, also one that found nothing left to stop."""
        while (stopping := self._stopping) is not None:
            self._stopping = None
            await self._stopped(*stopping)

    async def _stopped(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        """Record that the job was stopped; recorded messages stay."""
        turn = self._turn
        if self._clearing is not None:
            reply = CommandReply("Stopped; the session was not cleared.")
            await self._command_runner.reply(*self._clearing, reply)
            self._clearing = None
        if turn is None or turn.ended:
            await self._command_runner.reply(delivery, parsed, CommandReply("Stopped."))
            return
        waiting = self._fold.window.waiting_messages()
        joined = [entry.id for entry in waiting]
        turn.inbound += inbound_ids(waiting)
        if delivery.inbound.via is not None:
            # The chat sees that its turn was stopped; the reply goes to the other surface.
            await turn.end("stopped", "Stopped.", joined=joined)
            await self._command_runner.reply(delivery, parsed, CommandReply("Stopped."))
            return
        heard = command_entry(delivery.inbound, parsed, self._services.agent.timezone_name)
        turn.inbound.append(delivery.inbound.id)
        await turn.end("stopped", "Stopped.", heard=[heard], joined=joined)

    async def _new_session(self, delivery: Delivery, parsed: ParsedCommand) -> None:
        if parsed.arguments.lower() not in ("", "now"):
            reply = CommandReply("There is only `/new` and `/new now`.")
            await self._command_runner.reply(delivery, parsed, reply)
            return
        self._clearing = (delivery, parsed)
        now = parsed.arguments.lower() == "now"
        if not now and (why := await self._consolidate_all()) is not None:
            text = f"{archiver.FAILED}\n\n({why}. `/new now` begins at once.)"
            with anyio.CancelScope(shield=True):
                await self._command_runner.reply(delivery, parsed, CommandReply(text))
            self._clearing = None
            return
        self._consolidator.cancel()
        self._verifier.cancel()
        with anyio.CancelScope(shield=True):
            await archiver.hand_off(
                self._tape,
                self._fold,
                self._zone,
                inbound=delivery.inbound,
                parsed=parsed,
                turn=new_id("turn"),
                timezone=self._services.agent.timezone,
                timezone_name=self._services.agent.timezone_name,
                consolidated=not now,
            )
            self._clearing = None

    async def _consolidate_all(self) -> str | None:
        """Consolidate what is left; return why it failed, None on success."""
        try:
            with anyio.fail_after(self._services.archive_timeout):
                await self._consolidator.finish()
        except (ModelError, ConsolidationFailed, TimeoutError) as error:
            why = str(error) or f"it took over {self._services.archive_timeout:g} s"
            await self._consolidator.record_failure(error, why)
            return why
        return None
