"""Routes that read, append and follow entries."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

from fastapi import Header, Request, Response

from bot.core.errors import InvalidEntry
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import (
    MAX_APPEND_ENTRIES,
    MAX_JSON_INTEGER,
    NDJSON_MEDIA_TYPE,
    NEXT_PAGE_HEADER,
    encode_ndjson_entry,
    link_record,
    parse_new_entries,
)
from bot.tape.server.api import (
    AppendKey,
    EntryId,
    PageSize,
    TapeApi,
    TapeName,
    build_json_response,
    current_grant,
)
from bot.tape.server.error_handlers import TapeApiError
from bot.tape.server.event_stream import EventStreamResponse
from bot.tape.server.openapi import (
    entries_body,
    entries_response,
    events_response,
    json_response,
)
from bot.tape.server.pagination import (
    NdjsonPage,
    newest_readable_id,
    read_page,
    read_page_back,
)
from bot.tape.server.request_bodies import read_body
from bot.tape.server.tokens import TokenStore

FOLLOW_PATH = "/v1/tapes/follow"

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


async def read_request_entries(request: Request, most: int) -> list[TapeEntry]:
    """Parse the entries of a request body.

    Raises:
        TapeApiError: There are too many entries, or the body is too large.
        InvalidEntry: A line is not an entry.
    """
    entries = parse_new_entries(await read_body(request, most))
    if len(entries) > MAX_APPEND_ENTRIES:
        raise TapeApiError(
            413, "too_large", f"a request takes at most {MAX_APPEND_ENTRIES} entries; send fewer"
        )
    return entries


def expected_version(version: str | None) -> int | None:
    """Return the version in an ``If-Match`` header; None without one."""
    return None if version is None else int(version.strip('"'))


def add_entry_routes(api: TapeApi) -> None:
    """Add the routes for entries."""

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
        """Return the entries of an id range, oldest first, both ends included."""
        return _page(await read_page(api.store, tape, first, last, limit))

    @api.route(
        "GET",
        "/v1/tapes/entries/back",
        "read",
        answer={200: entries_response(paged=True)},
        refused=(404,),
    )
    async def read_back(tape: TapeName, before: EntryId = None, limit: PageSize = 200) -> Response:
        """Return entries newest first, starting just before an id."""
        return _page(await read_page_back(api.store, tape, before, limit))

    @api.route(
        "GET", "/v1/tapes/chain", "read", answer={200: json_response("Links")}, refused=(404,)
    )
    async def chain_links(
        tape: TapeName, first: EntryId = None, last: EntryId = None, limit: PageSize = 200
    ) -> Response:
        """Return an id range's links in the tape's chain of digests, oldest first."""
        version = await newest_readable_id(api.store, tape)
        end = version if last is None else min(last, version)
        at = max(first or 1, 1)
        upto = min(end, at + limit - 1)
        found = await api.store.chain_links(tape, at, upto) if at <= end else []
        following = upto + 1 if upto < end else None
        return build_json_response(
            {"links": [link_record(one) for one in found], "next": following}
        )

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
        """Append entries in one atomic write; the response is sent once they are durable."""
        entries = await read_request_entries(request, api.max_body_bytes)
        if not entries:
            raise InvalidEntry("there is nothing to append: send a line for each entry")
        written = await api.receipts.append(tape, entries, key=key, expect=expected_version(expect))
        lines = b"".join(map(encode_ndjson_entry, written))
        return Response(lines, 200, {"ETag": f'"{written[-1].id}"'}, media_type=NDJSON_MEDIA_TYPE)

    @api.route("GET", FOLLOW_PATH, "read", answer={200: events_response()}, refused=(404,))
    async def follow(
        request: Request, tape: TapeName, after: EntryId = None, last_event: _LastEvent = None
    ) -> Response:
        """Follow a tape: stream new entries after an id, by default after the newest."""
        now = await newest_readable_id(api.store, tape)
        start = now if after is None else after
        if last_event is not None:
            start = min(int(last_event), MAX_JSON_INTEGER)
        tokens: TokenStore = request.app.state.tokens
        allowed = partial(tokens.is_current, current_grant(request))
        return EventStreamResponse(api.store.follow(tape, start), start, allowed, api.stopping)


def _page(page: NdjsonPage) -> Response:
    headers = {"ETag": f'"{page.version}"'}
    if page.next is not None:
        headers[NEXT_PAGE_HEADER] = str(page.next)
    return Response(page.lines, 200, headers, media_type=NDJSON_MEDIA_TYPE)
