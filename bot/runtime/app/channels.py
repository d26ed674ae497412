"""Create the configured channels, and run them side by side."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from bot.bus import API_CHANNEL, WEB_CHANNEL
from bot.core.errors import ChannelRefused, SettingsError
from bot.core.files import private_directory
from bot.core.i18n import _, format_list
from bot.runtime.app.build import App
from bot.runtime.app.database_services import DatabaseServices
from bot.runtime.app.site import Announce, build_site
from bot.runtime.settings import PREFIX
from channels.base import Channel, ChannelContext, ChannelSpec, GroupPolicy, MenuCommand
from channels.registry import PLATFORMS, import_platform

logger = logging.getLogger(__name__)

T = TypeVar("T")

CONSOLE = "console"
"""The console's name."""

CONSOLE_LEASE = f"channel/{CONSOLE}"
"""The lease of the console: among processes that share a database, its holder shows it."""

_DRAIN_SECONDS = 10.0
"""Seconds to deliver pending answers when the program ends by itself."""

_ANNOUNCE_AFTER_SECONDS = 2.0
"""Seconds of waiting for a channel's lease before the operator is told so."""


def at_terminal() -> bool:
    """Return whether both standard input and output are terminals."""
    return (
        sys.stdin is not None
        and sys.stdout is not None
        and sys.stdin.isatty()
        and sys.stdout.isatty()
    )


def configured_channels(app: App, announce: Announce, *, console: bool = True) -> list[ChannelSpec]:
    """Return the configured channels; the console at a terminal, or if there is no other.

    What is wrong with plug-ins is announced.

    The website needs no platform beside it, nor does the console.

    Raises:
        SettingsError: There would be no channel.
    """
    channels = [spec for platform in PLATFORMS.values() for spec in platform.channels(app.settings)]
    channels += app.extensions.plugins.channels()
    app.extensions.plugins.announce_problems(announce)
    terminal = console and at_terminal()
    if app.web.should_serve(beside=bool(channels) or terminal):
        channels.append(
            ChannelSpec(WEB_CHANNEL, partial(_create_web_channel, app, announce, terminal))
        )
    if terminal or (console and not channels):
        channels.append(ChannelSpec(CONSOLE, partial(_create_console_channel, app)))
    if not channels:
        first, *others = [PREFIX + platform.setting.upper() for platform in PLATFORMS.values()]
        raise SettingsError(
            _(
                "{first}: not set. A gateway needs a channel: set one of {others}.",
                first=first,
                others=format_list([first, *others, "TAPEBOT_WEB_LISTEN"], "or"),
            )
        )
    return channels


async def run_channels(app: App, channels: Sequence[ChannelSpec], announce: Announce) -> None:
    """Run channels until the console ends, or until every channel was refused.

    Processes that share a database run a channel only while they hold its lease. When the console
    has ended, pending answers get a few more seconds.

    Raises:
        ChannelRefused: The last refusal, if all channels were refused; the others were announced.
    """
    refusals: list[ChannelRefused] = []
    async with anyio.create_task_group() as tasks:

        async def run_one(spec: ChannelSpec) -> None:
            if (refusal := await _run_until_refused(app, spec, announce)) is not None:
                logger.info("channel %s has ended: %s", spec.name, refusal)
                refusals.append(refusal)
                if len(refusals) < len(channels):
                    announce(str(refusal))
                    return
            else:
                with anyio.move_on_after(_DRAIN_SECONDS):
                    await app.bus.drain()
            tasks.cancel_scope.cancel()

        for spec in channels:
            tasks.start_soon(run_one, spec)
    if len(refusals) == len(channels):
        raise refusals[-1]


async def _run_until_refused(
    app: App, spec: ChannelSpec, announce: Announce
) -> ChannelRefused | None:
    """Run a channel to its end; return why its platform refused the bot, None if it did not."""
    refusal: BaseException | None = None
    try:
        if app.database_services is None:
            channel = await _create(app, spec, announce)
            await channel.run(app.bus.channel(spec.name))
        else:
            await _run_shared(app, app.database_services, spec, announce)
    except* ChannelRefused as group:
        # A channel raises it in any of its tasks, whose groups wrap it.
        refusal = group
        while isinstance(refusal, BaseExceptionGroup):
            refusal = refusal.exceptions[0]
    assert refusal is None or isinstance(refusal, ChannelRefused)
    return refusal


async def _run_shared(
    app: App, shared: DatabaseServices, spec: ChannelSpec, announce: Announce
) -> None:
    """Run a channel whenever this process holds its lease, until it ends by itself.

    Raises:
        ChannelRefused: The platform does not let the bot in; perhaps in an exception group.
    """
    if spec.name != CONSOLE:
        # Before the lease is held: loading takes seconds, and people wait once it is.
        await _load_in_thread(partial(import_platform, spec.name), spec)
    lease = _lease(spec)
    event = anyio.Event()

    async def run_under_lease(epoch: int) -> None:
        event.set()
        port = app.bus.channel(spec.name, shard=spec.shard, shards=spec.shards, epoch=epoch)
        channel = await _create(app, spec, announce)
        await channel.run(port)

    async def announce_waiting() -> None:
        with anyio.move_on_after(_ANNOUNCE_AFTER_SECONDS):
            await event.wait()
            return
        announce(_("{lease}: another process holds it; waiting", lease=lease))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(announce_waiting)
        if spec.receive is not None:
            tasks.start_soon(spec.receive, _context(app, spec, announce))
        while not await shared.leases.hold(lease, run_under_lease):
            pass
        tasks.cancel_scope.cancel()


