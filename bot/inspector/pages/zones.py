"""The page of a memory zone: its versions, and the diff of two of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from bot.inspector.api.parameters import LARGEST_VERSION, BeforeVersion, TapeName
from bot.inspector.api.zones import zone_diff, zone_page
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.diffs import DiffLine, ZonePartDiff
from bot.inspector.reading.facts import last_change, load_memory
from bot.inspector.reading.zones import places
from bot.inspector.rendering import render_page
from bot.memory.session.linking.scope_registry import is_shared_scope

router = APIRouter(include_in_schema=False)

_A_PAGE = 30
_PICKED = 300
"""Up to this many versions, a list offers them all."""

_AROUND = 3
"""Unchanged lines shown beside a change."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line of a diff, or the number of unchanged lines that are left out."""

    line: DiffLine | None
    skipped: int = 0


@router.get("/zones")
async def zones_page(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    *,
    tape: TapeName,
    old: Annotated[int | None, Query(alias="from", ge=0, le=LARGEST_VERSION)] = None,
    new: Annotated[int | None, Query(alias="to", ge=0, le=LARGEST_VERSION)] = None,
    before: BeforeVersion = None,
) -> Response:
    """Render a zone's versions and the diff of two: by default the newest and the one before."""
    found = await places(web.store, tape)
    listed = await zone_page(web, tape, before, _A_PAGE, found)
    numbers = [one.version for one in found]
    if new is None:
        new = numbers[0] if numbers else 0
    if old is None:
        old = next((one for one in numbers if one < new), 0)
    diff = await zone_diff(web, tape, old, new, found)
    older = {"tape": tape, "from": old, "to": new, "before": listed.before}
    return render_page(
        request,
        "zones.html",
        visitor,
        tape=tape,
        is_scope=is_shared_scope(tape),
        last_change=None
        if is_shared_scope(tape)
        else await last_change(await load_memory(web, visitor, tape)),
        listed=listed,
        previous=dict(zip(numbers, [*numbers[1:], 0], strict=False)),
        picked=found if len(found) <= _PICKED else [],
        diff=diff,
        parts=[(part, list(rows(part))) for part in diff.parts],
        newest_page=before is None,
        older=f"/zones?{urlencode(older)}#versions" if listed.before else "",
    )


def rows(part: ZonePartDiff) -> Iterator[DiffRow]:
    """Yield the lines of a part's diff, with long unchanged runs cut to the lines near a change."""
    lines = part.lines
    near = {
        at + step
        for at, line in enumerate(lines)
        if line.kind != "same"
        for step in range(-_AROUND, _AROUND + 1)
    }
    skipped = 0
    for at, line in enumerate(lines):
        if line.kind == "same" and at not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffRow(None, skipped)
            skipped = 0
        yield DiffRow(line)
    if skipped:
        yield DiffRow(None, skipped)
