"""Search a tape and list its anchors, and ``tape.handoff``, which begins a new phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.texts import joined_clauses, local_time
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome, trim_schema, unoffered
from bot.core.errors import TapeError
from bot.core.i18n import N_, _, format_number, ngettext
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.memory.records.boundaries import boundary_steps, boundary_summary
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import message_author, sent_time
from bot.memory.session.recall import RecalledPassage
from bot.tape.entries import NON_BOUNDARY_ANCHORS, TapeEntry, anchor
from bot.tape.search import MAX_HITS, Hit, SearchQuery, problem_of
from bot.tape.service import TapeInfo, TapeService
from bot.tape.store import Anchor, anchor_from_entry

# Anchors are searched separately; most of their text repeats messages.
_KINDS = frozenset({"message", "tool_result", "event"})
_LOOKED_UP = LazyPattern(r"(?:memory|tape|task)[._]")
_RESERVED = ("session/", "memory/", "auto_handoff/", "problem/")
_NAME = LazyPattern(r"\w[\w ./-]{0,63}")


class HandoffArguments(BaseModel):
    """Arguments of ``tape.handoff``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=trim_schema)

    name: str = Field(description="as trip/booking")
    summary: str = Field(min_length=1, max_length=4_000)
    next_steps: list[Annotated[str, Field(max_length=400)]] = Field(
        default_factory=list, max_length=20
    )


async def search_tape_entries(tape: TapeService, query: SearchQuery) -> list[Hit]:
    """Search a tape for messages and actions; leave out results that only repeat the tape.

    Raises:
        InvalidSearch: The query is not valid.
    """
    # Request more hits than needed, since some are left out.
    wide = min(query.limit * 3, MAX_HITS)
    hits = await tape.search(replace(query, kinds=query.kinds or _KINDS, limit=wide, neighbours=1))
    found = [hit for hit in hits if hit.direct and _is_own(hit.entry)][: query.limit]

    def within(around: Iterable[TapeEntry]) -> tuple[TapeEntry, ...]:
        return tuple(
            entry
            for entry in around
            if (query.last is None or entry.id <= query.last)
            and query.problem in (None, problem_of(entry))
        )

    return [replace(hit, before=within(hit.before), after=within(hit.after)) for hit in found]


def render_hits(
    hits: Iterable[Hit],
    timezone: tzinfo | None,
    mark: Callable[[TapeEntry], str] = lambda entry: "",  # noqa: ARG005 - no label
) -> str:
    """Return hits as records with the entries before and after, except erased ones; each appears once."""
    hits = list(hits)
    shown = {hit.entry.id for hit in hits}
    lines = []
    for hit in hits:
        lines.append(_passage(hit.entry, timezone, mark).render())
        around = [(N_("before: {passage}"), entry) for entry in hit.before] + [
            (N_("after: {passage}"), entry) for entry in hit.after
        ]
        for where, entry in around:
            if entry.id not in shown and not is_erased(entry):
                shown.add(entry.id)
                passage = _passage(entry, timezone, mark).render()[2:]
                lines.append(f"  {_(where, passage=passage)}")
    return "\n".join(lines) or _("No matching records.")


async def find_anchors(
    tape: TapeService, topic: str, limit: int, problem: str | None = None
) -> list[Anchor]:
    """Return the anchors that match a topic, best first; without a topic, newest first."""
    if topic.strip():
        about = SearchQuery(topic, kinds=frozenset({"anchor"}), problem=problem, limit=limit * 2)
        found = [anchor_from_entry(tape.name, hit.entry) for hit in await tape.search(about)]
        return [
            anchor
            for anchor in found
            if anchor is not None and anchor.name not in NON_BOUNDARY_ANCHORS
        ][:limit]
    newest: list[Anchor] = []
    for one in (await tape.store.list_anchors(tape.name))[::-1]:
        if one.name not in NON_BOUNDARY_ANCHORS and await _is_of(tape, one, problem):
            newest.append(one)
            if len(newest) == limit:
                break
    return newest


async def _is_of(tape: TapeService, one: Anchor, problem: str | None) -> bool:
    """Return whether an anchor belongs to a problem, which only its entry records."""
    if problem is None:
        return True
    return [problem_of(entry) for entry in await tape.read_entries(one.at, one.at)] == [problem]


