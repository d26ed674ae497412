"""Parameters of routes of the API and of pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from bot.inspector.reading.facts import FactFilter
from bot.inspector.reading.sessions import SessionDirectory, session_directory
from bot.inspector.reading.statistics import StatisticsCache, statistics_cache

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
LARGEST_ID = 999_999_999_999_999
LARGEST_VERSION = 999_999_999

BeforeVersion = Annotated[
    int | None, Query(ge=1, le=LARGEST_VERSION, description="Only versions before this one.")
]

EntryId = Annotated[int, Query(ge=1, le=LARGEST_ID, description="Id of an entry.")]
Cursor = Annotated[
    int, Query(ge=0, le=999_999, description="`next` of the page before; 0 for the first.")
]

SessionWords = Annotated[
    str, Query(max_length=200, description="Words of its key, title or people.")
]
Channel = Annotated[str, Query(max_length=32, description="Only those of this channel.")]
SessionCursor = Annotated[str, Query(max_length=2_000, description="`next` of the answer before.")]
Before = Annotated[int, Query(ge=1, le=LARGEST_ID, description="`older` of a page.")]
TurnId = Annotated[str, Query(min_length=1, max_length=100, description="The turn's id.")]
Near = Annotated[
    int,
    Query(ge=1, le=LARGEST_ID, description="An entry of the turn: it is found sooner."),
]
Step = Annotated[int, Query(ge=1, le=10_000, description="A step; by default the last.")]
Days = Annotated[int, Query(ge=1, le=365, description="How many days, today included.")]
FactNumber = Annotated[
    str,
    Query(
        pattern=r"^w?[0-9]{1,9}$",
        description="As chats show it: `3`; `w3` of what everybody reads.",
    ),
]
FactWords = Annotated[
    str, Query(max_length=200, description="All of these words are in it; any case.")
]
FactStatusFilter = Annotated[
    FactFilter,
    Query(description="Of one status; `ended` is all that hold no longer; `all` is whatever."),
]
FactSubject = Annotated[
    str | None,
    Query(max_length=40, description="What they are about; empty for those without a subject."),
]
BeliefName = Annotated[str, Query(pattern=r"^p[0-9]{1,15}$", description="Such as `p3`.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="How many to pass over.")]
ProblemId = Annotated[
    str, Query(min_length=1, max_length=64, description="The problem's id: `general`, `p1`, …")
]
ReferenceKey = Annotated[str, Query(min_length=1, max_length=64, description="The value's key.")]

DirectoryDep = Annotated[SessionDirectory, Depends(session_directory)]
StatisticsDep = Annotated[StatisticsCache, Depends(statistics_cache)]
