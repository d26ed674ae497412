"""Settings of the assistants that are driven: each as it documents them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def nanobot_settings(home: Path, address: str) -> dict[str, Any]:
    """Return the contents of nanobot's ``config.json``."""
    defaults = {"workspace": str(home / "workspace"), "model": "scripted", "provider": "custom"}
    provider = {"apiKey": "bench", "apiBase": address}
    return {"agents": {"defaults": defaults}, "providers": {"custom": provider}}


def bub_environment(home: Path, address: str) -> dict[str, str]:
    """Return bub's environment variables."""
    return {
        "BUB_HOME": str(home),
        "BUB_MODEL": "openai:scripted",
        "BUB_API_KEY": "bench",
        "BUB_API_BASE": address,
    }


def tapebot_environment(home: Path, address: str) -> dict[str, str]:
    """Return tapebot's environment variables."""
    return {
        "TAPEBOT_HOME": str(home),
        "TAPEBOT_MODEL": "openai/scripted",
        "TAPEBOT_MODEL_API_BASE": address,
        "TAPEBOT_MODEL_API_KEY": "bench",
    }
