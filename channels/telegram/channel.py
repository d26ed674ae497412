"""The Telegram channel: one bot, from login to shutdown, and its command menu."""

from __future__ import annotations

import logging
import re
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import anyio
from aiogram.methods import DeleteMyCommands, GetMe, GetMyCommands, SetMyCommands
from aiogram.types import BotCommand
from anyio.abc import TaskGroup

from bot.bus import BusError, ChannelPort, ChannelRefused
from bot.core.i18n import LANGUAGES, _, use_language
from channels.base import ChannelContext, ConnectionStatus, MenuCommand
from channels.delivery.dispatcher import OutboundDispatcher
from channels.delivery.messenger import MessageRejected, MessengerError, RateLimited
from channels.folder_spool import FolderSpool
from channels.intake import Intake
from channels.keyed_executor import KeyedExecutor
from channels.telegram.api import (
    TOKEN_SETTING,
    Backoff,
    BotApiClient,
    MethodNotFound,
    TelegramTiming,
    TokenRejected,
)
from channels.telegram.intake import SpoolConsumer, TelegramIntake
from channels.telegram.message_content import BotIdentity
from channels.telegram.messenger import TelegramMessenger
from channels.telegram.moved_chats import MovedChats
from channels.telegram.polling import UpdatePoller
from channels.telegram.updates import UpdateReader
from channels.telegram.webhook import (
    WebhookEndpoint,
    WebhookRegistration,
    listening,
    webhook_secret,
)

# https://core.telegram.org/bots/api#botcommand
_COMMAND_NAME = re.compile(r"[a-z0-9_]{1,32}")
_LONGEST_SUMMARY = 256
_MAX_COMMANDS = 100


async def sync_command_menu(
    api: BotApiClient, commands: tuple[MenuCommand, ...], timing: TelegramTiming, default: str
) -> None:
    """Update the bot's menu of commands where it differs, retrying; a rejection is only logged."""
    pause = Backoff(timing)
    usual = _menu(commands, default)
    menus: dict[str | None, list[BotCommand]] = {None: usual}
    for code in LANGUAGES:
        menu = _menu(commands, code)
        menus[code] = [] if menu == usual else menu
    while menus:
        language, menu = next(iter(menus.items()))
        try:
            await _sync_menu(api, language, menu)
        except MessageRejected as refused:
            logger.warning("Telegram does not accept the menu of commands: %s", refused)
        except RateLimited as flood:
            await pause.wait(flood.seconds)
            continue
        except MessengerError:
            await pause.wait()
            continue
        del menus[language]


def _menu(commands: tuple[MenuCommand, ...], language: str) -> list[BotCommand]:
    with use_language(language):
        return [
            BotCommand(command=command.name, description=_(command.summary)[:_LONGEST_SUMMARY])
            for command in commands
            if _COMMAND_NAME.fullmatch(command.name) and command.summary
        ][:_MAX_COMMANDS]


async def _sync_menu(api: BotApiClient, language: str | None, menu: list[BotCommand]) -> None:
    known = await api(GetMyCommands(language_code=language))
    if [(one.command, one.description) for one in known] == [
        (one.command, one.description) for one in menu
    ]:
        return
    if menu:
        await api(SetMyCommands(commands=menu, language_code=language))
    else:
        await api(DeleteMyCommands(language_code=language))


logger = logging.getLogger(__name__)

_ASKED_AGAIN = 3
_CLOSE_SECONDS = 5
_CATCH_UP = 5
"""How many times ``message_group_wait`` to wait at the start for earlier parts of an album."""

_START = "start"
"""Sent by Telegram's Start button: https://core.telegram.org/bots/features#global-commands."""

_TELEGRAM = "https://api.telegram.org"


