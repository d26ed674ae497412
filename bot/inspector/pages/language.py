"""The form that chooses a person's language, and the messages of the site's scripts."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from bot.bus import WEB_CHANNEL
from bot.core.i18n import LANGUAGES
from bot.inspector.access.origin import fields, local_path
from bot.inspector.dependencies import Person, WebContextDep
from bot.inspector.language import script_messages

router = APIRouter(include_in_schema=False)

_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}  # for programs
"""The address of messages has a version that depends on them."""


@router.get("/messages/{language}")
async def messages(language: Annotated[str, Path(max_length=10)]) -> Response:
    """Return the messages that scripts use, in a language."""
    if language not in LANGUAGES:
        raise HTTPException(404)
    found = await anyio.to_thread.run_sync(script_messages, language)
    return JSONResponse(found, headers=_KEPT)


@router.post("/account/language")
async def choose_language(request: Request, web: WebContextDep, visitor: Person) -> Response:
    """Store the language that a person chose; an unknown one stands for that of the browser."""
    given = await fields(request)
    language = given.get("language", "")
    if web.languages is not None:
        chosen = language if language in LANGUAGES else None
        await web.languages.choose(f"{WEB_CHANNEL}:{visitor.id}", chosen)
    return RedirectResponse(local_path(given.get("next", "/account")), 303)
