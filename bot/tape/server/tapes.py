"""Routes of whole tapes: list, create, archive, erase, reset and fork them, and the store's statistics."""

from __future__ import annotations

import anyio.to_thread
from fastapi import Request, Response

from bot.core.errors import TapeNotFound
from bot.tape.http_protocol import parse_tombstones, segment_record
from bot.tape.server.api import (
    ExpectedVersion,
    Grant,
    PageSize,
    ServerDep,
    TapeAfter,
    TapeName,
    TapeRouter,
    build_json_response,
    require_scope,
)
from bot.tape.server.openapi import entries_body, json_body, json_response, tombstones_body
from bot.tape.server.request_bodies import NewFork, NewTape, read_body, read_entries, read_model

router = TapeRouter()

_CARRY = "First entries of the new live part, after its header; none if it is empty."


@router.scoped("GET", "/v1/tapes", "read", answer={200: json_response("Tapes")}, names=("after",))
async def list_tapes(
    server: ServerDep, grant: Grant, after: TapeAfter, limit: PageSize = 1_000
) -> Response:
    """List the names of all tapes that the token may access."""
    names = [
        name
        for name in await server.store.list_tapes()
        if (after is None or name > after) and grant.can_see(name)
    ]
    page = names[:limit]
    return build_json_response({"tapes": page, "next": page[-1] if len(names) > limit else None})


@router.scoped(
    "POST",
    "/v1/tapes",
    "append",
    answer={200: json_response("Tape")},
    refused=(507,),
    body=json_body("NewTape", {"title": "Kitchen"}, required=False),
)
async def create(request: Request, server: ServerDep, grant: Grant, tape: TapeName) -> Response:
    """Create a tape unless it exists; with `replace` (scope admin) reset an existing one."""
    new_tape = await read_model(request, NewTape)
    if new_tape.replace:
        require_scope(grant, "admin")
    made = await server.store.create_tape(tape, new_tape.title, replace_if_exists=new_tape.replace)
    return build_json_response({"tape": made})


@router.scoped(
    "GET", "/v1/tapes/title", "read", answer={200: json_response("Title")}, refused=(404,)
)
async def title(server: ServerDep, tape: TapeName) -> Response:
    """Return a tape's title."""
    return build_json_response({"title": await server.store.get_title(tape)})


@router.scoped(
    "GET",
    "/v1/tapes/version",
    "read",
    answer={200: json_response("Version", version=True)},
    refused=(404,),
)
async def version(server: ServerDep, tape: TapeName) -> Response:
    """Return the id of a tape's last entry."""
    found = await server.store.version(tape)
    return build_json_response({"version": found}, version=found)


@router.scoped(
    "GET", "/v1/tapes/segments", "read", answer={200: json_response("Segments")}, refused=(404,)
)
async def segments(server: ServerDep, tape: TapeName) -> Response:
    """List a tape's sealed segments, oldest first."""
    found = await server.store.segments(tape)
    return build_json_response({"segments": [segment_record(segment) for segment in found]})


@router.scoped(
    "POST",
    "/v1/tapes/archive",
    "append",
    answer={200: json_response("Segment")},
    refused=(404, 409, 507),
    body=entries_body(_CARRY, required=False),
)
async def archive(
    request: Request, server: ServerDep, tape: TapeName, expect: ExpectedVersion
) -> Response:
    """Seal the live part into a segment; ids continue."""
    carry = await read_entries(request)
    segment = await server.store.archive(tape, carry, expect=expect)
    return build_json_response(segment_record(segment))


@router.scoped(
    "POST",
    "/v1/tapes/erase",
    "admin",
    answer={200: json_response("Erased")},
    refused=(404, 507),
    body=tombstones_body(),
)
async def erase(request: Request, server: ServerDep, tape: TapeName) -> Response:
    """Replace entries by tombstones permanently; a retry completes an interrupted erasure."""
    tombstones = await anyio.to_thread.run_sync(parse_tombstones, await read_body(request))
    return build_json_response({"erased": await server.store.erase(tape, tombstones)})


@router.scoped(
    "POST",
    "/v1/tapes/reset",
    "admin",
    answer={200: json_response("Version", version=True)},
    refused=(404, 409, 507),
    body=entries_body(_CARRY, required=False),
)
async def reset(
    request: Request, server: ServerDep, tape: TapeName, expect: ExpectedVersion
) -> Response:
    """Drop all entries of a tape, sealed and live; ids continue."""
    carry = await read_entries(request)
    await server.store.reset(tape, carry, expect=expect)
    found = await server.store.version(tape)
    return build_json_response({"version": found}, version=found)


@router.scoped(
    "POST",
    "/v1/tapes/fork",
    "append",
    answer={201: json_response("Tape")},
    refused=(404, 409, 507),
    body=json_body("NewFork", {"new_tape": "telegram:42:plan", "from_entry": 7}, required=True),
)
async def fork(request: Request, server: ServerDep, grant: Grant, tape: TapeName) -> Response:
    """Create a tape with a copy of this tape's entries from an entry or an anchor on."""
    new_fork = await read_model(request, NewFork)
    require_scope(grant, "append", new_fork.new_tape)
    if new_fork.from_entry is not None and new_fork.from_entry < 1:
        raise TapeNotFound(f"tape {tape} has no entry {new_fork.from_entry}")
    made = await server.store.fork(
        tape,
        new_fork.new_tape,
        from_entry=new_fork.from_entry,
        from_anchor=new_fork.from_anchor,
        to_entry=new_fork.to_entry,
        title=new_fork.title,
    )
    return build_json_response({"tape": made}, 201)


@router.scoped("GET", "/v1/statistics", "read", answer={200: json_response("Statistics")}, names=())
async def statistics(server: ServerDep) -> Response:
    """Return the store's statistics and the largest request body."""
    return build_json_response(
        {"store": server.store.statistics(), "most_bytes": server.max_body_bytes}
    )
