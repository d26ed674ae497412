"""The result of one check of ``tapebot doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.core.i18n import N_

CheckLevel = Literal["ok", "warn", "bad"]

LEVELS: dict[CheckLevel, str] = {"ok": N_("ok"), "warn": N_("warn"), "bad": N_("bad")}
"""Each level as a person reads it."""

AREAS = {
    "access": N_("access"),
    "channels": N_("channels"),
    "code": N_("code"),
    "database": N_("database"),
    "disk": N_("disk"),
    "home": N_("home"),
    "mcp": N_("mcp"),
    "model": N_("model"),
    "plug-ins": N_("plug-ins"),
    "python": N_("python"),
    "settings": N_("settings"),
    "tapes": N_("tapes"),
    "terminal": N_("terminal"),
    "time": N_("time"),
    "web tools": N_("web tools"),
    "workspace": N_("workspace"),
}
"""The subjects of checks, each as a person reads it."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        area: The subject, one of ``AREAS``.
        level: ``bad`` if tapebot cannot work, ``warn`` if it can but something should change.
        text: What the check found.
        remedy: What to do; empty if nothing.
    """

    area: str
    level: CheckLevel
    text: str
    remedy: str = ""
