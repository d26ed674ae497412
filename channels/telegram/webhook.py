"""Receive updates by webhook: an HTTP server that all bots share, a spool receiver, registration.

The response is 200 only once an update is accepted; otherwise Telegram sends it again
(https://core.telegram.org/bots/api#setwebhook).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from aiogram.methods import GetWebhookInfo, SetWebhook
from aiogram.types import Chat, Update
from aiohttp import web

from bot.bus import (
    AccessRequest,
    Address,
    Authorizer,
    BusError,
    ChannelRefused,
    Sender,
    SharedSpool,
)
from bot.core.i18n import _
from channels.delivery.messenger import MessengerError, RateLimited
from channels.telegram.api import Backoff, BotApiClient, TelegramTiming
from channels.telegram.message_content import message_sender, press_sender, reaction_sender
from channels.telegram.updates import read_update_id, validate_update
from channels.telegram.user_events import ALLOWED_UPDATES, migrated_ids

_MOST = 2**63


async def receive_updates(
    channel: str, token: str, *, endpoint: WebhookEndpoint, spool: SharedSpool, access: Authorizer
) -> None:
    """Receive one bot's webhook updates into a spool, until cancelled.

    Does not register the webhook: the channel does.

    Raises:
        ChannelRefused: The port is in use, or the host is not an address of this machine.
    """
    receiver = SpoolReceiver(channel, spool, access)
    bot_id = int(token.partition(":")[0])
    async with listening(endpoint, bot_id, webhook_secret(token), receiver.handle_update):
        await anyio.sleep_forever()


class SpoolReceiver:
    """Store one bot's updates in a shared spool."""

    def __init__(self, channel: str, spool: SharedSpool, access: Authorizer) -> None:
        self._channel = channel
        self._spool = spool
        self._access = access

    async def handle_update(self, raw: Any) -> None:
        """Store a raw update; return once it is durable or skipped.

        Raises:
            BusError: It could not be stored, or too many updates wait; Telegram must send it again.
        """
        number = read_update_id(raw)
        if number is None or not 0 <= number < _MOST:
            logger.warning("an update with no usable id is skipped")
            return
        try:
            update = validate_update(raw)
            news, access_request = _is_about_chat(update), _access_request(update, self._channel)
        except (ValueError, OverflowError, OSError):
            logger.warning("the update %s is skipped, as it is malformed", number)
            return
        if news:
            await self._spool.store_pending(number, raw, known=False)
        elif access_request is not None:
            # Without the text: this check must not consume a pairing code.
            decision = await self._access.authorize(access_request)
            known = decision.role is not None
            if known or access_request.private or decision.reply is not None:
                await self._spool.store_pending(number, raw, known=known)


def _is_about_chat(update: Update) -> bool:
    """Return whether an update concerns the chat itself rather than a user's action in it."""
    message = update.message
    return update.my_chat_member is not None or (
        message is not None and migrated_ids(message) is not None
    )


def _access_request(update: Update, channel: str) -> AccessRequest | None:
    """Return the access request for an update's sender; None if there is no relevant sender."""
    message = update.message or update.edited_message
    query, reaction = update.callback_query, update.message_reaction
    if message is not None:
        return _of(channel, message.chat, message_sender(message))
    if query is not None and query.message is not None:
        return _of(channel, query.message.chat, press_sender(query))
    if reaction is not None:
        return _of(channel, reaction.chat, reaction_sender(reaction.user, reaction.actor_chat))
    return None


def _of(channel: str, chat: Chat, sender: Sender | None) -> AccessRequest | None:
    if sender is None:
        return None
    number = str(chat.id)
    return AccessRequest(
        Address(channel, number),
        sender,
        private=chat.type == "private",
        chat_ids=(number,),
        text=None,
    )


logger = logging.getLogger(__name__)

_HEADER = "X-Telegram-Bot-Api-Secret-Token"
_MOST_BYTES = 1024 * 1024
_STOP_SECONDS = 2.0
UpdateHandler = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """The public URL and the listening address of the webhook.

    Attributes:
        url: The public base URL, without the bot's path; a proxy may forward it to this server.
        host: The host to listen on.
        port: The port to listen on; 0 for any, which only a single bot can use.
    """

    url: str
    host: str
    port: int

    def url_for(self, bot_id: int) -> str:
        """Return the URL for one bot's updates."""
        return f"{self.url.rstrip('/')}{_path(bot_id)}"


def parse_webhook_endpoint(url: str, listen: str) -> WebhookEndpoint:
    """Return the endpoint from two settings: the public URL, and ``host:port`` to listen on."""
    host, _, port = listen.rpartition(":")
    return WebhookEndpoint(url, host, int(port))


def webhook_secret(token: str) -> str:
    """Return the secret that Telegram sends with each update, derived from the bot's token."""
    return hmac.new(token.encode(), b"tapebot webhook", hashlib.sha256).hexdigest()


