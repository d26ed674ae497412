"""The state of a boundary: what it says of the phase that it ends. Pure.

Rule 1: words of people and models are kept as they are, in ``summary`` and ``next_steps``.
Rule 2: the program's own sentences are reasons: ``heading`` stands before the summary, or alone;
    ``reason`` says why the phase ends; a step may be one.
Rule 3: of a boundary from before there were codes, all are texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.core.reasons import Reason, reason_json, reason_text

HEADING = "heading"
"""Key of the program's own sentence on what the summary is."""


def summary_state(summary: str, heading: Reason | None = None) -> dict[str, Any]:
    """Return the part of a boundary's state that holds its summary."""
    state: dict[str, Any] = {"summary": summary}
    return state if heading is None else {**state, HEADING: reason_json(heading)}


def boundary_summary(state: Mapping[str, Any]) -> str:
    """Return the summary in a boundary's state, with its heading in the current language."""
    summary = state.get("summary")
    parts = [reason_text(state.get(HEADING)), summary if isinstance(summary, str) else ""]
    return "\n".join(filter(None, parts))


def boundary_steps(state: Mapping[str, Any]) -> list[str]:
    """Return the next steps in a boundary's state, in the current language."""
    steps = state.get("next_steps")
    texts = map(reason_text, steps) if isinstance(steps, list) else ()
    return [text for text in texts if text]
