"""Build the tool that runs code, where the sandbox's libraries are and the owner allows it."""

from __future__ import annotations

from typing import Any

from bot.agent.code.sandbox import PythonSandbox, missing_libraries
from bot.agent.tools.code import python_tool
from bot.agent.tools.registry import Tool
from bot.bus.media.blobs import Blobs
from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.runtime.settings import Settings


def make_code_tools(settings: Settings, blobs: Blobs) -> list[Tool[Any]]:
    """Return the tool that runs code; none where it is switched off or there is no sandbox.

    Raises:
        SettingsError: The settings ask for it, and the libraries are missing.
    """
    if settings.code == "off":
        return []
    if missing := missing_libraries():
        if settings.code == "on":
            raise SettingsError(
                _(
                    "TAPEBOT_CODE: needs {missing}: pip install 'tapebot[code]'",
                    missing=", ".join(missing),
                )
            )
        return []
    return [python_tool(PythonSandbox(settings.home / "sandbox"), blobs)]
