"""Build the site's ASGI application: the API, the pages, and the chat's routes."""

from __future__ import annotations

import logging
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic import BaseModel, Field
from starlette.requests import HTTPConnection
from starlette.routing import Route

from bot.bus import WEB_CHANNEL
from bot.core.errors import HttpError, TapebotError
from bot.core.http.tokens import bearer_token
from bot.core.i18n import _, accepted_languages
from bot.inspector.access.middleware import CLIENTS, SecurityMiddleware
from bot.inspector.api import commands
from bot.inspector.api import conversations as conversations_api
from bot.inspector.api import mcp as mcp_api
from bot.inspector.api import memory as memory_api
from bot.inspector.api import spending as spending_api
from bot.inspector.dependencies import Member, WebContext
from bot.inspector.errors import AsciiJSONResponse, answer_errors
from bot.inspector.language import LanguageMiddleware
from bot.inspector.pages import budget, conversations, language, login, mcp, memory
from bot.inspector.parameters import API
from bot.inspector.rendering import STATIC
from bot.inspector.server import CachedStaticFiles

logger = logging.getLogger(__name__)

_ABOUT = """\
Conversations and memory of tapebot. Every route takes the cookie of a login, or a
token (`Authorization: Bearer TOKEN`, from `tapebot web token NAME`). With a cookie, requests that change something need the
header `X-CSRF-Token`. Changes are commands, given in a conversation with the same checks as in the chat."""


class ErrorBody(BaseModel):
    """The body of an error response."""

    error: str = Field(description="Error code, for programs.")
    detail: str = Field(description="Error text, for people.")


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The request cannot be read."},
    401: {"model": ErrorBody, "description": "Not logged in, and no valid token."},
    403: {"model": ErrorBody, "description": "Not allowed, or the request may be forged."},
    404: {"model": ErrorBody, "description": "There is no such tape, entry or fact."},
    409: {"model": ErrorBody, "description": "The data has changed meanwhile."},
    422: {"model": ErrorBody, "description": "A parameter is invalid."},
    429: {
        "model": ErrorBody,
        "description": "Too many requests; `Retry-After` says when to retry.",
    },
    503: {"model": ErrorBody, "description": "The storage is not available."},
    504: {"model": ErrorBody, "description": "It took too long and continues in the background."},
}

_SECURITY = {
    "token": {"type": "http", "scheme": "bearer"},
    "login": {
        "type": "apiKey",
        "in": "cookie",
        "name": "tapebot",
        "description": "The cookie of a login (its name has the port, or the prefix `__Host-`); "
        "requests that change something also need the header `X-CSRF-Token`.",
    },
}


def build_app(web: WebContext, chat: APIRouter) -> FastAPI:
    """Return the ASGI application."""
    app = FastAPI(
        title="tapebot",
        version=version("tapebot"),
        description=_ABOUT,
        # Served below to logged-in users; FastAPI's own pages load scripts from other hosts.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=AsciiJSONResponse,
    )
    app.state.web = web
    answer_errors(app)
    app.router.routes.extend(_routes().routes)
    app.include_router(chat, include_in_schema=False)
    app.router.routes.append(Route("/mcp", web.memory or _no_memory, methods=None))
    app.mount("/static", CachedStaticFiles(directory=STATIC), name="static")
    app.add_middleware(LanguageMiddleware, decide=partial(_language, web))
    app.add_middleware(SecurityMiddleware, url=web.url)
    return app


async def _language(web: WebContext, connection: HTTPConnection) -> str:
    """Return the language of a request or WebSocket; programs read English."""
    if connection.scope["path"].startswith(CLIENTS) or bearer_token(connection.headers) is not None:
        return "en"
    asked = accepted_languages(connection.headers.get("accept-language", "")) or web.language
    secret = web.logins.origin.login_cookie(connection)
    if web.languages is None or secret is None:
        return asked
    try:
        login = await web.logins.login_store.login(secret)
        chosen = login and await web.languages.language_of(f"{WEB_CHANNEL}:{login.visitor}")
    except TapebotError as error:
        logger.warning("the language that a person chose cannot be read: %s", error)
        return asked
    return chosen or asked


async def _no_memory(request: Request) -> Response:  # noqa: ARG001 (what a route is called with)
    raise HttpError(501, "not_installed", _("this needs mcp: pip install 'tapebot[mcp]'"))


@cache
def _routes() -> APIRouter:
    """Return the routes of API and pages; cached, since resolving parameters is slow."""
    every = APIRouter(default_response_class=AsciiJSONResponse)
    for part in (conversations_api, memory_api, spending_api, mcp_api, commands):
        every.include_router(part.router, responses=ERROR_RESPONSES)
    for page in (login, language, conversations, memory, budget, mcp):
        every.include_router(page.router)
    every.include_router(_document())
    return every


def _document() -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(f"{API}/openapi.json")
    async def document(request: Request, visitor: Member) -> dict[str, Any]:  # noqa: ARG001
        """Return the OpenAPI document."""
        app: FastAPI = request.app
        described = app.openapi()
        described["components"]["securitySchemes"] = _SECURITY
        described["security"] = [{name: []} for name in _SECURITY]
        return described

    return router
