"""Try answers of ``tapebot setup`` against the real services."""

from __future__ import annotations

import errno
import http.client
import importlib.util
import json
import logging
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from bot.core.errors import ModelUnavailable, TapebotError
from bot.core.files import private_directory
from bot.core.i18n import _
from bot.core.plugins import Plugins
from bot.llm.call_slots import CallSlots
from bot.llm.model_checks import check_answers_and_tools
from bot.runtime.control_socket import call_control
from bot.runtime.models import ModelOptions, build_model
from bot.runtime.settings import Settings
from bot.runtime.setup.providers import provider_of
from channels.base import TokenCheck
from channels.registry import PLATFORMS, Platform

_SECONDS = 10
_MODEL_SECONDS = 60.0
_SHORTEST_PASSPHRASE = 10

_MESSAGE_CONTENT = 1 << 18 | 1 << 19
"""Flags of an application that may read messages: as one on many servers, or on few."""

_PERMISSIONS = 1 << 10 | 1 << 11 | 1 << 16 | 1 << 38
"""View channels, send messages, read their history, send messages in threads."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found.

    Attributes:
        works: Whether the answers can be saved as they are.
        text: What was found, one sentence.
        remedy: What to do, one sentence; empty for nothing.
    """

    works: bool
    text: str
    remedy: str = ""


async def check_model(settings: Settings, key: str | None) -> Outcome:
    """Call the model of the settings: for an answer, and for a tool call.

    Args:
        settings: The settings to try.
        key: The key for its API; None if it is in the provider's own variable, or none is needed.
    """
    name = settings.model or "offline"
    if name == "offline":
        return Outcome(
            True, _("A notebook answers, without a language model; nothing leaves this machine.")
        )
    options = ModelOptions(
        settings.model_api_base,
        key,
        timeout=30,
        timeout_total=5,
        client=settings.model_client,
        plugins=Plugins(settings.plugins),
    )
    model = build_model(name, options, CallSlots(1))
    try:
        with quiet_retries():
            answers, tools = await check_answers_and_tools(model, seconds=_MODEL_SECONDS)
    except ModelUnavailable as error:
        # It names the file, or the command that installs what is missing.
        return Outcome(False, f"{error}")
    finally:
        with anyio.CancelScope(shield=True):
            await model.aclose()
    if not answers.works:
        why = answers.detail.removeprefix(f"{name}: ").rstrip(".")
        provider = provider_of(name)
        remedy = _("Correct the model's name, its address or its key.")
        if provider is not None and settings.model_api_base is None:
            page = provider.keys
            remedy = _("Correct the key, which {page} shows, or the model's name.", page=page)
        return Outcome(False, _("{model} does not answer: {why}.", model=name, why=why), remedy)
    if tools.works is False:
        text = _("{model} answers, but calls no tools: {why}.", model=name, why=tools.detail)
        return Outcome(True, text, _("It can talk, but not act; another model can."))
    return Outcome(True, _("{model} answers and calls tools.", model=name))


async def check_telegram(settings: Settings) -> Outcome:
    """Ask Telegram for the bots of the tokens."""
    platform = PLATFORMS["telegram"]
    outcome = Outcome(True, _("Telegram is not used."))
    for check in _token_checks(platform, settings):
        try:
            told = (await ask_platform(check)).get("result")
        except PlatformRefused as refused:
            return _refusal(refused, platform, _("Copy the token from @BotFather again, whole."))
        name = (told.get("username") if isinstance(told, dict) else None) or "?"
        text = _(
            "The bot is @{name}; write to it at https://t.me/{name}, once tapebot runs.", name=name
        )
        outcome = _with_library(text, platform)
    return outcome


async def check_discord(settings: Settings) -> Outcome:
    """Ask Discord for the bot and its application; return the link that invites it."""
    platform = PLATFORMS["discord"]
    check = next(_token_checks(platform, settings), None)
    if check is None:
        return Outcome(True, _("Discord is not used."))
    base = check.url.removesuffix("/users/@me")
    try:
        person = await ask_platform(check)
        application = await ask_platform(TokenCheck(f"{base}/applications/@me", check.headers))
    except PlatformRefused as refused:
        remedy = _("Under Bot, press Reset Token and copy the new token, whole.")
        return _refusal(refused, platform, remedy)
    flags = application.get("flags")
    if not (isinstance(flags, int) and flags & _MESSAGE_CONTENT):
        text = _("The bot may not read messages: Message Content Intent is off.")
        page = f"https://discord.com/developers/applications/{application.get('id')}/bot"
        return Outcome(False, text, _("Turn it on at {page} and save there.", page=page))
    query = {
        "client_id": application.get("id"),
        "scope": "bot applications.commands",  # words for programs
        "permissions": _PERMISSIONS,
    }
    link = f"https://discord.com/oauth2/authorize?{urlencode(query)}"
    name = person.get("username") or "?"
    text = _("The bot is @{name}; invite it to your server: {link}", name=name, link=link)
    return _with_library(text, platform)


