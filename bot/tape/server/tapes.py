"""Routes that list, create, archive, erase, reset and fork tapes."""

from __future__ import annotations

import anyio.to_thread
from fastapi import Request, Response

from bot.core.errors import TapeNotFound
from bot.tape.http_protocol import parse_tombstones, segment_record
from bot.tape.server.api import (
    PageSize,
    TapeAfter,
    TapeApi,
    TapeName,
    build_json_response,
    current_grant,
    require_scope,
)
from bot.tape.server.entries import IfMatch, expected_version, read_request_entries
from bot.tape.server.openapi import entries_body, json_body, json_response, tombstones_body
from bot.tape.server.request_bodies import NewFork, NewTape, parse_body, read_body

_CARRY = "Entries that the new live part begins with, after its header; none if it is empty."


def add_tape_routes(api: TapeApi) -> None:
    """Add the routes that list, create and describe tapes."""

    @api.route("GET", "/v1/tapes", "read", answer={200: json_response("Tapes")}, names=("after",))
    async def list_tapes(request: Request, after: TapeAfter, limit: PageSize = 1_000) -> Response:
        """List the names of all tapes that the token may access."""
        sees = current_grant(request).can_see
        names = [
            name
            for name in await api.store.list_tapes()
            if (after is None or name > after) and sees(name)
        ]
        page = names[:limit]
        return build_json_response(
            {"tapes": page, "next": page[-1] if len(names) > limit else None}
        )

    @api.route(
        "POST",
        "/v1/tapes",
        "append",
        answer={200: json_response("Tape")},
        refused=(507,),
        body=json_body("NewTape", {"title": "Kitchen"}, required=False),
    )
    async def create(request: Request, tape: TapeName) -> Response:
        """Create a tape unless it exists; with `replace` (scope admin) reset an existing one."""
        asked = parse_body(NewTape, await read_body(request, api.max_body_bytes))
        if asked.replace:
            require_scope(current_grant(request), "admin")
        made = await api.store.create_tape(tape, asked.title, replace_if_exists=asked.replace)
        return build_json_response({"tape": made})

    @api.route(
        "GET", "/v1/tapes/title", "read", answer={200: json_response("Title")}, refused=(404,)
    )
    async def title(tape: TapeName) -> Response:
        """Return a tape's title."""
        return build_json_response({"title": await api.store.get_title(tape)})

    @api.route(
        "GET",
        "/v1/tapes/version",
        "read",
        answer={200: json_response("Version", version=True)},
        refused=(404,),
    )
    async def version(tape: TapeName) -> Response:
        """Return the id of a tape's last entry."""
        found = await api.store.version(tape)
        return build_json_response({"version": found}, version=found)

    @api.route(
        "GET",
        "/v1/tapes/segments",
        "read",
        answer={200: json_response("Segments")},
        refused=(404,),
    )
    async def segments(tape: TapeName) -> Response:
        """List a tape's sealed segments, oldest first."""
        found = await api.store.segments(tape)
        return build_json_response({"segments": [segment_record(one) for one in found]})


def add_lifecycle_routes(api: TapeApi) -> None:
    """Add the routes that archive, erase, reset and fork tapes."""

    @api.route(
        "POST",
        "/v1/tapes/archive",
        "append",
        answer={200: json_response("Segment")},
        refused=(404, 409, 507),
        body=entries_body(_CARRY, required=False),
    )
    async def archive(request: Request, tape: TapeName, expect: IfMatch = None) -> Response:
        """Seal the live part into a segment; ids continue."""
        carry = await read_request_entries(request, api.max_body_bytes)
        segment = await api.store.archive(tape, carry, expect=expected_version(expect))
        return build_json_response(segment_record(segment))

    @api.route(
        "POST",
        "/v1/tapes/erase",
        "admin",
        answer={200: json_response("Erased")},
        refused=(404, 507),
        body=tombstones_body(),
    )
    async def erase(request: Request, tape: TapeName) -> Response:
        """Replace entries by tombstones permanently; a retry completes an interrupted erasure."""
        raw = await read_body(request, api.max_body_bytes)
        tombstones = await anyio.to_thread.run_sync(parse_tombstones, raw)
        return build_json_response({"erased": await api.store.erase(tape, tombstones)})

    @api.route(
        "POST",
        "/v1/tapes/reset",
        "admin",
        answer={200: json_response("Version", version=True)},
        refused=(404, 409, 507),
        body=entries_body(_CARRY, required=False),
    )
    async def reset(request: Request, tape: TapeName, expect: IfMatch = None) -> Response:
        """Drop all entries of a tape, sealed and live; ids continue."""
        carry = await read_request_entries(request, api.max_body_bytes)
        await api.store.reset(tape, carry, expect=expected_version(expect))
        found = await api.store.version(tape)
        return build_json_response({"version": found}, version=found)

    @api.route(
        "POST",
        "/v1/tapes/fork",
        "append",
        answer={201: json_response("Tape")},
        refused=(404, 409, 507),
        body=json_body("NewFork", {"new_tape": "telegram:42:plan", "from_entry": 7}, required=True),
    )
    async def fork(request: Request, tape: TapeName) -> Response:
        """Create a tape with a copy of this tape's entries from an entry or an anchor on."""
        asked = parse_body(NewFork, await read_body(request, api.max_body_bytes))
        require_scope(current_grant(request), "append", asked.new_tape)
        if asked.from_entry is not None and asked.from_entry < 1:
            raise TapeNotFound(f"tape {tape} has no entry {asked.from_entry}")
        made = await api.store.fork(
            tape,
            asked.new_tape,
            from_entry=asked.from_entry,
            from_anchor=asked.from_anchor,
            title=asked.title,
        )
        return build_json_response({"tape": made}, 201)
