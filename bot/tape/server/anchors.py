"""Routes that list, create and resolve anchors."""

from __future__ import annotations

import anyio
from fastapi import Request, Response

from bot.core.errors import TapeNotFound
from bot.tape.http_protocol import anchor_record
from bot.tape.server.api import (
    AnchorName,
    AppendKey,
    EntryId,
    PageSize,
    TapeApi,
    TapeName,
    build_json_response,
)
from bot.tape.server.openapi import json_body, json_response
from bot.tape.server.pagination import newest_readable_id
from bot.tape.server.request_bodies import NewAnchor, parse_body, read_body
from bot.tape.store import anchor_from_entry, named_anchor_entry


def add_anchor_routes(api: TapeApi) -> None:
    """Add the routes for anchors."""
    making = anyio.Lock()

    @api.route(
        "GET", "/v1/tapes/anchors", "read", answer={200: json_response("Anchors")}, refused=(404,)
    )
    async def list_anchors(
        tape: TapeName, after: EntryId = None, limit: PageSize = 200
    ) -> Response:
        """List a tape's anchors, oldest first, after an id."""
        found = [one for one in await api.store.list_anchors(tape) if one.at > (after or 0)]
        page = found[:limit]
        following = page[-1].at if len(found) > limit else None
        return build_json_response(
            {"anchors": [anchor_record(one) for one in page], "next": following}
        )

    @api.route(
        "POST",
        "/v1/tapes/anchors",
        "append",
        answer={201: json_response("Anchor")},
        refused=(404, 409, 507),
        body=json_body("NewAnchor", {"name": "plan", "state": {"step": 1}}, required=True),
    )
    async def create_anchor(request: Request, tape: TapeName, key: AppendKey = None) -> Response:
        """Append an anchor that names an entry, by default the newest."""
        asked = parse_body(NewAnchor, await read_body(request, api.max_body_bytes))
        # One at a time, so that a retry sees the anchor that the first request is creating.
        async with making:
            target = asked.entry_id
            if target is None:
                # A retry must name the same entry as the first request.
                before = await api.receipts.find(tape, key)
                pointed = before.target_id if before is not None else None
                target = pointed or await newest_readable_id(api.store, tape)
            if not await api.store.read(tape, target, target):
                raise TapeNotFound(f"tape {tape} has no entry {target}")
            entry = named_anchor_entry(asked.name, target, asked.state)
            [written] = await api.receipts.append(tape, [entry], key=key)
        made = anchor_from_entry(tape, written)
        assert made is not None
        return build_json_response(anchor_record(made), 201)

    @api.route(
        "GET",
        "/v1/tapes/anchors/last",
        "read",
        answer={200: json_response("Anchor")},
        names=("tape", "name"),
        refused=(404,),
    )
    async def get_anchor(tape: TapeName, name: AnchorName) -> Response:
        """Return the last anchor with a name."""
        return build_json_response(anchor_record(await api.store.get_anchor(tape, name)))

    @api.route(
        "GET",
        "/v1/tapes/anchors/target",
        "read",
        answer={200: json_response("Target")},
        names=("tape", "name"),
        refused=(404,),
    )
    async def resolve_anchor(tape: TapeName, name: AnchorName) -> Response:
        """Return the id of the entry that the last anchor with a name points at."""
        return build_json_response({"entry_id": await api.store.resolve_anchor(tape, name)})
