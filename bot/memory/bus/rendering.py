"""Select and render shared reference for the prompt. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.memory.bus.compartment_records import SharedReference
from bot.memory.bus.compartments import Compartments
from bot.memory.bus.compression.references import WORKSPACE_MARK, render_references
from bot.memory.bus.shared_reference import current_references, sort_references

MAX_REFERENCE_BYTES = 1_500
"""Size limit of shared reference in a prompt, in bytes."""


def readable_references(home: Compartments, workspace: Compartments) -> list[SharedReference]:
    """Return the values that a session reads: its scope's, and the workspace's for other keys.

    The source of a workspace value is hidden, because it may name a private chat.
    """
    own = current_references(home)
    keys = {one.key for one in own}
    others = (
        replace(one, source=WORKSPACE_MARK)
        for one in current_references(workspace)
        if one.key not in keys
    )
    return sort_references([*own, *others])


def render_prompt_references(
    refs: Sequence[SharedReference],
    most_bytes: int = MAX_REFERENCE_BYTES,
    timezone: tzinfo | None = None,
) -> str:
    """Render as many values as fit, in the order given.

    North stars and priorities take precedence, then newer values. Dates use the time zone.
    """
    return render_references(refs, most_bytes, timezone or UTC)
