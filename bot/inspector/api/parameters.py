"""Query parameters that several routes share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

TapeName = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="The conversation's key, such as `telegram:42`; or a scope's, such as "
        "`person:telegram:42` or `workspace:shared`.",
    ),
]
LARGEST_ID = 999_999_999_999_999
LARGEST_VERSION = 999_999_999

BeforeVersion = Annotated[
    int | None, Query(ge=1, le=LARGEST_VERSION, description="Only versions before this one.")
]

EntryId = Annotated[int, Query(ge=1, le=LARGEST_ID, description="Id of an entry.")]
Cursor = Annotated[
    int, Query(ge=0, le=999_999, description="`next` of the page before; 0 for the first.")
]
