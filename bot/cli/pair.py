"""``tapebot pair``: show who may use the bot, or approve a code, whether the bot runs or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.bus import Address, Answer
from bot.bus.access.access_list import ConfiguredAccess
from bot.bus.access.control import open_access_control
from bot.bus.access.file_store import FILE, read_access_list
from bot.bus.access.messages import NO_SUCH_CODE, AccessOverview
from bot.cli.tape import printable
from bot.core.clock import SystemClock
from bot.core.errors import SettingsError, TapeLocked
from bot.core.i18n import _
from bot.core.ids import new_id
from bot.runtime.app.database_services import open_database_services
from bot.runtime.control_socket import call_control
from bot.runtime.settings import Settings


def pair(settings: Settings, code: str | None) -> int:
    """Approve a code, or print who may use the bot; return 1 if the code is not valid.

    If the bot runs, it approves the code itself, and notifies the new user.
    """
    reply = anyio.run(_pair, settings, code)
    text = printable(str(reply.get("text", "")))
    if reply.get("ok") is not True:
        print(text, file=sys.stderr)
        return 1
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text)
    return 0


async def _pair(settings: Settings, code: str | None) -> Mapping[str, Any]:
    request = {"do": "pair"} if code is None else {"do": "pair", "code": code}
    reply = await call_control(settings.home, request)
    if reply is not None:
        return reply
    if settings.database_url is not None:
        return await _pair_shared(settings, request)
    if code is None:
        # Reading takes no lock and creates no folder.
        access_list = await anyio.to_thread.run_sync(read_access_list, settings.home / FILE)
        named = ConfiguredAccess(frozenset(settings.owners), frozenset(settings.allow))
        told = AccessOverview.of(access_list, named, SystemClock().now())
        return {"ok": True, "text": told.text()}
    path = settings.home / FILE
    _refuse_to_take_over(path)
    if not (await anyio.to_thread.run_sync(read_access_list, path)).requests:
        # Without requests, create no files: they would belong to this user, not to the bot's.
        return {"ok": False, "text": _(NO_SUCH_CODE)}
    try:
        async with open_access_control(
            settings.home, owners=settings.owners, allow=settings.allow
        ) as access_control:
            return await access_control.handle(request)
    except TapeLocked:
        # The bot was just starting: by now its socket is there.
        reply = await call_control(settings.home, request)
        if reply is None:
            raise
        return reply


async def _pair_shared(settings: Settings, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Handle the request in the database, which all processes share; a gateway notifies."""
    async with open_database_services(settings) as shared:
        assert shared is not None
        from bot.bus.access.postgres_store import PostgresAccessStore
        from bot.bus.postgres import PostgresBus

        bus = PostgresBus(
            shared.database,
            shared.wakeups,
            holder=shared.holder,
            max_queued_messages=settings.session_limit,
            exports=settings.home / "exports",
        )

        async def tell(address: Address, text: str) -> None:
            await bus.send(Answer(address, new_id("notice"), text))

        store, owners, allow = PostgresAccessStore(shared.database), settings.owners, settings.allow
        try:
            async with open_access_control(
                store, owners=owners, allow=allow, send_notice=tell
            ) as access_control:
                return await access_control.handle(request)
        finally:
            await bus.aclose()


def _refuse_to_take_over(path: Path) -> None:
    """Refuse to write next to another user's files: files made by root would lock the bot out."""
    # If the file is the user's own, the folder's owner does not matter: volumes are often root's.
    folder = () if path.exists() else (path.parent,)
    for each in (path, path.with_suffix(".lock"), *folder):
        try:
            owner = each.stat().st_uid
        except (FileNotFoundError, NotADirectoryError):
            continue
        if owner != os.geteuid():
            raise SettingsError(
                _(
                    "{each} belongs to the user {owner}; run this command as that user",
                    each=each,
                    owner=owner,
                )
            )
