"""Build the tool that runs code, where the sandbox's libraries are and the owner allows it."""

from __future__ import annotations

from typing import Any

from bot.agent.code.sandbox import PythonSandbox, missing_libraries
from bot.agent.tools.code import python_tool
from bot.agent.tools.registry import Tool
from bot.bus.media.blobs import Blobs
from bot.core.errors import SettingsError
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
                f"TAPEBOT_CODE: needs {', '.join(missing)}: pip install 'tapebot[code]'"
            )
        return []
    return [python_tool(PythonSandbox(settings.home / "sandbox"), blobs)]
