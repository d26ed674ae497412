"""Pages of login: the code, the link, who is logged in where, and tokens.

Rule 1: what changes something is a form that is sent; it comes from this site (``entrance``).
Rule 2: no form leads to another site, whatever ``next`` says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.bus import WebUser
from bot.core.errors import HttpError
from bot.inspector.access.logins import NewLogin
from bot.inspector.access.origin import fields, local_path
from bot.inspector.dependencies import Member, Owner, WebContext, WebContextDep
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

_ELSEWHERE = "This form was sent from another site. Open this page again, and send it from here."

Next = Annotated[str, Query(alias="next", max_length=2_000)]
"""Where to go on to after the login."""


@router.get("/login")
async def login_page(request: Request, web: WebContextDep, then: Next = "/") -> Response:
    """Show the form for a code; whoever is logged in goes on."""
    if await web.logins.authenticator.visitor(request) is not None:
        return RedirectResponse(local_path(then), 303)
    return _login_form(request, then)


@router.post("/login")
async def login_by_code(request: Request, web: WebContextDep) -> Response:
    """Log in by a code."""
    given = await fields(request)
    then = given.get("next", "/")
    try:
        return await _entered(
            request, web, lambda: web.logins.log_in_with_code(given.get("code", "")), then
        )
    except HttpError as refusal:
        return _login_form(request, then, refusal)


@router.get("/enter")
async def enter_page(request: Request) -> Response:
    """Show the button behind a link. Looking at it does not use the link up."""
    return render_page(request, "login_enter.html", None, problem="")


@router.post("/enter")
async def login_by_link(request: Request, web: WebContextDep) -> Response:
    """Log in by a link."""
    token = (await fields(request)).get("token", "").strip()
    # Without a program on the page a person may paste the whole link.
    secret = token.rpartition("#")[2]
    try:
        return await _entered(request, web, lambda: web.logins.log_in_with_link(secret), "/")
    except HttpError as refusal:
        return render_page(
            request, "login_enter.html", None, status=refusal.status, problem=refusal.detail
        )


@router.post("/logout")
async def logout(request: Request, web: WebContextDep, visitor: Member) -> Response:  # noqa: ARG001 (asks)
    """End this login."""
    await web.logins.close(request)
    response = RedirectResponse("/login", 303)
    web.logins.origin.delete_login_cookie(response)
    return response


@router.get("/account")
async def account_page(request: Request, web: WebContextDep, visitor: Member) -> Response:
    """Show where somebody is logged in, and an owner's tokens."""
    return await _account(request, web, visitor)


@router.post("/account/logins")
async def end_logins(request: Request, web: WebContextDep, visitor: Member) -> Response:
    """End one of one's own logins, or all of them but this."""
    which = (await fields(request)).get("login", "")
    own = await _current(request, web)
    if which == "others":
        # Whoever had one of the others may have asked for a code to come back with.
        await web.logins.login_store.end_logins(
            lambda one: one.visitor == visitor.id and one.entry != own, offers=visitor.id
        )
    else:
        await web.logins.login_store.end_logins(
            lambda one: one.visitor == visitor.id and str(one.entry) == which
        )
    return RedirectResponse("/account", 303)


@router.post("/account/tokens")
async def make_token(request: Request, web: WebContextDep, visitor: Owner) -> Response:
    """Make a token and show it, this once."""
    name = (await fields(request)).get("name", "")
    try:
        token = await web.logins.login_store.make_token(visitor.id, name)
    except HttpError as refusal:
        return await _account(request, web, visitor, problem=refusal.detail, status=refusal.status)
    return await _account(request, web, visitor, token=token)


@router.post("/account/tokens/end")
async def end_token(request: Request, web: WebContextDep, visitor: Owner) -> Response:  # noqa: ARG001 (asks)
    """Take a token back."""
    await web.logins.login_store.end_token((await fields(request)).get("name", ""))
    return RedirectResponse("/account", 303)


async def _entered(
    request: Request, web: WebContext, enter: Callable[[], Awaitable[NewLogin]], then: str
) -> Response:
    """Log in, in the place of whoever was logged in with this browser before.

    Raises:
        Refusal: The login is not good, or the form was not ours.
    """
    if not web.logins.origin.is_same_origin(request):
        raise HttpError(403, "forged", _ELSEWHERE)
    opened = await enter()
    await web.logins.close(request)
    response = RedirectResponse(local_path(then), 303)
    web.logins.origin.set_login_cookie(response, opened.secret)
    return response


def _login_form(request: Request, then: str, refusal: HttpError | None = None) -> Response:
    problem, status = ("", 200) if refusal is None else (refusal.detail, refusal.status)
    response = render_page(
        request, "login.html", None, status=status, then=local_path(then), problem=problem
    )
    if refusal is not None and refusal.headers:
        response.headers.update(refusal.headers)
    return response


async def _current(request: Request, web: WebContext) -> int | None:
    """Return the number of the login that a request is made with; None for a token."""
    secret = web.logins.origin.login_cookie(request)
    login = None if secret is None else await web.logins.login_store.login(secret)
    return None if login is None else login.entry


async def _account(
    request: Request,
    web: WebContext,
    visitor: WebUser,
    *,
    token: str = "",
    problem: str = "",
    status: int = 200,
) -> Response:
    return render_page(
        request,
        "login_account.html",
        visitor,
        status=status,
        logins=await web.logins.login_store.logins_of(visitor.id),
        current=await _current(request, web),
        tokens=await web.logins.login_store.tokens() if visitor.role == "owner" else [],
        token=token,
        problem=problem,
    )
