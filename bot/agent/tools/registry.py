"""The tool registry: tool definitions, their JSON Schemas, and running calls.

A tool that changes memory or the tape returns the entries to write. The caller writes them and the
tool's result in one append, so that neither a crash nor a retry applies a change twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import cache
from typing import Any, Generic, Literal, Protocol, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.bus import Right
from bot.core.errors import FileRefused, MemoryRefused, OutcomeUnknown, SkillRefused, TapebotError
from bot.llm.base import Model, ToolCall, ToolSpec, Usage
from bot.memory.gate.secret_detection import check_no_secret
from bot.memory.gate.write_support import check_instructions
from bot.memory.records.attachments import EntryAttachment
from bot.memory.records.evidence import grant_of
from bot.memory.records.transcript import is_automation
from bot.memory.session.file_folder import FileFolders
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone, ZoneEdit
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry
from bot.tape.search import GENERAL_PROBLEM
from bot.tape.service import TapeService

MAX_RESULT = 20_000
"""Maximum number of characters of a tool's result."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a turn serves.

    Attributes:
        session: The session's key.
        people: Identities of the people whose messages it answers, such as ``telegram:42``.
    """

    session: str = ""
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use: its session's tape and memory, nothing of other sessions.

    Attributes:
        tape: The session's tape.
        zone: The session's memory zone.
        memory: The session's long-term memory.
        memory_seen: Memory as the model saw it when it made the call.
        by_owners: Whether only owners are answered.
        may_change_memory: Whether the people answered may change or remove memory: it is their private
            chat, or they own the bot.
        turn: The running turn's id.
        view_start: Id of the first entry in view.
        turn_start: Id of the entry at which the running turn begins.
        call_key: Key that identifies the call on this tape.
        answered_messages: The messages that the turn answers.
        vectors: Index for semantic search; None searches by words alone.
        has_judge: Whether a judge checks later what is saved now.
        problem: Id of the active problem; the model sees nothing that belongs to others.
        record_usage: Called with the usage of the tool's own model calls.
        task_model: The model of sub-tasks; None takes that of their runner.
        audience: Whom the call serves; the owner's decisions about a tool are looked up for them.
        view: State of a sub-task, which sees another conversation than its session; None for a
            turn of the session.
        summaries: Whether the prompt has summaries of what lies before the view.
        files: Folders of files that a recall searches; None if there are none.
        show: Shows the person what takes long, until there is more to show; None if nobody looks.
        described: Whether the turn is offered anything with a description by others.
        approved: Whether a person approved exactly this call.
    """

    tape: TapeService
    zone: MemoryZone
    memory: LongTermMemory
    memory_seen: MemorySnapshot
    by_owners: bool = False
    may_change_memory: bool = True
    turn: str = ""
    view_start: int = 1
    turn_start: int = 1
    call_key: str = ""
    answered_messages: Sequence[TapeEntry] = ()
    vectors: VectorIndex | None = None
    has_judge: bool = False
    problem: str = GENERAL_PROBLEM
    record_usage: Callable[[Usage], None] = lambda _: None
    task_model: Model | None = None
    audience: Audience = Audience()
    view: SessionFold | None = None
    summaries: bool = False
    described: bool = False
    approved: bool = False

    @property
    def fold(self) -> SessionFold:
        """The state that the model's requests are built from."""
        return self.memory.fold if self.view is None else self.view

    files: FileFolders | None = None
    show: Callable[[str], None] | None = None

    def may(self, right: Right) -> bool:
        """Return whether all tokens by which the answered messages came allow what needs a right."""
        grants = map(grant_of, self.answered_messages)
        return all(grant is None or grant.allows(right) for grant in grants)

    @property
    def cause(self) -> str:
        """Key of the changes that the call makes; a repeated call changes nothing twice."""
        return f"call:{self.call_key}"

    def check_learning(self) -> None:
        """Check that memory may learn now.

        Raises:
            MemoryRefused: Memory is paused, or the active problem is private.
        """
        self.check_not_paused("learned")
        self.memory.check_not_private()

    def check_not_paused(self, done: str) -> None:
        """Check that memory is not paused.

        Raises:
            MemoryRefused: Memory is paused.
        """
        if self.memory.paused:
            raise MemoryRefused(f"the user paused memory: nothing is {done} until `/memory resume`")

    def check_rights(self, what: str) -> None:
        """Check that the people answered may change or remove memory.

        Raises:
            MemoryRefused: They may not.
        """
        if self.may_change_memory:
            return
        if self.answered_messages and all(map(is_automation, self.answered_messages)):
            raise MemoryRefused(f"as long as nobody has written in this turn, you cannot {what}")
        raise MemoryRefused(f"in a group only an owner may {what}")

    def check_prompt_text(self, text: str, *, drafted: bool = False) -> None:
        """Refuse secrets and instructions that are not the user's in text for later prompts.

        Raises:
            MemoryRefused: The text holds such a thing.
        """
        check_no_secret(text)
        check_instructions(text, self.memory.fold.window.conversation(), drafted=drafted)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a tool call.

    Attributes:
        content: Text for the model.
        status: ``ok``, ``error``, or ``unknown`` if the call may have been carried out.
        zone_edit: Edit of the memory zone, written together with the result.
        extra_entries: Entries that are written together with the result.
        buttons: Labels and commands, shown below the question.
        question: Question to the user, shown below the turn's answer; not for the model.
        attachments: Files in the blob store that the result shows; they are erased with it.
        from_outside: Whether the content is nobody's word, as that of a tool that reads the world.
        files: Names of files, and their names in the folder for exports; sent with the turn's answer.
        links: Addresses that code found in what was read; a later call may go there unasked.
    """

    content: str
    status: str = "ok"
    zone_edit: ZoneEdit | None = None
    extra_entries: Sequence[TapeEntry] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    question: str = ""
    attachments: tuple[EntryAttachment, ...] = ()
    from_outside: bool = False
    files: tuple[tuple[str, str], ...] = ()
    links: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the content, cut to ``MAX_RESULT`` characters."""
        left_out = len(self.content) - MAX_RESULT
        if left_out > 0:
            return f"{self.content[:MAX_RESULT]}\n… ({left_out} characters left out)"
        return self.content


