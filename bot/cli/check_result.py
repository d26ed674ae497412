"""The result of one check of ``tapebot doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckLevel = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        area: The subject, one word.
        level: ``bad`` if tapebot cannot work, ``warn`` if it can but something should change.
        text: What the check found.
        remedy: What to do; empty if nothing.
    """

    area: str
    level: CheckLevel
    text: str
    remedy: str = ""
