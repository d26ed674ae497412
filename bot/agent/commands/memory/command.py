"""Dispatch of the forms of ``/memory``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.agent.commands.export import export
from bot.agent.commands.memory.beliefs import accept, beliefs, drop, why
from bot.agent.commands.memory.fact_edits import add, edit, pin, share, unpin, unshare
from bot.agent.commands.memory.imports import imports
from bot.agent.commands.memory.overview import history, summary
from bot.agent.commands.memory.pending import pause, pending, resume
from bot.agent.commands.memory.permissions import requires_owner
from bot.agent.commands.memory.search import search
from bot.agent.commands.memory.undo import clear, undo
from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.core.i18n import N_


async def _forget(arguments: str, context: CommandContext) -> CommandReply:
    # Few conversations erase anything, and what that needs takes more than a megabyte.
    from bot.agent.commands.forget import forget

    return await forget(arguments, context)


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "why": why,
    "add": add,
    "edit": edit,
    "undo": undo,
    "clear": clear,
    "forget": _forget,
    "pending": pending,
    "accept": accept,
    "drop": drop,
    "pause": pause,
    "resume": resume,
    "search": search,
    "history": history,
    "beliefs": beliefs,
    "pin": pin,
    "unpin": unpin,
    "share": share,
    "unshare": unshare,
    "export": export,
    "import": imports,
}

_LISTED_FORMS = (
    ("why N", N_("show the evidence of fact N, and who decided to remember it")),
    ("add TEXT", N_("remember a text")),
    ("edit N TEXT", N_("correct fact N")),
    ("undo", N_("undo the last change; again: the one before it")),
    ("search WORDS", N_("search facts, notes and messages of this chat")),
    ("beliefs", N_("list beliefs and their confidence: `why pN`, `accept pN`, `drop pN`")),
    ("pending", N_("list what needs your decision: `accept N`, `drop 2-9`, `drop all`")),
    ("import", N_("have conversations that were imported read for facts")),
    ("pause", N_("learn nothing until `resume`")),
    ("history", N_("show the history of consolidations, newest last")),
    ("pin N", N_("keep fact N in every prompt; `unpin N` ends it")),
    ("share N", N_("share fact N with everyone who uses this bot; `unshare wN` stops it")),
    ("export", N_("export it as a file")),
    ("clear", N_("clear it (asks first); `undo` restores the facts")),
    (
        "forget N",
        N_("erase fact N for good, or everything with some words: `forget WORDS` (asks first)"),
    ),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    if not form or form.isdecimal():
        return await summary(form, context)
    chosen = _FORMS.get(form)
    if chosen is None:
        return CommandReply(MEMORY_COMMAND.unknown_form_text(form, _FORMS))
    return await chosen(rest, context)


MEMORY_COMMAND = Command(
    "memory",
    N_("show what I remember here"),
    _LISTED_FORMS,
    _run,
    destructive=requires_owner,
    right="site",
    reads=("", "why", "search", "pending", "history", "beliefs"),
)
