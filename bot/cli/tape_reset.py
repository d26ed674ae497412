"""``tapebot tape reset``: export a conversation and its memory, then empty it."""

from __future__ import annotations

import sys
from zoneinfo import ZoneInfo

import anyio

from bot.cli.memory_export import local_blobs
from bot.cli.tape import printable
from bot.cli.terminal import confirm
from bot.core.clock import SystemClock, format_time
from bot.core.errors import SettingsError, TapebotError, TapeNotFound
from bot.core.files import private_directory
from bot.core.i18n import _, format_number, ngettext
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE, ScopeRegistry
from bot.memory.session.scope.scope_memory import load_facts
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.control_socket import call_control
from bot.runtime.sessions.session_reset import check_resettable, reset_session
from bot.runtime.settings import Settings
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.memory_export import archive_name, write_archive
from bot.transfer.memory_files import SessionMemory, read_session_memory


def reset_tape(settings: Settings, session: str, *, archive: bool, yes: bool) -> int:
    """Export a conversation, print what is removed and what stays, confirm, and empty it.

    If the bot runs, it does the reset. Who declines gets 1.
    """
    check_resettable(session)
    without = _("cannot ask for confirmation: add --yes to reset it")
    if not yes and not sys.stdin.isatty():
        raise SettingsError(without)
    version, told = anyio.run(_export, settings, session, archive)
    print(printable(told))
    question = _("Reset {session}? [y/N] ", session=printable(session))
    if not confirm(question, yes=yes, without=without):
        print(_("Nothing was reset."))
        return 1
    anyio.run(_reset, settings, session, version, archive)
    print(
        _("{session} is empty and starts again with the next message.", session=printable(session))
    )
    return 0


async def _export(settings: Settings, session: str, archive: bool) -> tuple[int, str]:
    """Export everything; return the version exported, and the text on what a reset does."""
    now, zone = SystemClock().now(), ZoneInfo(settings.timezone)
    async with open_tape_store(settings, read_only=True) as store:
        version = await store.version(session)
        session_memory = await read_session_memory(store, session)
        folder = private_directory(settings.home / "exports")
        path = (folder / archive_name(session, format_time(now), now.astimezone(zone))).resolve()
        archive_summary = await write_archive(
            store, session, path, zone, now, blobs=local_blobs(settings)
        )
        shared = await _shared_facts(store)
    counts = (
        ngettext("{n} message", "{n} messages", archive_summary.messages),
        ngettext("{n} history entry", "{n} history entries", archive_summary.history),
        ngettext("{n} daily note", "{n} daily notes", archive_summary.notes),
    )
    contains = _("{session} contains {counts}.", session=session, counts=", ".join(counts))
    goes = (
        _("They will be sealed: still read, searched and recalled.")
        if archive
        else _("They will be dropped.")
    )
    lines = [
        f"{contains} {goes}",
        _("Exported: {path}", path=path),
        *_stays(session_memory, shared),
    ]
    return version, "\n".join(lines)


def _stays(session_memory: SessionMemory, shared: int) -> list[str]:
    """Describe which of the conversation's memory a reset leaves."""
    facts = len(session_memory.facts.active())
    first = _(
        "Also forgotten: what is remembered in this conversation (facts: {facts}).",
        facts=format_number(facts),
    )
    if session_memory.home != session_memory.session:
        first = _(
            "The person's facts stay in all their private chats (facts: {facts}): `/memory "
            "forget` and `/memory clear` remove them.",
            facts=format_number(facts),
        )
    files = _("Files that people sent stay; the export lists them.")
    last = _(
        "Shared facts stay (facts: {shared}), and so do earlier exports.",
        shared=format_number(shared),
    )
    return [first, files, last]


async def _shared_facts(store: TapeStore) -> int:
    try:
        return len((await load_facts(TapeService(store, WORKSPACE_SCOPE))).active())
    except TapeNotFound:
        return 0


async def _reset(settings: Settings, session: str, version: int, archive: bool) -> None:
    """Ask the running bot to reset; without one, reset here."""
    asked = {"do": "reset", "session": session, "version": version, "archive": archive}
    reply = None if settings.database_url else await call_control(settings.home, asked)
    if reply is None:
        async with open_tape_store(settings) as store:
            scopes = ScopeRegistry(store, SystemClock())
            await reset_session(store, session, scopes, expect=version, archive=archive)
    elif not reply.get("ok"):
        raise TapebotError(str(reply.get("text")))
