"""HTTP handlers of the Telegram test server: tokens, faults, flood limits, updates, downloads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import anyio
from aiohttp import web
from anyio.abc import TaskGroup

from testkit.endless import endless
from testkit.telegram import account_methods as account
from testkit.telegram import message_methods as posting
from testkit.telegram.account_methods import allow
from testkit.telegram.faults import BotApiFault, TelegramFaults
from testkit.telegram.http_messages import BROKEN, CLOSED, BotApiResponse, page, read, respond
from testkit.telegram.records import BotApiCall, Download, Json, TelegramRecords, UpdateDelivery
from testkit.telegram.validation import BotApiError, Params
from testkit.telegram.world import BotAccount, TelegramWorld

_SECOND_POLL = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)
_HAS_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


@dataclass(frozen=True, slots=True)
class _Called:
    """A parsed call; the bot's id is 0 for an unknown token."""

    token: str
    bot: int
    method: str
    params: Params
    chat: int | None


class BotApiHandler:
    """Handlers of ``/bot<token>/<method>`` and ``/file/bot<token>/<path>``."""

    def __init__(self, world: TelegramWorld, faults: TelegramFaults) -> None:
        self.tasks: TaskGroup
        self._world = world
        self._books = world.records
        self._faults = faults

    async def call(self, request: web.Request) -> web.StreamResponse:
        """Perform and record a method call, with faults."""
        at = time.monotonic()
        called = await self._called(request)
        values = called.params.values
        early = self._faults.is_before_retry_after(called.method, called.chat)
        fault = self._faults.take(called.bot, called.method, called.chat, values)
        if fault is not None and fault.kind == "endless":
            return await endless(request, packed=fault.packed)
        outcome = await self._outcome(request, called, fault)
        call = BotApiCall(
            bot=called.bot,
            method=called.method,
            chat=called.chat,
            at=at,
            status=0 if request.transport is None else outcome.status,
            description=outcome.reason,
            params={name: one for name, one in values.items() if not isinstance(one, tuple)},
            early=early,
            performed=outcome.performed,
        )
        self._books.calls.append(call)
        self._books.changed()
        return respond(request, outcome)

    async def download(self, request: web.Request) -> web.StreamResponse:
        """Send and record a file download, with faults."""
        path = request.match_info["path"]
        bot = self._world.bots.get(request.match_info["token"])
        number = 0 if bot is None else bot.user.id
        fault = self._faults.take(number, "download", None, {})
        await _pause(fault)
        stored = next((one for one in self._world.files.values() if one.path == path), None)
        if fault is not None and fault.kind in {"html", "refuse"}:
            outcome = page(fault.status)
        elif fault is not None and fault.kind != "slow":
            outcome = BROKEN
        elif bot is None or bot.revoked:
            outcome = BotApiResponse(401, BotApiError(401, "Unauthorized").as_json())
        elif stored is None:
            outcome = BotApiResponse(404, BotApiError(404, "Not Found").as_json())
        else:
            outcome = BotApiResponse(200, "")
        fact = Download(number, path, time.monotonic(), outcome.status)
        self._books.downloads.append(fact)
        self._books.changed()
        if outcome.status == 200 and stored is not None:
            return web.Response(body=stored.data, content_type="application/octet-stream")
        return respond(request, outcome)

    def end_polls(self) -> None:
        """End every waiting ``getUpdates``."""
        for bot in self._world.bots.values():
            bot.poll, bot.poll_ended = bot.poll + 1, CLOSED
            bot.wake()

    async def _called(self, request: web.Request) -> _Called:
        token, method = request.match_info["token"], request.match_info["method"]
        bot = self._world.bots.get(token)
        params = Params(await read(request))
        number = 0 if bot is None else bot.user.id
        name = params.text("chat_id")
        chat = int(name) if name.lstrip("-").isdecimal() else None
        return _Called(token, number, NAMES.get(method.lower(), method), params, chat)

    async def _outcome(
        self, request: web.Request, called: _Called, fault: BotApiFault | None
    ) -> BotApiResponse:
        kind = None if fault is None else fault.kind
        await _pause(fault)
        if kind == "hang_up":
            return BROKEN
        if fault is not None and kind == "html":
            return page(fault.status)
        try:
            result = await self._perform(request, called, fault)
        except BotApiError as exc:
            return BotApiResponse(exc.status, exc.as_json())
        if kind == "odd":
            strange = {"reply_to_message": {"kind": "of next year"}}
            result = {**result, **strange} if isinstance(result, dict) else strange
        body: Json = {"ok": True, "result": result}
        cut = json.dumps(body)[:-5] if kind == "garbage" else body
        return BotApiResponse(200, cut, performed=True)

    async def _perform(
        self, request: web.Request, called: _Called, fault: BotApiFault | None
    ) -> Any:
        bot = self._world.bot_of(called.token)
        method = canonical(called.method)
        if fault is not None and fault.kind == "refuse":
            raise fault.refusal()
        if method == "getUpdates":
            return await self._updates(request, bot, called.params)
        result = METHODS[method](self._world, bot, called.params)
        if method == "setWebhook" and bot.webhook is not None:
            self.tasks.start_soon(deliver, bot, self._books)
        return result

    async def _updates(self, request: web.Request, bot: BotAccount, params: Params) -> list[Json]:
        if bot.webhook is not None:
            raise BotApiError(409, _HAS_WEBHOOK)
        allow(bot, params)
        bot.poll, bot.poll_ended = bot.poll + 1, _SECOND_POLL
        mine = bot.poll
        bot.wake()
        offset = params.integer("offset") or 0
        if offset < 0:
            offset = bot.queue[offset].id if len(bot.queue) >= -offset else 0
        bot.confirm(offset, self._books)
        await self._wait_for_updates(bot, params.integer("timeout") or 0)
        if bot.poll != mine:
            raise (
                BotApiError(401, "Unauthorized")
                if bot.revoked
                else BotApiError(409, bot.poll_ended)
            )
        limit = params.integer("limit") or 100
        given = bot.queue[: max(1, min(limit, 100))]
        if request.transport is None:
            return []
        for one in given:
            one.handed_at.append(time.monotonic())
        if given:
            self._books.changed()
        return [one.update for one in given]

    async def _wait_for_updates(self, bot: BotAccount, seconds: int) -> None:
        mine = bot.poll
        self._books.polling.append(bot.user.id)
        self._books.changed()
        try:
            with anyio.move_on_after(seconds):
                while not bot.queue and bot.poll == mine:
                    await bot.changed.wait()
        finally:
            self._books.polling.remove(bot.user.id)


