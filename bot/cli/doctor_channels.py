"""What ``tapebot doctor`` finds of the channels, and of who may use them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from bot.access.book import read_roster
from bot.access.door import FILE
from bot.access.roster import Named, has_owner
from bot.cli.finding import Finding
from bot.errors import SettingsError
from bot.settings import Settings


def channel_findings(settings: Settings) -> Iterator[Finding]:
    """Say which channels are set up, whether they can run, and whether anybody is let in."""
    platforms = [
        ("Telegram", "aiogram", "telegram", bot.channel) for bot in settings.telegram_token
    ]
    if settings.discord_token is not None:
        platforms.append(("Discord", "discord", "discord", "discord"))
    if not platforms:
        remedy = "Set TAPEBOT_TELEGRAM_TOKEN or TAPEBOT_DISCORD_TOKEN to be reached elsewhere."
        yield Finding("channels", "ok", "the console", remedy)
        return
    for name, module, extra, channel in platforms:
        if importlib.util.find_spec(module) is None:
            remedy = f"Install it: pip install 'tapebot[{extra}]'"
            yield Finding("channels", "bad", f"{module} is missing for {name}", remedy)
        else:
            yield Finding("channels", "ok", f"{name}, as {channel}")
    yield _access(settings)


def _access(settings: Settings) -> Finding:
    try:
        roster = read_roster(settings.home / FILE)
    except SettingsError as error:
        return Finding("access", "bad", str(error))
    if not has_owner(roster, Named(frozenset(settings.owners), frozenset(settings.allow))):
        remedy = "Start it and send it the claim code that it prints, or set TAPEBOT_OWNERS."
        return Finding("access", "warn", "nobody owns the bot yet: it answers nobody", remedy)
    owners = sum(one.role == "owner" for one in roster.people) + len(settings.owners)
    members = len(roster.people) + len(roster.chats) + len(settings.allow)
    return Finding("access", "ok", f"{owners} named as owners, {members} people and chats in all")
