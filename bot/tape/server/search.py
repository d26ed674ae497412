"""Routes for search and statistics."""

from __future__ import annotations

from fastapi import Request, Response

from bot.tape.http_protocol import hit_record
from bot.tape.server.api import TapeApi, build_json_response, current_grant, require_scope
from bot.tape.server.openapi import json_body, json_response
from bot.tape.server.request_bodies import Search, parse_body, read_body
from bot.tape.server.tokens import TokenGrant


def add_search_routes(api: TapeApi) -> None:
    """Add the routes for search and statistics."""

    @api.route(
        "POST",
        "/v1/search",
        "read",
        answer={200: json_response("Hits")},
        refused=(404,),
        body=json_body("Search", {"text": "grocery list", "limit": 5}, required=True),
        names=(),
    )
    async def search(request: Request) -> Response:
        """Search the tapes that the token may access, best first; on a tie the newer first."""
        asked = parse_body(Search, await read_body(request, api.max_body_bytes))
        by_anchor = asked.after_anchor is not None or asked.before_anchor is not None
        if by_anchor and asked.tapes is not None:
            for tape in asked.tapes:
                require_scope(current_grant(request), "read", tape)
        query = asked.query(await _visible(api, current_grant(request), asked.tapes))
        query.validate()
        return build_json_response(
            {"hits": [hit_record(hit) for hit in await api.store.search(query)]}
        )

    @api.route("GET", "/v1/statistics", "read", answer={200: json_response("Statistics")}, names=())
    async def statistics() -> Response:
        """Return the store's statistics and the largest request body."""
        return build_json_response(
            {"store": api.store.statistics(), "most_bytes": api.max_body_bytes}
        )


async def _visible(
    api: TapeApi, grant: TokenGrant, asked: list[str] | None
) -> tuple[str, ...] | None:
    """Return the requested tapes that the token may access; None for all tapes."""
    if asked is None:
        if grant.sees_all:
            return None
        asked = await api.store.list_tapes()
    return tuple(tape for tape in asked if grant.can_see(tape))
