"""Programs that the benchmark starts beside itself."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The folder of the program."""

_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")


def environment(**variables: str) -> dict[str, str]:
    """Return an environment without settings, keys, or what slows an interpreter down."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}
