"""Shared reference as the prompt shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.memory.bus.compartment_records import SharedReference
from bot.memory.bus.compartments import Compartments
from bot.memory.bus.compression.references import WORKSPACE_MARK, render_references
from bot.memory.bus.shared_reference import current_references, sort_references

MAX_REFERENCE_BYTES = 1_500
"""Of shared reference in each prompt."""


def readable_references(home: Compartments, workspace: Compartments) -> list[SharedReference]:
    """Return what a session reads: its home's, and of the workspace's what that does not have.

    Whose words a value of the workspace rests on is not for everybody.
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
    """Return as text as many values as fit, in the order given.

    North stars and priorities are taken first, then the newest; the days are those of the time zone.
    """
    return render_references(refs, most_bytes, timezone or UTC)