def render_anchors(anchors: Sequence[Anchor], timezone: tzinfo | None) -> str:
    """Return anchors as records, one per line."""
    lines = []
    for phase in anchors:
        name = phase.name
        if phase.entry_id != phase.at:
            name = _("{name}, at {entry}", name=name, entry=f"#{phase.entry_id}")
        summary = boundary_summary(phase.state)
        if steps := boundary_steps(phase.state):
            following = _("Next: {steps}", steps=joined_clauses(steps))
            summary = f"{summary} {following}"
        recalled_passage = RecalledPassage(
            local_time(phase.ts, timezone), name, summary, phase.at, 0.0
        )
        lines.append(recalled_passage.render().rstrip(": "))
    return "\n".join(lines) or _("No matching anchors.")


def render_info(info: TapeInfo) -> str:
    """Return the state of a tape as a Markdown list."""
    boundary = info.boundary
    name = f"`{info.name}`" + (f" ({info.title})" if info.title else "")
    lines = [
        _("Tape: {name}", name=name),
        _(
            "Entries: {entries}; sealed segments: {segments}",
            entries=format_number(info.entries),
            segments=format_number(info.segments),
        ),
        _("Anchors: {count}", count=format_number(info.anchors)),
    ]
    if boundary is not None:
        since = ngettext(
            "This phase: {phase}, {n} entry since",
            "This phase: {phase}, {n} entries since",
            info.since_boundary,
            phase=f"`{boundary.name}` [#{boundary.at}]",
        )
        lines.append(since)
    if info.parent is not None:
        lines.append(_("Fork of: {name}", name=f"`{info.parent}`"))
    return "\n".join(f"- {line}" for line in lines)


async def _handoff(arguments: HandoffArguments, context: ToolContext) -> ToolOutcome:
    context.check_rights("set the conversation aside, with `/new`")
    name = arguments.name.strip()
    if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
        raise TapeError(
            f"{name!r} cannot be a handoff's name: take up to 64 letters, digits, spaces and . / - "
            f"that do not begin with {', '.join(_RESERVED)}"
        )
    told = "\n".join([arguments.summary, *arguments.next_steps])
    # The text enters the system prompt, with next steps written as instructions.
    context.check_prompt_text(f"{name}\n{told}", drafted=True)
    state = {
        "summary": arguments.summary,
        "next_steps": arguments.next_steps,
        "source": [context.view_start, max(context.view_start, context.turn_start - 1)],
        "owner": "assistant",
        "reason": Reason("asked_by_name").as_json(),
        # The running turn stays in view as a whole.
        "keep_from": context.turn_start,
    }
    return ToolOutcome(
        f"Handed off to {name}. What was said before this turn is out of view; the tape keeps it.",
        extra_entries=[anchor(name, state, turn=context.turn)],
    )


def _is_own(entry: TapeEntry) -> bool:
    """Return whether an entry is original: no bookkeeping, and no result that repeats the tape."""
    if entry.kind == "tool_result":
        return not _LOOKED_UP.match(str(entry.payload.get("name")))
    return entry.kind != "event" or entry.name == HISTORY_EVENT


def _passage(
    entry: TapeEntry, timezone: tzinfo | None, mark: Callable[[TapeEntry], str]
) -> RecalledPassage:
    moment = sent_time(entry)
    when = local_time(moment.isoformat(), timezone) if moment is not None else ""
    who, text = _who(entry) + mark(entry), str(entry.payload.get("content") or "")
    if entry.kind == "tool_call":
        text = "; ".join(
            [text] * bool(text) + [f"{c.get('name')}({c.get('arguments')})" for c in entry.calls]
        )
    elif entry.kind in ("anchor", "event"):
        text = boundary_summary(entry.data) or str(entry.data.get("entry") or "")
    return RecalledPassage(when, who, text, entry.id, 0.0)


def _who(entry: TapeEntry) -> str:
    if entry.kind == "tool_result":
        return _("tool {name}", name=entry.payload.get("name"))
    if entry.kind in ("anchor", "event"):
        return _("history") if entry.name == HISTORY_EVENT else f"{entry.kind} {entry.name}"
    return message_author(entry)


HANDOFF_TOOL = Tool(
    "tape.handoff",
    "Start afresh with only your summary in view, if the topic is done or the user asks.",
    HandoffArguments,
    _handoff,
    unoffered,
    effect="writes_own",
    right="chat",
)
