"""``/memory forget``: permanently erase facts and messages, after confirmation.

In a private chat a person may have everything erased, and so may an owner in a group. A member of a
group may erase facts that rest only on their own words, and their own messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import joined
from bot.bus import Button
from bot.core.errors import MemoryRefused
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_messages import (
    NOTHING_FOUND_TEXT,
    confirmation_buttons,
    confirmation_instructions,
    confirmation_text,
)
from bot.memory.erasure.erasure_query import ErasureQuery, parse_query
from bot.memory.erasure.erasure_requests import (
    PendingErasure,
    confirmed_query,
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
_KEPT = N_("Nothing was erased.")
_MORE = N_("This would now erase more than I showed.")


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
    preview = await context.preview_erasure(query)
    if preview.is_empty and not preview.near:
        return await _nothing(query, preview, context)
    note = request_event(preview, context.command_entry.id, {context.author.id})
    return _question(preview, context.command_entry.id, context, note)


async def _nothing(
    query: ErasureQuery, preview: ErasurePreview, context: CommandContext
) -> CommandReply:
    if preview.not_permitted_count:
        await context.drop_request(query)
        return CommandReply(
            _("The matches are not yours alone. Only an owner may erase what others said.")
        )
    if query.facts:
        return CommandReply(
            _(
                "There is no fact {numbers}. `/memory` lists the facts. To forget a number in the text, "
                "put it in quotation marks.",
                numbers=joined(str(fact) for fact in sorted(query.facts)),
            )
        )
    # Only the request itself contains the words.
    await context.drop_request(query)
    return CommandReply(_(NOTHING_FOUND_TEXT))


async def _some(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    """Show what a selection of an earlier request's pieces would erase, and what stays."""
    entry, shown = await find_pending_erasure(context.tape, request, context.zone.now())
    _check_asker(shown, context)
    if not picked:
        shown.narrowed(picked)
    _only, query = confirmed_query(entry, shown, picked)
    preview = await context.preview_erasure(query, entry)
    if preview.is_empty:
        return CommandReply(_(NOTHING_FOUND_TEXT))
    return _question(preview, request, context, picked=picked)


async def _refused(request: int, context: CommandContext) -> CommandReply:
    try:
        _entry, shown = await find_pending_erasure(context.tape, request, context.zone.now())
    except MemoryRefused:
        pass  # it waits no more
    else:
        _check_asker(shown, context)
    return CommandReply(_(_KEPT))


def _check_asker(shown: PendingErasure, context: CommandContext) -> None:
    if context.author.role != "owner" and context.author.id not in shown.askers:
        raise MemoryRefused(_("only the person who asked, or an owner, may confirm it"))


async def _confirmed(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    done = await find_erasure_result(context.memory, request)
    entries = await context.tape.read_entries(request, request) if request else []
    if done is not None and entries and is_erased(entries[0]):
        return CommandReply(done.description())
    entry, shown = await find_pending_erasure(context.tape, request, context.zone.now())
    _check_asker(shown, context)
    only, query = confirmed_query(entry, shown, picked)
    more: ErasurePreview | None = None
    if context.author.id not in shown.askers:
        # What an owner may erase besides was not shown to whoever asked.
        found = await context.preview_erasure(query, entry)
        within = {fact.id for fact in found.facts} <= set(only.facts)
        more = None if within and found.message_count <= only.messages else found
    erased = more or await context.erase(query, entry, (only.facts, only.messages))
    if isinstance(erased, ErasurePreview):
        # Everything is shown again, since pieces picked before may have other numbers now.
        _all, query = confirmed_query(entry, shown, ())
        everything = await context.preview_erasure(query, entry) if picked else erased
        note = request_event(everything, request, shown.askers)
        return _question(everything, request, context, note, before=_(_MORE))
    return CommandReply(erased.description())


def _question(
    preview: ErasurePreview,
    request: int,
    context: CommandContext,
    note: TapeEntry | None = None,
    *,
    picked: Sequence[int] = (),
    before: str = "",
) -> CommandReply:
    """Return the confirmation question; ``note`` records what the numbers of its pieces mean."""
    shown = confirmation_text(preview, context.zone.timezone, picked=bool(picked))
    return CommandReply(
        f"{before} {shown}\n\n{confirmation_instructions(request, preview, picked)}".lstrip(),
        extra_entries=[note] if note is not None else [],
        buttons=tuple(
            Button(*confirmation_button)
            for confirmation_button in confirmation_buttons(request, preview, picked)
        ),
    )
