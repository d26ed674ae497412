"""Pages for login by code or link, logout, and the account's logins and API tokens.

Rule 1: a change is made only by a form submitted from this site (``SiteOrigin``).
Rule 2: after login, ``next`` never leads to another site.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from bot.bus import WEB_CHANNEL, Right, WebUser
from bot.core.errors import HttpError
from bot.core.i18n import LANGUAGES, N_, _
from bot.inspector.access.login_fold import RIGHTS
from bot.inspector.access.logins import NewLogin
from bot.inspector.access.origin import fields, local_path
from bot.inspector.dependencies import Member, Person, WebContext, WebContextDep
from bot.inspector.rendering import render_page

router = APIRouter(include_in_schema=False)

_ELSEWHERE = N_(
    "This form was sent from another site. Open this page again, and send the form from here."
)

Next = Annotated[str, Query(alias="next", max_length=2_000)]
"""Path to go on to after login."""


@router.get("/login")
async def login_page(request: Request, web: WebContextDep, then: Next = "/") -> Response:
    """Render the form for a code; redirect users who are logged in."""
    if await web.logins.authenticator.visitor(request) is not None:
        return RedirectResponse(local_path(then), 303)
    return _login_form(request, then)


@router.post("/login")
async def login_by_code(request: Request, web: WebContextDep) -> Response:
    """Log in with a code."""
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
    """Render the login button of a link. Opening the page does not use up the link."""
    return render_page(request, "login_enter.html", None, problem="")


@router.post("/enter")
async def login_by_link(request: Request, web: WebContextDep) -> Response:
    """Log in with a link's secret."""
    token = (await fields(request)).get("token", "").strip()
    # Without JavaScript, a person may paste the whole link.
    secret = token.rpartition("#")[2]
    try:
        return await _entered(request, web, lambda: web.logins.log_in_with_link(secret), "/")
    except HttpError as refusal:
        return render_page(
            request, "login_enter.html", None, status=refusal.status, problem=refusal.detail
        )


@router.post("/logout")
async def logout(request: Request, web: WebContextDep, visitor: Member) -> Response:  # noqa: ARG001 (asks)
    """Log out: end the current login and delete its cookie."""
    await web.logins.close(request)
    response = RedirectResponse("/login", 303)
    web.logins.origin.delete_login_cookie(response)
    return response


@router.get("/account")
async def account_page(request: Request, web: WebContextDep, visitor: Person) -> Response:
    """Render the user's logins and API tokens; an owner sees everybody's tokens."""
    return await _account(request, web, visitor)


@router.post("/account/logins")
async def end_logins(request: Request, web: WebContextDep, visitor: Person) -> Response:
    """End one of the user's own logins, or all but the current one."""
    which = (await fields(request)).get("login", "")
    own = await _current(request, web)
    if which == "others":
        # Someone with one of the other logins may have made a link or code to return with.
        await web.logins.login_store.end_logins(
            lambda login: login.visitor == visitor.id and login.entry != own, offers=visitor.id
        )
    else:
        await web.logins.login_store.end_logins(
            lambda login: login.visitor == visitor.id and str(login.entry) == which
        )
    return RedirectResponse("/account", 303)


@router.post("/account/tokens")
async def make_token(request: Request, web: WebContextDep, visitor: Person) -> Response:
    """Create an API token of the user and show it, once."""
    given = await fields(request)
    rights = [right for right in allowed_rights(visitor) if right in given]
    try:
        token = await web.logins.login_store.make_token(
            visitor.id, given.get("name", ""), rights, own_sessions="own_sessions" in given
        )
    except HttpError as refusal:
        return await _account(request, web, visitor, problem=refusal.detail, status=refusal.status)
    return await _account(request, web, visitor, token=token)


@router.post("/account/tokens/end")
async def end_token(request: Request, web: WebContextDep, visitor: Person) -> Response:
    """Revoke an API token of the user; an owner may revoke everybody's."""
    given = await fields(request)
    whose = given.get("as", visitor.id) if visitor.role == "owner" else visitor.id
    await web.logins.login_store.end_token(whose, given.get("name", ""))
    return RedirectResponse("/account", 303)


def allowed_rights(user: WebUser) -> list[Right]:
    """Return the rights that a user's token can have."""
    return [right for right in RIGHTS if right != "site" or user.role == "owner"]


async def _entered(
    request: Request, web: WebContext, enter: Callable[[], Awaitable[NewLogin]], then: str
) -> Response:
    """Log in, and end the browser's previous login.

    Raises:
        HttpError: 403 if the form came from another site, or the login failed.
    """
    if not web.logins.origin.is_same_origin(request):
        raise HttpError(403, "forged", _(_ELSEWHERE))
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
    """Return the number of the request's login; None for a token."""
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
    chosen = None
    if web.languages is not None:
        chosen = await web.languages.language_of(f"{WEB_CHANNEL}:{visitor.id}")
    return render_page(
        request,
        "login_account.html",
        visitor,
        status=status,
        logins=await web.logins.login_store.logins_of(visitor.id),
        current=await _current(request, web),
        tokens=[
            one
            for one in await web.logins.login_store.tokens()
            if visitor.role == "owner" or one.visitor == visitor.id
        ],
        rights=allowed_rights(visitor),
        token=token,
        problem=problem,
        languages=LANGUAGES if web.languages is not None else None,
        chosen=chosen,
    )