class TelegramChannel:
    """A bot on Telegram, by long polling or webhook."""

    def __init__(
        self,
        name: str,
        token: str,
        context: ChannelContext,
        *,
        api_base: str | None,
        webhook: WebhookEndpoint | None,
        timing: TelegramTiming | None = None,
    ) -> None:
        self._name = name
        self._token = token
        self._context = context
        self._api_base = api_base
        self._webhook = webhook
        self._timing = timing or TelegramTiming()
        where = urlsplit(api_base or _TELEGRAM).hostname or ""
        self._status = ConnectionStatus(name.capitalize(), where, context)

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        return self._name

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The token is invalid, now or later, or the webhook's port is in use.
        """
        moved = MovedChats(self._context.move_chats)
        api = BotApiClient(self._token, self._api_base, moved, self._timing)
        try:
            me = await self._log_in(api)
            await self._serve(api, me, port)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS):
                await api.aclose()

    async def _log_in(self, api: BotApiClient) -> BotIdentity:
        """Call ``getMe`` until it succeeds, and return the bot's identity.

        Raises:
            ChannelRefused: Telegram does not know the token.
        """
        pause, status = Backoff(self._timing), self._status
        while True:
            try:
                await api.moved.learn({})
                user = await api(GetMe(), seconds=status.login_seconds)
            except (TokenRejected, MethodNotFound) as exc:
                raise self._unknown_token() from exc
            except BusError as error:
                logger.warning("which chats have moved cannot be read: %s", error)
                await pause.wait()
            except MessengerError as error:
                status.lost(error)
                await pause.wait(error.seconds if isinstance(error, RateLimited) else 0)
            else:
                status.restored()
                if not user.can_read_all_group_messages:
                    self._tell_of_privacy()
                commands = frozenset(menu_command.name for menu_command in self._context.commands)
                return BotIdentity(user.id, user.username or "", commands | {_START})

    def _tell_of_privacy(self) -> None:
        """Announce that privacy mode hides group messages which the settings ask for.

        https://core.telegram.org/bots/features#privacy-mode
        """
        groups = self._context.group_policy
        kind = self._name.partition("-")[0]
        if groups.keep_context or any(one.startswith(f"{kind}:") for one in groups.always_answer):
            self._context.announce(
                _(
                    "Telegram: in groups the bot only gets messages to it. To get all messages, turn "
                    "its privacy mode off (/setprivacy at @BotFather) and add it to the group again, "
                    "or make it an administrator there"
                )
            )

    async def _serve(self, api: BotApiClient, me: BotIdentity, port: ChannelPort) -> None:
        """Serve until cancelled.

        Raises:
            ChannelRefused: The token was rejected for good.
        """
        announce, messenger = self._context.announce, TelegramMessenger(api, self._timing)
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            dispatcher = OutboundDispatcher(port, messenger)
            await tasks.start(dispatcher.run)
            intake = TelegramIntake(
                Intake(
                    self._name,
                    self._context,
                    port,
                    api.fetch,
                    dispatcher,
                    first_retry=self._timing.first_retry,
                ),
                self._context,
                reader=UpdateReader(self._name, me, announce),
                spool=self._context.spool or FolderSpool(self._context.data_dir / "spool"),
                executor=KeyedExecutor(tasks),
                messenger=messenger,
                moved=api.moved,
                timing=self._timing,
            )
            await intake.resume()
            default = self._context.default_language
            tasks.start_soon(sync_command_menu, api, self._context.commands, self._timing, default)
            if self._webhook is not None and self._context.spool is None:
                secret = webhook_secret(self._token)
                taking = listening(self._webhook, api.bot_id, secret, intake.handle_update)
                await stack.enter_async_context(taking)
            self._take_updates(api, intake, tasks)
            announce(_("Telegram: connected as @{username}", username=me.username))
            self._context.on_connected()
            await self._wait_for_rejection(api)
            raise self._unknown_token()

    def _take_updates(self, api: BotApiClient, intake: TelegramIntake, tasks: TaskGroup) -> None:
        """Start to receive updates from the spool or by polling, and register the webhook."""
        announce, timing, webhook = self._context.announce, self._timing, self._webhook
        if self._context.spool is not None:
            # Even when polling: receivers may have spooled updates before.
            tasks.start_soon(SpoolConsumer(self._context.spool, intake, timing).run)
        if webhook is None:
            tasks.start_soon(UpdatePoller(api, intake, self._status, announce, timing).run)
            return
        secret = webhook_secret(self._token)
        tasks.start_soon(self._catch_up, intake)
        address = webhook.url_for(api.bot_id)
        tasks.start_soon(
            WebhookRegistration(api, address, secret, announce=announce, timing=timing).run
        )

    async def _catch_up(self, intake: TelegramIntake) -> None:
        """Give Telegram some time to resend updates that the previous run did not accept."""
        await anyio.sleep(_CATCH_UP * self._timing.message_group_wait)
        intake.mark_caught_up()

    async def _wait_for_rejection(self, api: BotApiClient) -> None:
        """Return once the token is rejected for good.

        While it is out of order, Telegram also rejects valid tokens. So the token is first checked
        again for about a minute.
        """
        while True:
            await api.token_rejected.wait()
            logger.warning("Telegram does not accept the token; checking again")
            refused = 0
            while refused < _ASKED_AGAIN and api.token_rejected.is_set():
                await anyio.sleep(self._timing.longest_retry / _ASKED_AGAIN)
                try:
                    await api(GetMe())
                except (TokenRejected, MethodNotFound):
                    refused += 1
                except MessengerError as error:
                    logger.debug("cannot tell whether Telegram accepts the token: %s", error)
                else:
                    api.clear_token_rejected()
            if refused == _ASKED_AGAIN:
                return
            logger.info("Telegram accepts the token after all")

    def _unknown_token(self) -> ChannelRefused:
        return ChannelRefused(
            _(
                "Telegram does not accept the token in {token_setting} ({name}): it was revoked or mistyped. @BotFather shows the right one",
                token_setting=TOKEN_SETTING,
                name=self._name,
            )
        )
