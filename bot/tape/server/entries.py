"""Routes of entries and anchors: read, append, follow and search them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Header, Request, Response

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.tape.http_protocol import (
    MAX_JSON_INTEGER,
    NDJSON_MEDIA_TYPE,
    NEXT_PAGE_HEADER,
    anchor_record,
    encode_ndjson_entry,
    hit_record,
)
from bot.tape.server.api import (
    AnchorName,
    AppendKey,
    EntryId,
    ExpectedVersion,
    Grant,
    PageSize,
    ServerDep,
    TapeName,
    TapeRouter,
    TapeServer,
    build_json_response,
    etag,
    require_scope,
)
from bot.tape.server.event_stream import EventStreamResponse
from bot.tape.server.openapi import (
    entries_body,
    entries_response,
    events_response,
    json_body,
    json_response,
)
from bot.tape.server.pagination import NdjsonPage, newest_readable_id, read_page, read_page_back
from bot.tape.server.request_bodies import NewAnchor, Search, read_entries, read_model
from bot.tape.server.tokens import TokenGrant
from bot.tape.store import anchor_from_entry, named_anchor_entry

router = TapeRouter()

FOLLOW_PATH = "/v1/tapes/follow"

_LastEvent = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="Id of the last entry already known; counts before `after`.",
        pattern="^[0-9]{1,15}$",
    ),
]


@router.scoped(
    "GET",
    "/v1/tapes/entries",
    "read",
    answer={200: entries_response(paged=True)},
    refused=(404,),
)
async def read(
    server: ServerDep,
    tape: TapeName,
    first: EntryId = None,
    last: EntryId = None,
    limit: PageSize = 200,
) -> Response:
    """Return the entries of an id range, oldest first, both ends included."""
    return _page(await read_page(server.store, tape, first, last, limit))


@router.scoped(
    "GET",
    "/v1/tapes/entries/back",
    "read",
    answer={200: entries_response(paged=True)},
    refused=(404,),
)
async def read_back(
    server: ServerDep, tape: TapeName, before: EntryId = None, limit: PageSize = 200
) -> Response:
    """Return entries newest first, starting just before an id."""
    return _page(await read_page_back(server.store, tape, before, limit))


@router.scoped(
    "POST",
    "/v1/tapes/entries",
    "append",
    answer={200: entries_response(paged=False)},
    refused=(404, 409, 507),
    body=entries_body("The entries, written together or not at all.", required=True),
)
async def append(
    request: Request,
    server: ServerDep,
    tape: TapeName,
    expect: ExpectedVersion,
    key: AppendKey = None,
) -> Response:
    """Append entries in one atomic write; the response is sent once they are durable."""
    entries = await read_entries(request)
    if not entries:
        raise InvalidEntry("there is nothing to append: send a line for each entry")
    written = await server.receipts.append(tape, entries, key=key, expect=expect)
    lines = b"".join(map(encode_ndjson_entry, written))
    return Response(lines, 200, etag(written[-1].id), media_type=NDJSON_MEDIA_TYPE)


@router.scoped("GET", FOLLOW_PATH, "read", answer={200: events_response()}, refused=(404,))
async def follow(
    server: ServerDep,
    grant: Grant,
    tape: TapeName,
    after: EntryId = None,
    last_event: _LastEvent = None,
) -> Response:
    """Follow a tape: stream new entries after an id, by default after the newest."""
    now = await newest_readable_id(server.store, tape)
    start = now if after is None else after
    if last_event is not None:
        start = min(int(last_event), MAX_JSON_INTEGER)
    allowed = partial(server.tokens.is_current, grant)
    return EventStreamResponse(server.store.follow(tape, start), start, allowed, server.stopping)


@router.scoped(
    "POST",
    "/v1/search",
    "read",
    answer={200: json_response("Hits")},
    refused=(404,),
    body=json_body("Search", {"text": "grocery list", "limit": 5}, required=True),
    names=(),
)
async def search(request: Request, server: ServerDep, grant: Grant) -> Response:
    """Search the tapes that the token may access, best first; on a tie the newer first."""
    asked = await read_model(request, Search)
    by_anchor = asked.after_anchor is not None or asked.before_anchor is not None
    if by_anchor and asked.tapes is not None:
        for tape in asked.tapes:
            require_scope(grant, "read", tape)
    query = asked.query(await _visible(server, grant, asked.tapes))
    query.validate()
    hits = await server.store.search(query)
    return build_json_response({"hits": [hit_record(hit) for hit in hits]})


@router.scoped(
    "GET", "/v1/tapes/anchors", "read", answer={200: json_response("Anchors")}, refused=(404,)
)
async def list_anchors(
    server: ServerDep, tape: TapeName, after: EntryId = None, limit: PageSize = 200
) -> Response:
    """List a tape's anchors, oldest first, after an id."""
    anchors = [
        anchor for anchor in await server.store.list_anchors(tape) if anchor.at > (after or 0)
    ]
    page = anchors[:limit]
    following = page[-1].at if len(anchors) > limit else None
    return build_json_response(
        {"anchors": [anchor_record(anchor) for anchor in page], "next": following}
    )


