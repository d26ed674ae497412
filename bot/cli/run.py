"""``tapebot run``, ``gateway`` and ``worker``: run the bot."""

from __future__ import annotations

from bot.cli.terminal import at_terminal
from bot.core.garbage import loading_modules
from bot.core.telemetry.logging import configure_logging
from bot.runtime.settings import ProcessRole, Settings


def talk(settings: Settings) -> int:
    """Run channels and sessions; at a terminal, offer the setup first, once."""
    if at_terminal():
        from bot.cli.setup import offer_setup

        settings = offer_setup(settings)
    return run_program(settings, "both")


def run_program(settings: Settings, role: ProcessRole) -> int:
    """Run the bot, or its part in a fleet, until it is stopped."""
    stop = configure_logging(
        settings.home, settings.log_level, settings.secrets(), to_stderr=not at_terminal()
    )
    try:
        with loading_modules():
            from bot.runtime.app import run
        run(settings, role)
    finally:
        stop()
    return 0
