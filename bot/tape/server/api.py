"""Register routes with token scope, tape access checks and OpenAPI metadata.

Rule 1: a route without a declared scope requires an admin token: nothing is open by omission.
Rule 2: the token is checked before anything else of a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

import anyio
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from bot.core.errors import HttpError
from bot.core.http.tokens import bearer_token
from bot.core.patterns import LazyPattern
from bot.tape.http_protocol import (
    IDEMPOTENCY_KEY_HEADER,
    MAX_JSON_INTEGER,
    MAX_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PAGE_SIZE,
    query_parameter,
    to_json,
)
from bot.tape.server.health import StorageHealth
from bot.tape.server.idempotency import IdempotentAppender
from bot.tape.server.openapi import error_responses
from bot.tape.server.tokens import TokenGrant, TokenScope, TokenStore
from bot.tape.store import TapeStore

AUTH_SCHEME = "token"
"""Name of the security scheme in the OpenAPI document."""

_VERSION = LazyPattern(r'"([0-9]{1,15})"')


@dataclass(frozen=True, slots=True)
class TapeServer:
    """What the server's routes use; one per application.

    Attributes:
        store: The tape store.
        tokens: The access tokens.
        receipts: Appends each idempotency key once.
        max_body_bytes: Largest request body in bytes.
        health: Checks the store's folder.
        stopping: Set when the server stops, so that endless responses end.
        creating_anchor: Held while an anchor is created.
    """

    store: TapeStore
    tokens: TokenStore
    receipts: IdempotentAppender
    max_body_bytes: int
    health: StorageHealth
    stopping: anyio.Event
    creating_anchor: anyio.Lock = field(default_factory=anyio.Lock)


# Plain functions would run in a worker thread for each request.
async def tape_server(request: Request) -> TapeServer:
    """Return what the routes use."""
    server = request.app.state.server
    assert isinstance(server, TapeServer)
    return server


async def current_grant(request: Request) -> TokenGrant:
    """Return the grant of the request's token."""
    grant: TokenGrant = request.state.caller
    return grant


async def _expected_version(
    version: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description='The version that the tape must be at, in quotation marks: `"17"`.',
            pattern=f"^{_VERSION.pattern}$",
        ),
    ] = None,
) -> int | None:
    return None if version is None else int(version.strip('"'))


ServerDep = Annotated[TapeServer, Depends(tape_server)]
Grant = Annotated[TokenGrant, Depends(current_grant)]
ExpectedVersion = Annotated[int | None, Depends(_expected_version)]
"""The version in ``If-Match``; None without one."""

PageSize = Annotated[
    int, Query(alias="limit", description="Maximum page size.", ge=1, le=MAX_PAGE_SIZE)
]
AppendKey = Annotated[
    str | None,
    Header(
        alias=IDEMPOTENCY_KEY_HEADER,
        description="Idempotency key: a random text. A repeated request with the same key is executed only once.",
        min_length=1,
        max_length=MAX_KEY_LENGTH,
    ),
]
EntryId = Annotated[int | None, Query(ge=0, le=MAX_JSON_INTEGER)]


def _named(name: str) -> Callable[[Request], Awaitable[str]]:
    """Return a dependency that reads a name from the query string exactly."""

    async def read(request: Request) -> str:
        value = query_text(request, name)
        if value is None or len(value) > MAX_NAME_LENGTH:
            what = "is missing" if value is None else f"has over {MAX_NAME_LENGTH} characters"
            raise HttpError(422, "invalid_request", f"query.{name}: it {what}")
        return value

    return read


async def _after(request: Request) -> str | None:
    return query_text(request, "after")


TapeName = Annotated[str, Depends(_named("tape"))]
AnchorName = Annotated[str, Depends(_named("name"))]
TapeAfter = Annotated[str | None, Depends(_after)]

_NAMES = {
    "tape": "The session's key, percent-encoded.",
    "name": "The anchor's name, percent-encoded.",
    "after": "A name; the page starts after it.",
}


