"""Routes of entries: reading, appending, following."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from fastapi import Header, Request, Response

from bot.core.errors import InvalidEntry
from bot.tape.entries import TapeEntry
from bot.tape.server.api import Api, AppendKey, EntryId, PageSize, TapeName, caller, json_of
from bot.tape.server.bodies import read_body
from bot.tape.server.documents import (
    entries_body,
    entries_response,
    events_response,
    json_response,
)
from bot.tape.server.following import Following
from bot.tape.server.paging import Page, backward, forward, newest
from bot.tape.server.problems import Problem
from bot.tape.server.tokens import TokenBook
from bot.tape.wire import (
    LARGEST_ID,
    MOST_PER_APPEND,
    NDJSON,
    NEXT,
    line_of,
    link_record,
    read_new_lines,
)

FOLLOW = "/v1/tapes/follow"

_VERSION = re.compile(r'"([0-9]{1,15})"')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description='The version that the tape must be at, in quotation marks: `"17"`.',
        pattern=f"^{_VERSION.pattern}$",
    ),
]
_LastEvent = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="Id of the last entry already known; counts before `after`.",
        pattern="^[0-9]{1,15}$",
    ),
]


async def read_entries(request: Request, most: int) -> list[TapeEntry]:
    """Return the entries that a request brings.

    Raises:
        Problem: There are too many, or the body is too large.
        InvalidEntry: One of them is none.
    """
    entries = read_new_lines(await read_body(request, most))
    if len(entries) > MOST_PER_APPEND:
        raise Problem(
            413, "too_large", f"a request takes at most {MOST_PER_APPEND} entries; send fewer"
        )
    return entries


def expected(version: str | None) -> int | None:
    """Return the version that an ``If-Match`` names; None where there is none."""
    return None if version is None else int(version.strip('"'))


def add_entries(api: Api) -> None:
    """Add the routes."""

    @api.route(
        "GET",
        "/v1/tapes/entries",
        "read",
        answer={200: entries_response(paged=True)},
        refused=(404,),
    )
    async def read(
        tape: TapeName, first: EntryId = None, last: EntryId = None, limit: PageSize = 200
    ) -> Response:
        """Read the entries of an id range, oldest first, both ends included."""
        return _page(await forward(api.store, tape, first, last, limit))

    @api.route(
        "GET",
        "/v1/tapes/entries/back",
        "read",
        answer={200: entries_response(paged=True)},
        refused=(404,),
    )
    async def read_back(tape: TapeName, before: EntryId = None, limit: PageSize = 200) -> Response:
        """Read entries newest first, from the one before an id."""
        return _page(await backward(api.store, tape, before, limit))

    @api.route(
        "GET", "/v1/tapes/chain", "read", answer={200: json_response("Links")}, refused=(404,)
    )
    async def chain_links(
        tape: TapeName, first: EntryId = None, last: EntryId = None, limit: PageSize = 200
    ) -> Response:
        """Read the links of the entries of an id range in the tape's chain of digests, oldest first."""
        version = await newest(api.store, tape)
        end = version if last is None else min(last, version)
        at = max(first or 1, 1)
        upto = min(end, at + limit - 1)
        found = await api.store.chain_links(tape, at, upto) if at <= end else []
        following = upto + 1 if upto < end else None
        return json_of({"links": [link_record(one) for one in found], "next": following})

    @api.route(
        "POST",
        "/v1/tapes/entries",
        "append",
        answer={200: entries_response(paged=False)},
        refused=(404, 409, 507),
        body=entries_body("The entries, written together or not at all.", required=True),
    )
    async def append(
        request: Request, tape: TapeName, expect: IfMatch = None, key: AppendKey = None
    ) -> Response:
        """Append entries as one atomic write; answered once they are durable."""
        entries = await read_entries(request, api.most)
        if not entries:
            raise InvalidEntry("there is nothing to append: send a line for each entry")
        written = await api.receipts.append(tape, entries, key=key, expect=expected(expect))
        lines = b"".join(map(line_of, written))
        return Response(lines, 200, {"ETag": f'"{written[-1].id}"'}, media_type=NDJSON)

    @api.route("GET", FOLLOW, "read", answer={200: events_response()}, refused=(404,))
    async def follow(
        request: Request, tape: TapeName, after: EntryId = None, last_event: _LastEvent = None
    ) -> Response:
        """Follow a tape: entries after an id, by default after the newest, as they come."""
        now = await newest(api.store, tape)
        start = now if after is None else after
        if last_event is not None:
            start = min(int(last_event), LARGEST_ID)
        tokens: TokenBook = request.app.state.tokens
        allowed = partial(tokens.holds, caller(request))
        return Following(api.store.follow(tape, start), start, allowed, api.stopping)


def _page(page: Page) -> Response:
    headers = {"ETag": f'"{page.version}"'}
    if page.next is not None:
        headers[NEXT] = str(page.next)
    return Response(page.lines, 200, headers, media_type=NDJSON)
