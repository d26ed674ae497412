"""Build a turn's model requests, and record the system prompt that they begin with on the tape."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.agent.agent import Agent
from bot.agent.cached_prompt import CachedPrompt, LastModelCall, find_cached_prompt
from bot.agent.client_requests import INSTRUCTIONS, client_notes, with_client
from bot.agent.context import (
    ModelContext,
    RenderedMessages,
    origins,
    records_tail,
    shrink_results,
)
from bot.agent.prompt import PromptInputs, TaskKind, chat_line, system_prompt
from bot.agent.skills.skill_library import OfferedSkill
from bot.agent.spending.metered_model import prompt_tokens
from bot.agent.texts import model_language
from bot.agent.tools.registry import Audience, Availability
from bot.agent.views.automatic_recall import MIN_RECALL_BUDGET, AutomaticRecall
from bot.agent.views.exact import AnchorReader
from bot.agent.views.summaries import SummaryReader
from bot.agent.vision import with_images
from bot.llm.base import ChatMessage, ModelRequest, ToolSpec, Usage, estimate_tokens
from bot.memory.records.attachments import attachments_in
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.evidence import grant_of
from bot.memory.records.fact import Fact
from bot.memory.records.schedules import find_zone
from bot.memory.records.transcript import is_automation, sender_id
from bot.memory.session.file_folder import FileFolders
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.outdated_entries import outdated_entries
from bot.memory.session.recall import RecalledPassage, recallable_facts
from bot.memory.session.scope.identities import identity_at
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.tape.entries import TapeEntry, system
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService
from bot.tape.state_reads import shared_state_reads

_TAKEN_BACK = (
    "Taken back after a check against the user's words, and not in long-term memory any more (where it matters, say so, "
    "and save what holds):"
)
_MOST_TOLD = 5
_PRIVATE_PROBLEM = (
    "This problem is private: nothing of it goes into long-term memory; `problem_note` keeps it."
)
_FILLED, _SHRUNK = 0.85, 0.55
"""Shares of a model's window: above the first, results shrink in one go until the second."""

_LEAST_KEPT = 500
_MOST_DENSE = 3.0
_CLOSING = "This is the last step of this turn: no more tools; answer now with what is known."


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """A request, and what is needed to reconstruct it from the tape.

    Attributes:
        request: The request for the model.
        tail_records: Records in its tail that do not come from the session's state; ``INSTRUCTIONS``
            stands for a client's.
        last_seen_entry: Id of the last entry that it takes into account.
        memory: The memory that it shows.
        first_in_view: Id of the first entry in view.
        images: Whether the model supports images, and the names of the images it was shown; None if
            no image is in view.
        from_outside: Whether the tail may hold text from outside.
        shrunk: Characters kept of results that were shrunk, by entry id.
        shrinkable: Whether a result in view can be shrunk further.
    """

    request: ModelRequest
    tail_records: tuple[str, ...]
    last_seen_entry: int
    memory: MemorySnapshot
    first_in_view: int
    images: dict[str, Any] | None = None
    from_outside: bool = False
    shrunk: dict[int, int] = field(default_factory=dict)
    shrinkable: bool = False


