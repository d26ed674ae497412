"""What a check of ``tapebot doctor`` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckLevel = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that a check found.

    Attributes:
        level: ``bad`` if tapebot cannot work, ``warn`` if it can but something should change.
        text: What was found.
        remedy: What to do; empty if nothing.
        uncalled: What only ``--probe`` would call; empty if nothing.
        area: The check's name.
    """

    level: CheckLevel
    text: str
    remedy: str = ""
    uncalled: str = ""
    area: str = ""


def ok(text: str, remedy: str = "", *, uncalled: str = "") -> CheckResult:
    """Return something that is as it should be."""
    return CheckResult("ok", text, remedy, uncalled)


def warn(text: str, remedy: str = "") -> CheckResult:
    """Return something that should change."""
    return CheckResult("warn", text, remedy)


def bad(text: str, remedy: str = "") -> CheckResult:
    """Return something with which tapebot cannot work."""
    return CheckResult("bad", text, remedy)
