"""What to do once the setup is done."""

from __future__ import annotations

from bot.bus.access.access_list import ConfiguredAccess, has_owner
from bot.bus.access.file_store import FILE, read_access_list
from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.runtime.setup.checks import is_running
from bot.runtime.setup.setup import Setup


async def next_steps(setup: Setup, *, starts: bool = False) -> list[str]:
    """Return what a person can do now, a sentence each.

    Args:
        setup: What is set.
        starts: Whether tapebot starts at once.
    """
    settings = setup.settings
    running = await is_running(settings.home)
    lines = []
    if running:
        lines.append(_("tapebot runs already: start it again to use what you changed."))
    else:
        if not starts:
            lines.append(_("Talk in the terminal: tapebot"))
        lines.append(_("Keep it running, also when you log out: tapebot service install"))
    if settings.telegram_token or settings.discord_token:
        lines += _pairing(setup)
    if settings.web_listen is not None and running:
        lines.append(_("Open the site: tapebot web link"))
    lines.append(_("Check everything again: tapebot doctor --probe"))
    return lines


def _pairing(setup: Setup) -> list[str]:
    """Return how people get access."""
    settings = setup.settings
    try:
        access = read_access_list(settings.home / FILE)
    except SettingsError:
        return []
    others = _("Others write to the bot and get a code; you let them in with /pair CODE.")
    if has_owner(access, ConfiguredAccess(frozenset(settings.owners), frozenset(settings.allow))):
        return [others]
    own = _("Own the bot: at its start tapebot prints a code; send the bot /claim CODE in private.")
    return [own, others]
