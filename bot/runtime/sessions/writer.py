"""Write a session's tape: messages, commands, replies, receipts. Nobody else does, but turns and memory.

Rule 1: a message is acknowledged to the bus only after its answer's receipt is on the tape.
Rule 2: each holder of the session sends an answer without a receipt once.
Rule 3: a redelivered message that is already on the tape is not handled again.
Rule 4: a command's reply, the memory change that it reports and the end of its turn are one append.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.agent.approvals import decision_buttons
from bot.agent.commands.parser import ParsedCommand
from bot.agent.commands.registry import CommandReply
from bot.agent.schedules.history import parse_firing
from bot.bus import (
    Address,
    Answer,
    Bus,
    Button,
    DeliveryReport,
    Inbound,
    OutgoingFile,
    ReceivedMessage,
)
from bot.bus.buttons import tape_buttons
from bot.core.clock import format_time
from bot.core.errors import InvalidInbound
from bot.core.i18n import N_, _
from bot.core.ids import new_id
from bot.core.reasons import reason_text
from bot.memory.records.conversation_entries import needs_answer
from bot.memory.records.pending_calls import (
    TOOL_DECIDED,
    TOOL_PENDING,
    describe_call_state,
    refused_entries,
)
from bot.memory.records.transcript import format_timestamp, recorded_at, sender_id
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.scope.identities import identity_at
from bot.memory.session.state.outside_fold import OWN_WORDS_ONLY
from bot.memory.session.state.turn_fold import DELIVERY, UndeliveredAnswer, string_items
from bot.memory.session.state.zone_snapshot import zone_entries
from bot.runtime.sessions.edited_evidence import reread_facts
from bot.runtime.sessions.edits import is_unanswered
from bot.runtime.sessions.entries import (
    command_end_entries,
    command_entry,
    delivery_entry,
    message_entry,
)
from bot.runtime.sessions.plain_confirmations import answered_buttons, may_answer
from bot.runtime.sessions.private_quotes import WITHHELD, quotes_private_words
from bot.runtime.sessions.session import Session
from bot.runtime.sessions.undelivered import told_id
from bot.tape.entries import SESSION_FORK, SESSION_NEW, TapeEntry, anchor
from bot.tape.search import problem_of

logger = logging.getLogger(__name__)

GAVE_UP = N_(
    "I was interrupted more than once while answering this, and gave up. My log says why. Your "
    "message is kept. To retry, press the button or send `/retry`."
)
COMMAND_GAVE_UP = N_(
    "I was interrupted more than once while doing this, and gave up. My log says why. To retry, "
    "send the command again."
)
ONLY_COMMANDS = N_(
    "Here I accept only commands, such as `/memory`; `/help` lists them. Send messages in the chat "
    "itself."
)
EDITED_COMMAND = N_(
    "Editing a message neither runs a command nor undoes one. To run it, send it as a new message."
)
LOST_EDIT = N_("I no longer find the message that you edited. Send it as a new message.")
NO_FILE_TAKEN = N_("(`/{name}` uses no files. To keep what you sent with it, send `/files keep`.)")
UNDELIVERED = N_("On {time} I could not deliver a message to you in the chat {chat}: {error}")
DEAD_BUTTON = N_("This button does nothing any more: what it was for has changed or is over.")
DAMAGED = N_(
    "The tape of this conversation is damaged: {what}. I keep everything readable and continue. "
    "The log has details; `tapebot restore` of a backup brings back what it holds."
)
STARTED = N_("New session started.")

_CLOCK_SLACK = timedelta(minutes=10)
"""The wall clock may have been set back between acceptance and the entry."""
_SHOWN = 200
"""Characters that are kept of a message that cannot be written."""
_LOOKED_AT = 200
"""Entries in which an opened session looks for decisions that a kill left unshown."""

MESSAGE = "message:"
"""Begins the platform id of a message that ``/retry`` names, where its entry has no number yet."""


def retry_button(entry: int) -> tuple[str, str]:
    """Return label and command of the button that retries a message."""
    return _("Try again"), f"/retry {entry}"


async def tell_dead_button(bus: Bus, inbound: Inbound) -> None:
    """Tell who pressed a button that it does nothing any more."""
    text, told = _(DEAD_BUTTON), f"dead-{inbound.id}"
    await bus.send(Answer(inbound.address, told, text, inbound.id, alone=True))


class SessionWriter:
    """Writes one session's tape, acknowledges messages and sends answers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tape = session.tape
        self._fold = session.fold
        self._deliveries: dict[str, ReceivedMessage] = {}
        self._sent: set[str] = set()
        self._told: set[str] = set()
        self._withheld: set[str] = set()

    # Deliveries and answers.

    async def track(self, delivery: ReceivedMessage) -> bool:
        """Track a delivery until it is acknowledged; return False if its message is on the tape."""
        if delivery.redelivered and await self._is_known(delivery):
            return False
        self._deliveries[delivery.inbound.id] = delivery
        if await quotes_private_words(self._tape, self._fold, delivery.inbound.quote):
            self._withheld.add(delivery.inbound.id)
        return True

    async def acknowledge(self, delivery: ReceivedMessage) -> None:
        """Acknowledge a message that is on the tape and needs no answer."""
        self._deliveries.pop(delivery.inbound.id, None)
        await delivery.ack()

    async def send_answers(self) -> None:
        """Send every answer on the tape that has no receipt and that this holder has not sent."""
        address, exports = self._session.address, self._session.services.exports
        for undelivered_answer in list(self._fold.turns.undelivered.values()):
            if undelivered_answer.turn not in self._sent:
                self._sent.add(undelivered_answer.turn)
                elsewhere = _address(undelivered_answer.via)
                answer = Answer(
                    elsewhere or address,
                    undelivered_answer.turn,
                    undelivered_answer.text,
                    undelivered_answer.reply_to,
                    undelivered_answer.turn,
                    buttons=self._buttons(undelivered_answer, elsewhere or address),
                    sent_message_ids=self._fold.turns.delivered_parts.get(
                        undelivered_answer.turn, ()
                    ),
                    replaced_message_id=undelivered_answer.replaces,
                    # Use the file name alone, so that a tape cannot name a file in another folder.
                    files=tuple(
                        OutgoingFile(name, exports / Path(file).name)
                        for name, file in undelivered_answer.files
                    ),
                    report_to=None if elsewhere is None else address.session,
                    alone=undelivered_answer.alone,
                )
                await self._send(answer)

    def _buttons(self, answer: UndeliveredAnswer, shown: Address) -> tuple[Button, ...]:
        return tape_buttons(answer.buttons, self._session.address, shown, answer.turn, answer.entry)

    async def show_decisions(self, numbers: Collection[int]) -> set[int]:
        """Take the buttons for decided calls from the messages that ask, and say there what was decided.

        Args:
            numbers: Calls that are looked for as far back as they were asked for; others for a while.

        Returns:
            The decided calls whose question is still on its way.
        """
        left, looked = set(numbers), 0
        decided: dict[int, str] = {}
        dead: dict[str, int] = {}
        waiting: set[int] = set()
        async with aclosing(self._sent_before()) as entries:
            async for entry, asked, shown in entries:
                turn = asked.turn
                looked += 1
                if (looked > _LOOKED_AT and not left) or entry.name == SESSION_FORK:
                    break
                number = entry.data.get("number")
                if type(number) is int and entry.name == TOOL_PENDING:
                    left.discard(number)
                elif type(number) is int and entry.name == TOOL_DECIDED:
                    decided[number] = f"{describe_call_state(entry)}."
                    dead |= {command: number for _label, command in decision_buttons(number)}
                own = {dead[command]: None for _label, command in asked.buttons if command in dead}
                if not own or asked.via:
                    continue
                if turn in self._fold.turns.undelivered:
                    waiting |= own.keys()
                    continue
                told = f"{turn}.{next(number for number in decided if number in own)}"
                if not shown.get(turn) or told in shown or told in self._told:
                    continue
                self._told.add(told)
                answer = self._without(asked, dead, shown[turn])
                text = "\n\n".join([asked.text, *map(decided.__getitem__, own)])
                await self._session.services.bus.send(replace(answer, id=told, text=text))
        return waiting

    async def answered_questions(
        self, delivery: ReceivedMessage, parsed: ParsedCommand
    ) -> list[Answer]:
        """Return the messages with a question that a command answers, but the pressed one, without its buttons."""
        inbound, found, looked = delivery.inbound, list[Answer](), 0
        if not may_answer(parsed):
            return found
        replaced = {None if inbound.answer_to else inbound.pressed_message_id}
        async with aclosing(self._sent_before()) as entries:
            async for _entry, asked, shown in entries:
                looked += 1
                if looked > _LOOKED_AT:
                    break
                dead = answered_buttons([command for _label, command in asked.buttons], parsed)
                ids = () if asked.via else shown.get(asked.turn, ())
                if dead and ids and replaced.isdisjoint(ids):
                    found.append(self._without(asked, dead, ids))
                replaced.add(None if asked.via else asked.replaces)
        return found

    async def _sent_before(
        self,
    ) -> AsyncGenerator[tuple[TapeEntry, UndeliveredAnswer, dict[str, tuple[str, ...]]]]:
        """Yield entries, newest first, as what was sent, and which messages show that by its turn."""
        shown: dict[str, tuple[str, ...]] = {}
        async with aclosing(self._tape.read_back()) as entries:
            async for entry in entries:
                turn = str(entry.data.get("turn") or entry.meta.get("turn"))
                if entry.name == DELIVERY:
                    shown.setdefault(turn, tuple(string_items(entry.data.get("platform_ids"))))
                yield entry, UndeliveredAnswer.from_entry(turn, entry, None, ()), shown

    def _without(
        self, asked: UndeliveredAnswer, dead: Collection[str], ids: tuple[str, ...]
    ) -> Answer:
        """Return what a message shows once some of its buttons are gone."""
        address = self._session.address
        kept = [one for one in self._buttons(asked, address) if one.command not in dead]
        return Answer(
            address,
            f"{asked.turn}.answered",
            asked.text,
            stream=asked.turn,
            buttons=tuple(kept),
            # Files that were sent below the text stay as they are.
            sent_message_ids=ids[: max(1, len(ids) - len(asked.files))],
        )

    async def _send(self, answer: Answer) -> None:
        services = self._session.services
        if not answer.files or services.sent_files is None:
            await services.bus.send(answer)
            return
        async with services.sent_files.placed(answer.files) as files:
            await services.bus.send(replace(answer, files=files))

    async def send_damage(self) -> None:
        """Report damage of the tape in the chat, once for the same damage."""
        services, name = self._session.services, self._session.key
        found = tuple(services.store.damage(name))
        if found and services.told_damage.get(name) != found:
            services.told_damage[name] = found
            text = _(DAMAGED, what="; ".join(found))
            await services.bus.send(Answer(self._session.address, new_id("notice"), text))

    async def record_report(self, report: DeliveryReport) -> None:
        """Record a delivery report; after a final one, acknowledge the messages it answers."""
        turns, missed = self._fold.turns, self._session.services.undelivered
        answered = turns.undelivered.get(report.answer)
        running = turns.open_turn is not None and turns.open_turn.id == report.answer
        # The receipt of a shown decision keeps it from being shown at each start.
        if answered is None and not (report.answer in self._told if report.final else running):
            if report.final:
                await missed.settle(report)
            return
        if answered is not None and report.final and not report.delivered:
            # First, so that no kill comes between; a repeated report changes nothing.
            person, _private = await self._person_of(answered)
            await missed.note(report, person)
        await self._tape.append(delivery_entry(report))
        self._told.discard(report.answer)
        if answered is not None and report.final:
            self._sent.discard(report.answer)
            for inbound in answered.inbound:
                delivery = self._deliveries.pop(inbound, None)
                if delivery is not None:
                    await delivery.ack()
            untold = await missed.settle(report)
            # A place that a command was given from elsewhere is perhaps gone again.
            if untold and report.delivered and not answered.alone and answered.via is None:
                await self._tell_undelivered(answered)

    async def _tell_undelivered(self, answer: UndeliveredAnswer) -> None:
        """Tell the person whom an answer has reached alone what could not be delivered to them before."""
        services, address = self._session.services, self._session.address
        person, private = await self._person_of(answer)
        if not private:
            return
        linked = services.scopes.identity_linker.people.members(person)
        for one in services.undelivered.take(linked):
            text = _(
                UNDELIVERED,
                time=format_timestamp(one.get("ts"), services.agent.timezone),
                chat=f"`{one.get('session')}`",
                error=reason_text(one.get("error")),
            )
            told = told_id(str(one.get("answer")), answer.turn)
            await services.bus.send(Answer(address, told, text))

    async def _person_of(self, answer: UndeliveredAnswer) -> tuple[str, bool]:
        """Return who set the reminder that an answer is, or else wrote last before it, and whether in private."""
        async with aclosing(self._tape.read_back(answer.entry)) as entries:
            async for entry in entries:
                firing = parse_firing(entry)
                if firing is not None and entry.data.get("turn") == answer.turn:
                    known = self._fold.schedules.find(firing.number)
                    if known is None:
                        break
                    return identity_at(self._session.key, known.author.id), known.private
                if sender := sender_id(entry):
                    private = entry.meta.get("private") is True
                    return identity_at(self._session.key, sender), private
        return "", False

    # Messages.

    def message(
        self,
        inbound: Inbound,
        *,
        queued: bool = False,
        overheard: bool = False,
        replaces: TapeEntry | None = None,
    ) -> TapeEntry:
        """Return a message as an entry; see ``entries.message_entry``."""
        if inbound.id in self._withheld:
            self._withheld.discard(inbound.id)
            inbound = replace(inbound, quote=WITHHELD)
        return message_entry(
            inbound,
            self._session.timezone_name,
            queued=queued,
            overheard=overheard,
            replaces=replaces,
            paused=self._session.memory.paused,
        )

    async def record_queued(self, inbound: Inbound) -> None:
        """Record a message that a turn takes in at its next step or its start."""
        await self._tape.append(self.message(inbound, queued=True))

    async def record_overheard(
        self, delivery: ReceivedMessage, inbound: Inbound, elsewhere: TapeEntry | None = None
    ) -> None:
        """Record a message that gets no answer, in the problem of the message that it edits."""
        entry = self.message(inbound, overheard=True, replaces=elsewhere)
        if elsewhere is not None:
            entry = entry.with_meta(problem=problem_of(elsewhere))

        def compose(version: int) -> list[TapeEntry]:
            problems = self._session.memory.bus.problems
            amended = (
                problems.resume_for_edit(elsewhere, version + 1) if elsewhere is not None else []
            )
            return [entry, *amended]

        written = await self._tape.append_composed(compose)
        await reread_facts(self._session.memory, written[0])
        await self.acknowledge(delivery)

    async def record_edit(
        self, delivery: ReceivedMessage, inbound: Inbound, original: TapeEntry
    ) -> bool:
        """Record an edit; say whether its message was still unanswered, so that it replaces that in view."""
        in_time = False

        def compose(_: int) -> list[TapeEntry]:
            nonlocal in_time
            in_time = is_unanswered(self._fold, original)
            if in_time:
                return [self.message(inbound, replaces=original)]
            return [self.message(inbound, overheard=True)]

        edit = (await self._tape.append_composed(compose))[0]
        await reread_facts(self._session.memory, edit)
        await self.acknowledge(delivery)
        return in_time

    async def expire_calls(self) -> None:
        """Deny the calls that have waited too long for a person's yes."""
        agent = self._session.services.agent
        for call in self._fold.pending_calls.waiting:
            if call.expires <= agent.clock.now():
                await self._tape.append_many(refused_entries(call, "expired", ""))
                if agent.approvals is not None:
                    await agent.approvals.close(call.number)

    # Commands.

    async def record_command(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> TapeEntry:
        """Record a command; return the recorded entry if a killed process got that far."""
        known = self._fold.turns.unanswered_commands.get(delivery.inbound.id)
        if known is not None and (entries := await self._tape.read_entries(known, known)):
            return entries[0]
        return await self._tape.append(self.command(delivery, parsed))

    def command(self, delivery: ReceivedMessage, parsed: ParsedCommand) -> TapeEntry:
        """Return a command as an entry."""
        return command_entry(delivery.inbound, parsed, self._session.timezone_name)

    def unrecorded(self, delivery: ReceivedMessage, entry: TapeEntry) -> list[TapeEntry]:
        """Return a command's entry in a list; an empty one if the tape holds the command."""
        known = delivery.inbound.id in self._fold.turns.unanswered_commands
        return [] if known else [entry]

    async def reply(
        self,
        delivery: ReceivedMessage,
        parsed: ParsedCommand,
        reply: CommandReply,
        answered: Sequence[Answer] = (),
    ) -> None:
        """Append command, memory change and reply in one step, and send answered questions and the reply."""
        inbound = delivery.inbound
        if parsed.name == "memory" and parsed.arguments.startswith("forget yes"):  # for the parser
            # The question shows the words that are erased.
            answered = [replace(one, text=reply.text) for one in answered]
        before = self.unrecorded(delivery, self.command(delivery, parsed))
        await self._session.zone.edit(
            reply.zone_edit,
            lambda _, zone, __: [
                *before,
                *reply.extra_entries,
                *zone,
                *command_end_entries(
                    new_id("turn"),
                    inbound,
                    reply.text + self._unused_files(inbound, parsed),
                    buttons=reply.buttons,
                    replaces=inbound.pressed_message_id if reply.replaces_message else None,
                    files=reply.files,
                    unchanged=not reply.replaces_message,
                ),
            ],
        )
        for question in answered if reply.replaces_message else ():
            await self._session.services.bus.send(question)
        await self.send_answers()

    def _unused_files(self, inbound: Inbound, parsed: ParsedCommand) -> str:
        """Return a paragraph on files that came with a command which uses none; else nothing."""
        command = self._session.services.commands.get(parsed.name)
        unused = command is None or not command.takes_files(parsed.arguments)
        sent = unused and any(file.blob and not file.quoted for file in inbound.attachments)
        return "\n\n" + _(NO_FILE_TAKEN, name=parsed.name) if sent else ""

    async def reply_text(self, delivery: ReceivedMessage, parsed: ParsedCommand, text: str) -> None:
        """Reply to a command with a text in a message of its own."""
        await self.reply(delivery, parsed, CommandReply(text, replaces_message=False))

    async def reply_commands_only(self, delivery: ReceivedMessage) -> None:
        """Refuse a message from another surface that is no command; it is not recorded."""
        await self._end(delivery, [], _(ONLY_COMMANDS))

    async def refuse_edit(self, delivery: ReceivedMessage, why: str) -> None:
        """Say why an edit changes nothing; it is not recorded."""
        await self._end(delivery, [], why)

    async def set_aside(self, delivery: ReceivedMessage, why: str) -> None:
        """Answer a message that can never be written, once; the tape has its beginning."""
        inbound = delivery.inbound
        logger.warning("message %s of %s is set aside: %s", inbound.id, inbound.session, why)
        if not inbound.expects_answer:
            await self.acknowledge(delivery)
            return
        text = f"{inbound.text[:_SHOWN]}…"
        begin = replace(inbound, text=text, quote=None, attachments=(), client=None)
        before = [] if inbound.answer_to else self.unrecorded(delivery, self.message(begin))
        await self._end(delivery, before, why, status="error")

    async def refuse_press(self, delivery: ReceivedMessage) -> None:
        """Say that a pressed button does nothing any more; the tape does not learn of it."""
        await tell_dead_button(self._session.services.bus, delivery.inbound)
        await self.acknowledge(delivery)

    async def give_up(self, delivery: ReceivedMessage, parsed: ParsedCommand | None) -> None:
        """Record and answer a message that broke the worker before, without handling it."""
        inbound = delivery.inbound
        if parsed is None and not inbound.expects_answer:
            logger.warning("skipped an overheard message in %s that failed", inbound.session)
            await self.acknowledge(delivery)
            return
        logger.warning("gave up on message %s of %s: it failed", inbound.id, inbound.session)
        if parsed is None:
            buttons = [Button(_("Try again"), f"/retry {MESSAGE}{inbound.id}")]
            before = self.unrecorded(delivery, self.message(inbound))
            await self._end(delivery, before, _(GAVE_UP), status="interrupted", buttons=buttons)
        else:
            before = self.unrecorded(delivery, self.command(delivery, parsed))
            await self._end(delivery, before, _(COMMAND_GAVE_UP), status="error")

    async def start_session(
        self,
        delivery: ReceivedMessage,
        parsed: ParsedCommand,
        *,
        summary: dict[str, Any],
        reason: str,
        own_words_only: bool = False,
    ) -> None:
        """Seal the tape's live part and start the next phase, in one atomic append.

        Before it nothing has changed, and a repeated ``/new`` starts over; after it ``/new`` is done.

        Args:
            delivery: The command's message.
            parsed: The command.
            summary: Summary of the phase that ends, as the boundary's state has it.
            reason: Why it ends, for the boundary.
            own_words_only: Whether the summary is a person's own words alone.
        """
        fold, zone = self._fold, self._session.zone
        first = fold.boundary.id if fold.boundary else 1

        def compose(version: int) -> list[TapeEntry]:
            state: dict[str, Any] = {
                **summary,
                "next_steps": [],
                "source": [first, version],
                "owner": "human",
                "reason": reason,
            }
            if own_words_only:
                state[OWN_WORDS_ONLY] = True
            return [
                *zone_entries(zone.read(), format_time(zone.now())),
                anchor(SESSION_NEW, state),
                self.command(delivery, parsed),
                *command_end_entries(
                    new_id("turn"),
                    delivery.inbound,
                    _(STARTED) + self._unused_files(delivery.inbound, parsed),
                ),
            ]

        await self._tape.archive_composed(compose)

    async def _end(
        self,
        delivery: ReceivedMessage,
        before: Sequence[TapeEntry],
        text: str,
        *,
        status: str = "command",
        buttons: Sequence[Button] = (),
    ) -> None:
        """Append entries, a reply and the end of its turn in one step, and send the reply."""
        await self._session.zone.edit(
            None,
            lambda _, __, ___: [
                *before,
                *command_end_entries(
                    new_id("turn"),
                    delivery.inbound,
                    text,
                    status=status,
                    buttons=buttons,
                ),
            ],
        )
        await self.send_answers()

    async def _is_known(self, delivery: ReceivedMessage) -> bool:
        """Return whether the tape holds the message; track or acknowledge it if so."""
        inbound, turns = delivery.inbound.id, self._fold.turns
        if inbound in turns.unanswered or (turns.open_turn and inbound in turns.open_turn.inbound):
            self._deliveries[inbound] = delivery
            return True
        oldest = delivery.accepted_at - _CLOCK_SLACK
        async for entry in self._tape.read_back():
            moment = recorded_at(entry)
            if moment is not None and moment < oldest:
                return False
            told = entry.kind == "message" and entry.meta.get("inbound") == inbound
            if told and not needs_answer(entry):
                await delivery.ack()
                return True
            end = turn_end(entry)
            if end is not None and inbound in string_items(end.data.get("inbound")):
                if str(end.data.get("turn")) in turns.undelivered:
                    self._deliveries[inbound] = delivery
                else:
                    await delivery.ack()
                return True
        return False


def _address(via: str | None) -> Address | None:
    """Return the address of the surface that gets the answer; None if it is the chat."""
    try:
        return None if via is None else Address.parse(via)
    except InvalidInbound:
        # A malformed address on the tape must not keep the session from opening.
        return None
