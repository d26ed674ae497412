"""What ``tapebot doctor`` says of one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckLevel = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was looked at.

    Attributes:
        area: What it is about, one word.
        level: ``bad`` where tapebot cannot work so, ``warn`` where it can.
        text: What was found.
        remedy: What to do, where there is something.
    """

    area: str
    level: CheckLevel
    text: str
    remedy: str = ""