async def check_site(settings: Settings) -> Outcome:
    """Check that the site can listen; if tapebot runs, return a link that logs in."""
    listen = settings.web_listen
    if listen is None:
        return Outcome(True, _("The site is off."))
    if importlib.util.find_spec("fastapi") is None:
        return _missing("fastapi", "web")
    from bot.core.http.sockets import bind

    try:
        bind(listen).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE and await is_running(settings.home):
            link = await _login_link(settings.home)
            remedy = _("This link logs you in once: {link}", link=link) if link else ""
            return Outcome(True, _("tapebot runs already."), remedy)
        why = error.strerror or type(error).__name__
        text = _("tapebot cannot listen on {address}: {why}.", address=listen, why=why)
        return Outcome(False, text, _("Choose another port, such as 127.0.0.1:8021, or off."))
    text = _("The site will be at {address}.", address=settings.web_base)
    return Outcome(True, text, _("tapebot prints a link that logs you in when it starts."))


async def _login_link(home: Path) -> str | None:
    """Return a link that logs in to the site of the tapebot that runs; None if there is none."""
    try:
        reply = await call_control(home, {"do": "web link"})  # words for programs
    except TapebotError:
        return None
    return str(reply.get("text")) if reply is not None and reply.get("ok") is True else None


async def is_running(home: Path) -> bool:
    """Return whether a tapebot runs in a home."""
    try:
        return await call_control(home, {"do": "pair"}) is not None
    except TapebotError:
        return True


async def check_backup(settings: Settings) -> Outcome:
    """Check that backups can be written and encrypted."""
    folder = settings.backup_to
    if folder is None:
        return Outcome(True, _("No backups are made by themselves."))
    if settings.database_url is not None:
        text = _("What is in a database has backups of its own.")
        return Outcome(False, text, _("See deploy/RUNBOOK.md."))
    if importlib.util.find_spec("pyrage") is None:
        return _missing("pyrage", "backup")
    passphrase = settings.backup_passphrase
    short = passphrase is None or len(passphrase.get_secret_value()) < _SHORTEST_PASSPHRASE
    if short and not settings.backup_recipients:
        text = _("The passphrase is too short.")
        return Outcome(False, text, _("Give at least 10 characters; several words are best."))
    return await anyio.to_thread.run_sync(_try_folder, folder, settings.home)


def _try_folder(folder: Path, home: Path) -> Outcome:
    if folder.resolve().is_relative_to(home.resolve()):
        text = _("{folder} is in tapebot's own folder.", folder=folder)
        return Outcome(False, text, _("Choose a folder elsewhere, best on another disk."))
    try:
        private_directory(folder)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".setup-") as file:
            os.fsync(file.fileno())
    except OSError as error:
        text = _("{folder} cannot be written: {why}.", folder=folder, why=error.strerror)
        return Outcome(False, text, _("Choose a folder that you own."))
    return Outcome(True, _("A backup is made in {folder} each night.", folder=folder))


def _install_command(extra: str) -> str:
    return f"pip install 'tapebot[{extra}]'"  # words for programs


def _with_library(text: str, platform: Platform) -> Outcome:
    library = platform.library
    if library is None or importlib.util.find_spec(library) is not None:
        return Outcome(True, text)
    command = _install_command(platform.name)
    remedy = _("{library} is missing; install it with: {command}", library=library, command=command)
    return Outcome(True, text, remedy)


def _missing(library: str, extra: str) -> Outcome:
    text = _("{library} is not installed.", library=library)
    return Outcome(False, text, _("Install it with: {command}", command=_install_command(extra)))


def _token_checks(platform: Platform, settings: Settings) -> Iterator[TokenCheck]:
    # The shards of one bot share its token.
    checks = {spec.name: spec.token_check for spec in platform.channels(settings)}
    return (check for check in checks.values() if check is not None)


class PlatformRefused(Exception):
    """A platform did not answer as it should; the status is None if it did not answer at all."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


def _refusal(refused: PlatformRefused, platform: Platform, remedy: str) -> Outcome:
    title = platform.title
    if refused.status is None:
        text = _("{platform} cannot be reached.", platform=title)
        return Outcome(False, text, _("Check this machine's connection to the internet."))
    if refused.status in (401, 404):
        text = _("{platform} does not accept the token.", platform=title)
        return Outcome(False, text, remedy)
    text = _("{platform} answered {status}.", platform=title, status=refused.status)
    return Outcome(False, text, _("Try again in a minute."))


async def ask_platform(check: TokenCheck) -> Mapping[str, Any]:
    """Return a platform's answer.

    Raises:
        PlatformRefused: It is none. The cause is left out: it may contain the address, and so the
            token.
    """
    return await anyio.to_thread.run_sync(_fetch, check, abandon_on_cancel=True)


def _fetch(check: TokenCheck) -> Mapping[str, Any]:
    request = urllib.request.Request(check.url, headers=check.headers)  # noqa: S310 (a checked setting)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            told = json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        raise PlatformRefused(error.code) from None
    except (OSError, ValueError, http.client.HTTPException):
        raise PlatformRefused(None) from None
    return told if isinstance(told, dict) else {}


@contextmanager
def quiet_retries() -> Iterator[None]:
    """Keep retries out of the log: the outcome says what came of them."""
    logger = logging.getLogger("stamina")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