def _lease(spec: ChannelSpec) -> str:
    """Return the lease that a process must hold to run a channel."""
    return f"channel/{spec.name}" + (f"/{spec.shard}" if spec.shards > 1 else "")


async def _create(app: App, spec: ChannelSpec, announce: Announce) -> Channel:
    """Create a channel.

    Raises:
        ChannelRefused: Its library is not installed.
    """
    create = partial(spec.create, _context(app, spec, announce))
    # The console needs no library that takes long to import.
    return create() if spec.name == CONSOLE else await _load_in_thread(create, spec)


async def _load_in_thread(load: Callable[[], T], spec: ChannelSpec) -> T:
    """Call ``load`` in a thread, since importing a library would block the event loop.

    Raises:
        ChannelRefused: The library is not installed.
    """

    def load_and_freeze() -> T:
        loaded = load()
        # The library's objects live as long as the process. Traversing them at each full
        # collection would block the bot for a fifth of a second.
        gc.collect()
        gc.freeze()
        return loaded

    try:
        return await anyio.to_thread.run_sync(load_and_freeze)
    except ModuleNotFoundError as error:
        extra = spec.name.partition("-")[0]
        raise ChannelRefused(
            _(
                "{name} is not installed; install it with: pip install 'tapebot[{extra}]'",
                name=error.name,
                extra=extra,
            )
        ) from error


def _context(app: App, spec: ChannelSpec, announce: Announce) -> ChannelContext:
    settings = app.settings
    context = ChannelContext(
        access=app.access_control,
        media=app.attachments,
        commands=tuple(
            MenuCommand(command.name, command.summary, command.forms)
            for command in app.services.commands.visible_commands()
        ),
        group_policy=GroupPolicy(frozenset(settings.always_answer), settings.group_context > 0),
        # The console makes its folder itself, once there is something to store.
        data_dir=settings.home / CONSOLE
        if spec.name == CONSOLE
        else private_directory(settings.home / "channels" / spec.name),
        announce=announce,
        default_language=app.settings.shown_language,
        language=app.services.languages.of_client,
        problems=app.services.problems,
        move_chats=partial(app.access_control.move_chats, spec.name),
        on_connected=partial(_announce_claim_code, app, spec.name.partition("-")[0], announce),
    )
    if (shared := app.database_services) is None:
        return context
    from bot.bus.postgres_discord_state import PostgresReadPositions, reserve_slot
    from bot.bus.postgres_spool import PostgresSpool

    return replace(
        context,
        spool=PostgresSpool(shared.database, shared.wakeups, spec.name),
        read_positions=PostgresReadPositions(shared.database, spec.name),
        reserve_login=partial(reserve_slot, shared.database),
    )


def _announce_claim_code(app: App, platform: str, announce: Announce) -> None:
    """Announce how to claim a bot without an owner; only after its token was accepted."""
    if (code := app.access_control.claim_code_for(platform)) is not None:
        title = PLATFORMS[platform].title if platform in PLATFORMS else platform
        announce(
            _(
                "{title}: this bot has no owner yet. To own it, send it in a private chat: /claim {code}",
                title=title,
                code=code,
            )
        )


def _create_web_channel(
    app: App, announce: Announce, terminal: bool, context: ChannelContext
) -> Channel:
    from bot.inspector.clients.backend import ClientSessions
    from channels.api import ApiChannel, ApiRoutes
    from channels.web import Beside, WebChannel

    context = replace(context, access=app.web)
    site = build_site(app, announce, terminal=terminal)
    api = ApiChannel(context, ClientSessions(site.web))
    return WebChannel(
        context,
        site,
        most_bytes=app.settings.max_file_mb * 1_000_000,
        beside=[Beside(ApiRoutes(api).router(), partial(api.run, app.bus.channel(API_CHANNEL)))],
    )


def _create_console_channel(app: App, context: ChannelContext) -> Channel:
    from channels.console import ConsoleChannel

    name = _("a notebook (no language model)") if app.model.name == "offline" else app.model.name
    banner = _(
        "tapebot, {name}.\nEverything said is kept in {home}.\nType a message, or /help. Ctrl-D leaves.",
        name=name,
        home=app.settings.home,
    )
    return ConsoleChannel(
        history_file=context.data_dir / "history",
        user_name=app.settings.console_name,
        language=context.language,
        commands=[
            (f"/{menu_command.name}", menu_command.summary) for menu_command in context.commands
        ],
        banner=banner,
    )
