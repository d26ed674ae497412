"""Routes of shared reference: values under keys, and their versions."""

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
    """List the values that a conversation goes by: its scope's, and those that everybody reads.

    What changes them is a command, such as `/reference rollback deadline 2`.
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
    """Tell what a value was, the newest version first: who set it, when, what it rests on, what changed.

    Where the scope never had the key, everybody's value is meant.
    """
    return await versions_of(web, visitor, tape, key, before=before, limit=limit)
