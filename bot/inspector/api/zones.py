"""API routes of a conversation's memory zone: its versions, and the diff of any two."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.core.errors import HttpError
from bot.inspector.api import API
from bot.inspector.api.parameters import LARGEST_VERSION, BeforeVersion, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.diffs import ZonePartDiff, zone_part_diffs
from bot.inspector.reading.zones import ZoneLocation, ZoneView, places, zone_in, zone_view
from bot.memory.session.view.zone_snapshot import MemorySnapshot

router = APIRouter(prefix=API, tags=["zones"])


class ZonePage(BaseModel):
    """A page of a zone's versions, newest first."""

    model_config = ConfigDict(frozen=True)

    tape: str
    total: int = Field(description="Versions that the tape has.")
    newest: int = Field(description="The version that counts now; 0 where there is none.")
    versions: list[ZoneView]
    before: int | None = Field(description="Asks for those before; null where there are none.")


class ZoneDiff(BaseModel):
    """The difference between two versions of a zone."""

    model_config = ConfigDict(frozen=True)

    tape: str
    old: int = Field(
        description="The version on the old side; 0 is the empty one before the first."
    )
    new: int = Field(description="The version on the new side.")
    parts: list[ZonePartDiff] = Field(
        description="By part: long-term memory, notes by day, shared, reference; in lines and words."
    )


@router.get("/zones")
async def list_zones(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    before: BeforeVersion = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many.")] = 30,
) -> ZonePage:
    """List the versions of a conversation's memory zone, newest first.

    A zone is the memory in a conversation's prompt: long-term memory, notes, what everybody reads,
    and the shared reference. Each change is a new version; all are on the tape. A person's scope
    has none.
    """
    return await zone_page(web, tape, before, limit)


@router.get("/zones/diff")
async def diff_zones(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001
    tape: TapeName,
    old: Annotated[
        int,
        Query(
            alias="from", ge=0, le=LARGEST_VERSION, description="A version; 0 for the empty one."
        ),
    ],
    new: Annotated[
        int, Query(alias="to", ge=0, le=LARGEST_VERSION, description="Another version.")
    ],
) -> ZoneDiff:
    """Compare any two versions of a zone, by part, by lines and by words."""
    return await zone_diff(web, tape, old, new)


async def zone_page(
    web: WebContext,
    tape: str,
    before: int | None,
    limit: int,
    known: list[ZoneLocation] | None = None,
) -> ZonePage:
    """Return a page of versions; see ``list_zones``.

    Args:
        web: The site's context.
        tape: The conversation's key.
        before: Only versions before this one.
        limit: The most versions to return.
        known: Locations of all versions, if the caller has them; else they are looked up.

    Raises:
        TapeNotFound: There is no such tape.
    """
    found = known if known is not None else await places(web.store, tape)
    fitting = [one for one in found if before is None or one.version < before]
    shown = fitting[:limit]
    return ZonePage(
        tape=tape,
        total=len(found),
        newest=found[0].version if found else 0,
        versions=[await zone_view(web.store, tape, one) for one in shown],
        before=shown[-1].version if len(fitting) > limit else None,
    )


async def zone_diff(
    web: WebContext, tape: str, old: int, new: int, known: list[ZoneLocation] | None = None
) -> ZoneDiff:
    """Return the difference of two versions; see ``diff_zones``.

    Raises:
        TapeNotFound: There is no such tape.
        HttpError: 404 if there is no such version.
    """
    listed = known if known is not None else await places(web.store, tape)
    found = {one.version: one for one in listed}

    async def zone(version: int) -> MemorySnapshot:
        if version == 0:
            return MemorySnapshot()
        if version not in found:
            detail = f"{tape} has no version {version} of its memory zone; /zones lists them"
            raise HttpError(404, "not_found", detail)
        return await zone_in(web.store, tape, found[version])

    one, other = await zone(old), await zone(new)
    parts = await anyio.to_thread.run_sync(zone_part_diffs, one, other)
    return ZoneDiff(tape=tape, old=old, new=new, parts=parts)
