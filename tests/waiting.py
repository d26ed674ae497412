"""Waiting for what tells nobody of itself; see ``bot.testing.waiting``."""

from bot.testing.waiting import SECONDS, until

__all__ = ["SECONDS", "until"]
