"""The list of commands that Telegram shows at a slash."""

from __future__ import annotations

import logging
import re

from aiogram.methods import GetMyCommands, SetMyCommands
from aiogram.types import BotCommand

from channels.base import CommandMenu
from channels.delivery.screen import Flooded, Refused, ScreenError
from channels.telegram.api import Api
from channels.telegram.timing import Pause, Timing

logger = logging.getLogger(__name__)

# https://core.telegram.org/bots/api#botcommand
_NAME = re.compile(r"[a-z0-9_]{1,32}")
_LONGEST_SUMMARY = 256
_MOST = 100


async def keep_menu(api: Api, commands: tuple[CommandMenu, ...], timing: Timing) -> None:
    """Bring the menu up to date, if it is not; a refusal costs the menu alone."""
    wanted = [
        BotCommand(command=one.name, description=one.summary[:_LONGEST_SUMMARY])
        for one in commands
        if _NAME.fullmatch(one.name) and one.summary
    ][:_MOST]
    pause = Pause(timing)
    while True:
        try:
            known = [(one.command, one.description) for one in await api(GetMyCommands())]
            if known != [(one.command, one.description) for one in wanted]:
                await api(SetMyCommands(commands=wanted))
        except Refused as refused:
            logger.warning("Telegram does not take the menu of commands: %s", refused)
        except Flooded as flood:
            await pause.wait(flood.seconds)
            continue
        except ScreenError:
            await pause.wait()
            continue
        return