def question_results(entries: Iterable[TapeEntry], turn: str) -> list[TapeEntry]:
    """Return those of a turn's tool results that ask the user a question with buttons."""
    return [
        entry
        for entry in entries
        if "buttons" in entry.payload
        and entry.meta.get("turn") == turn
        and (entry.kind == "tool_result" or is_automation(entry))
    ]


ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Availability:
    """Conditions that decide which tools are offered.

    Attributes:
        problems: Whether there are uncompleted problems besides the general one.
        skills: Whether there are skills to read.
        private: Whether nothing may leave the machine, because the problem at hand is private.
        scheduled: Whether a scheduled task runs.
    """

    problems: bool = False
    skills: bool = False
    private: bool = False
    scheduled: bool = False


def unoffered(_: Availability) -> bool:
    """Offer a tool never: it answers those who know its name, and a person has a command for it."""
    return False


class NoArguments(BaseModel):
    """Arguments of a tool that takes none."""

    model_config = ConfigDict(extra="forbid")


Effect = Literal["reads_own", "reads_world", "writes_own", "acts"]
"""What a tool touches: ``reads_own`` and ``writes_own`` the session's tape and memory;
``reads_world`` brings in text from outside, which is nobody's word; ``acts`` changes something
outside, and waits for a person's yes."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What the owner decided beforehand about calls of a tool that acts.

    Attributes:
        decision: ``always`` runs a call as far as ``bot.agent.flow.policy`` lets it, ``reads`` likewise as
            a tool that only reads the world, ``ask`` has it wait for a yes, ``never`` refuses it.
        by: Identity of the owner who decided.
        reason: Why it is refused; empty if nobody allowed it.
    """

    decision: Literal["always", "reads", "ask", "never"]
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tool(Generic[ArgumentsT]):
    """A tool.

    Attributes:
        name: Name in prompts and documentation, such as ``memory.save``.
        description: Description for the model.
        arguments: Pydantic model that validates the arguments.
        run: Runs a call; raises ``TapebotError`` with a text that the model can act on.
        applies: Whether the tool is offered; a call is answered in any case.
        effect: What it touches; whoever does not say gets the strictest.
        owner_only: Whether only an owner's turn may use it.
        private_only: Whether it may be used in private chats only, not in groups.
        cost: US dollars that a call costs; counted, limited by budgets, and told before a yes.
        idempotent: Whether a call that ``acts`` hands ``ToolContext.call_key`` on as an idempotency
            key, so that it may run again when a kill left its outcome unknown.
        right: The right that a token needs by which a message of the turn came; by default ``site`` for a
            tool that writes its own, ``chat`` for others.
        schema: JSON Schema that the model is shown; None makes it from ``arguments``.
        permission: Returns what the owner decided beforehand about calls that act; None asks a
            person each time.
        sensitive: Arguments that a person must have said or approved, each with its role, such as
            ``recipient``, ``address``, ``amount``, ``path``, ``command`` or ``time``. None takes nearly
            all as sensitive. A tool that writes its own waits for a yes if such an argument is not
            the person's while text from outside is in view.
        objection: Returns why a call of a tool that reads the world may carry out what must not leave
            without a yes; None checks all arguments.
        question: Returns the sentence by which a person is asked for a call, in their language and with
            all that matters whole, from the arguments, when it is asked and the person's zone; None
            asks with the tool's name and all arguments.
        said: Returns the arguments that the answered people said in other words, in their words.
        by_others: Whether others wrote its description, which then counts as text from outside.
    """

    name: str
    description: str
    arguments: type[ArgumentsT]
    run: Callable[[ArgumentsT, ToolContext], Awaitable[ToolOutcome]]
    applies: Callable[[Availability], bool] = lambda _: True
    _: KW_ONLY
    effect: Effect = "acts"
    owner_only: bool = False
    private_only: bool = False
    cost: float = 0.0
    idempotent: bool = False
    right: Right | None = None
    schema: dict[str, Any] | None = None
    permission: Callable[[ToolContext], Awaitable[Permission]] | None = None
    sensitive: Mapping[str, str] | None = None
    objection: Callable[[ArgumentsT, ToolContext], Awaitable[str | None]] | None = None
    question: Callable[[ArgumentsT, datetime, ZoneInfo], str | None] | None = None
    said: Callable[[ArgumentsT, ToolContext], Mapping[str, str]] | None = None
    by_others: bool = False

    @property
    def goes_outside(self) -> bool:
        """Whether a call carries its arguments out of the program."""
        return self.effect in ("reads_world", "acts")

    @property
    def may_repeat(self) -> bool:
        """Whether a call whose outcome a kill left unknown may run again."""
        return self.effect != "acts" or self.idempotent

    @property
    def wire_name(self) -> str:
        """The name with the characters that providers allow."""
        return self.name.replace(".", "_")

    def spec(self) -> ToolSpec:
        """Return the tool as the model sees it."""
        schema = _schema(self.arguments) if self.schema is None else self.schema
        return ToolSpec(self.wire_name, self.description, schema)


