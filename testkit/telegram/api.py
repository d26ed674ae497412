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

from testkit.loopback import endless, hang_up
from testkit.telegram import account_methods as account
from testkit.telegram import message_methods as posting
from testkit.telegram.account_methods import allow
from testkit.telegram.faults import BotApiFault, TelegramFaults
from testkit.telegram.records import BotApiCall, Download, Json, TelegramRecords, UpdateDelivery
from testkit.telegram.validation import BotApiError, Params, bad
from testkit.telegram.world import BotAccount, TelegramWorld

_CLOSED = "the connection was broken"
_PAGE = "<html><head><title>{0}</title></head><body><h1>{0} Bad Gateway</h1></body></html>"
_SECOND_POLL = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)
_HAS_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


@dataclass(frozen=True, slots=True)
class _Response:
    """A response, JSON or a text; status 0 breaks the connection."""

    status: int
    body: Json | str
    performed: bool = False

    @property
    def reason(self) -> str:
        """The error description, for the records."""
        return self.body[:60] if isinstance(self.body, str) else self.body.get("description", "")

    def send(self, request: web.Request) -> web.Response:
        if self.status == 0:
            return hang_up(request)
        if isinstance(self.body, str):
            kind = "text/html" if self.status != 200 else "application/json"
            return web.Response(text=self.body, status=self.status, content_type=kind)
        return web.json_response(self.body, status=self.status)


class BotApiHandler:
    """Handlers of ``/bot<token>/<method>`` and ``/file/bot<token>/<path>``."""

    def __init__(self, world: TelegramWorld, faults: TelegramFaults) -> None:
        self.tasks: TaskGroup
        self._world = world
        self._books = world.records
        self._faults = faults

    async def call(self, request: web.Request) -> web.StreamResponse:
        at = time.monotonic()
        token, named = request.match_info["token"], request.match_info["method"]
        method = NAMES.get(named.lower(), named)
        params = Params(await _read(request))
        name = params.text("chat_id")
        chat = int(name) if name.lstrip("-").isdecimal() else None
        early = self._faults.is_before_retry_after(method, chat)
        fault = self._faults.take(method, chat)
        if fault is not None and fault.kind == "endless":
            return await endless(request, packed=fault.packed)
        outcome = await self._outcome(request, token, method, params, fault)
        call = BotApiCall(
            bot=self._number(token),
            method=method,
            chat=chat,
            at=at,
            status=0 if request.transport is None else outcome.status,
            description=outcome.reason,
            params={key: one for key, one in params.values.items() if not isinstance(one, tuple)},
            early=early,
            performed=outcome.performed,
        )
        self._books.calls.append(call)
        self._books.changed()
        return outcome.send(request)

    async def download(self, request: web.Request) -> web.StreamResponse:
        """Send and record a file download, with faults."""
        token, path = request.match_info["token"], request.match_info["path"]
        fault = self._faults.take("download", None)
        outcome = await _failed(fault)
        data = None
        if outcome is None:
            try:
                self._world.bot_of(token)
                data = self._world.file_at(path).data
            except BotApiError as exc:
                outcome = _Response(exc.status, exc.as_json())
        status = 200 if outcome is None else outcome.status
        self._books.downloads.append(Download(self._number(token), path, time.monotonic(), status))
        self._books.changed()
        if outcome is None:
            return web.Response(body=data, content_type="application/octet-stream")
        return outcome.send(request)

    def end_polls(self) -> None:
        """End every waiting ``getUpdates``."""
        for bot in self._world.bots.values():
            bot.end_poll(_CLOSED)

    def _number(self, token: str) -> int:
        return self._world.bots[token].user.id if token in self._world.bots else 0

    async def _outcome(
        self,
        request: web.Request,
        token: str,
        method: str,
        params: Params,
        fault: BotApiFault | None,
    ) -> _Response:
        kind = None if fault is None else fault.kind
        if kind != "refuse" and (failed := await _failed(fault)):
            return failed
        try:
            bot = self._world.bot_of(token)
            if fault is not None and kind == "refuse":
                raise fault.refusal()
            if method == "getUpdates":
                result: Any = await self._updates(request, bot, params)
            else:
                result = METHODS.get(method, _unknown)(self._world, bot, params)
        except BotApiError as exc:
            return _Response(exc.status, exc.as_json())
        if method == "setWebhook" and bot.webhook is not None:
            self.tasks.start_soon(deliver, bot, self._books)
        if kind == "odd":
            strange = {"reply_to_message": {"kind": "of next year"}}
            result = {**result, **strange} if isinstance(result, dict) else strange
        body: Json = {"ok": True, "result": result}
        cut = json.dumps(body)[:-5] if kind == "garbage" else body
        return _Response(200, cut, performed=True)

    async def _updates(self, request: web.Request, bot: BotAccount, params: Params) -> list[Json]:
        if bot.webhook is not None:
            raise BotApiError(409, _HAS_WEBHOOK)
        allow(bot, params)
        bot.end_poll(_SECOND_POLL)
        mine = bot.poll
        offset = params.integer("offset") or 0
        if offset < 0:
            offset = bot.queue[offset].id if len(bot.queue) >= -offset else 0
        bot.confirm(offset, self._books)
        self._books.polling.append(bot.user.id)
        self._books.changed()
        try:
            with anyio.move_on_after(params.integer("timeout") or 0):
                while not bot.queue and bot.poll == mine:
                    await bot.changed.wait()
        finally:
            self._books.polling.remove(bot.user.id)
        if bot.poll != mine:
            self._world.bot_of(bot.token)
            raise BotApiError(409, bot.poll_ended)
        limit = params.integer("limit") or 100
        given = bot.queue[: max(1, min(limit, 100))]
        if request.transport is None:
            return []
        for one in given:
            one.handed_at.append(time.monotonic())
        if given:
            self._books.changed()
        return [one.update for one in given]


def _unknown(_world: TelegramWorld, _bot: BotAccount, _params: Params) -> Any:
    raise BotApiError(404, "Not Found")


async def _failed(fault: BotApiFault | None) -> _Response | None:
    """Return what answers instead of the server; None after the delay of a slow call."""
    if fault is None or fault.kind in {"garbage", "odd"}:
        return None
    if fault.kind == "slow":
        await fault.pause()
        return None
    if fault.kind in {"html", "refuse"}:
        return _Response(fault.status, _PAGE.format(fault.status))
    return _Response(0, _CLOSED)


async def _read(request: web.Request) -> Json:
    """Return the parameters from query and body; an upload is a pair of name and bytes."""
    values: Json = dict(request.query)
    if request.can_read_body and request.content_type == "application/json":
        try:
            body = await request.json()
        except ValueError as exc:
            refusal = bad("can't parse JSON object").as_json()
            raise web.HTTPBadRequest(text=json.dumps(refusal)) from exc
        values |= body if isinstance(body, dict) else {}
    elif request.can_read_body:
        for name, value in (await request.post()).items():
            values[name] = (
                (value.filename, value.file.read()) if isinstance(value, web.FileField) else value
            )
    for name, value in values.items():
        if isinstance(value, str) and value.startswith("attach://"):
            values[name] = values.get(value.removeprefix("attach://"), value)
    return values


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
