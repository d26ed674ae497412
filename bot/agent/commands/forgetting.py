"""``/memory forget``: erase facts and what was said, for good, after asking.

In a private chat a person may have all of it erased. In a group an owner may, too; a member what rests
on their own words alone, and their own messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.agent.commands.registry import CommandContext, CommandReply
from bot.bus import Button
from bot.core.errors import MemoryRefused
from bot.memory.forgetting.requests import Asked, asked_for, asked_note, forgotten
from bot.memory.forgetting.survey import Survey
from bot.memory.forgetting.telling import NOTHING, choices, confirming, question
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.forgetting.wanted import Wanted, wanted
from bot.tape.entries import TapeEntry

_USAGE = (
    "What shall I forget? For example `/memory forget 3` for fact 3 and what it rests on, or "
    '`/memory forget "my old address"` for all that holds these words. I show it before anything is '
    "erased."
)
_SHARED = re.compile(r"w\d{1,9}", re.IGNORECASE)
_FOR_ALL = (
    "That is shared with everyone: `/memory unshare` and its number take it back. An owner erases it for "
    "good by the number of the fact that was shared, or by its words."
)
_PICKED = re.compile(
    r"(?P<form>yes|only)\s+(?P<request>\d{1,15})(?P<numbers>(?:[\s,]+\d{1,6}){0,99})(?:\s+all)?",
    re.IGNORECASE,
)
_MORE = "By now it would be more than I have shown. "


async def forget(arguments: str, context: CommandContext) -> CommandReply:
    """Show what would be forgotten, or erase what was shown.

    Args:
        arguments: Numbers of facts, words, or ``yes`` and the id of an earlier request; behind it numbers of
            the pieces that go, by default all. ``only`` shows what goes with these.
        context: Of the command.

    Raises:
        MemoryRefused: It cannot be done now, or not by this person.
        TapeError: The storage refused; asking again goes on from there.
    """
    if (hit := _PICKED.fullmatch(arguments.strip())) is not None:
        picked = [int(one) for one in re.findall(r"\d+", hit["numbers"] or "")]
        request = int(hit["request"])
        if hit["form"].lower() == "yes":
            return await _confirmed(request, picked, context)
        return await _some(request, picked, context)
    if _SHARED.fullmatch(arguments.strip()):
        return CommandReply(_FOR_ALL)
    asked = wanted(arguments)
    if asked is None:
        return CommandReply(_USAGE)
    survey = await context.survey(asked)
    if survey.empty:
        return await _nothing(asked, survey, context)
    note = asked_note(survey, context.heard.id, {context.asker.id})
    return _question(survey, context.heard.id, context, note)


async def _nothing(asked: Wanted, survey: Survey, context: CommandContext) -> CommandReply:
    if survey.refused:
        await context.drop_request(asked)
        return CommandReply(
            "What fits is not yours alone: only an owner may erase what others said."
        )
    if asked.facts:
        numbers = ", ".join(str(one) for one in sorted(asked.facts))
        return CommandReply(
            f"There is no fact {numbers}: `/memory` lists them. For words that are numbers, put them in "
            "quotation marks."
        )
    # The request alone holds the words.
    await context.drop_request(asked)
    return CommandReply(NOTHING)


async def _some(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    """Show what goes if only some pieces of an earlier request are erased, and what is left."""
    asked = await asked_for(context.tape, request, context.zone.now())
    _check_asker(asked, context)
    survey = await context.survey(asked.wanted_of(picked), asked.request)
    if survey.empty:
        return CommandReply(NOTHING)
    return _question(survey, request, context, picked=picked)


def _check_asker(asked: Asked, context: CommandContext) -> None:
    if context.asker.role != "owner" and context.asker.id not in asked.askers:
        raise MemoryRefused("only who asked for it, or an owner, may confirm it")


async def _confirmed(request: int, picked: list[int], context: CommandContext) -> CommandReply:
    done = await forgotten(context.memory, request)
    entries = await context.tape.read_entries(request, request) if request else []
    if done is not None and entries and is_erased(entries[0]):
        return CommandReply(done.told())
    asked = await asked_for(context.tape, request, context.zone.now())
    _check_asker(asked, context)
    wanted, shown = asked.wanted, asked
    if picked:
        wanted, shown = asked.wanted_of(picked), asked.only(picked)
    erased = await context.erase(wanted, asked.request, (shown.facts, shown.messages))
    if isinstance(erased, Survey):
        # All of it is shown anew: pieces that were picked before may have other numbers now.
        everything = await context.survey(asked.wanted, asked.request) if picked else erased
        note = asked_note(everything, request, asked.askers)
        return _question(everything, request, context, note, before=_MORE)
    return CommandReply(erased.told())


def _question(
    survey: Survey,
    request: int,
    context: CommandContext,
    note: TapeEntry | None = None,
    *,
    picked: Sequence[int] = (),
    before: str = "",
) -> CommandReply:
    """Return what would go, with how it is confirmed; a note keeps what the numbers of its pieces mean."""
    return CommandReply(
        f"{before}{question(survey, context.zone.timezone)}\n\n{confirming(request, survey, picked)}",
        notes=[note] if note is not None else [],
        buttons=tuple(Button(*one) for one in choices(request, survey, picked)),
    )