@dataclass(slots=True)
class RequestBuilder:
    """Builds model requests from one session's state.

    Attributes:
        agent: The model and its tools.
        tape: The session's tape.
        fold: The session's state.
        zone: The session's memory zone.
        memory: The session's long-term memory.
        task: The kind of task that the requests are for; None for a conversation.
        rendered: Cache of rendered messages.
        recalled: Automatic recall for the newest message.
        anchors: Reads the anchors in view.
        summaries: Reads summaries of what lies before the view.
        last_model_call: The last call that a model answered; None before the first, and for a client that
            has its own instructions.
        prompted: The newest system prompt, with what it was built from.
        shrunk: Characters kept of results that were shrunk, by entry id.
        rooms: Tokens that fit a model's window as it showed, by its name.
        density: Tokens of the last request for one that was estimated.
    """

    agent: Agent
    tape: TapeService
    fold: SessionFold
    zone: MemoryZone
    memory: LongTermMemory
    task: TaskKind | None = None
    rendered: RenderedMessages = field(default_factory=dict)
    recalled: AutomaticRecall = field(default_factory=AutomaticRecall)
    anchors: AnchorReader = field(init=False)
    summaries: SummaryReader = field(init=False)
    last_model_call: LastModelCall | None = None
    prompted: tuple[PromptInputs, str] | None = field(default=None, init=False)
    shrunk: dict[int, int] = field(default_factory=dict, init=False)
    rooms: dict[str, float] = field(default_factory=dict, init=False)
    density: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        """Create the readers of anchors and summaries."""
        self.anchors = AnchorReader(self.tape, self.fold)
        self.summaries = SummaryReader(self.tape, self.fold)

    async def build(self, *, closing: bool, notes: Sequence[str] = ()) -> BuiltRequest:
        """Return the next request; its system prompt is written to the tape first.

        Args:
            closing: Whether the model must answer now, without tools.
            notes: Notes for the model in this turn.
        """
        with model_language(), shared_state_reads():
            return await self._build(closing=closing, notes=notes)

    async def _build(self, *, closing: bool, notes: Sequence[str]) -> BuiltRequest:
        skills = await self.agent.skills.offered(self.audience())
        inputs, prompt = await self._prompt(skills, self.answered_messages())
        if changed := self.prompt_entry(prompt):
            await self.tape.append_many(changed)
        fold = self.fold.without_hidden_messages()
        attached = [entry for entry in fold.window.conversation() if "attachments" in entry.meta]
        tools = self.agent.model.profile.tools
        offered = await self._offered(bool(skills)) if tools else []
        packet, passages = await self._problem_records(), await self._passages(prompt, fold)
        taken_back = [] if self.task else self._taken_back()
        opened = self.fold.turns.open_turn
        client = {} if opened is None else opened.client
        instructed = client_notes(client)
        told = (*notes, *instructed, *([_CLOSING] if closing else []))
        extra = (*packet, *passages, *taken_back, *told)
        builder = self.agent.builder
        anchors = await self.anchors.read() if builder.anchors else ()
        first_in_view = fold.window.first_id
        drawn = builder.render(fold.window, self.rendered, anchors)
        made_of = origins(drawn, self.rendered, fold.window.conversation(), anchors)
        whole, pictures = await self._add_images(drawn, attached)

        def request_of(history: Sequence[ChatMessage]) -> ModelRequest:
            tail = records_tail(self.fold, self.agent.timezone, extra, history)
            context = ModelContext(prompt, tuple(history), tail)
            request = ModelRequest(
                messages=context.messages(),
                tools=offered,
                tool_choice="none" if closing else "auto",
                tail_length=context.tail_length,
                sources=self._sources(history, made_of),
            )
            return with_client(request, client, tools=tools)

        request, shrinkable = self._fitted(request_of, whole, made_of)
        return BuiltRequest(
            request,
            tuple(INSTRUCTIONS if one in instructed else one for one in extra),
            self.fold.version,
            inputs.memory,
            first_in_view,
            pictures,
            from_outside=bool(passages) and self.recalled.from_files,
            shrunk=dict(self.shrunk),
            shrinkable=shrinkable,
        )

    def _sources(
        self, history: Sequence[ChatMessage], made_of: Sequence[tuple[int, ...]]
    ) -> dict[str, tuple[str, int]]:
        found = {}
        for message, ids in zip(history, made_of, strict=True):
            content = message["content"]
            texts = [one.get("text") for one in content] if isinstance(content, list) else [content]
            texts += [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
            found.update({text: (self.tape.name, ids[-1]) for text in texts if text and ids})
        return found

    def _fitted(
        self,
        request_of: Callable[[Sequence[ChatMessage]], ModelRequest],
        whole: Sequence[ChatMessage],
        made_of: Sequence[tuple[int, ...]],
    ) -> tuple[ModelRequest, bool]:
        """Return a request that fits the window, the oldest results shrunk, and whether more could be."""
        results = {
            ids[0]: message["content"]
            for message, ids in zip(whole, made_of, strict=True)
            if message["role"] == "tool" and ids
        }
        self.shrunk = {one: kept for one, kept in self.shrunk.items() if one in results}
        room = self.rooms.get(self.agent.model.name, self.agent.context_tokens * _FILLED)

        def request(least: float) -> tuple[ModelRequest, float]:
            made = request_of(shrink_results(whole, made_of, self.shrunk))
            return made, prompt_tokens(made) * self.density - least

        made, over = request(room)
        if over > 0:
            over += room * (1 - _SHRUNK / _FILLED)
            for one, content in list(results.items())[:-1]:
                if over > 0 and self.shrunk.get(one) != 0 and len(content) > _LEAST_KEPT:
                    over -= estimate_tokens(content) * self.density
                    self.shrunk[one] = 0
            made, over = request(room)
        newest, content = next(reversed(results.items()), (0, ""))
        if over > 0 and len(content) > _LEAST_KEPT:
            # Some more, since the line takes room, too.
            left_out = 1.2 * over * len(content) / (estimate_tokens(content) * self.density)
            kept = self.shrunk.get(newest, len(content)) - int(left_out)
            self.shrunk[newest] = max(_LEAST_KEPT, kept)
            made, over = request(room)
        return made, any(
            self.shrunk.get(one, len(text)) > _LEAST_KEPT for one, text in results.items()
        )

    def record_model_call(self, built: BuiltRequest, usage: Usage) -> None:
        """Record an answered call, which shows whether the provider's cache serves this conversation."""
        called = LastModelCall(
            self.agent.model.name,
            built.request.tools,
            usage,
            self.agent.clock.now(),
            built.memory,
            built.first_in_view,
        )
        measured = usage.prompt_tokens / (prompt_tokens(built.request) or 1)
        self.density = min(max(1.0, measured), _MOST_DENSE)
        opened = self.fold.turns.open_turn
        self.last_model_call = None if opened is None or opened.client else called

    async def cached_prompt(self) -> CachedPrompt | None:
        """Return the conversation's prompt up to now; None if no cache is known to serve it."""
        prompt = await self._unerased_prompt()
        # Read before: while it waits, a message may arrive that makes the chat a group.
        fold, called = self.fold.without_hidden_messages(), self.last_model_call
        if not prompt or called is None:
            return None
        return find_cached_prompt(called, self.agent, fold, prompt, self.rendered)

    async def _unerased_prompt(self) -> str:
        """Return the newest system prompt on the tape; empty if something in it was erased since."""
        digest, at = self.fold.turns.last_prompt
        read = await self.tape.read_entries(at, at) if at else []
        prompt = str(read[0].payload.get("content")) if read else ""
        return prompt if prompt_digest(prompt) == digest else ""

    async def _offered(self, skills: bool) -> list[ToolSpec]:
        """Return the specs of the tools that are usable now; ``skills`` says whether there are any to read."""
        tools = self.agent.tools
        private = self.agent.private
        available = Availability(
            problems=not self.task and self.memory.bus.problems.has_open(),
            skills=skills,
            scheduled=self.task == "schedule",
            private=private,
        )
        always = tools.available_specs(available)
        return always if private else [*always, *await tools.source_specs(self.audience())]

    def answered_messages(self) -> list[TapeEntry]:
        """Return the messages that the open turn answers or took in: any may have caused a call."""
        opened = self.fold.turns.open_turn
        if opened is None:
            return []
        window = self.fold.window
        entries = [
            *window.messages_by_platform_id(opened.inbound),
            *window.joined_since(opened.start),
        ]
        return list({entry.id: entry for entry in entries}.values())

    def audience(self) -> Audience:
        """Return whom the open turn serves."""
        return self._audience_of(self.answered_messages())

    def _audience_of(self, messages: Sequence[TapeEntry]) -> Audience:
        people = [
            identity_at(self.tape.name, sender_id(entry))
            for entry in messages
            if not is_automation(entry)
        ]
        return Audience(self.tape.name, tuple(dict.fromkeys(filter(None, people))))

    async def system_prompt(self, messages: Sequence[TapeEntry]) -> str:
        """Return the current system prompt of a turn.

        Args:
            messages: The messages that it answers; those of a turn that begins are not on the tape yet.
        """
        with model_language(), shared_state_reads():
            skills = await self.agent.skills.offered(self._audience_of(messages))
            _, prompt = await self._prompt(skills, messages)
        return prompt

    async def _prompt(
        self, skills: Sequence[OfferedSkill], messages: Sequence[TapeEntry]
    ) -> tuple[PromptInputs, str]:
        """Return the system prompt of a turn that answers messages, and what it was built from."""
        agent = self.agent
        builder = agent.builder
        name = self.fold.schedules.zone_name
        zone = (find_zone(name) if name else None) or agent.timezone
        inputs = PromptInputs(
            today=agent.clock.now().astimezone(zone).date(),
            timezone=zone,
            timezone_name=name or agent.timezone_name,
            memory=self.fold.prompt_snapshot,
            boundary=None if builder.anchors else self.fold.boundary,
            workspace=await agent.workspace.read(),
            skills=skills,
            profile=agent.model.profile,
            chat=""
            if self.task
            else chat_line(self.tape.name, [*self.fold.window.conversation(), *messages]),
            summaries=await self.summaries.read() if builder.summaries else (),
            task=self.task,
        )
        if self.prompted is None or self.prompted[0] != inputs:
            self.prompted = (inputs, system_prompt(inputs))
        return self.prompted

    def _taken_back(self) -> list[str]:
        """Return a record of facts saved here that a judge refuted since the answer before last."""
        refuted = [fact for fact in self.memory.home.fold.facts.values() if fact.is_refuted]
        if not refuted:
            return []
        answers = [
            entry
            for entry in self.fold.window.conversation()
            if entry.payload.get("role") == "assistant"
        ]
        # Judging may still run while the next answer is written; the answer after that mentions the
        # result.
        before = answers[-2:-1] or ([self.fold.boundary] if self.fold.boundary else [])
        since = str(before[0].meta.get("ts", "")) if before else ""
        gone = [
            fact.text
            for fact in refuted
            if fact.changed >= since
            and any(evidence.tape == self.tape.name for evidence in fact.evidence)
            and not self._is_saved_again(fact)
        ]
        return (
            ["\n".join([_TAKEN_BACK, *(f"- {text}" for text in gone[-_MOST_TOLD:])])]
            if gone
            else []
        )

    def _is_saved_again(self, refuted: Fact) -> bool:
        """Return whether a later fact rests on words that a refuted one rested on."""
        spans = {evidence.span for evidence in refuted.evidence}
        return any(
            fact.batch > refuted.batch
            and not spans.isdisjoint(evidence.span for evidence in fact.evidence)
            for fact in self.memory.facts()
        )

    def prompt_entry(self, prompt: str) -> list[TapeEntry]:
        """Return the prompt as a list of one entry; empty if it is the tape's latest prompt."""
        digest = prompt_digest(prompt)
        return [] if self.fold.turns.last_prompt[0] == digest else [system(prompt, hash=digest)]

    async def _add_images(
        self, history: Sequence[ChatMessage], attached: Sequence[TapeEntry]
    ) -> tuple[list[ChatMessage], dict[str, Any] | None]:
        """Return the history with images, or with a note that the model cannot see them, and a record of that."""
        profile, images = self.agent.model.profile, self.agent.images
        names: set[str] = set()

        async def load(name: str) -> bytes | None:
            data = await images(name) if images is not None else None
            names.update([name] * (data is not None))
            return data

        loader = None if images is None else load
        shown = await with_images(history, attached, self.rendered, profile=profile, images=loader)
        files = (file for entry in attached for file in attachments_in(entry.meta))
        if not any(file.is_viewable_image for file in files):
            return shown, None
        return shown, {"vision": profile.vision, "shown": None if images is None else sorted(names)}

    async def _problem_records(self) -> list[str]:
        """Return records of the active problem: its working set, or its name and summary."""
        if self.task:
            return []
        bus = self.memory.bus
        problem = await bus.problems.get_active()
        # Only a working set needs them, and finding them scans all facts.
        pending = self.memory.home.fold.pending() if problem.working_set is not None else []
        packet = await bus.working_sets.compile(
            problem.problem_id, pending={fact.id for fact in pending}
        )
        private = [_PRIVATE_PROBLEM] if problem.private else []
        if packet:
            return [packet, *private]
        found = (
            [] if problem.problem_id == GENERAL_PROBLEM else [f"Problem at hand: {problem.name}"]
        )
        found += private
        boundary = self.fold.boundary
        told = boundary_summary(boundary.data) if boundary is not None else ""
        if problem.summary not in told:
            # A problem that expired by time has no boundary with its summary.
            found.append(f"What was noted here before:\n{problem.summary}")
        return found

    async def _find_in_files(self, words: str) -> list[RecalledPassage]:
        files = self.readable_files()
        return [] if files is None else await files.passages(self.memory, words)

    def readable_files(self) -> FileFolders | None:
        """Return the folders of files that are searched; None if there are none, or a token may not."""
        grants = map(grant_of, self.answered_messages())
        if self.agent.files is None or not all(one is None or one.allows("read") for one in grants):
            return None
        return self.agent.files.folders

    async def _passages(self, prompt: str, fold: SessionFold) -> list[str]:
        """Return passages for the newest message; many models would not search themselves."""
        agent = self.agent
        lives_on_it = agent.builder.always_recall or agent.model.profile.small
        room = max(MIN_RECALL_BUDGET if lives_on_it else 0, agent.recall_tokens)
        if agent.searchable_vectors is not None and not self.task:
            agent.searchable_vectors.mark_changed(self.tape.name)
        if not room or self.task:
            return []
        earlier = self.recalled.message_id
        lines = await self.recalled.read(
            self.tape,
            fold,
            self.zone,
            agent.clock,
            prompt,
            room=room,
            lives_on_it=lives_on_it,
            reads_prompt=agent.model.profile.can_judge and not lives_on_it,
            facts=lambda: recallable_facts(self.memory, agent.timezone, untold=True),
            outdated=lambda: outdated_entries(self.memory),
            files=self._find_in_files,
            vectors=agent.searchable_vectors,
        )
        if self.recalled.message_id != earlier:
            await self.memory.note_use(self.recalled.facts)
        return lines


def prompt_digest(prompt: str) -> str:
    """Return the hash that identifies a system prompt on the tape."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
