"""API routes of shared reference: values by key, and their versions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from bot.inspector.api import API
from bot.inspector.api.parameters import BeforeVersion, TapeName
from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.reading.reference import (
    ReferenceList,
    ReferenceVersionList,
    reference_in,
    versions_of,
)

router = APIRouter(prefix=API, tags=["reference"])

Key = Annotated[str, Query(min_length=1, max_length=64, description="The value's key.")]


@router.get("/reference")
async def reference(web: WebContextDep, visitor: Owner, tape: TapeName) -> ReferenceList:
    """List the reference values in effect for a conversation: its scope's and the workspace's.

    Commands change them, such as `/reference rollback deadline 2`.
    """
    return await reference_in(web, visitor, tape)


@router.get("/reference/versions")
async def versions(
    *,
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    key: Key,
    before: BeforeVersion = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Most versions.")] = 20,
) -> ReferenceVersionList:
    """Return a value's versions, newest first: who set it, when, its evidence, what changed.

    If the scope never had the key, these are the versions of the workspace's value.
    """
    return await versions_of(web, visitor, tape, key, before=before, limit=limit)