@cache
def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    # Cached because each sub-task creates its own registry.
    schema = arguments.model_json_schema()
    trim_schema(schema)
    inlined: dict[str, Any] = _without_references(schema, schema.pop("$defs", {}))
    return inlined


_BOUNDS = (
    "title",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


def trim_schema(schema: dict[str, Any]) -> None:
    """Remove from a JSON Schema what validation checks anyway, to save prompt tokens."""
    for noise in ("title", "description", "additionalProperties"):
        schema.pop(noise, None)
    for name, field in schema.get("properties", {}).items():
        for noise in _BOUNDS:
            field.pop(noise, None)
            field.get("items", {}).pop(noise, None)
        either = [one for one in field.pop("anyOf", ()) if one != {"type": "null"}]
        schema["properties"][name] = (either[0] | field) if either else field


def _without_references(schema: Any, known: dict[str, Any]) -> Any:
    """Return a schema with references replaced by definitions: some providers reject them."""
    if isinstance(schema, list):
        return [_without_references(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if (name := str(schema.get("$ref", "")).removeprefix("#/$defs/")) in known:
        return _without_references(known[name], known)
    return {key: _without_references(value, known) for key, value in schema.items()}


class ToolSource(Protocol):
    """Tools that come and go while the program runs; their names differ from all others."""

    async def offered(self, audience: Audience) -> list[Tool[Any]]:
        """Return the tools that a turn may use, in a stable order."""
        ...

    def find(self, wire_name: str) -> Tool[Any] | None:
        """Return a tool, even if it cannot be used now; None if there is none of this name."""
        ...

    async def wait_for(self, wire_name: str) -> None:
        """Wait, for a bounded time, until it is known whether a tool of this name is there."""
        ...


class ToolRegistry:
    """The tools that the model may call.

    Args:
        tools: Tools that are there for good.
        source: Tools that come and go; None if there are none.
    """

    def __init__(self, tools: Iterable[Tool[Any]] = (), source: ToolSource | None = None) -> None:
        self._source = source
        self._tools = {tool.wire_name: tool for tool in tools}
        # Sorted once: a stable order keeps the prompt's prefix cacheable.
        self._specs = [
            (self._tools[name], self._tools[name].spec()) for name in sorted(self._tools)
        ]

    def available_specs(self, available: Availability) -> list[ToolSpec]:
        """Return the specs of the tools that apply now."""
        return [
            spec
            for tool, spec in self._specs
            if tool.applies(available) and not (available.private and tool.goes_outside)
        ]

    async def source_specs(self, audience: Audience) -> list[ToolSpec]:
        """Return the specs of the tools that came while the program runs, for these people."""
        if self._source is None:
            return []
        return [tool.spec() for tool in await self._source.offered(audience)]

    async def has_descriptions(self, audience: Audience) -> bool:
        """Return whether others wrote the description of a tool that is offered to these people."""
        offered = [] if self._source is None else await self._source.offered(audience)
        return any(tool.by_others for tool in (*self._tools.values(), *offered))

    async def wait_for(self, name: str) -> None:
        """Wait a while for the tool that a call names, if tapebot is just starting."""
        wire_name = name.replace(".", "_")
        if wire_name not in self._tools and self._source is not None:
            await self._source.wait_for(wire_name)

    def get(self, name: str) -> Tool[Any] | None:
        """Return the tool that a call names; None if there is none."""
        wire_name = name.replace(".", "_")
        tool = self._tools.get(wire_name)
        if tool is None and self._source is not None:
            return self._source.find(wire_name)
        return tool

    def reading(self) -> ToolRegistry:
        """Return a registry of the tools that only read."""
        return ToolRegistry(
            tool for tool in self._tools.values() if tool.effect.startswith("reads_")
        )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """Run one call; return errors as a result that the model can correct."""
        parsed = self.parse(call, context)
        if isinstance(parsed, ToolOutcome):
            return parsed
        tool, arguments = parsed
        try:
            return await tool.run(arguments, context)
        except OutcomeUnknown as error:
            return ToolOutcome(f"{error}.", "unknown")
        except TapebotError as error:
            # It may name the files or skills that there are, and others chose those names.
            names = isinstance(error, FileRefused | SkillRefused)
            return ToolOutcome(f"Not done: {error}.", "error", from_outside=names)

    def parse(
        self, call: ToolCall, context: ToolContext
    ) -> tuple[Tool[Any], BaseModel] | ToolOutcome:
        """Return a call's tool and arguments, or why it cannot run, for the model to correct."""
        tool = self.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return ToolOutcome(f"There is no tool {call.name!r}. The tools are: {known}.", "error")
        if tool.owner_only and not context.by_owners:
            return ToolOutcome(f"Only an owner of the bot may use {tool.wire_name}.", "error")
        right = tool.right or ("site" if tool.effect == "writes_own" else "chat")
        if not context.may(right):
            return ToolOutcome(
                f"Not run: the token of this program lacks the right {right}.", "error"
            )
        if tool.private_only and any(
            message.meta.get("private") is False for message in context.answered_messages
        ):
            return ToolOutcome(f"{tool.wire_name} may be used in private chats only.", "error")
        if tool.goes_outside and context.memory.fold.compartments.is_private(context.problem):
            return ToolOutcome("Not run: this problem is private, and nothing goes out.", "error")
        try:
            return tool, tool.arguments.model_validate_json(call.arguments or "{}")
        except ValidationError as error:
            return ToolOutcome(_explain(tool, error), "error")


def _explain(tool: Tool[Any], error: ValidationError) -> str:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in error_details['loc']) or 'arguments'}: {error_details['msg']}"
        for error_details in error.errors(include_url=False, include_input=False)
    )
    named = tool.arguments.model_fields if tool.schema is None else tool.schema["properties"]
    wanted = ", ".join(named) or "none"
    return (
        f"The arguments of {tool.wire_name} are wrong: {problems}. It takes: {wanted}. Try again."
    )
