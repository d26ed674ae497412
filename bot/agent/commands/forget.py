"""``/memory forget``: permanently erase facts and messages, after confirmation.

In a private chat a person may have everything erased, and so may an owner in a group. A member of a
group may erase facts that rest only on their own words, and their own messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import joined
from bot.bus import Button
from bot.core.errors import MemoryRefused
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.memory.erasure.closure import Closure
from bot.memory.erasure.erasure_messages import NOTHING_FOUND_TEXT, question
from bot.memory.erasure.erasure_query import ErasureQuery, parse_query
from bot.memory.erasure.erasure_requests import (
    PendingErasure,
    RequestGone,
    find_erasure_result,
    find_pending_erasure,
    request_event,
)
from bot.memory.records.tombstones import is_erased
from bot.tape.entries import TapeEntry

_USAGE = N_(
    "What should I forget? For example `/memory forget 3` for fact 3 and its evidence, or "
    '`/memory forget "my old address"` for everything with these words. I ask before I erase anything.'
)
_SHARED = LazyPattern(r"w\d{1,9}", re.IGNORECASE)
_FOR_ALL = N_(
    "That fact is shared with everyone. `/memory unshare` with its number stops sharing it. To "
    "erase it for good, an owner forgets the original fact by its number or words."
)
_PICKED = LazyPattern(
    r"(?P<form>yes|only|no)\s+(?P<request>\d{1,15})(?P<numbers>(?:[\s,]+\d{1,6}){0,99})(?:\s+all)?",
    re.IGNORECASE,
)


async def forget(arguments: str, context: CommandContext) -> CommandReply:
    """Show what would be erased, or erase what was shown.

    Args:
        arguments: Numbers of facts, words, or ``yes`` and the id of an earlier request, optionally
            followed by numbers of the pieces to erase (default: what is not listed as kept).
            ``only`` shows a selection of pieces; ``no`` keeps all.
        context: The command's context.

    Raises:
        MemoryRefused: It is not possible now, or this person may not do it.
        TapeError: The storage failed; repeating the request continues from there.
    """
    if (hit := _PICKED.fullmatch(arguments.strip())) is not None:
        picked = [int(one) for one in re.findall(r"\d+", hit["numbers"] or "")]
        request = int(hit["request"])
        if hit["form"].lower() == "no":
            return await _refused(request, context)
        if hit["form"].lower() == "yes":
            return await _confirmed(request, picked, context)
        return await _some(request, picked, context)
    if _SHARED.fullmatch(arguments.strip()):
        return CommandReply(_(_FOR_ALL))
    query = parse_query(arguments)
    if query is None:
        return CommandReply(_(_USAGE))
    found = await context.preview_erasure(query)
    if found.is_empty and not found.near:
        return await _nothing(query, found, context)
    note = request_event(found, context.command_entry.id, {context.author.id})
    return _question(found, context.command_entry.id, context, note)


async def _nothing(query: ErasureQuery, found: Closure, context: CommandContext) -> CommandReply:
    if query.facts and not found.not_permitted:
        return CommandReply(
            _(
                "There is no fact {numbers}. `/memory` lists the facts. To forget a number in the text, "
                "put it in quotation marks.",
                numbers=joined(str(fact) for fact in sorted(query.facts)),
            )
        )
    # Only the request itself contains the words.
    await context.drop_request(query)
    theirs = N_("The matches are not yours alone. Only an owner may erase what others said.")
    return CommandReply(_(theirs if found.not_permitted else NOTHING_FOUND_TEXT))


async def _refused(request: int, context: CommandContext) -> CommandReply:
    with suppress(RequestGone):
        await _waiting(request, context)
    return CommandReply(_("Nothing was erased."))


async def _waiting(request: int, context: CommandContext) -> tuple[TapeEntry, PendingErasure]:
    """Return a request that waits for this person's answer, and what was shown for it."""
    entry, shown = await find_pending_erasure(context.tape, request, context.zone.now())
    if context.author.role != "owner" and context.author.id not in shown.askers:
        raise MemoryRefused(_("only the person who asked, or an owner, may confirm it"))
    return entry, shown


async def _some(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    """Show what a selection of an earlier request's pieces would erase, and what stays."""
    entry, shown = await _waiting(request, context)
    _only, query = shown.confirmed(entry, picked or [0])
    found = await context.preview_erasure(query, entry)
    if found.is_empty:
        return CommandReply(_(NOTHING_FOUND_TEXT))
    return _question(found, request, context, picked=picked)


async def _confirmed(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    done = await find_erasure_result(context.memory, request)
    entries = await context.tape.read_entries(request, request) if request else []
    if done is not None and entries and is_erased(entries[0]):
        return CommandReply(done.description())
    entry, shown = await _waiting(request, context)
    only, query = shown.confirmed(entry, picked)
    more: Closure | None = None
    if context.author.id not in shown.askers:
        # What an owner may erase besides was not shown to whoever asked.
        found = await context.preview_erasure(query, entry)
        within = {fact.id for fact in found.home_facts()} <= only.facts
        more = None if within and len(found.counted()) <= only.messages else found
    erased = more or await context.erase(query, entry, (only.facts, only.messages))
    if not isinstance(erased, Closure):
        return CommandReply(erased.description())
    # Everything is shown again, since pieces picked before may have other numbers now.
    _all, query = shown.confirmed(entry, ())
    everything = await context.preview_erasure(query, entry) if picked else erased
    note = request_event(everything, request, shown.askers)
    before = _("This would now erase more than I showed.")
    return _question(everything, request, context, note, before=before)


def _question(
    found: Closure,
    request: int,
    context: CommandContext,
    note: TapeEntry | None = None,
    *,
    picked: Sequence[int] = (),
    before: str = "",
) -> CommandReply:
    """Return the confirmation question; ``note`` records what the numbers of its pieces mean."""
    text, buttons = question(request, found, context.zone.timezone, picked)
    return CommandReply(
        f"{before} {text}".lstrip(),
        extra_entries=[note] if note is not None else [],
        buttons=tuple(Button(*one) for one in buttons),
    )