async def _pause(fault: BotApiFault | None) -> None:
    if fault is not None and fault.kind == "slow":
        await (fault.gate.wait() if fault.gate is not None else anyio.sleep(fault.seconds))


Method = Callable[[TelegramWorld, BotAccount, Params], Any]

METHODS: dict[str, Method] = {
    "getMe": account.get_me,
    "sendMessage": posting.send_message,
    "editMessageText": posting.edit_text,
    "editMessageReplyMarkup": posting.edit_buttons,
    "deleteMessage": posting.delete_message,
    "sendChatAction": posting.chat_action,
    "sendMessageDraft": posting.draft,
    "answerCallbackQuery": account.answer_callback,
    "setMyCommands": account.set_commands,
    "getMyCommands": account.get_commands,
    "deleteMyCommands": account.delete_commands,
    "getFile": account.get_file,
    "setWebhook": account.set_webhook,
    "deleteWebhook": account.delete_webhook,
    "getWebhookInfo": account.webhook_info,
    "sendDocument": posting.send_document,
}
NAMES = {name.lower(): name for name in (*METHODS, "getUpdates")}
"""Method names by lower-case name, since Telegram ignores case."""


def canonical(name: str) -> str:
    """Return a method's name as documented."""
    if name.lower() not in NAMES:
        raise BotApiError(404, "Not Found")
    return NAMES[name.lower()]


_SECRET = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
_WEBHOOK_PAUSE = 0.05
_PATIENCE = aiohttp.ClientTimeout(total=60)


async def deliver(bot: BotAccount, books: TelegramRecords) -> None:
    """Post the bot's updates to its webhook one at a time, each until a 2xx confirms it."""
    webhook = bot.webhook
    async with aiohttp.ClientSession(timeout=_PATIENCE) as session:
        while webhook is not None and bot.webhook is webhook:
            if not bot.queue:
                await bot.changed.wait()
                continue
            update = bot.queue[0]
            update.handed_at.append(time.monotonic())
            fault = await _post(session, webhook, update)
            if fault:
                bot.webhook_error = (int(time.time()), fault)
                await anyio.sleep(_WEBHOOK_PAUSE)
                continue
            bot.webhook_error = None
            update.confirmed_at = time.monotonic()
            if update in bot.queue:
                bot.queue.remove(update)
            books.changed()


async def _post(session: aiohttp.ClientSession, webhook: Json, update: UpdateDelivery) -> str:
    """Post one update; return the error, or an empty string."""
    headers = {_SECRET: webhook["secret"]} if webhook["secret"] else {}
    try:
        async with session.post(webhook["url"], json=update.update, headers=headers) as answer:
            await answer.read()
            if answer.ok and answer.status < 300:
                return ""
            return f"Wrong response from the webhook: {answer.status} {answer.reason}"
    except (aiohttp.ClientError, TimeoutError) as exc:
        return f"Connection failed: {type(exc).__name__}"
