"""Parameters of routes of the API and of pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from bot.tape.codec import MAX_JSON_INTEGER

API = "/api/v1"

TapeName = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="The conversation's key, such as `telegram:42`; or a scope's, such as "
        "`person:telegram:42` or `workspace:shared`.",
    ),
]
LARGEST_VERSION = 999_999_999

BeforeVersion = Annotated[
    int | None, Query(ge=1, le=LARGEST_VERSION, description="Only versions before this one.")
]

EntryId = Annotated[int, Query(ge=1, le=MAX_JSON_INTEGER, description="Id of an entry.")]
Cursor = Annotated[
    int, Query(ge=0, le=999_999, description="`next` of the previous page; 0 for the first.")
]

SessionWords = Annotated[
    str, Query(max_length=200, description="Words of its key, title or people.")
]
Channel = Annotated[str, Query(max_length=32, description="Only those of this channel.")]
SessionCursor = Annotated[
    str, Query(max_length=2_000, description="`next` of the previous answer.")
]
Before = Annotated[
    int, Query(ge=1, le=MAX_JSON_INTEGER, description="`older` of the previous page.")
]
TurnId = Annotated[str, Query(min_length=1, max_length=100, description="The turn's id.")]
Near = Annotated[
    int,
    Query(ge=1, le=MAX_JSON_INTEGER, description="An entry of the turn, to find it faster."),
]
Step = Annotated[int, Query(ge=1, le=10_000, description="Number of a step; default: the last.")]
Days = Annotated[int, Query(ge=1, le=365, description="Number of days, including today.")]
FactNumber = Annotated[
    str,
    Query(
        pattern=r"^w?[0-9]{1,9}$",
        description="As in chats: `3`, or `w3` for a shared fact.",
    ),
]
BeliefName = Annotated[str, Query(pattern=r"^p[0-9]{1,15}$", description="Such as `p3`.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="How many to pass over.")]
ProblemId = Annotated[
    str, Query(min_length=1, max_length=64, description="The problem's id: `general`, `p1`, …")
]
ReferenceKey = Annotated[str, Query(min_length=1, max_length=64, description="The value's key.")]
McpServerName = Annotated[
    str, Query(min_length=1, max_length=40, description="The server's name, as in `/mcp`.")
]
McpToolName = Annotated[
    str, Query(min_length=1, max_length=64, description="The tool's name, as in `/mcp SERVER`.")
]
