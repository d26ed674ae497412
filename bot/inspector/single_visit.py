"""Serve pages for a while, on loopback, to the one browser that opens a printed link.

No program runs beside them: there are no tapes, and nobody has a login.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

import anyio
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.background import BackgroundTask

from bot.core.errors import HttpError
from bot.core.http.sockets import address_of
from bot.core.http.tokens import new_token
from bot.core.i18n import _
from bot.inspector.access.middleware import SecurityMiddleware
from bot.inspector.access.origin import (
    SAFE_METHODS,
    SiteOrigin,
    csrf_token,
    fields,
    has_csrf_token,
)
from bot.inspector.errors import AsciiJSONResponse, answer_errors
from bot.inspector.rendering import STATIC, render_page
from bot.inspector.server import CachedStaticFiles, bind, serve

_ADDRESS = "127.0.0.1:0"


class SingleVisit:
    """The one browser that may use the pages."""

    def __init__(self, url: str) -> None:
        self._origin = SiteOrigin(url)
        self._secret = new_token()
        self._cookie = new_token()

    @property
    def link(self) -> str:
        """The link that lets a browser in, once."""
        return f"{self._origin.url}/enter#{self._secret}"

    def enter(self, request: Request, given: str, then: str) -> Response:
        """Return the response that lets the browser in.

        Raises:
            HttpError: The link is another one or was used, or the form is another site's.
        """
        fits = bool(self._secret) and hmac.compare_digest(given.encode(), self._secret.encode())
        if not (fits and self._origin.is_same_origin(request)):
            raise HttpError(403, "stranger", _used())
        self._secret = ""
        response = RedirectResponse(then, 303)
        self._origin.set_login_cookie(response, self._cookie)
        return response

    async def guard(self, request: Request) -> None:
        """Let the browser in that used the link; its forms need their token, too.

        Raises:
            HttpError: It is another one.
        """
        cookie = self._origin.login_cookie(request) or ""
        if not hmac.compare_digest(cookie.encode(), self._cookie.encode()):
            raise HttpError(403, "stranger", _used())
        request.state.csrf = csrf_token(self._cookie)
        changes = request.method not in SAFE_METHODS
        if changes and not (
            self._origin.is_same_origin(request)
            and await has_csrf_token(request, request.state.csrf)
        ):
            raise HttpError(403, "forged", _used())


def _used() -> str:
    return _("This link works once, in one browser. Start the command again for a new one.")


async def serve_visit(
    make_router: Callable[[SingleVisit], APIRouter],
    begin: str,
    announce: Callable[[str], None],
) -> None:
    """Serve pages until their form is sent to ``/finish``."""
    finished = anyio.Event()
    with bind(_ADDRESS) as bound:
        visit = SingleVisit(address_of(bound))
        app = _make_app(visit, begin, finished)
        app.include_router(make_router(visit))
        app.mount("/static", CachedStaticFiles(directory=STATIC), name="static")
        app.add_middleware(SecurityMiddleware, url=address_of(bound))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, app, bound)
            announce(visit.link)
            await finished.wait()
            tasks.cancel_scope.cancel()


def _make_app(visit: SingleVisit, begin: str, finished: anyio.Event) -> FastAPI:
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=AsciiJSONResponse,
    )
    answer_errors(app)

    @app.get("/")
    async def first() -> Response:
        return RedirectResponse(begin, 303)

    @app.get("/enter")
    async def enter_page(request: Request) -> HTMLResponse:
        return render_page(request, "login_enter.html", None, problem="")

    @app.post("/enter")
    async def enter(request: Request) -> Response:
        given = (await fields(request)).get("token", "").strip()
        # Without JavaScript, a person may paste the whole link.
        return visit.enter(request, given.rpartition("#")[2], begin)

    @app.post("/finish")
    async def finish(request: Request) -> HTMLResponse:
        await visit.guard(request)
        page = render_page(request, "setup_finished.html", None)
        page.background = BackgroundTask(_set, finished)
        return page

    return app


async def _set(event: anyio.Event) -> None:
    event.set()