@router.scoped(
    "POST",
    "/v1/tapes/anchors",
    "append",
    answer={201: json_response("Anchor")},
    refused=(404, 409, 507),
    body=json_body("NewAnchor", {"name": "plan", "state": {"step": 1}}, required=True),
)
async def create_anchor(
    request: Request, server: ServerDep, tape: TapeName, key: AppendKey = None
) -> Response:
    """Append an anchor that names an entry, by default the newest."""
    new_anchor = await read_model(request, NewAnchor)
    # One at a time, so that a retry sees the anchor that the first request is creating.
    async with server.creating_anchor:
        target = new_anchor.entry_id
        if target is None:
            # A retry must name the same entry as the first request.
            before = await server.receipts.find(tape, key)
            pointed = before.target_id if before is not None else None
            target = pointed or await newest_readable_id(server.store, tape)
        if not await server.store.read(tape, target, target):
            raise TapeNotFound(f"tape {tape} has no entry {target}")
        entry = named_anchor_entry(new_anchor.name, target, new_anchor.state)
        [written] = await server.receipts.append(tape, [entry], key=key)
    anchor = anchor_from_entry(tape, written)
    assert anchor is not None
    return build_json_response(anchor_record(anchor), 201)


@router.scoped(
    "GET",
    "/v1/tapes/anchors/last",
    "read",
    answer={200: json_response("Anchor")},
    names=("tape", "name"),
    refused=(404,),
)
async def get_anchor(server: ServerDep, tape: TapeName, name: AnchorName) -> Response:
    """Return the last anchor with a name."""
    return build_json_response(anchor_record(await server.store.get_anchor(tape, name)))


@router.scoped(
    "GET",
    "/v1/tapes/anchors/target",
    "read",
    answer={200: json_response("Target")},
    names=("tape", "name"),
    refused=(404,),
)
async def resolve_anchor(server: ServerDep, tape: TapeName, name: AnchorName) -> Response:
    """Return the id of the entry that the last anchor with a name points at."""
    return build_json_response({"entry_id": await server.store.resolve_anchor(tape, name)})


def _page(page: NdjsonPage) -> Response:
    headers = etag(page.version)
    if page.next is not None:
        headers[NEXT_PAGE_HEADER] = str(page.next)
    return Response(page.lines, 200, headers, media_type=NDJSON_MEDIA_TYPE)


async def _visible(
    server: TapeServer, grant: TokenGrant, asked: list[str] | None
) -> tuple[str, ...] | None:
    """Return the requested tapes that the token may access; None for all tapes."""
    if asked is None:
        if grant.sees_all:
            return None
        asked = await server.store.list_tapes()
    return tuple(tape for tape in asked if grant.can_see(tape))