class WebhookListener:
    """One listening port, shared by the bots of this process."""

    def __init__(self) -> None:
        self.bots: dict[str, tuple[str, UpdateHandler]] = {}
        self.changing = anyio.Lock()
        self._runner: web.AppRunner | None = None

    async def adapt(self, host: str, port: int) -> None:
        """Open the port if there are bots, and close it if there are none.

        Raises:
            OSError: It cannot be opened.
        """
        async with self.changing:
            runner, self._runner = self._runner, None
            if self.bots and runner is None:
                app = web.Application(client_max_size=_MOST_BYTES)
                app.router.add_post("/telegram/{bot}", self._received)
                runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS)
                await runner.setup()
                try:
                    await web.TCPSite(runner, host, port).start()
                except BaseException:
                    with anyio.CancelScope(shield=True):
                        await runner.cleanup()
                    raise
            if self.bots:
                self._runner = runner
            elif runner is not None:
                await runner.cleanup()

    async def _received(self, request: web.Request) -> web.Response:
        known = self.bots.get(request.match_info["bot"])
        given = request.headers.get(_HEADER, "").encode("utf-8", "surrogateescape")
        if known is None or not hmac.compare_digest(given, known[0].encode()):
            return web.Response(status=403 if known else 404)
        try:
            raw = json.loads(await request.read())
        except ValueError:
            return web.Response(status=400, text="not JSON")  # for programs
        if read_update_id(raw) is None:
            return web.Response(status=400, text="not an update")  # for programs
        try:
            await known[1](raw)
        except BusError as error:
            logger.warning("an update was not accepted: %s", error)
            return web.Response(status=503, text="not accepted, send it again")  # for programs
        return web.Response()


_listeners: dict[tuple[str, int], WebhookListener] = {}


@asynccontextmanager
async def listening(
    endpoint: WebhookEndpoint, bot_id: int, secret: str, take: UpdateHandler
) -> AsyncIterator[None]:
    """Pass one bot's updates to a handler within the block; bots of this process share the port.

    Raises:
        ChannelRefused: The port is in use, or the host is not an address of this machine.
    """
    key, name, mine = (endpoint.host, endpoint.port), str(bot_id), (secret, take)
    listener = _listeners.setdefault(key, WebhookListener())
    listener.bots[name] = mine
    try:
        try:
            await listener.adapt(*key)
        except OSError as exc:
            raise ChannelRefused(
                _(
                    "updates from Telegram cannot arrive at {host}:{port} ({strerror}); change TAPEBOT_TELEGRAM_WEBHOOK_LISTEN",
                    host=endpoint.host,
                    port=endpoint.port,
                    strerror=exc.strerror,
                )
            ) from exc
        yield
    finally:
        if listener.bots.get(name) is mine:
            del listener.bots[name]
        # A bot that came meanwhile tries the port itself, and tells why it cannot be opened.
        with anyio.CancelScope(shield=True), suppress(OSError):
            await listener.adapt(*key)
        if not listener.bots:
            _listeners.pop(key, None)


class WebhookRegistration:
    """Register one bot's webhook with Telegram, and keep it registered."""

    def __init__(
        self,
        api: BotApiClient,
        address: str,
        secret: str,
        *,
        announce: Callable[[str], None],
        timing: TelegramTiming,
    ) -> None:
        self._api = api
        self._address = address
        self._secret = secret
        self._announce = announce
        self._timing = timing
        self._announced = ""
        # Telegram's dates are whole seconds.
        self._trouble = datetime.now(UTC) - timedelta(seconds=1)

    async def run(self) -> None:
        """Register the webhook, and again whenever it was replaced or removed, until cancelled."""
        while True:
            await self._ask()
            await self._watch()

    async def _ask(self) -> None:
        """Call ``setWebhook`` until it succeeds."""
        pause = Backoff(self._timing)
        while True:
            try:
                await self._api(
                    SetWebhook(
                        url=self._address,
                        secret_token=self._secret,
                        allowed_updates=ALLOWED_UPDATES,
                        drop_pending_updates=False,
                    )
                )
            except RateLimited as flood:
                await pause.wait(flood.seconds)
            except MessengerError as error:
                self._announce_once(
                    _(
                        "the webhook could not be set ({error}); retrying. Its address is TAPEBOT_TELEGRAM_WEBHOOK_URL",
                        error=error,
                    )
                )
                await pause.wait()
            else:
                return

    async def _watch(self) -> None:
        """Announce delivery errors; return once the webhook is no longer registered."""
        while True:
            await anyio.sleep(self._timing.webhook_check_interval)
            try:
                info = await self._api(GetWebhookInfo())
            except MessengerError as error:
                logger.debug("the webhook could not be checked: %s", error)
                continue
            if info.url != self._address:
                self._announce_once(
                    _("another program took over this bot's updates; stop it. Taking them back")
                )
                return
            at = info.last_error_date
            if at is not None and at > self._trouble:
                self._trouble = at
                if info.pending_update_count:
                    self._announce_once(
                        _(
                            "updates do not arrive: {last_error_message}",
                            last_error_message=info.last_error_message,
                        )
                    )

    def _announce_once(self, what: str) -> None:
        if what != self._announced:
            self._announced = what
            logger.warning("Telegram: %s", what)
            self._announce(_("Telegram: {what}", what=what))


def _path(bot_id: int) -> str:
    return f"/telegram/{bot_id}"
