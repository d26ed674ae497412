"""Checks of ``tapebot doctor`` on channels and on who may use the bot."""

from __future__ import annotations

import http.client
import importlib.util
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bot.bus.access.access_list import AccessList, ConfiguredAccess, has_owner
from bot.bus.access.file_store import FILE, read_access_list
from bot.cli.check_result import CheckResult
from bot.core.errors import SettingsError, TapebotError
from bot.core.i18n import _, ngettext
from bot.runtime.control_socket import call_control
from bot.runtime.settings import PREFIX, Settings
from channels.base import TokenCheck
from channels.registry import PLATFORMS, Platform

_SECONDS = 10


def check_channels(
    settings: Settings, *, ask: bool, access_list: AccessList | TapebotError | None = None
) -> Iterator[CheckResult]:
    """Check which channels are configured, whether they can run, and whether anyone has access."""
    configured = False
    for platform in PLATFORMS.values():
        # The shards of one bot share its name and its token.
        for name, spec in {
            channel_spec.name: channel_spec for channel_spec in platform.channels(settings)
        }.items():
            configured = True
            title = (
                platform.title
                if name == platform.name
                else _("{title}, as {name}", title=platform.title, name=name)
            )
            yield _channel(title, platform, spec.token_check, ask=ask)
    if not configured:
        names = _(" or ").join(PREFIX + other.setting.upper() for other in PLATFORMS.values())
        remedy = _("Set {names} to add a channel.", names=names)
        yield CheckResult("channels", "ok", _("the console"), remedy)
        return
    yield _access(settings, access_list)


async def check_connections(home: Path) -> list[CheckResult]:
    """Return what channels of the running bot have no connection."""
    try:
        told = await call_control(home, {"do": "channels"}) or {}
    except TapebotError as error:
        return [CheckResult("channels", "warn", str(error))]
    remedy = _("Check the network, and the address if one is set.")
    return [CheckResult("channels", "warn", line, remedy) for line in told.get("problems", ())]


def _channel(name: str, platform: Platform, check: TokenCheck | None, *, ask: bool) -> CheckResult:
    library = platform.library
    if library is not None and importlib.util.find_spec(library) is None:
        remedy = _("Install it: pip install 'tapebot[{name}]'", name=platform.name)
        return CheckResult(
            "channels",
            "bad",
            _("{library} is missing for {name}", library=library, name=name),
            remedy,
        )
    if check is None:
        return CheckResult("channels", "ok", name)
    if not ask:
        return CheckResult(
            "channels", "ok", _("{name} (`doctor --probe` checks the token)", name=name)
        )
    # The call's errors are not shown: they may contain the URL, and with it the token.
    request = urllib.request.Request(check.url, headers=check.headers)  # noqa: S310 (a checked setting)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 (as above)
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 404):
            remedy = _("Set the right token; @BotFather or the developer portal shows it.")
            return CheckResult(
                "channels", "bad", _("{name} does not accept the token", name=name), remedy
            )
        return CheckResult(
            "channels",
            "warn",
            _("{name} answered {code}", name=name, code=error.code),
            _("Try again later."),
        )
    except (OSError, ValueError, http.client.HTTPException):
        remedy = _("Check the network, and the address if one is set.")
        return CheckResult("channels", "warn", _("{name} cannot be reached", name=name), remedy)
    person = told.get("result", told) if isinstance(told, dict) else {}
    who = person.get("username") if isinstance(person, dict) else None
    return CheckResult(
        "channels", "ok", _("{name}: connected as @{who}", name=name, who=who or "?")
    )


def _access(settings: Settings, access_list: AccessList | TapebotError | None) -> CheckResult:
    try:
        access_list = read_access_list(settings.home / FILE) if access_list is None else access_list
    except SettingsError as error:
        access_list = error
    if isinstance(access_list, TapebotError):
        return CheckResult("access", "bad", str(access_list))
    named = ConfiguredAccess(frozenset(settings.owners), frozenset(settings.allow))
    if not has_owner(access_list, named):
        remedy = _(
            "Start the bot and send it the claim code that it prints, or set TAPEBOT_OWNERS."
        )
        return CheckResult(
            "access", "warn", _("the bot has no owner yet, so it answers nobody"), remedy
        )
    owners = named.owners | {
        allowed_person.person
        for allowed_person in access_list.people
        if allowed_person.role == "owner"
    }
    others = named.allow | {allowed_person.person for allowed_person in access_list.people}
    others |= {allowed_chat.chat for allowed_chat in access_list.chats}
    text = ngettext(
        "{n} owner; people and chats in total: {total}",
        "{n} owners; people and chats in total: {total}",
        len(owners),
        total=len(owners | others),
    )
    return CheckResult("access", "ok", text)
