"""The offline responder: a rule-based model that needs no API key and says that it is no LLM."""

from __future__ import annotations

from bot.offline.model import OfflineModel

__all__ = [
    "OfflineModel",
    "model",
]
