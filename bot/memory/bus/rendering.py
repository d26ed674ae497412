"""Shared reference as the prompt shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.memory.bus.compartments import Compartments
from bot.memory.bus.compression.references import WORKSPACE, references_text
from bot.memory.bus.records import SharedReference
from bot.memory.bus.shared import in_order, living

REFERENCE_BYTES = 1_500
"""Of shared reference in each prompt."""


def references_read(home: Compartments, workspace: Compartments) -> list[SharedReference]:
    """Return what a session reads: its home's, and of the workspace's what that does not have.

    Whose words a value of the workspace rests on is not for everybody.
    """
    own = living(home)
    keys = {one.key for one in own}
    others = (replace(one, source=WORKSPACE) for one in living(workspace) if one.key not in keys)
    return in_order([*own, *others])


def rendered(
    refs: Sequence[SharedReference],
    most_bytes: int = REFERENCE_BYTES,
    timezone: tzinfo | None = None,
) -> str:
    """Return as text as many values as fit, in the order given.

    North stars and priorities are taken first, then the newest; the days are those of the time zone.
    """
    return references_text(refs, most_bytes, timezone or UTC)
