"""``/memory forget``: erase facts and what was said, for good, after asking.

In a private chat a person may have all of it erased. In a group an owner may, too; a member what rests
on their own words alone, and their own messages.
"""

from __future__ import annotations

import re

from bot.bus import Button
from bot.commands.registry import CommandContext, CommandReply
from bot.errors import MemoryRefused
from bot.memory.forgetting.requests import asked_for, asked_note, forgotten
from bot.memory.forgetting.survey import Survey
from bot.memory.forgetting.telling import NOTHING, confirming, question
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.forgetting.wanted import Wanted, wanted

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
_MORE = "By now it would be more than I have shown. "


async def forget(arguments: str, context: CommandContext) -> CommandReply:
    """Show what would be forgotten, or erase what was shown.

    Args:
        arguments: Numbers of facts, words, or ``yes`` and the id of an earlier request.
        context: Of the command.

    Raises:
        MemoryRefused: It cannot be done now, or not by this person.
        TapeError: The storage refused; asking again goes on from there.
    """
    word, _, rest = arguments.strip().partition(" ")
    if word.lower() == "yes" and rest.strip().isdecimal():
        return await _confirmed(int(rest), context)
    if _SHARED.fullmatch(arguments.strip()):
        return CommandReply(_FOR_ALL)
    asked = wanted(arguments)
    if asked is None:
        return CommandReply(_USAGE)
    survey = await context.survey(asked)
    if survey.empty:
        return await _nothing(asked, survey, context)
    return _question(survey, context.heard.id, {context.asker.id}, context)


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


async def _confirmed(request: int, context: CommandContext) -> CommandReply:
    done = await forgotten(context.memory, request)
    entries = await context.tape.read_entries(request, request) if request else []
    if done is not None and entries and is_erased(entries[0]):
        return CommandReply(done.told())
    asked = await asked_for(context.tape, request, context.zone.now())
    if context.asker.role != "owner" and context.asker.id not in asked.askers:
        raise MemoryRefused("only who asked for it, or an owner, may confirm it")
    erased = await context.erase(asked.wanted, asked.request, (asked.facts, asked.messages))
    if isinstance(erased, Survey):
        return _question(erased, request, asked.askers, context, _MORE)
    return CommandReply(erased.told())


def _question(
    survey: Survey,
    request: int,
    askers: frozenset[str] | set[str],
    context: CommandContext,
    before: str = "",
) -> CommandReply:
    return CommandReply(
        f"{before}{question(survey, context.zone.timezone)}\n\n{confirming(request)}",
        notes=[asked_note(survey, request, askers)],
        buttons=(
            Button("Erase", f"/memory forget yes {request}"),
            Button("Keep it", "/memory"),
        ),
    )