def query_text(request: Request, name: str) -> str | None:
    """Return a parameter of the query string exactly, unlike FastAPI's own parameters.

    Raises:
        HttpError: The query string is not UTF-8.
    """
    try:
        return query_parameter(request.scope["query_string"], name)
    except ValueError as error:
        raise HttpError(422, "invalid_request", "query: percent-encode it as UTF-8") from error


_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class TapeRouter(APIRouter):
    """A router whose routes declare the scope that a token needs."""

    def __init__(self) -> None:
        super().__init__(dependencies=[Depends(authorize)])

    def scoped(
        self,
        method: Literal["GET", "POST"],
        path: str,
        scope: TokenScope | None,
        *,
        answer: dict[int | str, dict[str, Any]],
        refused: tuple[int, ...] = (),
        body: dict[str, Any] | None = None,
        names: tuple[str, ...] = ("tape",),
    ) -> Callable[[_Handler], _Handler]:
        """Return a decorator that adds a route.

        Args:
            method: HTTP method.
            path: Path of the route.
            scope: Scope that the token must have; None if no token is needed.
            answer: The successful response, by status.
            refused: Error statuses besides those of every route.
            body: OpenAPI description of the request body.
            names: Query parameters that are names, such as the tape.
        """
        extra: dict[str, Any] = {"security": [{AUTH_SCHEME: [scope]}] if scope else []}
        if names:
            extra["parameters"] = [_parameter(name) for name in names]
        if body is not None:
            extra["requestBody"] = body
            refused = (*refused, 400, 408, 413)
        always = (401, 403, 422, 503) if scope else (503,)
        return self.api_route(
            path,
            methods=[method],
            responses={**answer, **error_responses(*always, *refused)},
            status_code=next(int(status) for status in answer),
            openapi_extra=extra,
            response_class=Response,
            response_model=None,
        )


async def authorize(request: Request) -> None:
    """FastAPI dependency that checks the request's token, its scope and its access to the tape.

    Raises:
        HttpError: The token is missing, unknown or not sufficient.
    """
    needed = _scope_of(request)
    if needed is None:
        return
    token = bearer_token(request.headers)
    grant = (await tape_server(request)).tokens.find(token) if token else None
    if grant is None:
        raise HttpError(
            401,
            "no_token",
            "send a valid token: Authorization: Bearer TOKEN (`tapebot tape-server token add` "
            "creates one)",
            {"WWW-Authenticate": "Bearer"},
        )
    request.state.caller = grant
    require_scope(grant, needed, query_text(request, "tape"))


def require_scope(grant: TokenGrant, scope: TokenScope, tape: str | None = None) -> None:
    """Check that a token has a scope and may access a tape.

    Raises:
        HttpError: It does not.
    """
    if not grant.allows(scope):
        raise HttpError(
            403, "scope", f"this needs a token of scope {scope}; {grant.name} has {grant.scope}"
        )
    if tape is not None and not grant.can_see(tape):
        raise HttpError(
            403, "tape", f"the token {grant.name} does not allow tape {tape}, if there is one"
        )


def build_json_response(value: Any, status: int = 200, *, version: int | None = None) -> Response:
    """Return a JSON response, with an ETag if a version is given."""
    headers = None if version is None else etag(version)
    return Response(to_json(value), status, headers, media_type="application/json")


def etag(version: int) -> dict[str, str]:
    """Return the headers with the version of a tape."""
    return {"ETag": f'"{version}"'}


def _parameter(name: str) -> dict[str, Any]:
    return {
        "in": "query",
        "name": name,
        "description": _NAMES[name],
        "required": name != "after",
        "schema": {"type": "string", "maxLength": MAX_NAME_LENGTH},
        "example": "telegram:42" if name != "name" else "plan",
    }


def _scope_of(request: Request) -> TokenScope | None:
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    if "security" not in extra:
        return "admin"
    if not extra["security"]:
        return None
    scope: TokenScope = extra["security"][0][AUTH_SCHEME][0]
    return scope
