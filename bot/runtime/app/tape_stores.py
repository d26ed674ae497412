"""Open the configured tape store: database, files, memory, tape server or plug-in."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from shutil import rmtree
from typing import cast
from urllib.parse import urlsplit

import anyio

from bot.core.addresses import web_address
from bot.core.clock import Clock
from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.runtime.app.database_services import DatabaseServices, open_database_services
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore

GROUP = "tapebot.tape_stores"
"""Entry point group of tape store plug-ins; each entry point names a ``StoreFactory``."""

StoreFactory = Callable[[Settings], TapeStore]


@asynccontextmanager
async def open_tape_store(
    settings: Settings,
    *,
    clock: Clock | None = None,
    read_only: bool = False,
    shared: DatabaseServices | None = None,
) -> AsyncIterator[TapeStore]:
    """Open the configured tape store, in the database if one is set; close it at the end.

    Raises:
        SettingsError: There is no such store, or a package is missing.
        TapeLocked: Another process uses the folder.
        DatabaseUnavailable: The database cannot be reached.
        DatabaseOutdated: The database has another schema version; the text says what to do.
    """
    if shared is None and settings.database_url is not None:
        async with (
            open_database_services(settings) as opened,
            open_tape_store(settings, clock=clock, read_only=read_only, shared=opened) as store,
        ):
            yield store
        return
    if shared is None:
        store = build_tape_store(settings, clock=clock, read_only=read_only)
    else:
        from bot.tape.stores.postgres import PostgresTapeStore

        workspace = settings.workspace_id or ""
        store = PostgresTapeStore(
            shared.database,
            shared.wakeups,
            clock=clock,
            workspace=workspace,
            # Who only reads is soon gone, and would leave what others erase meanwhile.
            index_folder=None if read_only else settings.home / "index",
        )
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


def build_tape_store(
    settings: Settings, *, clock: Clock | None = None, read_only: bool = False
) -> TapeStore:
    """Return the store that ``tape_store`` names, even if a database is set; the caller closes it.

    Raises:
        SettingsError: There is no such store, or a package is missing.
        TapeLocked: Another process uses the folder.
    """
    name = settings.tape_store
    if name == "file":
        store = FileTapeStore(
            settings.home / "tapes",
            workspace=settings.workspace_id or "",
            sync=settings.tape_sync == "always",
            open_tapes=settings.open_tapes,
            read_only=read_only,
            clock=clock,
        )
        if not read_only and settings.database_url is None:
            # No erasure reaches what was kept of tapes that were elsewhere.
            rmtree(settings.home / "index", ignore_errors=True)
        return store
    if name == "memory":
        return InMemoryTapeStore(clock=clock)
    if name.startswith(("http://", "https://")):
        return _remote(settings, read_only=read_only)
    return _installed(name)(settings)


def _remote(settings: Settings, *, read_only: bool) -> TapeStore:
    try:
        address = web_address(settings.tape_store)
    except ValueError as error:
        raise SettingsError(_("TAPEBOT_TAPE_STORE: allowed: {error}.", error=error)) from error
    if "@" in urlsplit(address).netloc:
        # Error texts contain the address, and are shown in chats.
        raise SettingsError(_("TAPEBOT_TAPE_STORE: allowed: an address without user and password."))
    if settings.tape_store_token is None:
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE_TOKEN: not set, but a tape server requires a token; "
                "`tapebot tape-server token add` creates one there"
            )
        )
    token = settings.tape_store_token.get_secret_value().strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE_TOKEN: given a secret; allowed: a token as "
                "`tapebot tape-server token add` prints it."
            )
        )
    try:
        from bot.tape.stores.remote import RemoteTapeStore
    except ModuleNotFoundError as error:
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE: a tape server needs {name}: pip install 'tapebot[remote]'",
                name=error.name,
            )
        ) from error
    # Who only reads is soon gone, and would keep what the bot erases meanwhile.
    folds = settings.home / "index" / "server.index.db.folds"
    return RemoteTapeStore(address, token, folds=None if read_only else folds)


def _installed(name: str) -> StoreFactory:
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in offered:
        known = ", ".join(["file", "memory", "http(s)://...", *sorted(offered)])
        raise SettingsError(
            _("TAPEBOT_TAPE_STORE: given {name!r}; allowed: {known}.", name=name, known=known)
        )
    try:
        return cast(StoreFactory, offered[name].load())
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE: the store {name} cannot be loaded: {error}",
                name=name,
                error=error,
            )
        ) from error
