"""Run one turn, from the user's message to the answer.

Every step is on the tape before the next begins. After a crash the turn is open on the tape and is
resumed: calls that have results are not run again, and changes of memory are in the same append as
the results that report them. A provider's error ends the turn with a short explanation to the user;
the message stays in context.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio

from bot.agent.client_requests import instructions_entry
from bot.agent.flow.answers import AnswerLinks
from bot.agent.handoff import make_handoff
from bot.agent.refusals import complete
from bot.agent.request_builder import BuiltRequest, RequestBuilder, prompt_digest
from bot.agent.schedules.due_tape import is_occurrence_id
from bot.agent.spending.decision import LimitUse
from bot.agent.spending.metered_model import prompt_tokens
from bot.agent.spending.texts import notice_text
from bot.agent.texts import model_language
from bot.agent.tool_calls import ToolCallRunner, files_to_send, pending_question
from bot.agent.tools.memory import is_answered
from bot.agent.vision import unreadable_files_note
from bot.bus import ClientRequest
from bot.core.errors import (
    BudgetReached,
    ContextOverflow,
    ModelError,
    ModelRejected,
    TransientModelError,
)
from bot.core.i18n import N_, _
from bot.core.ids import new_id
from bot.core.reasons import Reason, reason_json, reason_of
from bot.core.telemetry.metrics import TURN_SECONDS, count_error
from bot.core.telemetry.tracing import current_traceparent, find_traceparent, save_traceparent, span
from bot.llm.base import ModelReply, Usage
from bot.llm.presets import NoPrivateModel
from bot.llm.spender import current_spender
from bot.memory.records.conversation_entries import (
    CLIENT_CALLS,
    LOOP_STEP,
    QUESTION,
    TURN_END,
    TURN_START,
    entry_tokens,
    inbound_ids,
    replaced_entry_id,
)
from bot.memory.records.event_names import REPLY
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.records.turn_marks import fold_end, fold_start
from bot.memory.session.state.turn_fold import TURN_RESUME, OpenTurn
from bot.tape.entries import CONTEXT_OVERFLOW, RATE_LIMIT, TapeEntry, anchor, event, message

logger = logging.getLogger(__name__)

_MOST_RECONSIDERED = 3
_SHORTER = 0.7
_NO_ROOM = N_(
    "This does not fit the model's window, even without older messages and results. Your message is "
    "kept; please start a new session with /new."
)
_PICTURE_REFUSED = N_("The model's server refused a picture. I go on without it.")
_TEXT_REFUSED = N_("The model's server refused a part of the conversation. I go on without it.")
_MESSAGE_REFUSED = N_(
    "The model's server refused this message, so I cannot answer it. I go on without it."
)
_CUT_OFF = {
    "length": N_("(cut off: the model reached its limit for one answer)"),
    "content_filter": N_("(cut off by the provider's content filter)"),
}


class _Edited(Exception):
    """A message being answered was edited after the model was asked."""


class Turn:
    """A running turn of one session.

    Args:
        session: Builds requests from the session's state.
        on_tool: Called with the name of each tool before it runs.

    Attributes:
        id: The turn's id.
        inbound: Platform ids of the messages it answers, oldest first.
        partial: The text streamed so far by the running model call.
        notes: Notes for the model in this turn, at the end of its prompt.
        alone: Whether messages that arrive meanwhile are left for a later turn.
    """

    def __init__(self, session: RequestBuilder, on_tool: Callable[[str], Awaitable[None]]) -> None:
        self.id = new_id("turn")
        self.inbound: list[str] = []
        self.partial = ""
        self.notes: list[str] = []
        self.alone = False
        self._requests = session
        self._agent = session.agent
        self._tape = session.tape
        # Elsewhere a process of the version before, which knows events only, may read the tape next.
        self._folds_marks = getattr(session.tape.store, "exclusive", False)
        self._fold = session.fold
        self._zone = session.zone
        self._calls = ToolCallRunner(session, on_tool)
        self._doing = ""
        self._steps = 0
        self._usage = Usage()
        self._prompt_tokens = 0
        self._built: BuiltRequest | None = None
        self._model = session.agent.model.name
        self._handed_off = False
        self._began: float | None = None
        self._grown = anyio.Event()
        self._has_run = False
        self._asking: anyio.CancelScope | None = None
        self._shown: AnswerLinks | None = None
        self._reconsidered = 0

    @property
    def reply_to(self) -> str | None:
        """The platform's id of the newest message that it answers; None if no person sent one."""
        return next((one for one in reversed(self.inbound) if not is_occurrence_id(one)), None)

    @property
    def ended(self) -> bool:
        """True if the tape holds the turn's end."""
        opened = self._fold.turns.open_turn
        return opened is None or opened.id != self.id

    async def start(
        self,
        arrived: Sequence[TapeEntry],
        inbound: Sequence[str],
        *,
        joined: Sequence[int] = (),
        retries: Sequence[str] = (),
        before: Sequence[TapeEntry] = (),
        task: str = "",
        client: ClientRequest | None = None,
    ) -> list[TapeEntry]:
        """Write the messages and the turn's start to the tape; return the messages as written.

        Args:
            arrived: Messages that are not on the tape yet.
            inbound: Platform ids of all messages answered.
            joined: Entry ids of queued messages that this turn takes in.
            retries: Platform ids of messages of interrupted turns that this turn answers.
            before: Entries of whatever starts the turn, such as a schedule's occurrence.
            task: Id of the schedule whose task the turn does.
            client: What a client program asks of the model.
        """
        self._began = self._agent.clock.monotonic()
        self.inbound = list(inbound)
        new = set(inbound_ids(arrived))
        known = self._fold.window.messages_by_platform_id(one for one in inbound if one not in new)
        prompt = await self._requests.system_prompt([*known, *arrived])
        data = self._start_data(prompt, joined=joined, retries=retries, task=task)
        # The results are entries of their own, and so are the instructions.
        asked = {} if client is None else replace(client, results=()).as_json()
        if asked.get("system"):
            asked["advised"] = True
        told, held = instructions_entry(asked), self._fold.turns.instructions
        if told is not None and held is not None and held.data.get("hash") == told.data["hash"]:
            asked["instructions"], told = held.id, None
        if (
            cause := next((m.meta["cause"] for m in arrived if "cause" in m.meta), None)
        ) is not None:
            data["cause"] = cause

        def compose(version: int) -> list[TapeEntry]:
            entries = [*before, *arrived, *self._requests.prompt_entry(prompt)]
            if told is not None:
                entries.append(told)
                asked["instructions"] = version + len(entries)
            start = event(TURN_START, data | ({"client": asked} if asked else {}))
            return fold_start(entries, start) if self._folds_marks else [*entries, start]

        written = await self._tape.append_composed(compose)
        return written[len(before) : len(before) + len(arrived)]

    def _start_data(
        self, prompt: str, *, joined: Sequence[int], retries: Sequence[str], task: str
    ) -> dict[str, Any]:
        """Return the data of the turn's start, without what is as usual."""
        agent, window = self._agent, self._fold.window
        data: dict[str, Any] = {
            "turn": self.id,
            "inbound": self.inbound,
            "bounds": [window.max_messages, window.max_tokens],
            "prefix": prompt_digest(prompt),
        }
        builder = "" if agent.builder.name == "default" else agent.builder.name
        rest = {
            "builder": builder,
            "joined": list(joined),
            "retries": list(retries),
            "task": task,
            "preset": agent.preset,
        }
        return data | {name: value for name, value in rest.items() if value}

    async def resume(self, opened: OpenTurn) -> None:
        """Resume a turn that a crash left open."""
        self._began = self._agent.clock.monotonic()
        self.id, self.inbound, self._steps = opened.id, list(opened.inbound), opened.steps
        self._usage = opened.spent
        prompt = await self._requests.system_prompt(self._requests.answered_messages())
        builder = self._agent.builder.name
        data = {"turn": self.id, "builder": builder, "prefix": prompt_digest(prompt)}
        note = event(TURN_RESUME, data)
        await self._tape.append_many([*self._requests.prompt_entry(prompt), note])
        await self._calls.run_pending(self.id)

    async def run(self) -> None:
        """Call the model and its tools until there is an answer, and write that to the tape."""
        session = self._tape.name
        with span("turn", find_traceparent(session, *reversed(self.inbound)), turn=self.id) as here:
            # Delivery of the answer continues this trace.
            save_traceparent(session, self.id, current_traceparent())
            self._calls.show = self._show
            try:
                await self._run()
            finally:
                # Else the two would hold each other, and the session with them.
                self._calls.show = None
            here.set(steps=self._steps)
        self._has_run = True
        self._grown.set()

    async def _run(self) -> None:
        try:
            await self._calls.run_approved(self.id)
            while True:
                if (called := self._calls.calls_for_client(self.id)) is not None:
                    await self._return_calls(called)
                    return
                await self._join_waiting()
                reply = await self._call()
                answered = {entry.id for entry in self._requests.answered_messages()}
                if answered and answered <= self._fold.refused.entries:
                    self.partial = ""
                    await self.end("error", _(_MESSAGE_REFUSED), error=_MESSAGE_REFUSED)
                    return
                if reply.tool_calls and self._steps < self._agent.max_steps:
                    opened = self._fold.turns.open_turn
                    # A client's own tool may have any name.
                    answers = opened is not None and not opened.client
                    answers = answers and all(map(is_answered, reply.tool_calls))
                    answers = answers and bool(reply.content.strip())
                    await self._step(replace(reply, content="") if answers else reply)
                    done = await self._calls.run_pending(self.id)
                    if answers and done and await self._answer(reply, beside=True):
                        return
                elif await self._answer(reply):
                    return
        except BudgetReached as error:
            logger.info("turn %s of %s: %s", self.id, self._tape.name, error)
            await self.end("error", _apology(error), error=_recorded(error), limited=True)
        except ModelError as error:
            logger.warning("turn %s of %s failed: %s", self.id, self._tape.name, error)
            count_error("turn", error)
            text = _(_NO_ROOM) if self._lacks_room(error) else _apology(error)
            await self.end("error", text, error=_recorded(error))

    def _lacks_room(self, error: ModelError) -> bool:
        """Return whether a prompt is too long although the messages that are answered are not."""
        if not isinstance(error, ContextOverflow) or self._built is None:
            return False
        said = sum(map(entry_tokens, self._requests.answered_messages()))
        return 2 * said < prompt_tokens(self._built.request)

    async def end(
        self,
        status: str,
        text: str,
        *,
        error: str | None = None,
        limited: bool = False,
        entries: Sequence[TapeEntry] = (),
        joined: Sequence[int] = (),
        buttons: Sequence[tuple[str, str]] = (),
    ) -> None:
        """End the turn with a reply that the model did not write.

        Args:
            status: Status of the turn's end.
            text: The reply.
            error: Error message for the record.
            limited: Whether the error is a limit on spending.
            entries: Entries of whatever ended the turn, such as a command.
            joined: Ids of queued messages that count as part of the turn.
            buttons: Labels and commands, shown below the reply if the platform has buttons.
        """
        before = list(entries)
        if self.partial:
            before.append(message("assistant", self.partial, turn=self.id, status=status))
            # The streamed text that the person has already read stays visible.
            text = f"{self.partial.rstrip()} …\n\n_{text}_" if "\n" not in text else text
        abandoned, told = self._calls.abandoned(self.id)
        before += abandoned
        # What tools ask, and what is not known of a call, must not be lost with the model's answer.
        asked, more = pending_question(self._own_entries(), self.id)
        data: dict[str, Any] = {"text": "\n\n".join(filter(None, [text, asked, *told]))}
        if buttons or more:
            data["buttons"] = [*map(list, buttons), *more]
        reply = event(REPLY, data, turn=self.id)
        await self._end([*before, reply], status, error=error, limited=limited, joined=joined)

    async def split(self, opened: OpenTurn) -> None:
        """End a turn that answers several messages, so that each gets a turn of its own."""
        data = {
            "turn": opened.id,
            "status": "split",
            "answered": False,
            "inbound": [],
            "split": opened.inbound,
            "usage": opened.spent.as_json(),
        }
        await self._tape.append_composed(lambda _: [event(TURN_END, data)])

    # Model calls.

    @property
    def may_restart_model_call(self) -> bool:
        """True while an edit of an answered message may restart the model call.

        The number of restarts is limited, since each costs a model call.
        """
        return self._reconsidered < _MOST_RECONSIDERED

    def restart_model_call(self) -> None:
        """Cancel a running model call and ask again, because an answered message was edited."""
        if self._asking is not None:
            self._asking.cancel()

    async def _call(self) -> ModelReply:
        while True:
            with anyio.CancelScope() as self._asking:
                return await self._ask()
            # Cancelled because of an edit; the window already has the new text.
            self._reconsidered += 1
            self._usage += Usage(calls=1)

    async def _ask(self) -> ModelReply:
        rooms, doubted = dict(self._requests.rooms), False
        while True:
            try:
                return await self._complete()
            except ModelError as error:
                # No word names the length.
                guessed = isinstance(error, ModelRejected)
                if error.is_long and guessed and not doubted:
                    doubted = True
                    if not await self._is_for_length():
                        continue
                if not error.is_long or not await self._shorten(error):
                    if guessed:
                        self._requests.rooms = rooms
                    raise

    async def _is_for_length(self) -> bool:
        """Return whether the newest turn alone is answered, and the whole request refused again."""
        assert self._built is not None
        whole = self._built.request
        last = max(at for at, one in enumerate(whole.messages) if one["role"] == "user")
        short = replace(whole, messages=[*whole.messages[:1], *whole.messages[last:]])
        for request in (short, whole) if last > 1 else (whole,):
            try:
                reply = await complete(self._agent.model, request, search=False)
            except ModelError as again:
                return request is whole and isinstance(again, (ModelRejected, ContextOverflow))
            self._usage += reply.usage
        return False

    async def _shorten(self, error: ModelError) -> bool:
        """Make the next request shorter; return False if it cannot be."""
        built = self._built
        if not self._handed_off and await self._hand_off(error):
            self._handed_off = True
        elif built is not None and built.shrinkable:
            # The window is smaller than the settings say.
            self._requests.rooms[self._agent.model.name] = (
                prompt_tokens(built.request) * self._requests.density * _SHORTER
            )
        else:
            return False
        return True

    async def _complete(self) -> ModelReply:
        closing = self._steps >= self._agent.max_steps
        built = self._built = await self._requests.build(closing=closing, notes=self.notes)
        self._calls.memory_seen = self._zone.read()
        self.partial = ""
        self._shown = await self._calls.answer_filter(self.id)
        for last in (False, True):
            reply = await complete(self._agent.model, built.request, self._stream)
            if self._shown is not None:
                reply = replace(reply, content=self._shown(reply.content))
            self._usage += reply.usage
            self._model = reply.model or self._model
            self._prompt_tokens = reply.usage.prompt_tokens
            self._requests.record_model_call(built, reply.usage)
            if reply.content.strip() or reply.tool_calls:
                return reply
            if last:
                break
        raise TransientModelError(Reason("empty_answer"))

    async def next_partial(self) -> str | None:
        """Wait until the streamed answer has grown; return its text so far, None once the turn has run."""
        while not self._has_run:
            await self._grown.wait()
            self._grown = anyio.Event()
            if text := self.partial or self._doing:
                return text
        return None

    def _show(self, text: str) -> None:
        self._doing = text
        self._grown.set()

    def _stream(self, text: str) -> None:
        self.partial = text if self._shown is None else self._shown(text, growing=True)
        self._doing = ""
        self._grown.set()

    async def _hand_off(self, error: ModelError) -> bool:
        limited = isinstance(error, TransientModelError)
        handoff = await make_handoff(
            self._agent.model,
            self._fold.window,
            context_tokens=self._agent.context_tokens,
            timezone=self._agent.timezone,
            reason="rate_limit" if limited else "context_length_exceeded",
            error=str(error),
            refused=self._fold.refused.entries,
        )
        if handoff is None:
            return False
        self._usage += handoff.usage
        step = {
            "turn": self.id,
            "step": self._steps,
            "status": "auto_handoff",
            "spent": handoff.usage.as_json(),
        }
        await self._tape.append_many(
            [
                anchor(RATE_LIMIT if limited else CONTEXT_OVERFLOW, handoff.state, turn=self.id),
                event(LOOP_STEP, step),
            ]
        )
        return True

    # Steps.

    async def _step(self, reply: ModelReply) -> None:
        """Write a reply that calls tools to the tape."""
        self._steps += 1
        entry = self._calls.call_entry(self.id, reply)
        await self._tape.append_many([entry, self._step_event(reply, "tool_calls")])
        self.partial = ""

    def _step_event(self, reply: ModelReply, status: str) -> TapeEntry:
        data: dict[str, Any] = {
            "turn": self.id,
            "step": self._steps,
            "status": status,
            "model": reply.model,
            "spent": reply.usage.as_json(),
        }
        if self._built is not None:
            data["at"] = self._built.last_seen_entry
            if self._built.tail_records:
                data["extra"] = list(self._built.tail_records)
            if self._built.images is not None:
                data["images"] = self._built.images
            if self._built.shrunk:
                data["shrunk"] = [list(pair) for pair in self._built.shrunk.items()]
        if not reply.cache_reported:
            data["cache_told"] = False
        step = event(LOOP_STEP, data)
        if self._built is not None and self._built.from_outside:
            return step.with_meta(**{FROM_OUTSIDE: True})
        return step

    def _seen_by_only_call(self, reply: ModelReply) -> dict[str, Any]:
        """Return what the turn's end says of its only model call; empty if that needs a ``loop.step``.

        Usage and model of the call are the turn's own.
        """
        built = self._built
        if built is None or built.tail_records or built.images is not None or built.from_outside:
            return {}
        if built.shrunk:
            return {}
        if self._steps != 1 or self._usage + self._calls.spent != reply.usage:
            return {}
        told: dict[str, Any] = {"at": built.last_seen_entry}
        return told if reply.cache_reported else {**told, "cache_told": False}

    async def _return_calls(self, called: TapeEntry) -> None:
        """End the turn: its client runs the calls, and sends their results with its next request."""
        reply = event(REPLY, {"text": str(called.payload.get("content") or "")}, turn=self.id)
        await self._end([reply], CLIENT_CALLS)

    async def _join_waiting(self) -> None:
        """Take in messages that arrived since the last step."""
        waiting = self._fold.window.waiting_messages()
        if waiting and not self.alone:
            arrived = inbound_ids(waiting)
            data = {
                "turn": self.id,
                "step": self._steps,
                "status": "joined",
                "joined": [entry.id for entry in waiting],
                "inbound": arrived,
            }
            await self._tape.append(event(LOOP_STEP, data))
            self.inbound += arrived

    async def _answer(self, reply: ModelReply, *, beside: bool = False) -> bool:
        """Write the answer; return False if a message was edited after the model was asked.

        Args:
            reply: The reply with the answer.
            beside: Whether it made calls, too, and is on the tape as the step before.
        """
        self._steps += not beside
        text = reply.content.strip()
        if not text:
            text = _("I could not finish this within the allowed steps of one turn.")
        if (why := _CUT_OFF.get(reply.finish_reason)) is not None:
            text += f"\n\n… {_(why)}"
        answered = self._fold.window.messages_by_platform_id(self.inbound)
        if (note := unreadable_files_note(answered, self._agent.model.profile)) is not None:
            text = f"{text}\n\n{note}"
        for kind in sorted(self._fold.refused.untold):
            text += f"\n\n_{_(_PICTURE_REFUSED if kind == 'picture' else _TEXT_REFUSED)}_"
        warned = self._near_limits()
        if said := notice_text([use for use in warned if not use.is_reached]):
            text = f"{text}\n\n_{said}_"
        self.partial = ""
        results = self._own_entries()
        asked, buttons = pending_question(results, self.id)
        entry = message("assistant", text, turn=self.id)
        if asked:
            # Apart from the answer: people see it, and the model does not read it again each turn.
            asking = {QUESTION: asked, "buttons": buttons}
            entry = replace(entry, payload={**entry.payload, **asking})
        if files := files_to_send(results, self.id):
            entry = replace(entry, payload={**entry.payload, "files": files})
        try:
            told = {} if beside else self._seen_by_only_call(reply)
            steps = [] if told or beside else [self._step_event(reply, "answer")]
            cut_off = reply.finish_reason == "length"
            await self._end([entry, *steps], "ok", cut_off=cut_off, newest=True, call=told)
        except _Edited:
            self._steps -= not beside
            self._reconsidered += 1
            return False
        if warned and self._agent.spending is not None:
            # After the answer: a kill in between repeats the notice, and never loses it.
            self._agent.spending.mark_warned(warned, current_spender())
        return True

    def _own_entries(self) -> list[TapeEntry]:
        """Return the entries in view since the turn's start; its results of tools are among them."""
        opened = self._fold.turns.open_turn
        return [] if opened is None else self._fold.window.entries_since(opened.start)

    def _near_limits(self) -> list[LimitUse]:
        """Return the limits on spending of which the person must be told with this answer."""
        spending = self._agent.spending
        return [] if spending is None else spending.unwarned(current_spender())

    def _outdated(self) -> bool:
        """Return whether an answered message has a newer edit that may restart the call."""
        if self._built is None or not self.may_restart_model_call:
            return False
        asked = self._built.last_seen_entry
        return any(
            replaced_entry_id(entry) is not None and entry.id > asked
            for entry in self._fold.window.messages_by_platform_id(self.inbound)
        )

    async def _end(
        self,
        before: Sequence[TapeEntry],
        status: str,
        *,
        error: str | None = None,
        limited: bool = False,
        cut_off: bool = False,
        joined: Sequence[int] = (),
        newest: bool = False,
        call: Mapping[str, Any] | None = None,
    ) -> None:
        """Append the answer and the turn's end in one write.

        ``call`` is what the end says of the only model call, in place of a ``loop.step``.

        Raises:
            _Edited: If ``newest`` is set and an answered message was edited since.
        """
        self.partial = ""
        now = self._agent.clock.monotonic()
        # A turn that ends before it started here took no time.
        elapsed = round((now - (now if self._began is None else self._began)) * 1000, 1)
        data: dict[str, Any] = {
            "turn": self.id,
            "status": status,
            "answered": True,
            "inbound": self.inbound,
            "reply_to": self.reply_to,
            "usage": (self._usage + self._calls.spent).as_json(),
            "prompt_tokens": self._prompt_tokens,
            "ms": elapsed,
            "steps": self._steps,
            "model": self._model,
            **(call or {}),
        }
        if error is not None:
            data["error"] = reason_json(error)
        if limited:
            data["limited"] = True
        if cut_off:
            data["cut_off"] = True
        if joined:
            data["joined"] = list(joined)

        def compose(version: int) -> list[TapeEntry]:
            if newest and self._outdated():
                raise _Edited
            end = event(TURN_END, data)
            return fold_end(before, end, version + 1) if self._folds_marks else [*before, end]

        await self._tape.append_composed(compose)
        TURN_SECONDS.observe(elapsed / 1000, status)


def _apology(error: ModelError) -> str:
    if isinstance(error, BudgetReached):
        return _(
            "I did not ask the model: {reason}. Your message is kept, and I will see it with your next "
            "one.",
            reason=error,
        )
    reason = reason_of(error)
    if isinstance(error, NoPrivateModel):
        return _("I sent your message nowhere: {reason}. Your message is kept.", reason=reason)
    if isinstance(error, ContextOverflow):
        return _(
            "This is too long for the model, even without older messages. Your message is kept; please "
            "send a shorter one, or start a new session with /new."
        )
    return _(
        "I could not get an answer from the model: {reason}. Your message is kept, and I will see it "
        "with your next one.",
        reason=reason,
    )


def _recorded(error: ModelError) -> str:
    """Return an error as the tape records it: a reason, else English, whoever reads the apology."""
    with model_language():
        return reason_of(error)
