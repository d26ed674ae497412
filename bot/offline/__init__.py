"""The model that is there without a key: rules instead of a language model, and it says so."""

from __future__ import annotations

from bot.offline.model import OfflineModel

__all__ = ["OfflineModel"]
