"""Build the check of what a call sends out from what the model sees, and apply it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import anyio.to_thread

from bot.agent.flow.labels import address_texts, argument_texts
from bot.agent.flow.outgoing_check import OutgoingCheck, memory_lines
from bot.agent.flow.view import FlowView, flow_view
from bot.agent.tools.registry import ToolContext
from bot.memory.records.argument_labels import Origin
from bot.memory.records.boundaries import boundary_summary
from bot.memory.records.outside_text import SCHEDULED
from bot.memory.records.tombstones import is_erased
from bot.memory.session.long_term_memory import BELIEFS_HEADING

SEARCH = "web.search"
ADDRESS_INDENT = "   "
"""What precedes the address of a hit in a search's result."""

_LOOKED_UP = ("memory_", "tape_")


def context_view(context: ToolContext) -> FlowView:
    """Return what the model sees in the turn of a call."""
    memory = context.memory
    return flow_view(
        context.fold,
        context.answered_messages,
        [*memory.facts(), *memory.workspace.active()],
        tape=context.tape.name,
        summaries=context.summaries,
        beliefs=BELIEFS_HEADING in memory.render_reference(),
    )


async def address_objection(url: str, context: ToolContext) -> str | None:
    """Return why an address may not be fetched unasked; None if it may."""
    return await anyio.to_thread.run_sync(outgoing_check(context).address_objection, url)


async def search_objection(query: str, context: ToolContext) -> str | None:
    """Return why a search may not be sent unasked; None if it may."""
    return await anyio.to_thread.run_sync(outgoing_check(context).search_objection, query)


async def arguments_objection(arguments: Mapping[str, Any], context: ToolContext) -> str | None:
    """Return why arguments may not go to another system unasked; None if they may."""
    check = outgoing_check(context)
    text = "\n".join(argument_texts(arguments))
    addresses = address_texts(arguments)
    return await anyio.to_thread.run_sync(check.text_objection, text, addresses)


def outgoing_check(context: ToolContext) -> OutgoingCheck:
    """Return the check of what a call sends out."""
    memory, view = context.memory_seen, context_view(context)
    known = [fact.text for fact in context.memory.facts()]
    known += [memory.long_term, memory.shared, memory.reference]
    known += [note.content for note in memory.dailies]
    if context.fold.boundary is not None:
        known.append(boundary_summary(context.fold.boundary.data))
    own = [one.text for one in view.words if one.found.origin >= Origin.PERSON]
    hits: list[str] = []
    for entry in context.fold.window.conversation():
        content = str(entry.payload.get("content") or "")
        name = str(entry.payload.get("name"))
        if entry.meta.get(SCHEDULED) is True:
            own.append(content)
        if entry.kind != "tool_result" or is_erased(entry):
            continue
        if name.startswith(_LOOKED_UP):
            known.append(content)
        elif name == SEARCH.replace(".", "_"):
            hits += _hit_addresses(content)
    links = [one.text for one in view.texts]
    return OutgoingCheck(memory_lines(known), own, view.outside, links, frozenset(hits))


def _hit_addresses(content: str) -> list[str]:
    """Return the addresses of the hits in a search's result: each stands below a title."""
    lines = content.splitlines()
    return [
        below.strip()
        for title, below in pairwise(lines)
        if title[:1].isdigit() and below.startswith(ADDRESS_INDENT)
    ]
