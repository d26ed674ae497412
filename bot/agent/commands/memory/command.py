"""Dispatch of the forms of ``/memory``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.agent.commands.export import export
from bot.agent.commands.forget import forget
from bot.agent.commands.memory.beliefs import accept, beliefs, drop, why
from bot.agent.commands.memory.fact_edits import add, edit, share, unshare
from bot.agent.commands.memory.imports import imports
from bot.agent.commands.memory.overview import history, summary
from bot.agent.commands.memory.pending import pause, pending, resume
from bot.agent.commands.memory.permissions import requires_owner
from bot.agent.commands.memory.search import search
from bot.agent.commands.memory.undo import clear, undo
from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply

_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "why": why,
    "add": add,
    "edit": edit,
    "undo": undo,
    "clear": clear,
    "forget": forget,
    "pending": pending,
    "accept": accept,
    "drop": drop,
    "pause": pause,
    "resume": resume,
    "search": search,
    "history": history,
    "beliefs": beliefs,
    "share": share,
    "unshare": unshare,
    "export": export,
    "import": imports,
}

_LISTED_FORMS = (
    ("why N", "show the evidence of fact N, and who decided to remember it"),
    ("add TEXT", "remember a text"),
    ("edit N TEXT", "correct fact N"),
    ("undo", "undo the last change; again: the one before it"),
    ("search WORDS", "search facts, notes and messages of this chat"),
    ("beliefs", "list beliefs and their confidence: `why pN`, `accept pN`, `drop pN`"),
    ("pending", "list what needs your decision: `accept N`, `drop 2-9`, `drop all`"),
    ("import", "have conversations that were imported read for facts"),
    ("pause", "learn nothing until `resume`"),
    ("history", "show the history of consolidations, newest last"),
    ("share N", "share fact N with everyone who uses this bot; `unshare wN` stops it"),
    ("export", "export it as a file"),
    ("clear", "clear it (asks first); `undo` restores the facts"),
    (
        "forget N",
        "erase fact N for good, or everything with some words: `forget WORDS` (asks first)",
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
    "memory", "show what I remember here", _LISTED_FORMS, _run, destructive=requires_owner
)
